r"""The joint optimum of G and H of several streams, which may depend on one another, for a receiver of finite lag.

With a prefilter for each input it is min over causal K of ‖(z^{-D}F - K)Ω‖² + κ²γ(K)², P = ΩΩ*, with γ as
``channel_weights`` has it, solved by majorization. For every causal K, and every ψ for which (z^{-D}F - K)P - ψ is
strictly anticausal,

    J ≥ ‖(z^{-D}F - K)Ω‖² + 2 Re<tr ψ K*> - ρ²,   ρ the least with Re<tr ψ L*> ≤ ρκγ(L),

and that of every step is nearly such a one. (So it is for K of a step: add ψ(L - K), and take the least over γ(L).) K
and ψ are made exactly so before they are measured, as a step in a finite number of nodes leaves them only near to that.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from dpfast._support.validation import Complex
from dpfast.design.mimo.channel_weights import DiagonalWeights, inner
from dpfast.design.mimo.mixing_prefilter import MixingPrefilter
from dpfast.filters.warped_circle import WarpedCircle, make_circle

_FIRST, _SLOWER, _SOFTEST = 0.3, 0.8, 1e-6  # how much gains are raised: at first, from step to step, and at last
_MOST_STEPS = 300
_PATIENCE, _PROGRESS = 60, 0.97  # in so many steps the gap must shrink
_LONGEST = 2**12


class ChannelsOptimum(NamedTuple):
    """The joint optimum at the nodes of a circle.

    Attributes
    ----------
    weights : DiagonalWeights or MixingPrefilter
        What prefilters it has.
    product : array, (nodes, p, m)
        K.
    mse, lower_bound : float
    """

    weights: DiagonalWeights | MixingPrefilter
    product: Complex
    mse: float
    lower_bound: float

    @property
    def gap(self) -> float:
        """The relative distance of the MSE from the bound."""
        return max(0.0, 1 - self.lower_bound / self.mse)


MakeWeights = Callable[[WarpedCircle], DiagonalWeights]


def channels_optimum(make: MakeWeights, warp: float, size: int, goal: float) -> ChannelsOptimum:
    """Solve on a circle, and on ones of twice as many steps until that changes nothing and the bound is near.

    A certificate holds for the problem in N steps: the change from N/2 to N is taken off it.
    """
    circle = make_circle(warp, size)
    weights = make(circle)
    before = solve_on_circle(weights, weights.problem.wanted, _FIRST, goal)
    while True:
        k, circle = _refine(before.product, circle), make_circle(warp, 2 * circle.size)
        after = solve_on_circle(make(circle), k, _SOFTEST, goal)
        change = abs(after.mse - before.mse)
        resolved = max(change / after.mse, after.gap) <= goal
        if resolved or 2 * circle.size > max(_LONGEST, 2 * size):
            return after._replace(lower_bound=after.lower_bound - change)
        before = after


def solve_on_circle(weights: DiagonalWeights, k: Complex, softened: float, goal: float) -> ChannelsOptimum:
    """Iterate from K until the gap to the largest of all bounds is the goal, or nothing closes it.

    The bound is of the problem in these nodes, where causal is what has the first half of the taps.
    """
    problem, best, gaps = weights.problem, ChannelsOptimum(weights, k, math.inf, 0.0), [math.inf] * _PATIENCE
    found = k
    for _ in range(_MOST_STEPS):
        weights.majorize(found, softened)
        found = weights.minimize()
        k = problem.causal_part(found)
        distortion = problem.mean_power(problem.wanted - k)
        mse = distortion + problem.noise**2 * weights.squared_norm(k)
        bound = max(best.lower_bound, distortion + _dual(weights, k, weights.slope(found)))
        best = best._replace(lower_bound=bound) if mse >= best.mse else ChannelsOptimum(weights, k, mse, bound)
        gaps.append(best.gap)
        settled = softened <= _SOFTEST and best.gap > _PROGRESS * gaps[-_PATIENCE]
        if best.gap <= goal or settled:
            break
        softened = max(_SOFTEST, _SLOWER * softened)
    return best


def _dual(weights: DiagonalWeights, k: Complex, slope: Complex) -> float:
    """Return 2 Re<tr ψ K*> - ρ² of a causal K, for the ψ next to a slope that leaves what is strictly anticausal."""
    problem = weights.problem
    psi = slope + problem.causal_part((problem.wanted - k) @ problem.psd - slope)
    return 2 * float(problem.mean(inner(psi, k))) - weights.squared_dual_norm(psi)


def _refine(k: Complex, circle: WarpedCircle) -> Complex:
    """Return a causal function on a circle of twice as many steps."""
    finer = make_circle(circle.warp, 2 * circle.size)
    taps = np.fft.irfft(k * circle.unit[:, None, None], axis=0)[: circle.size // 2]
    return np.asarray(np.fft.rfft(taps, finer.size, axis=0) / finer.unit[:, None, None])
