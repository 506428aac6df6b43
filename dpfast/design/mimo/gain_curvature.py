r"""The curvature of the error of several streams near a K, and its inverse frequency by frequency.

Steps of Newton's method take thousands of products with both, at the nodes of a warped circle (see
``node_transforms``).
"""

from __future__ import annotations

import functools

import numpy as np

from dpfast._kernels import gain_products
from dpfast._kernels.matrix_tiles import entries, nodes_in_lanes
from dpfast._kernels.threads import share_work
from dpfast._support.validation import Array, Complex
from dpfast.design.mimo.channel_weights import SampledChannels, adjoint, invert
from dpfast.design.mimo.gain_norm import GainPoint


class GainCurvature:
    """Half the curvature of J = ‖(z^{-D}F - K)Ω‖² + κ²γ² at a K, and its inverse at each frequency.

    With duals that are not yet the directions it is what Newton's step of both takes it for, made symmetric. At each
    frequency it is E ↦ (1 + δ)E(P + N) - Σ N_i (k_i Re u_i*E_i + u_i Re k_i*E_i) e_i*/2, N = κ² diag(levels_i/g_i),
    with directions k, duals u, damped by δ; to which is added that mean gains change.

    Parameters
    ----------
    problem : SampledChannels
    at : GainPoint
    duals : array, (nodes, p, m)
    damped : float
        δ.
    n_threads : int
    """

    def __init__(self, problem: SampledChannels, at: GainPoint, duals: Complex, damped: float, n_threads: int) -> None:
        self._problem, self._damped, self._n_threads = problem, damped, n_threads
        unit = problem.circle.unit[:, None, None]
        self._size: Array = np.abs(unit)
        turn: Complex = unit / self._size
        self._directions, self._duals = turn * at.directions, turn * duals
        self._stiffness: Array = problem.noise**2 * at.levels / at.gains
        fixed = problem.psd, self._directions, self._duals, self._stiffness, self._size
        self._in_lanes = tuple(nodes_in_lanes(x) for x in fixed)

    def multiply(self, e: Complex) -> None:
        """Make E (p, m, nodes), times the circle's unit and with room for whole tiles, its product with it."""
        psd, directions, duals, stiffness, sizes = self._in_lanes
        along, given, (p, m, _) = np.empty_like(stiffness), entries(e), e.shape

        def lengthen(first: int, count: int) -> None:
            gain_products.lengthen(given, directions, p, m, first, count, self._tile(p, m), along)

        def curve(first: int, count: int) -> None:
            fixed = psd, directions, duals, along, stiffness, sizes, lengths
            scratch = self._tile(p, m), self._tile(p, m)
            gain_products.curve_alone(given, *fixed, 1 + self._damped, first, count, *scratch)

        share_work(lengthen, len(self._weights), self._n_threads)
        lengths = self._lengths(along)
        share_work(curve, len(self._weights), self._n_threads)

    def divide(self, e: Complex) -> None:
        """Divide E (p, m, nodes) by it, mean gains as they are."""
        given, parts, (p, m, _) = entries(e), self._parts, e.shape

        def divide(first: int, count: int) -> None:
            scratch = self._tile(p, m), self._tile(p, m), self._tile(1, m)
            gain_products.divide_alone(given, *parts, p, m, first, count, *scratch)

        share_work(divide, len(self._weights), self._n_threads)

    def _lengths(self, along: Array) -> Array:
        """Return by how much half the slope of the noise gets longer, from how much longer columns get."""
        problem, (tiles, _, width) = self._problem, self._weights.shape
        longer = problem.changes * (self._weights * along.reshape(tiles, -1, width)).sum(axis=(0, 2))
        raised = longer if problem.adjacency == "one_input" else np.full_like(longer, longer.sum())
        return np.asarray(problem.noise**2 * problem.changes * raised)

    def _tile(self, p: int, m: int) -> Array:
        """Make room for the entries of a tile."""
        return np.empty((2 * p * m, self._weights.shape[2]))

    @functools.cached_property
    def _weights(self) -> Array:
        """Return the weights of nodes where E is times the unit, (tiles, 1, lanes); none beyond the last node."""
        weights = self._problem.circle.grid.weights / self._size[:, 0, 0]
        width = self._in_lanes[0].shape[1]
        return np.asarray(np.append(weights, np.zeros(-len(weights) % width)).reshape(-1, 1, width))

    @functools.cached_property
    def _parts(self) -> tuple[Array, Array, Array]:
        """Prepare division by Woodbury's formula in sums of positive terms alone: (P + N)⁻¹, k and the rest, in lanes.

        For k the mean with the dual is taken, by which the curvature is a little less.
        """
        weights, directions = self._stiffness, (self._directions + self._duals) / 2
        inverse = invert(self._problem.psd + weights[:, :, None] * np.eye(weights.shape[1]))
        # Along K_i the curvature is less than the weight by what is to be inverted here, as P⁻¹ would be of a kink.
        spread = (self._problem.psd @ inverse) / weights[:, :, None]
        turned = adjoint(directions) @ directions
        left = (turned * np.swapaxes(spread, 1, 2)).real
        left = (left + np.swapaxes(left, 1, 2)) / 2
        short = np.maximum(0.0, 1 - np.linalg.norm(directions, axis=1) ** 2)
        left += ((short + self._damped) / weights)[:, :, None] * np.eye(weights.shape[1])
        rest = (1 + self._damped) * np.linalg.inv(left)
        return nodes_in_lanes(inverse / (1 + self._damped)), nodes_in_lanes(directions), nodes_in_lanes(rest)
