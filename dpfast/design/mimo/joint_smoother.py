r"""The joint optimum of smoothers of streams that may depend on one another, with a prefilter for each input.

No causality is asked: J = min over K of ‖(F - K)Ω‖² + κ²γ(K)², γ as in ``channel_weights``, is solved at every
frequency alone but for the mean gains that γ is made of. No lag goes below it. For every ψ

    J ≥ <tr F P F*> - <tr (FP - ψ)P⁻¹(FP - ψ)*> - ρ²,   ρ the least with Re<tr ψ L*> ≤ ρκγ(L),

and the best is (F - K)P, no column of which is larger anywhere than where its input is published.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dpfast._support.validation import Complex
from dpfast.design.mimo.channel_weights import DiagonalWeights, SampledChannels, adjoint, inner
from dpfast.design.mimo.joint_channels import ChannelsOptimum
from dpfast.filters.filter_matrix import FilterMatrix
from dpfast.filters.warped_circle import WarpedCircle, choose_circle
from dpfast.privacy.privacy import Privacy
from dpfast.signals.vector_arma import VectorARMA

_NODES = 1024  # of the circle, at the least: gains have kinks
_GOAL = 1e-6  # of the gap, relative
_MOST_STEPS = 400
_FIRST, _SLOWER, _SOFTEST = 0.3, 0.8, 1e-6  # how much gains are raised: at first, from step to step, and at last
_FURTHER, _MOST_AT_ONCE = 0.9, 4.0  # in the direction of a step, by what factor
_SINGULAR = 1e-8  # eigenvalues of spectra, of the largest, that are not divided by


def smoother_bound(target: FilterMatrix, privacy: Privacy, model: VectorARMA, inputs: Sequence[int]) -> float:
    """Return what no receiver behind a prefilter for each of these inputs goes below, at any lag; near to the best.

    Parameters
    ----------
    target : FilterMatrix
        F, whose output should be published.
    privacy : Privacy
        The guarantee that is asked for.
    model : VectorARMA
        Of all inputs of the target.
    inputs : sequence of int
        Those that are published; others are nothing in the model.
    """
    circle = smoother_circle(target, model)
    omega = circle.grid.omega
    problem = SampledChannels(
        circle,
        target.response(omega)[:, :, inputs],
        model.psd(omega)[:, inputs][:, :, inputs],
        privacy.noise_multiplier * privacy.max_events,
        privacy.changes(target.shape[1])[inputs],
        privacy.adjacency or "one_input",
    )
    return smooth_jointly(problem).lower_bound


def smoother_circle(target: FilterMatrix, model: VectorARMA) -> WarpedCircle:
    """Return a circle that resolves what a smoother does."""
    taps = 0 if target.shares_states else target.order
    return choose_circle(np.concatenate([target.poles, model.poles]), taps, size=_NODES)


def smooth_jointly(problem: SampledChannels) -> ChannelsOptimum:
    """Return the joint optimum without causality, of a problem that is not late."""
    weights, told, k = DiagonalWeights(problem), problem.wanted @ problem.psd, problem.wanted
    softened, best = _FIRST, ChannelsOptimum(weights, k, math.inf, 0.0)
    for _ in range(_MOST_STEPS):
        weights.majorize(k, softened)
        found = _divide(told, problem.psd + weights.noise)
        distortion = problem.mean_power(problem.wanted - found)
        mse = distortion + problem.noise**2 * weights.squared_norm(found)
        slope = weights.slope(found)
        touched = distortion + 2 * float(problem.mean(inner(slope, found)))
        bound = max(best.lower_bound, bound_beside(weights, found), touched - weights.squared_dual_norm(slope))
        k_of_least, least = (found, mse) if mse < best.mse else (best.product, best.mse)
        best = ChannelsOptimum(weights, k_of_least, least, min(bound, least))
        if best.gap <= _GOAL:
            break
        k, softened = _go_further(k, found), max(_SOFTEST, _SLOWER * softened)
    return best


def _divide(a: Complex, b: Complex) -> Complex:
    """Return A B⁻¹ of a Hermitian B."""
    return adjoint(np.asarray(np.linalg.solve(b, adjoint(a)), dtype=np.complex128))


def _go_further(before: Complex, k: Complex) -> Complex:
    """Return K with the gains of each input changed by more than from the one before."""
    one, other = (np.maximum(np.linalg.norm(x, axis=1), np.finfo(float).tiny) for x in (before, k))
    return np.asarray(k * np.minimum(other / one, _MOST_AT_ONCE)[:, None, :] ** _FURTHER)


def bound_beside(weights: DiagonalWeights, k: Complex) -> float:
    """Return what no K errs less than, by ψ = (F - K)P of any K with columns that are cut at their level.

    It is the nearer the better K is; 0 where P is singular.
    """
    problem = weights.problem
    if is_singular(problem.psd):
        return 0.0
    psi = (problem.wanted - k) @ problem.psd
    lengths = np.maximum(np.linalg.norm(psi, axis=1), np.finfo(float).tiny)
    psi *= np.minimum(1, weights.levels(k) / lengths)[:, None, :]
    return dual_value(problem, psi) - problem.noise**2 * weights.squared_norm(k)


def is_singular(psd: Complex) -> bool:
    """Tell whether spectra cannot be divided by."""
    sizes = np.linalg.eigvalsh(psd)
    return bool(sizes[:, 0].min() <= _SINGULAR * sizes.max())


def dual_value(problem: SampledChannels, psi: Complex) -> float:
    """Return <tr F P F*> - <tr (FP - ψ)P⁻¹(FP - ψ)*>."""
    return float(problem.mean(2 * inner(psi, problem.wanted) - inner(_divide(psi, problem.psd), psi)))
