r"""A lower bound of the joint optimum with a prefilter that mixes streams, from any K and a slope ψ of its error.

It is that of ``slope_bound`` but for the norm: with Φ of any mixture of events ψ - E has ρ = sup‖(ψ - E)Φ^{-½}‖/κ, as
Re<tr ψL*> ≤ sup‖ψΦ^{-½}‖ <‖LΦ^½‖_*>. E is taken off wherever a singular value is above its limit.
"""

from __future__ import annotations

import numpy as np

from dpfast._support.validation import Array, Complex
from dpfast.design.mimo.channel_weights import SampledChannels, adjoint, inner, invert
from dpfast.design.mimo.slope_bound import BETWEEN, best_of_limits

_ROUNDS = 6
_SEEN = 1e-8  # of |w|² tr P: what P has of a direction that is divided by it, as less is of rounding
_LEFT = 1e-12  # of the limit: what singular values may be above it


def mixing_bound(
    problem: SampledChannels, psi: Complex, k: Complex, distortion: float, mixture: Complex, limit: float
) -> float:
    """Return what no product errs less than, from ψ, from K (nodes, p, m) with its distortion, from Φ, and from κρ."""
    whiten = np.broadcast_to(adjoint(invert(np.linalg.cholesky(mixture).astype(np.complex128))), problem.psd.shape)

    def bound(share: float) -> float:
        left, costs, excess = cut_singular_values(psi, problem.psd, whiten, (1 + share) * limit)
        rho = limit * (1 + BETWEEN * ((1 + share) * (1 + excess) - 1)) / problem.noise
        return distortion + float(problem.mean(2 * inner(left, k) - BETWEEN * costs)) - rho**2

    return best_of_limits(bound, max(0.0, float(_largest(psi, whiten).max()) / limit - 1))


def cut_singular_values(psi: Complex, psd: Complex, whiten: Complex, limit: float) -> tuple[Complex, Array, float]:
    """Return ψ - E, no singular value of which times W = Φ^{-½} is above a limit, and tr EP⁻¹E* at each frequency.

    With ψW = Σ σ_j u_j v_j* and E = Σ x_j u_j w_j*P, w_j = W v_j, each x_j takes its own σ_j to the limit but for
    terms of second order, which are taken off in turn. Where P does not see w_j, nothing is; nor is it where it makes
    the largest larger. The last result is by what share of the limit singular values are above it then, at the most.
    """
    left, costs = psi.copy(), np.zeros(len(psi))
    first = _largest(psi, whiten) / limit - 1
    at = np.flatnonzero(first > _LEFT)
    if not len(at):
        return left, costs, 0.0
    multiple, power = np.zeros_like(psi[at]), np.trace(psd[at], axis1=1, axis2=2).real[:, None]
    for _ in range(_ROUNDS):
        rows, sizes, columns = np.linalg.svd(left[at] @ whiten[at], full_matrices=False)
        facing = columns @ adjoint(whiten[at])  # w*
        bent = np.einsum("wji,wik,wjk->wj", facing, psd[at], facing.conj()).real
        seen = bent > _SEEN * power * (np.abs(facing) ** 2).sum(axis=2)
        x = np.divide(np.maximum(0, sizes - limit), bent, out=np.zeros_like(bent), where=seen)
        multiple += (rows * x[:, None, :]) @ facing
        left[at] = psi[at] - multiple @ psd[at]
        if (_largest(left[at], whiten[at]) <= limit * (1 + _LEFT)).all():
            break
    costs[at] = inner(multiple @ psd[at], multiple)
    lost = at[_largest(left[at], whiten[at]) / limit - 1 > first[at]]
    costs[lost], left[lost] = 0, psi[lost]
    return left, costs, max(0.0, float((_largest(left, whiten) / limit).max()) - 1)


def _largest(psi: Complex, whiten: Complex) -> Array:
    """Return the largest singular value at each frequency."""
    return np.asarray(np.linalg.norm(psi @ whiten, 2, axis=(1, 2)))
