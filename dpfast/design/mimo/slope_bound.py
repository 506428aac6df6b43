r"""A lower bound of the joint optimum with a prefilter for each input, from any product K and a slope ψ of its error.

Let ψ be a function whose causal part is that of (z^{-D}F - K)P. Convexity gives for every causal L = HG, and whatever E

    J ≥ ‖(z^{-D}F - K)Ω‖² + 2 Re<tr (ψ - E)K*> - <tr EP⁻¹E*> - ρ²,

ρ the least with Re<tr (ψ - E)L*> ≤ ρκγ(L): Σ over columns of (sup|ψ_i - E_i|₂/κd_i)² is ρ², or its largest term where
one person may be at all inputs. (Add ψ(L - K) to the distortion at K, take the least over γ(L), and see that
‖(L - K)Ω‖² - 2 Re<tr E(L - K)*> is nowhere below the term of E.)

Of the best K and ψ no column is longer than a level, and each is as long where K has one. E is taken off wherever a
column is longer; or levels are raised a little, where less must be taken off then. Where columns are shorter E makes
them longer, as what K gains by that counts at first order, and what it costs at second. What ψ has before now is free,
as K and L are causal: it is chosen so that little must be taken off (``free_past``).
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from dpfast._kernels import column_limits
from dpfast._kernels.matrix_tiles import aligned, nodes_in_lanes
from dpfast._kernels.threads import Check, for_ranges
from dpfast._support import thread_count
from dpfast._support.validation import Array, Complex
from dpfast.design.mimo.channel_weights import SampledChannels, inner
from dpfast.design.mimo.free_past import choose_past
from dpfast.design.mimo.node_transforms import NodeTransforms

BETWEEN = 2.0  # times what is at nodes, at least four for each tap: what E costs, and how far columns are beyond limits
ROUNDING = 1e-12  # of eigenvalues of P, its diagonal being 1
_NODES_AT_ONCE = 256  # of a thread, as nodes that take long lie side by side
_SHARES = (0.3, 0.1, 0.03, 0.01, 0.003)  # of what columns are too long by, tried for what is left


class SlopeBound:
    """The bound at the nodes of a circle.

    Parameters
    ----------
    problem : SampledChannels
    levels : array, (m,)
        How long columns may be, over κ².
    """

    def __init__(self, problem: SampledChannels, levels: Array) -> None:
        self._problem, self._limits = problem, problem.noise**2 * levels

    def lowest(self, psi: Complex, k: Complex, distortion: float, *, lengthened: bool = True) -> float:
        """Return what no product errs less than, from ψ, and from K with its distortion."""
        return best_of_limits(lambda share: distortion + self._gain(psi, k, share, lengthened), self._excess(psi))

    def _gain(self, psi: Complex, k: Complex, share: float, lengthened: bool) -> float:
        """Return what the bound is above the distortion, with limits that are raised by a share."""
        problem, limits = self._problem, (1 + share) * self._limits
        left, multiple = cut_columns(psi, problem.psd, limits)
        each = (1 + BETWEEN * max(share, self._excess(left))) * self._limits / (problem.noise * problem.changes)
        rho = float(each @ each if problem.adjacency == "one_input" else each.max() ** 2)
        gains = 2 * inner(left, k) - BETWEEN * inner(psi - left, multiple)
        if lengthened:
            gains += self._lengthen(left, multiple, k, limits)
        return float(problem.mean(gains)) - rho

    def _lengthen(self, left: Complex, multiple: Complex, k: Complex, limits: Array) -> Array:
        """Return what is gained at each frequency by columns that are longer, up to their limits, at the least.

        They go a step of steepest ascent, in the units of a diagonal below P; where P is singular there is none. Of
        ψ - E with E = MP a change A costs tr A(diagonal)⁻¹A* - 2 Re tr MA* more, at the most.
        """
        diagonal, lengths = self._diagonal[:, None], np.maximum(limits, np.linalg.norm(left, axis=1))
        longer = left + diagonal * (k / BETWEEN + multiple)
        longer /= np.maximum(1.0, np.linalg.norm(longer, axis=1) / lengths)[:, None]
        added = longer - left
        squares: Array = np.divide(np.abs(added) ** 2, diagonal, out=np.zeros(added.shape), where=diagonal > 0)
        return np.asarray(2 * inner(added, k + BETWEEN * multiple) - BETWEEN * squares.sum(axis=(1, 2)))

    @functools.cached_property
    def _diagonal(self) -> Array:
        """Return a diagonal that P is nowhere below, (nodes, m)."""
        alike, sizes = scaled_alike(self._problem.psd)
        least = np.linalg.eigvalsh(alike)[:, :1] - ROUNDING
        return np.asarray(np.maximum(0.0, least) * sizes**2)

    def _excess(self, psi: Complex) -> float:
        """Return by what share of its limit a column is longer anywhere, at the most."""
        return max(0.0, float((np.linalg.norm(psi, axis=1) / self._limits).max()) - 1)

    def tighten(self, psi: Complex, projections: int) -> Complex:
        """Return ψ with another part before now, of as many taps as a quarter of the steps."""
        circle, (_, p, m) = self._problem.circle, psi.shape
        transforms = NodeTransforms(p, m, circle.size)
        sizes = nodes_in_lanes(np.abs(circle.unit), transforms.order)

        def exceed(values: Array, first: int, count: int) -> None:
            tile = aligned((2 * p * m, sizes.shape[1]))
            column_limits.exceed(values, self._limits, sizes, first, count, tile)

        return choose_past(transforms, circle.unit, psi, exceed, len(sizes), projections)


def best_of_limits(bound: Callable[[float], float], excess: float) -> float:
    """Return the best bound of all shares by which limits may be raised; by the excess, nothing is taken off.

    Where P vanishes at some frequencies, to take all off there would cost more than it is worth.
    """
    cut = bound(0.0)
    if excess == 0 or (uncut := bound(excess)) <= cut:
        return cut
    return max(uncut, *(bound(x * excess) for x in _SHARES))


def scaled_alike(psd: Complex) -> tuple[Complex, Array]:
    """Return spectra with a diagonal of 1, and the units (nodes, m) that they are in: 1 for what is nothing."""
    powers = np.einsum("wii->wi", psd).real
    sizes = np.sqrt(np.where(powers > 0, powers, 1.0))
    return np.asarray(psd / sizes[:, :, None] / sizes[:, None]), sizes


def cut_columns(psi: Complex, psd: Complex, limits: Array) -> tuple[Complex, Complex]:
    """Return ψ - MP (nodes, p, m), no column longer than its limit, and M, at about the least cost tr MPM*.

    Where P is singular, limits may contradict one another: then some columns are left longer.
    """
    m, left, multiples = len(limits), psi.copy(), np.empty_like(psi)

    def cut(first: int, count: int, check: Check) -> None:
        check()
        here, scratch = slice(first, first + count), (np.empty((m, m)), np.empty(m), np.empty(m))
        column_limits.cut_columns(psi[here], psd[here], limits, left[here], multiples[here], *scratch)

    for_ranges(cut, len(psi), _NODES_AT_ONCE, thread_count.n_threads(None))
    return left, multiples
