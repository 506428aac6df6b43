"""Evaluation of mechanisms on a historical event log: how well each would have served, for ``dpfast evaluate``."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from dpfast._support import validation
from dpfast._support.errors import DataError
from dpfast._support.progress import progress_bar
from dpfast._support.validation import Array
from dpfast.design.argument_checks import check_filter
from dpfast.design.catalogue import FAMILIES, can_design, explain_delta, filter_families, split_by_delta
from dpfast.filters.filter import Filter
from dpfast.mechanisms.constant import Constant, constant
from dpfast.mechanisms.mechanism_kinds import AnyMechanism
from dpfast.privacy.privacy import Privacy
from dpfast.signals.arma import ARMA
from dpfast.signals.events.historical_counts import EventCounts
from dpfast.signals.model import Model
from dpfast.simulation.rare_error_sizes import error_sizes
from dpfast.simulation.study import Result

LAG = 5
CONFIDENCE = 0.95
MAX_LEVELS = 1000
SAME_TARGET = 1e-9
MAX_BINS = 100_000_000


class Tried(Protocol):
    """Name a mechanism that was tried, as tables do."""

    @property
    def name(self) -> str:
        """Return its name."""

    @property
    def lag(self) -> int | None:
        """Return the samples by which its estimates are late; None with the whole log at hand."""

    @property
    def sees_data(self) -> bool:
        """Tell whether anything is published of the data."""


@dataclass(frozen=True)
class SeriesResult:
    """One mechanism on one series: its error over time and noise draws, and one estimate, aligned with the truth."""

    series: str
    mechanism: Tried
    result: Result  # a stream is a draw of the noise; the variance is that of the data
    spread: float
    estimate: Array


def check_log(counts: EventCounts, order: int, draws: int) -> None:
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


def name_saved(saved: Sequence[AnyMechanism], target: Filter, privacy: Privacy) -> list[AnyMechanism]:
    """Name mechanisms from files apart from those that are designed here, with their privacy where it is another."""
    omega = np.linspace(0, np.pi, 1025)
    wanted, result = target.response(omega), list[AnyMechanism]()
    for i, mechanism in enumerate(saved, 1):
        of_mechanism = mechanism.target.as_filter()
        if of_mechanism is None:
            raise ValueError(
                f"mechanism must have no horizon, got {mechanism.full_name}: a log of events has another length; take "
                "a design for a Filter"
            )
        if np.abs(of_mechanism.response(omega) - wanted).max() > SAME_TARGET * np.abs(wanted).max():
            raise DataError(f"the saved mechanism {mechanism.name!r} must be for this target: design it anew")
        other = mechanism.privacy
        suffix = "" if other == privacy else f" (epsilon {other.epsilon:g}, delta {other.delta:g})"
        number = "" if len(saved) == 1 else f" {i}"
        result.append(replace(mechanism, name=f"saved{number}: {mechanism.name}{suffix}"))
    return result


def noise_seed(seed: int, series: int) -> int:
    """Derive the seed of the noise of one series, so that every series has noise of its own."""
    return validation.seed(np.random.default_rng([seed, series]))


def has_levels(u: Array) -> bool:
    """Tell whether decision feedback can tell the counts apart: whole numbers, not too many."""
    return bool(np.array_equal(u, np.rint(u)) and u.max() < MAX_LEVELS)


def tell_apart(u: Array, model: ARMA) -> ARMA:
    """Return the model of a series with its two counts as levels, if it has no others: a response tells these apart."""
    low, high = float(u.min()), float(u.max())
    if low == high or not ((u == low) | (u == high)).all():
        return model
    return ARMA.fit(u, model.fitted_order or 0, levels=[low, high])


def design_mechanisms(
    u: Array,
    target: Filter,
    privacy: Privacy,
    model: ARMA,
    notes: dict[str, None] | None = None,
    unit: float | None = None,
) -> list[AnyMechanism]:
    """Design every family of the catalogue for the model that was fitted to one series; note those that fail."""
    designs: dict[tuple[str, int | None], AnyMechanism] = {}
    told = tell_apart(u, model)
    possible = [x for x in filter_families() if can_design(x, told.levels) and "levels" not in x.needs]
    families, left_out = split_by_delta(possible, privacy)
    failed: dict[str, None] = {}
    for family in families:
        smoother = (None,) if family.is_smoother_by_default else ()
        for lag in (*smoother, 0, LAG) if "lag" in family.needs else (0,):
            try:
                given = told if "two_levels" in family.needs else model  # to others they are counts like any
                designs[family.name, lag] = family.make(target, privacy, model=given, lag=lag, unit=unit)
            except ValueError as error:  # a DesignError, or of a privacy that the family does not take
                if notes is None:
                    raise
                failed[f"No {family.label}: {error}."] = None
    if notes is not None:
        served = [x for x in families if any(name == x.name for name, _ in designs)]
        notes |= dict.fromkeys([*explain_delta(left_out, served), *failed])
    behind = designs["lmmse", LAG].linear_channel() if ("lmmse", LAG) in designs else None
    feedback = () if behind is None else _design_feedback(u, target, privacy, model, behind.prefilter)
    return [*designs.values(), *feedback]


def _design_feedback(
    u: Array, target: Filter, privacy: Privacy, model: ARMA, prefilter: Filter
) -> Iterator[AnyMechanism]:
    """Design decision feedback of both kinds behind a prefilter, where the counts are levels."""
    if not has_levels(u):
        return
    family = FAMILIES["decision_feedback"]
    counted = ARMA.fit(u, model.fitted_order or 0, levels=np.arange(u.max() + 1))
    for decision in ("soft", "quantizer"):
        given = {"model": counted, "lag": LAG, "prefilter": prefilter, "decision": decision}
        yield family.make(target, privacy, **given, name=f"{family.label} {decision} lag {LAG}")


def evaluate_log(
    counts: EventCounts,
    target: Filter,
    privacy: Privacy,
    *,
    order: int,
    draws: int,
    seed: int,
    saved: Sequence[AnyMechanism] = (),
    unit: float | None = None,
    progress: bool = False,
) -> tuple[Array, list[SeriesResult], tuple[str, ...]]:
    """Evaluate every mechanism on every series; return the true outputs too, (series, time), and notes on failures.

    `unit` is for mechanisms that round real inputs; `progress` shows bars (tqdm, extra ``progress``).
    """
    check_filter("target", target)
    check_log(counts, max([order, *(x.lag or 0 for x in saved)]), draws)
    loaded = name_saved(saved, target, privacy)
    outputs = target.filter(counts.counts).y
    series = list(zip(counts.series, counts.counts, outputs, strict=True))
    designs: list[tuple[ARMA, list[AnyMechanism | Constant]]] = []
    notes: dict[str, None] = {}
    with progress_bar(progress, len(series), "designing", unit="series") as advance:
        for _, u, _ in series:
            model = ARMA.fit(u, order)
            made = design_mechanisms(u, target, privacy, model, notes, unit)
            designs.append((tell_apart(u, model), [*made, *loaded, constant(target, model)]))
            advance(1)
    results: list[SeriesResult] = []
    with progress_bar(progress, sum(len(x) for _, x in designs), "evaluating", unit="mechanism") as advance:
        for i, ((name, u, y), (model, several)) in enumerate(zip(series, designs, strict=True)):
            for mechanism in several:
                results += evaluate_series(name, u, y, model, [mechanism], draws, noise_seed(seed, i))
                advance(1)
    return outputs, results, tuple(notes)


def evaluate_series(
    name: str, u: Array, y: Array, model: Model, designs: Sequence[AnyMechanism | Constant], draws: int, seed: int
) -> list[SeriesResult]:
    """Simulate the mechanisms on one series, with several draws of the noise; predict by the model fitted to it."""
    copies = np.broadcast_to(u, (draws, len(u)))
    outcomes = []
    for mechanism in designs:
        lag = mechanism.lag or 0
        estimate = mechanism.simulate(copies, seed=seed).estimate[:, lag:]
        error = ((estimate - y[: len(y) - lag]) ** 2).mean(axis=1)
        predicted = mechanism.predict(model)
        rmse = None if predicted is None else math.sqrt(predicted)
        sizes = error_sizes(mechanism.compiled(), (float(u.min()), float(u.max())), len(u) - lag)
        result = Result(mechanism.name, rmse, error, CONFIDENCE, float(y.var()), sizes)
        aligned = np.concatenate([estimate[0], np.full(lag, np.nan)])
        outcomes.append(SeriesResult(name, mechanism, result, float(y.std()), aligned))
    return outcomes
