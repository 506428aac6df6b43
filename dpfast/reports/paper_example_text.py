"""What ``dpfast example`` prints: who errs least, beside the constant, and every error with its interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from dpfast._support.text_table import Table
from dpfast._support.wrapped_text import wrap_paragraph
from dpfast.mechanisms.constant import NAME
from dpfast.mechanisms.lags import lag_text
from dpfast.simulation.least_error import say_least_error
from dpfast.simulation.paper_example import CALIBRATIONS, DFE, OWN, PaperMechanism
from dpfast.simulation.study import Result, Study, compare_results

COLUMNS = (
    *("κ", "designed for", "mechanism", "lower bound", "ideal RMSE", "predicted", "on the chain", "simulated"),
    *("low", "high", "explained"),
)
_HEADS = COLUMNS[:2]
_KAPPA = {"paper": "of the paper", "exact": "exact"}
_SPECTRA = {
    "any": "any spectrum, estimates at once",
    "printed": "the printed spectrum, of variance 1",
    "chain": "the spectrum of the chain that is simulated, of variance 1/4",
}
_SPECTRUM = {"any": "any", "printed": "the printed", "chain": "the chain's"}
_OF_DFE = "the chain, decision feedback at lag 5 behind the prefilter of"
_MEANING = (
    "Simulated: the root mean square error on the ±1/2 chain, with its interval in brackets. Predicted: the same, "
    "computed for the spectrum that was designed for; on the chain: for the simulated one. Explained: 1 is an "
    "estimate without error, 0 is as good as the constant, and less is worse. Decisions of decision feedback (DFE) "
    "are hard (sign) or soft. κ is the standard deviation of the noise for a sensitivity of 1: by the formula of the "
    "paper, or exact, the least that ε and δ need."
)


def print_example(rows: Sequence[PaperMechanism], study: Study) -> str:
    """Return sentences on who errs least for either κ, the table, and what its columns mean."""
    mean = study[NAME]
    cells = [_constant_cells(mean), *(_cells(row, study[row.mechanism.name]) for row in rows)]
    table = Table(COLUMNS, tuple(cells)).join_interval("simulated", study.confidence)
    said = [_say_best(x, rows, study) for x in CALIBRATIONS]
    shown = table.text(heads=_HEADS, rest="example.csv")
    return "\n\n".join([*map(wrap_paragraph, said), shown, wrap_paragraph(_MEANING)])


def _say_best(calibration: str, rows: Sequence[PaperMechanism], study: Study) -> str:
    """Say which mechanism errs least at one κ, and what the constant does."""
    own = [(row, study[row.mechanism.name]) for row in rows if row.calibration == calibration]
    named = [replace(x, name=f"{_name(row)} ({_spectrum(row)})") for row, x in own]
    return f"κ {_KAPPA[calibration]}: {say_least_error(named, study[NAME].predicted_rmse, compare_results)}"


def _spectrum(row: PaperMechanism) -> str:
    return f"for {_SPECTRUM[row.spectrum]} spectrum"


def _name(row: PaperMechanism) -> str:
    """Name a mechanism among those of one κ and one spectrum."""
    if row.spectrum == "any":
        return row.family
    if row.decision is not None:
        return f"{row.family} {row.decision} behind {_write_prefilter(row)}"
    lag = row.mechanism.lag
    return f"{row.family} {lag_text(lag)}" if lag is None else f"{row.family} lag {lag}"


def _write_prefilter(row: PaperMechanism) -> str:
    return "its own" if row.prefilter == OWN else row.prefilter.replace(", ", " ")


def _cells(row: PaperMechanism, result: Result) -> tuple[Any, ...]:
    m, name, spectrum = row.mechanism, _name(row), _SPECTRA[row.spectrum]
    if row.family == DFE:
        name, spectrum = f"{_write_prefilter(row)}, {row.decision}", _OF_DFE
    bound = None if m.lower_bound_mse is None else math.sqrt(m.lower_bound_mse)
    errors = bound, m.ideal_rmse, m.predicted_rmse
    return _KAPPA[row.calibration], spectrum, name, *errors, *_chain_cells(result)


def _constant_cells(mean: Result) -> tuple[Any, ...]:
    """Return the row of the constant, which has no noise and stands above all others."""
    return None, None, f"{NAME}: no data", None, None, mean.predicted_rmse, *_chain_cells(mean)


def _chain_cells(result: Result) -> tuple[Any, ...]:
    return result.predicted_rmse, result.rmse, *result.interval, result.explained
