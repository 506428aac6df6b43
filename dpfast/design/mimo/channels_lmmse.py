"""LMMSE of several independent streams: a prefilter for each, and Wiener receivers for every output behind them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dpfast._support import validation
from dpfast._support.validation import Array
from dpfast.design.mimo.channel_designs import check_channels, realize_column
from dpfast.design.mimo.column_gains import column_gain
from dpfast.design.prefilter.design_problem import Problem
from dpfast.design.prefilter.ideal_mechanism import IdealFamily
from dpfast.design.prefilter.water_filling import smoother_water_filling
from dpfast.design.wiener import wiener_receiver
from dpfast.filters.filter import Filter
from dpfast.filters.filter_matrix import FilterMatrix
from dpfast.mechanisms.channels_mechanism import ChannelsMechanism
from dpfast.privacy.privacy import Privacy
from dpfast.signals.model import Model, check_model

_SETTLED = 1e-10  # largest change of a share of the noise, at which they are found
_MOST_ROUNDS = 200
_NOTHING = 1e-9  # a share below which an input is not published at all


def estimate_channels(
    target: FilterMatrix,
    privacy: Privacy,
    models: Any,
    lag: Any,
    family: Callable[[int], IdealFamily],
    tolerance: float,
    name: str | None,
) -> ChannelsMechanism:
    r"""Design a prefilter for each input and the Wiener receivers behind them; `family` is that of one stream by lag.

    Streams are independent, so that the error of an output is the sum of those of its inputs. Where one event is at one
    input there are as many scalar problems. Where it may be at all, channel i has the noise c_i² = κ²d_i²/α_i of a
    share α_i: the smoother of the water level M = Σ d_i<|K_i|₂>, |K_i|₂ = (|F_i|₂ - κ²d_iM/P_i)₊, has
    α_i = d_i<|K_i|₂>/M.
    """
    used = check_channels(target, privacy)
    checked, delay = check_models(models, target.shape[1]), check_lag_of_channels(lag)
    changes = privacy.changes(target.shape[1])
    noise = privacy.noise_multiplier * privacy.max_events
    problems = {j: Problem(column_gain(target, j), checked[j], (noise * float(changes[j])) ** 2) for j in used}
    shares, bound = _share(problems, is_shared=(privacy.adjacency or "one_input") != "one_input")
    columns = [j for j in used if shares[j] > _NOTHING]
    prefilters = {}
    for j in columns:
        problem = _with_share(problems[j], shares[j])
        gain = math.sqrt(shares[j]) / float(changes[j])
        prefilters[j] = realize_column(problem, family(delay)(problem), tolerance) * gain
    zero = Filter([0.0])
    g = FilterMatrix([[prefilters[i] if i == j else zero for j in range(target.shape[1])] for i in columns])
    std = privacy.noise_std(g)
    receiver = [[_receiver(row[j], checked[j], prefilters[j], std, delay) for j in columns] for row in target.rows]
    options = (("lag", delay), ("tolerance", tolerance))
    return ChannelsMechanism(
        name or f"LMMSE lag {delay}",
        target,
        privacy,
        g,
        FilterMatrix(receiver),
        lower_bound_mse=bound,
        options=options,
        models=checked,
        lag=delay,
    )


def check_lag_of_channels(lag: Any) -> int:
    """Return the lag of a design of several streams; refuse a smoother."""
    if lag is None or isinstance(lag, str):
        raise ValueError(
            f"lag must be a number of samples for a FilterMatrix, got {lag!r}: there is no smoother of several streams "
            "yet; a longer lag comes as near to it as one likes, and lower_bound_mse is its error"
        )
    return validation.lag(lag)


def check_models(models: Any, m: int) -> tuple[Model, ...]:
    """Return a model for each input; refuse another number of them."""
    if isinstance(models, str) or not isinstance(models, Sequence) or len(models) != m:
        raise validation.fail("model", f"a sequence of {m} models for a FilterMatrix of {m} inputs", models)
    for each in models:
        check_model(each)
    return tuple(models)


def _with_share(problem: Problem, share: float) -> Problem:
    return Problem(problem.target, problem.model, problem.cost / share)


def _share(problems: dict[int, Problem], *, is_shared: bool) -> tuple[dict[int, float], float]:
    """Return the share of the noise of each channel, and the least error of smoothers with such prefilters."""
    if not is_shared:
        return dict.fromkeys(problems, 1.0), sum(smoother_water_filling(x).mse for x in problems.values())
    shares = dict.fromkeys(problems, 1 / len(problems))
    for _ in range(_MOST_ROUNDS):
        open_ones = {j: share for j, share in shares.items() if share > _NOTHING}
        fillings = {j: smoother_water_filling(_with_share(problems[j], x)) for j, x in open_ones.items()}
        loudness = {j: math.sqrt(problems[j].cost) * fillings[j].level for j in open_ones}
        total = sum(loudness.values())
        found = {j: loudness[j] / total if j in open_ones else 0.0 for j in shares}
        change, shares = max(abs(found[j] - shares[j]) for j in shares), found
        if change < _SETTLED:
            break
    return shares, _level_bound(problems, {j: x.cutoffs for j, x in fillings.items()}, total)


def _level_bound(problems: dict[int, Problem], cutoffs: dict[int, tuple[float, ...]], level: float) -> float:
    """Return what no smoother behind a prefilter for each input goes below, by a level of any size.

    For every M: J ≥ Σ <P_i(|F_i|₂² - |K_i|₂²)> - c²M² with K at that level, which is J at the best one.
    """
    least = -level * level
    for j, x in problems.items():
        grid = x.grid(breaks=cutoffs.get(j, ()))
        least += grid.mean(_missed(x, level, grid.omega))
    return least


def _missed(problem: Problem, level: float, omega: Array) -> Array:
    gain, psd = problem.gain(omega), problem.psd(omega)
    passed = np.maximum(gain * psd - math.sqrt(problem.cost) * level, 0) / np.where(psd > 0, psd, 1)
    return np.asarray(psd * (gain**2 - passed**2))


def _receiver(entry: Filter, model: Model, prefilter: Filter, std: float, lag: int) -> Filter:
    if not entry.b.any():
        return entry
    (found,) = wiener_receiver(entry, model, prefilter, std, lag).filters()
    return found
