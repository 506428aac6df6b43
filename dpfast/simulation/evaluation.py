"""How well would each mechanism have served a historical event log? ``dpfast evaluate``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpfast._support import validation
from dpfast._support.errors import DataError
from dpfast._support.validation import Array
from dpfast.design.decision_feedback import decision_feedback
from dpfast.design.lmmse import lmmse
from dpfast.design.optimal import optimal
from dpfast.design.perturbation import input_perturbation, output_perturbation
from dpfast.design.zero_forcing import zero_forcing
from dpfast.filters.filter import Filter
from dpfast.mechanisms import lags
from dpfast.mechanisms.checks import AnyMechanism, of_filters
from dpfast.mechanisms.constant import Constant
from dpfast.mechanisms.mechanism import Mechanism
from dpfast.privacy.privacy import Privacy
from dpfast.signals.arma import ARMA
from dpfast.signals.events.historical import EventCounts
from dpfast.signals.model import Model
from dpfast.simulation.mixed_study import error_sizes
from dpfast.simulation.study import Result

LAG = 5
CONFIDENCE = 0.95
MAX_LEVELS = 1000
SAME_TARGET = 1e-9
MAX_BINS = 100_000_000


@dataclass(frozen=True)
class SeriesResult:
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
) -> list[SeriesResult]:
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
        outcomes.append(SeriesResult(name, mechanism, result, float(y.std()), aligned))
    return outcomes
