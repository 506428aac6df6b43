"""The example of Le Ny 2013, Section VI, reproduced: ``dpfast example``."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from dpfast._support.html import paragraphs
from dpfast._support.output_folder import Folder
from dpfast._support.text_table import Table
from dpfast._support.validation import Array
from dpfast.design.catalogue import label
from dpfast.design.decision_feedback import decision_feedback
from dpfast.design.lmmse import lmmse
from dpfast.design.optimal import optimal
from dpfast.design.perturbation import input_perturbation, output_perturbation
from dpfast.design.prefilter.problem import Problem
from dpfast.design.prefilter.water_filling import feedback_water_filling, smoother_water_filling
from dpfast.design.zero_forcing import zero_forcing
from dpfast.filters.filter import Filter
from dpfast.mechanisms import lags
from dpfast.mechanisms.constant import NAME, constant
from dpfast.mechanisms.mechanism import Mechanism
from dpfast.mechanisms.receivers import Decision, DecisionFeedback
from dpfast.privacy.privacy import Calibration, Privacy
from dpfast.reports import html_page
from dpfast.reports.figures import SMALL, figure, logarithmic, plot_lines, png, words
from dpfast.reports.glossary import FIGURES
from dpfast.reports.html_page import code, facts, repeated
from dpfast.reports.sample_paths import draw_paths, sample_paths
from dpfast.reports.styles import TRUTH, Style, styles
from dpfast.signals.arma import ARMA
from dpfast.signals.markov_chain import MarkovChain
from dpfast.signals.model import Model
from dpfast.simulation.monte_carlo import monte_carlo
from dpfast.simulation.study import Result, Study, told_of_rare

TARGET = Filter([1, 0.995], [1, -0.995])
EPSILON, DELTA = math.log(3), 0.05
CHAIN = MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[-0.5, 0.5])
CONSTANT = constant(TARGET, CHAIN)
PRINTED = ARMA([math.sqrt(3) / 2], [1, -0.5])  # the numerator 3/4 of the paper: variance 1
CALIBRATIONS: tuple[Calibration, ...] = ("paper", "exact")
LAGS = (None, 0, 5, 20)
DECISIONS: tuple[Decision, ...] = ("sign", "soft")
LAG = 5  # of the paper's decision feedback

ERRATA = """\
The paper prints RMSE 8.82 (LZF) and 7.43 (LMMSE). They do not follow from its own parameters:
  LZF, κ of the paper:                        {lzf:.6f}   (κ <|F|>, printed 8.82)
  LMMSE smoother, printed spectrum:           {printed:.6f}   (printed 7.43)
  LMMSE smoother, spectrum of the ±1/2 chain: {chain:.6f}
The printed spectrum, numerator 3/4, has variance 1; a ±1/2 chain has variance 1/4, hence numerator 3/16.
The paper's display of the LMMSE receiver drops d². Its hard decision feedback, said to do well, is far worse than
the linear mechanisms at this privacy level: wrong decisions feed back and F integrates them. Its ideal RMSE assumes
error-free decisions."""

DEFINITION = {
    "target": "F(z) = (1 + 0.995 z⁻¹)/(1 − 0.995 z⁻¹)",
    "signal": "symmetric chain of levels ±1/2 that stays with probability 3/4; variance 1/4, spectrum that of an AR(1)",
    "privacy": "ε = ln 3, δ = 0.05, changes of one event by at most 1",
    "κ": "noise per sensitivity: by the formula of the paper, and exact, the least that suffices",
}
MEANING = FIGURES | {
    "On the chain": "The same for the simulated chain, where a mechanism was designed for another spectrum.",
    "Simulated": "Root of the mean squared error over all streams, with a confidence interval, low to high: Student's "
    "t over streams, which are independent, wider where errors are skewed. Every mechanism sees the same inputs and "
    "the same unit noise.",
}
SHOWN = {
    "paths": "Sample paths: the estimates of eight mechanisms, each in the colour of its family, over the true output "
    "(black), on one and the same stream. All panels have one axis; what leaves it is said.",
    "prefilters": "Magnitude of the prefilter over frequency, ideal and as realised, of the LMMSE design and of that "
    "for decision feedback.",
}
COLUMNS = (
    "κ",
    "designed for",
    "mechanism",
    "prefilter",
    "decision",
    "lag",
    "lower bound",
    "ideal RMSE",
    "predicted",
    "on the chain",
    "simulated",
    "low",
    "high",
    "explained",
)


@dataclass(frozen=True)
class Row:
    """A mechanism and how the table calls it."""

    calibration: Calibration
    spectrum: str
    family: str
    prefilter: str
    mechanism: Mechanism

    @property
    def decision(self) -> str | None:
        """The kind of decision, None for a linear mechanism."""
        receiver = self.mechanism.receiver
        return receiver.decision if isinstance(receiver, DecisionFeedback) else None

    def cells(self, study: Study) -> tuple[Any, ...]:
        """Ideal, predicted (for its own spectrum, and on the chain) and simulated errors are different figures."""
        m, result = self.mechanism, study[self.mechanism.name]
        lag = lags.shown(m.lag)
        bound = None if m.lower_bound_mse is None else math.sqrt(m.lower_bound_mse)
        errors = bound, m.ideal_rmse, m.predicted_rmse, *_simulated(result)
        return self.calibration, self.spectrum, self.family, self.prefilter, self.decision, lag, *errors


def _simulated(result: Result) -> tuple[Any, ...]:
    """Predicted on the chain, simulated, and explained by what was simulated."""
    return result.predicted_rmse, result.rmse, *result.interval, result.explained


def _constant_cells(study: Study) -> tuple[Any, ...]:
    """It has no noise, and so no κ."""
    errors = None, None, CONSTANT.predicted_rmse, *_simulated(study[NAME])
    return "any", "chain", NAME, "0", None, "0", *errors


def run(folder: Folder, *, n_streams: int, n_samples: int, seed: int, command: str, progress: bool) -> str:
    """Design, simulate, add the files to the folder, and return what is printed; the page shows the command."""
    rows = [row for calibration in CALIBRATIONS for row in mechanisms(calibration)]
    study = monte_carlo(
        [*(row.mechanism for row in rows), CONSTANT],
        CHAIN,
        n_streams=n_streams,
        n_samples=n_samples,
        seed=seed,
        progress=progress,
    )
    table = Table(COLUMNS, (*(row.cells(study) for row in rows), _constant_cells(study)))
    errata = ERRATA.format(**_errata(rows))
    footer = (
        f"Simulated on the ±1/2 chain: {n_streams} streams of {n_samples} samples after {study.burn_in}, seed {seed}; "
        f"{100 * study.confidence:g}% intervals.\n"
        "Designed for the printed spectrum (variance 1) or the chain's (variance 1/4). Lower bound: for all linear "
        "mechanisms of the lag;\nof LZF, for those that do not distort. Ideal RMSE of decision feedback assumes "
        "error-free decisions.\nExplained: 1 - simulated MSE/variance of the true output, the latter by the chain's "
        f"spectrum; the constant publishes the mean. {told_of_rare(study)}".rstrip()
    )
    folder.add("example.csv", table.csv())
    folder.add(
        "example.md", f"# The paper's example\n\n{table.markdown()}\n\n{footer}\n\n## Errata\n\n{_block(errata)}\n"
    )
    paths, drawn = _paths(rows, seed)
    folder.add("paths.csv", paths.csv())
    folder.add("paths.png", png(drawn))
    prefilters = _prefilters(rows)
    folder.add("prefilters.png", png(prefilters))
    sections = {
        "Definition": [facts(DEFINITION), paragraphs(footer)],
        "Results": [html_page.table(table, "errors of the mechanisms", where="example.csv", n_headers=6)],
        "Pictures": [html_page.picture(drawn, SHOWN["paths"]), html_page.picture(prefilters, SHOWN["prefilters"])],
        "What the figures mean": [facts(MEANING)],
        "Errata": [code(errata)],
        **repeated(command),
    }
    folder.add("report.html", html_page.page("The example of Le Ny 2013, Section VI", sections))
    return f"{table.text()}\n\n{footer}\n\n{errata}"


def _block(text: str) -> str:
    return f"```text\n{text}\n```"


def _errata(rows: list[Row]) -> dict[str, float]:
    ideal = {(r.calibration, r.spectrum, r.mechanism.lag, r.family): r.mechanism.ideal_rmse for r in rows}
    found = {
        "lzf": ideal["paper", "any", 0, "LZF"],
        "printed": ideal["paper", "printed", None, "LMMSE"],
        "chain": ideal["paper", "chain", None, "LMMSE"],
    }
    return {name: value for name, value in found.items() if value is not None}


def mechanisms(calibration: Calibration) -> list[Row]:
    """Every mechanism of the paper, and the optimum, at one calibration of the noise."""
    privacy = Privacy(EPSILON, DELTA, calibration=calibration)
    rows = [
        _row(calibration, "any", "input perturbation", "1", input_perturbation(TARGET, privacy)),
        _row(calibration, "any", "output perturbation", "F", output_perturbation(TARGET, privacy)),
        _row(calibration, "any", "LZF", "LZF", zero_forcing(TARGET, privacy)),
    ]
    prefilters = {"LZF": rows[-1].mechanism.prefilter}
    models: dict[str, Model] = {"printed": PRINTED, "chain": CHAIN}
    for spectrum, model in models.items():
        causal = [lag for lag in LAGS if lag is not None]  # its smoother is that of LMMSE
        rows += [
            _row(calibration, spectrum, "optimal", "optimal", optimal(TARGET, privacy, model, lag=lag))
            for lag in causal
        ]
        rows += [_row(calibration, spectrum, "LMMSE", "LMMSE", lmmse(TARGET, privacy, model, lag=lag)) for lag in LAGS]
        prefilters[f"LMMSE, {spectrum}"] = rows[-len(LAGS)].mechanism.prefilter
    own = decision_feedback(TARGET, privacy, CHAIN, lag=LAG, prefilter="decision-feedback")
    prefilters["decision feedback"] = own.prefilter
    for (name, prefilter), decision in product(prefilters.items(), DECISIONS):
        feedback = decision_feedback(TARGET, privacy, CHAIN, lag=LAG, prefilter=prefilter, decision=decision)
        rows.append(_row(calibration, "chain", "DFE", name, feedback))
    return rows


def _row(calibration: Calibration, spectrum: str, family: str, prefilter: str, mechanism: Mechanism) -> Row:
    name = f"{calibration}, {spectrum}: {mechanism.name}, {prefilter}"
    return Row(calibration, spectrum, family, prefilter, replace(mechanism, name=name))


# --- the paper's two figures ----------------------------------------------------------------------


def _paths(rows: list[Row], seed: int) -> tuple[Table, Any]:
    """Sample paths of the mechanisms over the true output, the receivers' decisions hard and soft."""
    panels = {
        "LZF": _find(rows, "LZF", "LZF"),
        "LMMSE smoother": _find(rows, "LMMSE", "LMMSE", lag=None),
        f"LMMSE, lag {LAG}": _find(rows, "LMMSE", "LMMSE", lag=LAG),
        f"optimal, lag {LAG}": _find(rows, "optimal", "optimal", lag=LAG),
        "DFE, own prefilter, sign": _find(rows, "DFE", "decision feedback", "sign", LAG),
        "DFE, own prefilter, soft": _find(rows, "DFE", "decision feedback", "soft", LAG),
        "DFE, LMMSE prefilter, sign": _find(rows, "DFE", "LMMSE, chain", "sign", LAG),
        "DFE, LMMSE prefilter, soft": _find(rows, "DFE", "LMMSE, chain", "soft", LAG),
    }
    # after the start of every filter, and well before the end, which a smoother feels
    paths = sample_paths(panels, CHAIN, seed=seed, before=3000, n_samples=600, after=1000)
    columns: dict[str, Array] = {"t": np.arange(600.0), "true output": paths.truth, **paths.estimates}
    drawn = draw_paths(paths, "Sample paths over the true output (black); ε = ln 3, δ = 0.05, κ of the paper")
    shown = ([f"{x:.6g}" for x in values.tolist()] for values in columns.values())  # one simulation of many
    return Table(tuple(columns), tuple(zip(*shown, strict=True))), drawn


def _find(rows: list[Row], family: str, prefilter: str, decision: str | None = None, lag: int | None = 0) -> Mechanism:
    """The mechanism for the paper's κ and the chain's spectrum."""
    for row in rows:
        found = row.calibration, row.family, row.prefilter, row.decision, row.mechanism.lag
        if row.spectrum != "printed" and found == ("paper", family, prefilter, decision, lag):
            return row.mechanism
    raise LookupError(family, prefilter, decision, lag)


def _prefilters(rows: list[Row]) -> Any:
    """|G| of the LMMSE and of the decision-feedback design: ideal and realised."""
    omega = np.geomspace(1e-3, np.pi, 800)
    own = _find(rows, "DFE", "decision feedback", "soft", LAG)
    problem = Problem(TARGET, CHAIN, own.privacy.noise_multiplier**2)
    pairs = {
        label("lmmse"): (smoother_water_filling(problem), _find(rows, "LMMSE", "LMMSE", lag=None)),
        label("decision_feedback"): (feedback_water_filling(problem), own),
    }
    drawn, axes = figure(1, 2, height=2.2)
    for ax, (family, (water, mechanism)) in zip(axes[0], pairs.items(), strict=True):
        curves = {"ideal": np.sqrt(water.x(omega)), "realised": np.abs(mechanism.prefilter.response(omega))}
        looks = {"ideal": Style(TRUTH, "-", 3.0, 0.3), "realised": styles([family])[family]._replace(marker="")}
        plot_lines(ax, omega, curves, looks, f"prefilter of the {family} design")
        logarithmic(ax, "x")
        words(ax, x="ω (radians per sample)", y="|G|, ‖G‖₂ = 1")
        ax.legend(fontsize=SMALL, frameon=False)
    return drawn
