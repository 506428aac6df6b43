"""Evaluation of mechanisms of several streams on a historical log, whose series are the inputs of one target."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from dpfast._support.errors import DataError, DesignError
from dpfast._support.progress import progress_bar
from dpfast._support.validation import Array
from dpfast.design.mimo.best_channels import CANDIDATES, AnyChannels, ChannelsCandidate, ChannelsTask
from dpfast.design.mimo.channel_designs import check_channels
from dpfast.filters.filter_matrix import FilterMatrix
from dpfast.filters.output_names import name_outputs
from dpfast.mechanisms.constant import NAME
from dpfast.privacy.privacy import Privacy
from dpfast.signals.arma import ARMA
from dpfast.signals.channel_models import ChannelModels, channel_means
from dpfast.signals.channel_outputs import output_variances
from dpfast.signals.events.historical_counts import EventCounts
from dpfast.signals.vector_arma import VectorARMA
from dpfast.simulation.evaluation import CONFIDENCE, LAG, SAME_TARGET, SeriesResult, check_log, noise_seed
from dpfast.simulation.prepared_channels import ExpectedOutputs, make_result
from dpfast.simulation.recorded_streams import evaluate
from dpfast.simulation.study import Result

TOGETHER = "all outputs together"
CORRELATED = ", correlated"  # of mechanisms for streams that depend on one another
_TOLERANCE = 1e-3
_MOST_STATES = 48  # of a model of all series, so that a design takes seconds


class TriedMechanism(NamedTuple):
    """Name what was tried for several streams, as the tables of an evaluation show it."""

    name: str
    lag: int
    sees_data: bool = True


def evaluate_channels(
    counts: EventCounts,
    target: FilterMatrix,
    privacy: Privacy,
    *,
    order: int,
    draws: int,
    seed: int,
    saved: Sequence[AnyChannels] = (),
    unit: float | None = None,
    progress: bool = False,
) -> tuple[Array, list[SeriesResult], tuple[str, ...]]:
    """Evaluate every mechanism of several streams on the series of a log together.

    Return the true outputs, (outputs, time), the errors of all outputs together and of each, and notes on failures.

    Parameters
    ----------
    counts : EventCounts
        A series for each input of the target.
    target : FilterMatrix
    privacy : Privacy
        With the adjacency.
    order, draws, seed : int
        Of the autoregression that is fitted to each series, draws of the noise, and its seed.
    saved : sequence of ChannelsMechanism or BlockChannelsMechanism
        Which are evaluated beside those that are designed.
    unit : float, optional
        For mechanisms that round real inputs.
    progress : bool
        Show bars (tqdm, extra ``progress``).

    Raises
    ------
    DataError
        For a log that nothing can be fitted to, and for a saved mechanism of another target.
    DesignError
        Where nothing can be designed, with the reasons.
    """
    check_channels(target, privacy)
    check_log(counts, max([order, *(x.lag for x in saved)]), draws)
    loaded = _name_saved(saved, target, privacy)
    apart = tuple(ARMA.fit(u, order) for u in counts.counts)
    together, notes = _fit_together(counts, order)
    made = _design_all(target, privacy, [apart] if together is None else [apart, together], unit, notes, progress)
    outputs, names = target.apply(counts.counts), name_outputs(target, counts.series)
    results: list[SeriesResult] = []
    tried = [*made, *loaded]
    if not tried:
        raise DesignError(" ".join(["no mechanism of several streams serves here.", *notes]))
    with progress_bar(progress, len(tried), "evaluating", unit="mechanism") as advance:
        for mechanism in tried:
            results += _evaluate_one(mechanism, np.asarray(counts.counts, np.float64), names, draws, seed)
            advance(1)
    results += _evaluate_constant(target, apart if together is None else together, outputs, names, draws)
    order_of = [TOGETHER, *names]
    return outputs, sorted(results, key=lambda x: order_of.index(x.series)), tuple(notes)


def _fit_together(counts: EventCounts, order: int) -> tuple[VectorARMA | None, dict[str, None]]:
    """Fit one model to all series together, which may depend on one another; or note why there is none."""
    m, why = len(counts.series), ""
    if m == 1:
        return None, {}
    if m * order > _MOST_STATES:
        why = f"order times series must be at most {_MOST_STATES} for it, got {order} times {m}"
    else:
        try:
            return VectorARMA.fit(counts.counts, order), {}
        except ValueError as error:
            why = str(error)
    return None, {f"No mechanisms for streams that depend on one another: {why}.": None}


def _design_all(
    target: FilterMatrix,
    privacy: Privacy,
    fitted: Sequence[ChannelModels],
    unit: float | None,
    notes: dict[str, None],
    progress: bool,
) -> list[AnyChannels]:
    """Design what can serve streams of these models, at both lags where it has one; note what cannot, and why."""
    asked = [
        (candidate, ChannelsTask(target, privacy, models, lag, unit, _TOLERANCE, drawn=False))
        for models in fitted
        for candidate in CANDIDATES
        for lag in ((0, LAG) if candidate.modelled else (0,))
        if candidate.modelled or models is fitted[0]
    ]
    made: list[AnyChannels] = []
    with progress_bar(progress, len(asked), "designing", unit="design") as advance:
        for candidate, task in asked:
            if not candidate.reason_against(task):
                made += _design_one(candidate, task, notes)
            advance(1)
    served = {x.name.partition(" lag ")[0] for x in made}
    reasons = {x.label: x.reason_against(task) for x, task in asked}
    notes |= {f"No {name}: {why}.": None for name, why in reasons.items() if why and name not in served}
    return made


def _design_one(candidate: ChannelsCandidate, task: ChannelsTask, notes: dict[str, None]) -> list[AnyChannels]:
    """Design a mechanism, named after its family, its lag and its model; note why there is none, and what it warns."""
    name = f"{candidate.label} lag {task.lag}" if candidate.modelled else candidate.label
    name += CORRELATED * isinstance(task.models, VectorARMA)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            mechanism = candidate.design(task)
        except ValueError as error:  # a DesignError, or of a privacy that it does not take
            notes |= {f"No {name}: {error}.": None}
            return []
    notes |= {f"{name}: {x.message}.": None for x in warned}
    return [replace(mechanism, name=name)]


def _name_saved(saved: Sequence[AnyChannels], target: FilterMatrix, privacy: Privacy) -> list[AnyChannels]:
    """Name mechanisms from files apart from those that are designed here, with their privacy where it is another."""
    omega = np.linspace(0, np.pi, 1025)
    wanted, found = target.response(omega), list[AnyChannels]()
    for i, mechanism in enumerate(saved, 1):
        same = mechanism.target.shape == target.shape
        if not same or np.abs(mechanism.target.response(omega) - wanted).max() > SAME_TARGET * np.abs(wanted).max():
            raise DataError(f"the saved mechanism {mechanism.name!r} must be for this target: design it anew")
        other = mechanism.privacy
        reach = "" if other.adjacency == privacy.adjacency else f", {other.adjacency}"
        suffix = "" if other == privacy else f" (epsilon {other.epsilon:g}, delta {other.delta:g}{reach})"
        number = "" if len(saved) == 1 else f" {i}"
        found.append(replace(mechanism, name=f"saved{number}: {mechanism.name}{suffix}"))
    return found


def _evaluate_one(mechanism: AnyChannels, u: Array, names: Sequence[str], draws: int, seed: int) -> list[SeriesResult]:
    """Run a mechanism on the series with several draws of the noise, from the first bin on."""
    lag = mechanism.lag
    (result,) = evaluate(mechanism, u, seed=seed, draws=draws, burn_in=0, confidence=CONFIDENCE)
    estimate = mechanism.simulate(u, seed=noise_seed(seed, 0)).estimate[:, lag:]
    aligned = np.concatenate([estimate, np.full((len(estimate), lag), np.nan)], axis=1)
    return _rows(TriedMechanism(mechanism.name, lag), result, names, aligned)


def _evaluate_constant(
    target: FilterMatrix, models: ChannelModels, outputs: Array, names: Sequence[str], draws: int
) -> list[SeriesResult]:
    """Measure what publishing the means of the outputs by the fitted models errs by, which has no noise."""
    means = np.repeat(channel_means(models)[:, np.newaxis], outputs.shape[1], axis=1)
    estimate = target.apply(means)
    errors = np.repeat(((estimate - outputs) ** 2).mean(axis=1)[:, np.newaxis], draws, axis=1)
    known = ExpectedOutputs(output_variances(target, models), outputs.var(axis=1), [None] * len(outputs))
    result = make_result(NAME, errors, known, CONFIDENCE)
    return _rows(TriedMechanism(NAME, 0, sees_data=False), result, names, estimate)


def _rows(tried: TriedMechanism, result: Result, names: Sequence[str], estimates: Array) -> list[SeriesResult]:
    """Return the result of all outputs together, where there are several, and that of each."""
    of_each = [replace(x, name=tried.name) for x in result.outputs]
    spreads = [math.sqrt(x.variance or 0.0) for x in (result, *of_each)]
    rows = [
        SeriesResult(name, tried, x, spread, estimate)
        for name, x, spread, estimate in zip(names, of_each, spreads[1:], estimates, strict=True)
    ]
    if len(rows) == 1:
        return rows
    return [SeriesResult(TOGETHER, tried, replace(result, outputs=()), spreads[0], np.zeros(0)), *rows]
