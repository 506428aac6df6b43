"""How well would each mechanism have served a historical event log? ``dpfast evaluate``."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import signal

from dpfast._validate import Array
from dpfast.design.feedback import decision_feedback
from dpfast.design.linear import input_perturbation, lmmse, output_perturbation, zero_forcing
from dpfast.errors import DataError
from dpfast.events import EventCounts
from dpfast.filters import Filter
from dpfast.mechanism import Mechanism
from dpfast.models import ARMA
from dpfast.montecarlo import half_width
from dpfast.privacy import Privacy
from dpfast.report import Folder, Table, figure, plot_path

BANNER = (
    "AN EVALUATION, NOT A RELEASE: these outputs contain the data, unprotected.",
    "The models behind them were fitted to the data: nothing fitted here may be used to release private data.",
)
LAG = 5
CONFIDENCE = 0.95
COLUMNS = ("series", "mechanism", "lag", "RMSE", "low", "high", "predicted", "spread of true output", "RMSE / spread")
SHOWN_DAYS = 7


@dataclass(frozen=True)
class Outcome:
    """One mechanism on one series: its error over time and noise draws, and one estimate, aligned with the truth."""

    series: str
    mechanism: Mechanism
    squared_error: Array  # of each noise draw
    spread: float
    estimate: Array

    @property
    def rmse(self) -> float:
        """Over all bins and noise draws."""
        return math.sqrt(self.squared_error.mean())

    def cells(self) -> tuple[Any, ...]:
        """A row of the table."""
        half, mse = half_width(self.squared_error, CONFIDENCE), float(self.squared_error.mean())
        interval = math.sqrt(max(0.0, mse - half)), math.sqrt(mse + half)
        lag = "smoother" if self.mechanism.lag is None else str(self.mechanism.lag)
        relative = self.rmse / self.spread if self.spread else None
        m = self.mechanism
        return self.series, m.name, lag, self.rmse, *interval, m.predicted_rmse, self.spread, relative


def run(
    counts: EventCounts, target: Filter, privacy: Privacy, folder: Folder, *, order: int, draws: int, seed: int
) -> str:
    """Evaluate every mechanism on every series, add the files to the folder, and return what is printed."""
    outputs = np.asarray(signal.lfilter(target.b, target.a, counts.counts))
    outcomes = [
        outcome
        for name, u, y in zip(counts.series, counts.counts, outputs, strict=True)
        for outcome in evaluate_series(name, u, y, mechanisms(name, u, target, privacy, order), draws, seed)
    ]
    table = Table(COLUMNS, tuple(x.cells() for x in outcomes))
    footer = (
        f"{counts.counts.shape[1]} bins of {counts.period.astype('timedelta64[s]').item()} from {counts.start}; "
        f"RMSE over all bins and {draws} noise draws (seed {seed}), with {CONFIDENCE:.0%} intervals over the draws; "
        f"models: AR({order}) fitted to each series; epsilon {privacy.epsilon:g}, delta {privacy.delta:g}."
    )
    text = "\n".join(BANNER)
    folder.add("evaluation.csv", table.csv(BANNER))
    folder.add("evaluation.md", f"**{text}**\n\n{table.markdown()}\n\n{footer}\n")
    folder.add("outputs.csv", _outputs(counts, outputs, outcomes))
    folder.add("outputs.png", _picture(counts, outputs, outcomes))
    return f"{text}\n\n{table.text()}\n\n{footer}"


def mechanisms(name: str, u: Array, target: Filter, privacy: Privacy, order: int) -> list[Mechanism]:
    """Every mechanism, designed for the model fitted to one series."""
    if len(u) <= max(order, LAG):
        raise DataError(f"the log must span more than {max(order, LAG)} periods, got {len(u)}: shorten the period")
    if u.min() == u.max():
        raise DataError(f"series {name!r} must vary, got the same count in every period: there is nothing to fit")
    model = ARMA.fit(u, order)
    designs = [
        zero_forcing(target, privacy),
        lmmse(target, privacy, model),
        lmmse(target, privacy, model, lag=0),
        lmmse(target, privacy, model, lag=LAG),
        input_perturbation(target, privacy),
        output_perturbation(target, privacy),
    ]
    if np.array_equal(u, np.rint(u)):
        counted = ARMA.fit(u, order, levels=np.arange(u.max() + 1))
        prefilter = designs[3].prefilter
        for decision in ("soft", "quantizer"):
            title = f"DFE {decision} lag {LAG}"
            designs.append(
                decision_feedback(target, privacy, counted, lag=LAG, prefilter=prefilter, decision=decision, name=title)
            )
    return designs


def evaluate_series(name: str, u: Array, y: Array, designs: list[Mechanism], draws: int, seed: int) -> list[Outcome]:
    """Errors of the mechanisms on one series, over several draws of the noise."""
    copies = np.broadcast_to(u, (draws, len(u)))
    outcomes = []
    for mechanism in designs:
        lag = mechanism.lag or 0
        estimate = mechanism.simulate(copies, seed=seed).estimate[:, lag:]
        error = ((estimate - y[: len(y) - lag]) ** 2).mean(axis=1)
        aligned = np.concatenate([estimate[0], np.full(lag, np.nan)])
        outcomes.append(Outcome(name, mechanism, error, float(y.std()), aligned))
    return outcomes


def _outputs(counts: EventCounts, outputs: Array, outcomes: list[Outcome]) -> str:
    """True output and one draw of every mechanism's estimate of it, by time and series."""
    names = list(dict.fromkeys(x.mechanism.name for x in outcomes))
    times = np.datetime_as_string(counts.times(), unit="s")
    lines = [f"# {line}" for line in BANNER]
    lines.append(",".join(["time", "series", "true output", *(f"private: {x}" for x in names)]))
    for series, y in zip(counts.series, outputs, strict=True):
        estimates = {x.mechanism.name: x.estimate for x in outcomes if x.series == series}
        missing = np.full(len(y), np.nan)
        values = np.column_stack([y, *(estimates.get(x, missing) for x in names)])
        label = f'"{series.replace(chr(34), chr(34) * 2)}"' if any(c in series for c in ',"\n\r') else series
        for time, row in zip(times, values.tolist(), strict=True):
            lines.append(f"{time},{label}," + ",".join("" if x != x else f"{x:.6g}" for x in row))
    return "\n".join(lines) + "\n"


def _picture(counts: EventCounts, outputs: Array, outcomes: list[Outcome]) -> Any:
    """The last days of every series: true output, zero forcing, and the best mechanism of finite lag."""
    shown = int(min(outputs.shape[1], max(2, np.timedelta64(SHOWN_DAYS, "D") // counts.period)))
    n_panels = min(len(counts.series), 12)
    drawn, axes = figure(n_panels, 1, height=1.9)
    times = counts.times()[-shown:]
    for ax, series, y in zip(axes[:, 0], counts.series, outputs, strict=False):
        causal = {x.mechanism.name: x for x in outcomes if x.series == series and x.mechanism.lag is not None}
        best = min(causal.values(), key=lambda x: x.rmse)
        names = dict.fromkeys(["LZF", best.mechanism.name])
        estimates = {f"private, {name}": causal[name].estimate[-shown:] for name in names}
        plot_path(ax, times, y[-shown:], estimates, series)
        ax.tick_params(axis="x", rotation=20)
    drawn.set_figwidth(9)
    drawn.suptitle("Evaluation on the data themselves: not for release", fontsize=10)
    return drawn
