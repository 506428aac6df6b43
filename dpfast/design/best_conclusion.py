"""From a ranking to the mechanism that is chosen: its table, its bounds, and a sentence that says what to use."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

from dpfast.design.best_candidates import (
    GAUSSIAN_FACTORIZATION,
    GAUSSIAN_FILTER,
    TOO_LONG_WITH_MODEL,
    is_long_with_model,
)
from dpfast.design.best_demand import Demand
from dpfast.design.best_ranking import Designed, Ranking
from dpfast.design.bounds.additive import ADDITIVE
from dpfast.design.bounds.linear_mean import LINEAR_MEAN
from dpfast.design.bounds.of_mechanism import bounds_of
from dpfast.design.bounds.unbiased import UNBIASED
from dpfast.mechanisms.best_choice import (
    CHOSEN,
    REFERENCE,
    UNDECIDED,
    Choice,
    ChoiceRow,
    say_what_can_be_released,
)
from dpfast.mechanisms.bound import Bound
from dpfast.mechanisms.constant import NAME
from dpfast.mechanisms.mechanism_kinds import AnyMechanism
from dpfast.signals.output_variance import explained_share

LITTLE = 0.005  # of an RMSE
_MOST_DIGITS = 4  # behind the point of a per cent
NOTHING = "nothing of the data is published"
_PHRASES = {
    "optimal": "the optimal Gaussian filter",
    "LZF": "zero forcing (LZF)",
}
_GAUSSIAN = GAUSSIAN_FILTER, GAUSSIAN_FACTORIZATION
_IN_SHORT = {
    ADDITIVE: "nothing that adds noise and filters linearly",
    LINEAR_MEAN: "nothing with a linear mean and one covariance",
    UNBIASED: "no unbiased mechanism, on its worst input,",
}


_NO_BOUNDS = ("bounds", f"{TOO_LONG_WITH_MODEL}: use bounds_of")

Verdict = Literal["better", "undecided", "worse"]


class SimulatedDesign(NamedTuple):
    """A simulated mechanism: its RMSE with an interval, and whether it errs less than the best predicted one."""

    designed: Designed
    rmse: float
    interval: tuple[float, float]
    verdict: Verdict


def conclude(ranking: Ranking, judged: Sequence[SimulatedDesign] = (), trial: str = "") -> AnyMechanism:
    """Return the best predicted mechanism, or a simulated one that was shown to be better, with how it was chosen.

    Warnings of its design are given here, those of others are not.
    """
    task = ranking.task
    better = [x for x in judged if x.verdict == "better"]
    chosen = min(better, key=lambda x: x.rmse).designed if better else ranking.ranked[0]
    rows = {x.label: x.row(task) for x in ranking.ranked} | {x.designed.label: _simulated_row(x, task) for x in judged}
    designs = {x.label: x.mechanism for x in (*ranking.ranked, *(x.designed for x in judged))}
    order = sorted(rows, key=lambda label: (label != chosen.label, _error(rows[label], task)))
    shown = [rows[label] for label in order]
    shown[0] = replace(shown[0], status=CHOSEN)
    reference = _reference(task)
    bounds = () if is_long_with_model(task) else bounds_of(chosen.mechanism)
    for warned in chosen.warned:
        warnings.warn_explicit(warned.message, warned.category, warned.filename, warned.lineno)
    choice = Choice(
        sentence=_sentence(task, chosen, ranking.ranked, shown, bounds),
        rows=(*shown, *reference),
        bounds=bounds,
        reasons=ranking.reasons + (_NO_BOUNDS,) * is_long_with_model(task),
        minimize=task.minimize,
        trial=trial,
        alternatives=tuple(designs[label] for label in order[1:]),
    )
    return chosen.mechanism.with_choice(choice)


def _simulated_row(x: SimulatedDesign, task: Demand) -> ChoiceRow:
    status = UNDECIDED if x.verdict == "undecided" else ""
    explained = explained_share(x.rmse**2, task.variance)
    return replace(x.designed.row(task, status), rmse=x.rmse, interval=x.interval, explained=explained)


def _reference(task: Demand) -> list[ChoiceRow]:
    """Return the row of the constant, where a model tells its error."""
    if task.constant is None:
        return []
    mean, worst = task.constant, math.sqrt(task.constant.worst_step_mse)
    figures = mean.predicted_rmse, None, worst, mean.explained, 0.0
    return [ChoiceRow(NAME, mean.lag, *figures, ("model",), 0.0, True, NOTHING, True, True, REFERENCE)]


# --- the sentence ---------------------------------------------------------------------------------


def _error(row: ChoiceRow, task: Demand) -> float:
    error = row.rmse if task.minimize == "mean" or row.interval is not None else row.worst_step_rmse
    assert error is not None  # as it was ranked by it
    return error


def _sentence(
    task: Demand, chosen: Designed, others: Sequence[Designed], rows: Sequence[ChoiceRow], bounds: Sequence[Bound]
) -> str:
    """Say what to use, its error, how much less that is than of another kind, and what nothing goes below."""
    error = _error(rows[0], task)
    simulated = "" if rows[0].interval is None else "simulated "
    what = f"{simulated}RMSE" if task.minimize == "mean" else "RMSE in the worst step"
    mean = task.constant
    if mean is not None:
        spread = math.sqrt(mean.predicted_mse if task.minimize == "mean" else mean.worst_step_mse)
        if error > (1 - LITTLE) * spread:
            no = "no better" if error >= spread else "hardly better"
            return (
                f"Publish the mean of the output ({NAME}), at no cost of privacy: {what} {in_figures(spread)}. The "
                f"best mechanism, {_phrase(chosen)}, is {no}, with {in_figures(error)}{rows[0].interval_text}."
            )
    first, variance = rows[0], task.variance
    explains = f" (explains {in_percent(first.rmse**2 / variance)})" if first.rmse is not None and variance else ""
    figures = f"{in_figures(error)}{first.interval_text}{explains}"
    text = f"Use {_phrase(chosen)}: {what} {figures}{_compare(chosen, others, rows, task)}"
    return f"{text}{_goes_below(bounds)}.{say_what_can_be_released(rows, lambda row: _error(row, task))}"


def _phrase(x: Designed) -> str:
    """Name a mechanism in a sentence."""
    if x.candidate.family.name == "block_sums":
        sums = re.sub(r"\b1 samples", "1 sample", x.mechanism.sizes()[0].replace("steps", "samples"))
        behind = "" if x.candidate.predicted else " with the posterior mean behind them"
        return (f"block {sums}" if sums.startswith("sums") else sums) + behind
    return _PHRASES.get(x.label, x.label)


def _compare(chosen: Designed, others: Sequence[Designed], rows: Sequence[ChoiceRow], task: Demand) -> str:
    """Say how much less it errs than the best of another kind: than Gaussian noise, or the other way round."""
    is_gaussian = chosen.candidate.kind in _GAUSSIAN
    rest = [x for x in others if x.candidate.family is not chosen.candidate.family]
    other = next((x for x in rest if (x.candidate.kind in _GAUSSIAN) != is_gaussian), next(iter(rest), None))
    if other is None:
        return ""
    error, least = (_error(row, task) for label in (other.label, chosen.label) for row in rows if row.name == label)
    left = least / error if error else 1.0
    name = other.candidate.kind if not is_gaussian and other.candidate.kind else _phrase(other)
    return f", {in_percent(left)} below {name}" if 1 - left >= LITTLE else f", about as much as {name}"


def _goes_below(bounds: Sequence[Bound]) -> str:
    """Say what nothing of a class goes below: of the widest class that there is a bound for."""
    known = {x.name: x for x in bounds if x.name in _IN_SHORT}
    name = next((x for x in _IN_SHORT if x in known), None)
    return "" if name is None else f"; {_IN_SHORT[name]} goes below {in_figures(known[name].rmse)}"


def in_percent(left: float) -> str:
    """Write what is gone in per cent, 1 less what is left: in so many digits that it is 100 only where nothing is."""
    texts = (f"{100 * (1 - left):.{digits}f}" for digits in range(_MOST_DIGITS + 1))
    short = next((x for x in texts if left <= 0 or float(x) < 100), None)
    return f"more than {100 - 10.0**-_MOST_DIGITS} %" if short is None else f"{short} %"


def in_figures(x: float) -> str:
    """Write an error in three figures."""
    return f"{x:.3g}" if x < 1000 else f"{x:,.0f}"
