"""How well would each mechanism have served a historical event log? ``dpfast evaluate``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpfast._support import validation
from dpfast._support.csv_cells import rounded
from dpfast._support.errors import DataError
from dpfast._support.html import paragraphs
from dpfast._support.output_folder import Folder
from dpfast._support.progress import bar
from dpfast._support.text_table import Table
from dpfast._support.validation import Array
from dpfast.design.decision_feedback import decision_feedback
from dpfast.design.lmmse import input_perturbation, lmmse, output_perturbation, zero_forcing
from dpfast.design.optimal import optimal
from dpfast.filters.filter import Filter
from dpfast.mechanisms import lags
from dpfast.mechanisms.checks import AnyMechanism, of_filters
from dpfast.mechanisms.constant import Constant, constant
from dpfast.mechanisms.mechanism import Mechanism
from dpfast.privacy.privacy import Privacy
from dpfast.reports import html_page
from dpfast.reports.figures import figure, plot_path, png
from dpfast.reports.glossary import FIGURES, of_task
from dpfast.reports.html_page import facts, repeated
from dpfast.signals.arma import ARMA, Model
from dpfast.signals.events.historical import EventCounts
from dpfast.signals.events.timestamps import period_text
from dpfast.simulation.mixed_study import error_sizes
from dpfast.simulation.monte_carlo import Result, told_of_rare

BANNER = (
    "AN EVALUATION, NOT A RELEASE: these outputs contain the data, unprotected.",
    "The models behind them were fitted to the data: nothing fitted here may be used to release private data.",
)
MEANING = {
    "RMSE": "Root of the mean squared error over all bins of the series and all draws of the noise, in the units of "
    "the target's output, with a confidence interval, low to high: Student's t over the draws, wider where errors are "
    "skewed. The counts are what they are: of another log the interval says nothing.",
    "Predicted": FIGURES["Predicted"] + " Here the model is the autoregression fitted to the series, so that a "
    "difference shows how far the series is from it.",
    "Spread of true output": "Standard deviation of the target's output: an estimate that says nothing but the mean "
    "errs by this much.",
    "Explained": "1 − MSE/variance of the true output, both measured on the data: 1 is an estimate without error, and "
    "0 is as good as the constant, which publishes the mean that the target's output has by the fitted model.",
    "outputs.csv": "The true output and one draw of every estimate of it, in steps of at most a hundredth of its RMSE.",
}
SHOWN = (
    "True output (black) of the last days of each series, and one draw of two estimates of it: by zero forcing (LZF), "
    "and by the mechanism of finite lag that errs least. Not for release."
)
LAG = 5
CONFIDENCE = 0.95
COLUMNS = ("series", "mechanism", "lag", "RMSE", "low", "high", "predicted", "spread of true output", "explained")
SHOWN_DAYS = 7
MAX_PANELS = 12
MAX_LEVELS = 1000
SAME_TARGET = 1e-9
MAX_BINS = 100_000_000


@dataclass(frozen=True)
class Outcome:
    """One mechanism on one series: its error over time and noise draws, and one estimate, aligned with the truth."""

    series: str
    mechanism: Mechanism | Constant
    result: Result  # a stream is a draw of the noise; the variance is that of the data
    spread: float
    estimate: Array

    def cells(self) -> tuple[Any, ...]:
        """A row of the table."""
        m, result = self.mechanism, self.result
        figures = result.rmse, *result.interval, result.predicted_rmse, self.spread, result.explained
        return self.series, m.name, lags.shown(m.lag), *figures


def run(
    counts: EventCounts,
    target: Filter,
    privacy: Privacy,
    folder: Folder,
    *,
    order: int,
    draws: int,
    seed: int,
    command: str,
    saved: Sequence[AnyMechanism] = (),
    progress: bool = False,
) -> str:
    """Evaluate every mechanism on every series, add the files to the folder, and return what is printed.

    The page shows the command; `progress` shows bars (tqdm, extra ``progress``).
    """
    check(counts, max([order, *(x.lag or 0 for x in saved)]), draws)
    loaded = as_saved(saved, target, privacy)
    outputs = target.filter(counts.counts).y
    series = list(zip(counts.series, counts.counts, outputs, strict=True))
    designs: list[tuple[ARMA, list[Mechanism | Constant]]] = []
    with bar(progress, len(series), "designing", unit="series") as advance:
        for _, u, _ in series:
            model = ARMA.fit(u, order)
            designs.append((model, [*mechanisms(u, target, privacy, model), *loaded, constant(target, model)]))
            advance(1)
    outcomes: list[Outcome] = []
    with bar(progress, sum(len(x) for _, x in designs), "evaluating", unit="mechanism") as advance:
        for i, ((name, u, y), (model, several)) in enumerate(zip(series, designs, strict=True)):
            for mechanism in several:
                outcomes += evaluate_series(name, u, y, model, [mechanism], draws, noise_seed(seed, i))
                advance(1)
    table = Table(COLUMNS, tuple(x.cells() for x in outcomes))
    start = np.datetime_as_string(counts.start, "auto")
    footer = (
        f"{counts.counts.shape[1]} bins of {period_text(counts.period)} from {start}; "
        f"RMSE over all bins and {draws} noise draws (seed {seed}), with {CONFIDENCE:.0%} intervals over the draws; "
        f"models: AR({order}) fitted to each series; epsilon {privacy.epsilon:g}, delta {privacy.delta:g}; "
        "explained: 1 - MSE/variance of the true output, both measured on these data."
        f"{_left_out(counts)} {told_of_rare(x.result for x in outcomes)}".rstrip()
    )
    text = "\n".join(BANNER)
    folder.add("evaluation.csv", table.csv(BANNER))
    folder.add("evaluation.md", f"**{text}**\n\n{table.markdown()}\n\n{footer}\n")
    private = [x for x in outcomes if isinstance(x.mechanism, Mechanism)]
    folder.add("outputs.csv", _outputs(counts, outputs, private).csv(BANNER))
    drawn = _picture(counts, outputs, private)
    folder.add("outputs.png", png(drawn))
    sections = {
        "Definition": [facts(of_task(target, privacy)), paragraphs(footer)],
        "Results": [html_page.table(table, "errors of the mechanisms", where="evaluation.csv", n_headers=3)],
        "Least error": [html_page.table(_least(outcomes), "least error of each series", where="evaluation.csv")],
        "Pictures": [html_page.picture(drawn, SHOWN)],
        "What the figures mean": [facts(MEANING)],
        **repeated(command),
    }
    folder.add("report.html", html_page.page("Mechanisms on a log of events", sections, banner=" ".join(BANNER)))
    return f"{text}\n\n{table.text()}\n\n{footer}"


def check(counts: EventCounts, order: int, draws: int) -> None:
    """Refuse series to which nothing can be fitted, or too many bins to hold, before any work."""
    shortest, n_bins = max(order, LAG), counts.counts.shape[1]
    if n_bins <= shortest:
        raise DataError(f"the log must span more than {shortest} periods, got {n_bins}: shorten the period")
    if n_bins * draws > MAX_BINS:
        raise DataError(
            f"bins times draws must be at most {MAX_BINS:,}, got {n_bins:,} bins and {draws} draws: "
            "choose a longer period, or fewer draws"
        )
    for name, u in zip(counts.series, counts.counts, strict=True):
        if u.min() == u.max():
            raise DataError(f"series {name!r} must vary, got the same count in every period: there is nothing to fit")


def as_saved(saved: Sequence[AnyMechanism], target: Filter, privacy: Privacy) -> list[Mechanism]:
    """Mechanisms from files, told apart from those that are designed here, and by their privacy where it is another."""
    omega = np.linspace(0, np.pi, 1025)
    wanted, result = target.response(omega), []
    why = "a log of events has another length; take a design for a Filter"
    for i, given in enumerate(saved, 1):
        mechanism = of_filters(given, why)
        if np.abs(mechanism.target.response(omega) - wanted).max() > SAME_TARGET * np.abs(wanted).max():
            raise DataError(f"the saved mechanism {mechanism.name!r} must be for this target: design it anew")
        other = mechanism.privacy
        suffix = "" if other == privacy else f" (epsilon {other.epsilon:g}, delta {other.delta:g})"
        number = "" if len(saved) == 1 else f" {i}"
        result.append(replace(mechanism, name=f"saved{number}: {mechanism.name}{suffix}"))
    return result


def noise_seed(seed: int, series: int) -> int:
    """Every series has noise of its own."""
    return validation.seed(np.random.default_rng([seed, series]))


def has_levels(u: Array) -> bool:
    """Whether decision feedback can tell the counts apart: whole numbers, not too many."""
    return bool(np.array_equal(u, np.rint(u)) and u.max() < MAX_LEVELS)


def _left_out(counts: EventCounts) -> str:
    names = [name for name, u in zip(counts.series, counts.counts, strict=True) if not has_levels(u)]
    if not names:
        return ""
    return f" No decision feedback, which needs whole counts below {MAX_LEVELS}, for {', '.join(names)}."


def mechanisms(u: Array, target: Filter, privacy: Privacy, model: ARMA) -> list[Mechanism]:
    """Every mechanism, designed for the model fitted to one series."""
    two_step = lmmse(target, privacy, model, lag=LAG)
    designs = [
        optimal(target, privacy, model, lag=0),
        optimal(target, privacy, model, lag=LAG),
        zero_forcing(target, privacy),
        lmmse(target, privacy, model),
        lmmse(target, privacy, model, lag=0),
        two_step,
        input_perturbation(target, privacy),
        output_perturbation(target, privacy),
    ]
    if has_levels(u):
        counted = ARMA.fit(u, model.fitted_order or 0, levels=np.arange(u.max() + 1))
        for decision in ("soft", "quantizer"):
            title = f"DFE {decision} lag {LAG}"
            g = two_step.prefilter
            designs.append(
                decision_feedback(target, privacy, counted, lag=LAG, prefilter=g, decision=decision, name=title)
            )
    return designs


def evaluate_series(
    name: str, u: Array, y: Array, model: Model, designs: Sequence[Mechanism | Constant], draws: int, seed: int
) -> list[Outcome]:
    """Errors of the mechanisms on one series, over several draws of the noise; predicted, on the model fitted to it."""
    copies = np.broadcast_to(u, (draws, len(u)))
    outcomes = []
    for mechanism in designs:
        lag = mechanism.lag or 0
        estimate = mechanism.simulate(copies, seed=seed).estimate[:, lag:]
        error = ((estimate - y[: len(y) - lag]) ** 2).mean(axis=1)
        predicted = mechanism.predict(model)
        rmse = None if predicted is None else math.sqrt(predicted)
        sizes = error_sizes(mechanism.link(), (float(u.min()), float(u.max())), len(u) - lag)
        result = Result(mechanism.name, rmse, error, CONFIDENCE, float(y.var()), sizes)
        aligned = np.concatenate([estimate[0], np.full(lag, np.nan)])
        outcomes.append(Outcome(name, mechanism, result, float(y.std()), aligned))
    return outcomes


def _least(outcomes: Sequence[Outcome]) -> Table:
    """The mechanism that errs least on each series, among all and among those that can run as a stream."""
    rows = []
    for name in dict.fromkeys(x.series for x in outcomes):
        every = sorted((x for x in outcomes if x.series == name), key=lambda x: x.result.rmse)
        live = next(x for x in every if x.mechanism.lag is not None)
        rows.append((name, *(y for x in (every[0], live) for y in (x.mechanism.name, x.result.rmse))))
    return Table(("series", "of all", "RMSE of it", "as a stream", "RMSE of that"), tuple(rows))


def _outputs(counts: EventCounts, outputs: Array, outcomes: list[Outcome]) -> Table:
    """True output and one draw of every mechanism's estimate of it, by time and series."""
    names = list(dict.fromkeys(x.mechanism.name for x in outcomes))
    times = np.datetime_as_string(counts.times(), unit="s").tolist()
    rows: list[tuple[Any, ...]] = []
    for series, y in zip(counts.series, outputs, strict=True):
        estimates = {
            x.mechanism.name: rounded(x.estimate.tolist(), x.result.rmse) for x in outcomes if x.series == series
        }
        missing = [None] * len(y)
        columns = [[f"{x:.6g}" for x in y.tolist()], *(estimates.get(x, missing) for x in names)]
        rows += [(time, series, *row) for time, *row in zip(times, *columns, strict=True)]
    return Table(("time", "series", "true output", *(f"private: {x}" for x in names)), tuple(rows))


def _picture(counts: EventCounts, outputs: Array, outcomes: list[Outcome]) -> Any:
    """The last days of every series: true output, zero forcing, and the best mechanism of finite lag."""
    shown = int(min(outputs.shape[1], max(2, np.timedelta64(SHOWN_DAYS, "D") // counts.period)))
    n_panels = min(len(counts.series), MAX_PANELS)
    drawn, axes = figure(n_panels, 1, height=1.9)
    times = counts.times()[-shown:]
    for ax, series, y in zip(axes[:, 0], counts.series, outputs, strict=False):
        causal = {x.mechanism.name: x for x in outcomes if x.series == series and x.mechanism.lag is not None}
        best = min(causal.values(), key=lambda x: x.result.rmse)
        names = dict.fromkeys(["LZF", best.mechanism.name])
        estimates = {f"private: {name}": causal[name].estimate[-shown:] for name in names}
        plot_path(ax, times, y[-shown:], estimates, series)
        ax.tick_params(axis="x", rotation=20)
    more = f"; the first {n_panels} of {len(counts.series)} series" if n_panels < len(counts.series) else ""
    drawn.suptitle(f"Evaluation on the data themselves: not for release{more}", fontsize=9)
    return drawn
