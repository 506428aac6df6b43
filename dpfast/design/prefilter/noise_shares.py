"""How inputs that one person may reach together share the noise, behind smoothers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from dpfast._support.validation import Array
from dpfast.design.prefilter.design_problem import Problem
from dpfast.design.prefilter.water_filling import smoother_water_filling

_SETTLED = 1e-10  # largest change of a share of the noise, at which they are found
_MOST_ROUNDS = 200
NOTHING = 1e-9  # a share below which an input is not published at all


class SharedNoise(NamedTuple):
    """The best shares of several inputs.

    Attributes
    ----------
    shares : list of float
        α_i, of the squared sensitivity: the noise of input i is as for c_i²/α_i.
    mse : float
        The least error of smoothers with a prefilter for each input.
    cutoffs : list of tuples of float
        Angles at which the smoother of an input starts or stops letting anything pass.
    """

    shares: list[float]
    mse: float
    cutoffs: list[tuple[float, ...]]


def with_share(problem: Problem, share: float) -> Problem:
    """Return the problem of an input that has a share of the squared sensitivity."""
    return replace(problem, cost=problem.cost / share)


def share_noise(problems: Sequence[Problem]) -> SharedNoise:
    r"""Return how inputs share the noise of a person who may be at all of them; one has all of it.

    The smoother of the water level M = Σ c_i<|K_i|>, |K_i| = (|F_i| - c_iM/P_i)₊, has α_i = c_i<|K_i|>/M.
    """
    if len(problems) == 1:
        water = smoother_water_filling(problems[0])
        return SharedNoise([1.0], water.mse, [water.cutoffs])
    shares = dict.fromkeys(range(len(problems)), 1 / len(problems))
    cutoffs: dict[int, tuple[float, ...]] = {}
    for _ in range(_MOST_ROUNDS):
        open_ones = {j: share for j, share in shares.items() if share > NOTHING}
        fillings = {j: smoother_water_filling(with_share(problems[j], x)) for j, x in open_ones.items()}
        loudness = {j: math.sqrt(problems[j].cost) * fillings[j].level for j in open_ones}
        total = sum(loudness.values())
        found = {j: loudness[j] / total if j in open_ones else 0.0 for j in shares}
        change, shares = max(abs(found[j] - shares[j]) for j in shares), found
        cutoffs = {j: x.cutoffs for j, x in fillings.items()}
        if change < _SETTLED:
            break
    each = [cutoffs.get(j, ()) for j in shares]
    return SharedNoise(list(shares.values()), _level_bound(problems, each, total), each)


def _level_bound(problems: Sequence[Problem], cutoffs: Sequence[tuple[float, ...]], level: float) -> float:
    """Return what no smoother behind a prefilter for each input goes below, by a level of any size.

    For every M: J ≥ Σ <P_i(|F_i|² - |K_i|²)> - M² with K at that level, which is J at the best one.
    """
    least = -level * level
    for problem, breaks in zip(problems, cutoffs, strict=True):
        grid = problem.grid(breaks=breaks)
        least += grid.mean(_missed(problem, level, grid.omega))
    return least


def _missed(problem: Problem, level: float, omega: Array) -> Array:
    gain, psd = problem.gain(omega), problem.psd(omega)
    passed = np.maximum(gain * psd - math.sqrt(problem.cost) * level, 0) / np.where(psd > 0, psd, 1)
    return np.asarray(psd * (gain**2 - passed**2))
