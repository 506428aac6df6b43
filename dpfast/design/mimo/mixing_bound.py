r"""A lower bound of the joint optimum with a prefilter that mixes streams, from any K and a slope ψ of its error.

It is that of ``slope_bound`` but for the norm: with Φ of any mixture of events ψ - E has ρ = sup‖(ψ - E)Φ^{-½}‖/κ, as
Re<tr ψL*> ≤ sup‖ψΦ^{-½}‖ <‖LΦ^½‖_*>. E is taken off wherever a singular value is above its limit.
"""

from __future__ import annotations

import numpy as np

from dpfast._support.validation import Array, Complex
from dpfast.design.mimo.channel_weights import SampledChannels, adjoint, inner, invert
from dpfast.design.mimo.slope_bound import best_gain

_BETWEEN = 2.0  # times what is at nodes: what E costs, and what singular values are too large by, anywhere
_ROUNDS = 6
_ROUNDED = 1e-8  # of |M|² tr P, E = MP: of a cost that is less, rounding leaves too little
_LEFT = 1e-12  # of the limit: what singular values may be above it


def mixing_gain(problem: SampledChannels, psi: Complex, k: Complex, mixture: Complex, limit: float) -> float:
    """Return what the bound is above the distortion, from ψ and K (nodes, p, m), Φ, and κρ."""

    def gain(share: float) -> float:
        left, costs, excess = cut_singular_values(psi, problem.psd, mixture, (1 + share) * limit)
        rho = limit * (1 + _BETWEEN * ((1 + share) * (1 + excess) - 1)) / problem.noise
        return float(problem.mean(2 * inner(left, k) - _BETWEEN * costs)) - rho**2

    return best_gain(gain, max(0.0, float(_largest(psi, _whiten(mixture)).max()) / limit - 1))


def cut_singular_values(psi: Complex, psd: Complex, mixture: Complex, limit: float) -> tuple[Complex, Array, float]:
    """Return ψ - E, no singular value of which times Φ^{-½} is above a limit, and tr EP⁻¹E* at each frequency.

    With ΨΦ^{-½} = Σ σ_j u_j v_j* and E = Σ x_j u_j w_j*P, w_j = Φ^{-½}v_j, each x_j takes its own σ_j to the limit but
    for terms of second order, which are taken off in turn. Where that fails, as it may where P is singular, nothing is:
    the last result is by what share of the limit singular values are above it then, at the most.
    """
    whiten = _whiten(mixture)
    whiten = np.broadcast_to(whiten, (len(psi), *whiten.shape[1:]))
    left, costs = psi.copy(), np.zeros(len(psi))
    first = _largest(psi, whiten) / limit - 1
    at = np.flatnonzero(first > _LEFT)
    if not len(at):
        return left, costs, 0.0
    multiple = np.zeros_like(psi[at])
    for _ in range(_ROUNDS):
        rows, sizes, columns = np.linalg.svd(left[at] @ whiten[at], full_matrices=False)
        facing = columns @ adjoint(whiten[at])  # w*
        bent = np.einsum("wji,wik,wjk->wj", facing, psd[at], facing.conj()).real
        over = np.maximum(0, sizes - limit)
        multiple += (rows * np.divide(over, bent, out=np.zeros_like(over), where=bent > 0)[:, None, :]) @ facing
        left[at] = psi[at] - multiple @ psd[at]
        if (_largest(left[at], whiten[at]) <= limit * (1 + _LEFT)).all():
            break
    costs[at] = inner(multiple @ psd[at], multiple)
    unseen = (np.abs(multiple) ** 2).sum(axis=(1, 2)) * np.trace(psd[at], axis1=1, axis2=2).real
    lost = (_largest(left[at], whiten[at]) / limit - 1 > first[at]) | (costs[at] <= _ROUNDED * unseen)
    costs[at[lost]], left[at[lost]] = 0, psi[at[lost]]
    return left, costs, max(0.0, float((_largest(left, whiten) / limit).max()) - 1)


def _whiten(mixture: Complex) -> Complex:
    """Return Φ^{-½}, (nodes, m, m) or (1, m, m)."""
    return adjoint(invert(np.asarray(np.linalg.cholesky(mixture), dtype=np.complex128)))


def _largest(psi: Complex, whiten: Complex) -> Array:
    return np.asarray(np.linalg.norm(psi @ whiten, 2, axis=(1, 2)))
