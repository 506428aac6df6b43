r"""A lower bound of the joint optimum with a prefilter that mixes streams, from any K and a slope ψ of its error.

It is that of ``slope_bound`` but for the norm: with Φ of any mixture of events ψ - E has ρ = sup‖(ψ - E)Φ^{-½}‖/κ, as
Re<tr ψL*> ≤ sup‖ψΦ^{-½}‖ <‖LΦ^½‖_*>. E is taken off wherever a singular value is above its limit;
what ψ has before now is chosen so that little is (``free_past``).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpfast._kernels.singular_limits import exceed_singular
from dpfast._support.validation import Array, Complex
from dpfast.design.mimo.channel_weights import SampledChannels, adjoint, inner, invert
from dpfast.design.mimo.free_past import choose_past
from dpfast.design.mimo.node_transforms import NodeTransforms
from dpfast.design.mimo.slope_bound import BETWEEN, ROUNDING, best_of_limits, scaled_alike

_ROUNDS = 6
_SEEN = 1e-8  # of Σ |w_i|² P_ii: what P has of a direction that is divided by it, as less is of rounding
_FAINT = 1e-100  # roots of powers: what is fainter is taken as nothing
_LEFT = 1e-12  # of the limit: what singular values may be above it

Indices = NDArray[np.intp]


class CutSlope(NamedTuple):
    """A slope of which something was taken off.

    Attributes
    ----------
    left : array, (nodes, p, m)
        ψ - E.
    costs : array, (nodes,)
        tr EP⁻¹E*.
    longest : array, (nodes,)
        The largest singular values of (ψ - E)Φ^{-½}.
    """

    left: Complex
    costs: Array
    longest: Array


class MixingBound:
    """The bound at the nodes of a circle.

    Parameters
    ----------
    problem : SampledChannels
    mixture : array, (nodes, m, m) or (1, m, m)
        Φ.
    limit : float
        What singular values of ψΦ^{-½} may be.
    """

    def __init__(self, problem: SampledChannels, mixture: Complex, limit: float) -> None:
        self._problem, self._mixture, self._limit = problem, mixture, limit
        self._whiten = np.broadcast_to(_inverse_root(mixture), problem.psd.shape)

    def lowest(self, psi: Complex, k: Complex, distortion: float) -> float:
        """Return what no product errs less than, from ψ (nodes, p, m), and from K with its distortion."""
        psd, whiten, limit = self._problem.psd, self._whiten, self._limit
        longest = np.linalg.norm(psi @ whiten, 2, axis=(1, 2))

        def bound(share: float) -> float:
            highest = (1 + share) * limit
            at = np.flatnonzero(longest > highest * (1 + _LEFT))
            in_turn = cut_in_turn(psi[at], psd[at], whiten[at], highest)
            at_once = cut_at_once(psi[at], psd[at], whiten[at], highest, in_turn)
            return distortion + max(self._gain(psi, k, at, x, highest) for x in (in_turn, at_once))

        return best_of_limits(bound, max(0.0, float(longest.max()) / limit - 1))

    def _gain(self, psi: Complex, k: Complex, at: Indices, cut: CutSlope, highest: float) -> float:
        """Return what the bound is above the distortion with a cut at some nodes; others are not above the highest."""
        left, costs = psi.copy(), np.zeros(len(psi))
        left[at], costs[at] = cut.left, cut.costs
        excess = float(cut.longest.max(initial=highest)) / self._limit - 1
        rho = self._limit * (1 + BETWEEN * excess) / self._problem.noise
        return float(self._problem.mean(2 * inner(left, k) - BETWEEN * costs)) - rho**2

    def shorten(self, directions: Complex) -> Complex:
        """Return ψ of directions D: at the limit, but where a singular value of DΦ^{-½} is above 1, which is cut."""
        rows, sizes, columns = np.linalg.svd(directions @ self._whiten, full_matrices=False)
        cut = (rows * np.minimum(1.0, sizes)[:, None]) @ columns
        return np.asarray(self._limit * cut @ invert(self._whiten))

    def tighten(self, psi: Complex, projections: int) -> Complex:
        """Return ψ with another part before now, of as many taps as a quarter of the steps."""
        circle, (_, p, m) = self._problem.circle, psi.shape
        mean = self._problem.mean(np.broadcast_to(self._mixture, self._problem.psd.shape))
        alike = _inverse_root(mean.real)  # as that of the whole circle is: in such units taps are real, too
        whiten = np.ascontiguousarray(np.linalg.inv(alike) @ _inverse_root(self._mixture))
        longest = float(np.linalg.norm(whiten, 2, axis=(1, 2)).max())
        transforms, n = NodeTransforms(p, m, circle.size), min(p, m)
        sizes = np.abs(circle.unit)[transforms.order]
        whiten = (whiten[transforms.order] if len(whiten) > 1 else whiten) / longest

        def exceed(values: Array, first: int, count: int) -> None:
            scratch = (np.empty(shape, np.complex128) for shape in ((n, p + m - n), (n, n), (n, n), (n,)))
            exceed_singular(values, whiten, self._limit / longest, sizes, first, count, *scratch)

        tight = choose_past(transforms, circle.unit, psi @ alike, exceed, len(sizes), projections)
        return np.asarray(tight @ np.linalg.inv(alike))


def _inverse_root(mixture: Complex) -> Complex:
    """Return Φ^{-½}, which makes a mixture white."""
    return adjoint(invert(np.linalg.cholesky(mixture).astype(np.complex128)))


def cut_in_turn(psi: Complex, psd: Complex, whiten: Complex, limit: float) -> CutSlope:
    """Return ψ - E, no singular value of which times W = Φ^{-½} is above a limit, but where P does not see it.

    With ψW = Σ σ_j u_j v_j* and E = Σ x_j u_j w_j*P, w_j = W v_j, each x_j takes its own σ_j to the limit but for
    terms of second order, which are taken off in turn. Where P does not see w_j, nothing is; nor is it where it makes
    the largest larger.
    """
    left, multiple, longest, at = psi.copy(), np.zeros_like(psi), np.zeros(len(psi)), np.arange(len(psi))
    first, powers = longest, np.einsum("wii->wi", psd).real[:, :, None]
    for count in range(_ROUNDS + 1):
        rows, sizes, columns = np.linalg.svd(left[at] @ whiten[at], full_matrices=False)
        longest[at] = sizes.max(axis=1)
        first = longest.copy() if count == 0 else first
        above = longest[at] > limit * (1 + _LEFT)
        if count == _ROUNDS or not above.any():
            break
        at = at[above]
        facing = columns[above] @ adjoint(whiten[at])  # w*
        bent = np.einsum("wji,wik,wjk->wj", facing, psd[at], facing.conj()).real
        seen = bent > _SEEN * (np.abs(facing) ** 2 @ powers[at])[:, :, 0]
        x = np.divide(np.maximum(0, sizes[above] - limit), bent, out=np.zeros_like(bent), where=seen)
        multiple[at] += (rows[above] * x[:, None, :]) @ facing
        left[at] = psi[at] - multiple[at] @ psd[at]
    costs, lost = inner(multiple @ psd, multiple), longest > first
    left[lost], costs[lost], longest[lost] = psi[lost], 0.0, first[lost]
    return CutSlope(left, costs, longest)


def cut_at_once(psi: Complex, psd: Complex, whiten: Complex, limit: float, in_turn: CutSlope) -> CutSlope:
    """Return a cut in turn with another E where too much is left, as where a share of Φ is very small.

    It is what singular values are beyond the limit, which costs without end where P is singular: nothing is done there.
    """
    rows, sizes, columns = np.linalg.svd(psi @ whiten, full_matrices=False)
    e = (rows * np.maximum(0.0, sizes - limit)[:, None]) @ columns @ invert(whiten)
    alike, units = scaled_alike(psd)
    powers, basis = np.linalg.eigh(alike)
    seen = (powers[:, 0] > ROUNDING) & (units.min(axis=1) > _FAINT)
    price = np.full(len(psi), np.inf)
    rotated = np.abs((e[seen] / units[seen, None]) @ basis[seen]) ** 2
    price[seen] = (rotated.sum(axis=1) / (powers[seen] - ROUNDING)).sum(axis=1)
    better = seen & (in_turn.longest > limit * (1 + _LEFT))
    longest = np.where(better, np.minimum(limit, sizes.max(axis=1)), in_turn.longest)
    left = np.where(better[:, None, None], psi - e, in_turn.left)
    return CutSlope(np.asarray(left), np.where(better, price, in_turn.costs), longest)
