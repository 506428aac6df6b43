r"""The curvature of the error of several streams near a K, and its inverse frequency by frequency.

Steps of Newton's method take thousands of products with both, at the nodes of a warped circle (see
``node_transforms``).
"""

from __future__ import annotations

import functools

import numpy as np

from dpfast._kernels import gain_products
from dpfast._kernels.matrix_tiles import Places, aligned, nodes_in_lanes
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
    order : array of int
        Which node is at each place.
    n_threads : int
    """

    def __init__(
        self, problem: SampledChannels, at: GainPoint, duals: Complex, damped: float, order: Places, n_threads: int
    ) -> None:
        self._problem, self._damped, self._order, self._n_threads = problem, damped, order, n_threads
        unit = problem.circle.unit[:, None, None]
        self._sizes: Array = np.abs(unit)
        turn: Complex = unit / self._sizes
        self._directions, self._duals = turn * at.directions, turn * duals
        self._stiffness: Array = problem.noise**2 * at.levels / at.gains
        fixed = problem.psd, self._directions, self._duals, self._stiffness, self._sizes
        self._in_lanes = tuple(nodes_in_lanes(x, order) for x in fixed)
        self._n_tiles = -(-len(unit) // self._in_lanes[0].shape[1])

    def tangents(self) -> Complex:
        """Return directions times the circle's unit: how much longer columns of E get is their product with E."""
        return np.asarray(self._directions * self._sizes)

    def multiply(self, e: Array, longer: Array) -> None:
        """Make E (p m, 2, places), times the circle's unit and with room for whole tiles, its product with it.

        Its columns get longer by so much in their directions, (m,) means over the circle.
        """
        lengths = self._lengths(longer)
        psd, directions, duals, stiffness, sizes = self._in_lanes

        def curve(first: int, count: int) -> None:
            scratch = self._tile(len(e)), self._tile(len(e))
            fixed = psd, directions, duals, stiffness, sizes, lengths
            gain_products.curve_alone(e, *fixed, 1 + self._damped, first, count, *scratch)

        share_work(curve, self._n_tiles, self._n_threads)

    def divide(self, e: Array) -> None:
        """Divide E (p m, 2, places) by it, mean gains as they are."""
        parts, (_, p, m) = self._parts, self._directions.shape

        def divide(first: int, count: int) -> None:
            scratch = self._tile(len(e)), self._tile(len(e)), self._tile(m)
            gain_products.divide_alone(e, *parts, p, m, first, count, *scratch)

        share_work(divide, self._n_tiles, self._n_threads)

    def _lengths(self, longer: Array) -> Array:
        """Return by how much half the slope of the noise gets longer, from how much longer columns get."""
        problem, raised = self._problem, self._problem.changes * longer
        if problem.adjacency != "one_input":
            raised = np.full_like(raised, raised.sum())
        return np.asarray(problem.noise**2 * problem.changes * raised)

    def _tile(self, entries: int) -> Array:
        """Make room for the entries of a tile."""
        return aligned((2 * entries, self._in_lanes[0].shape[1]))

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
        in_lanes = functools.partial(nodes_in_lanes, order=self._order)
        return in_lanes(inverse / (1 + self._damped)), in_lanes(directions), in_lanes(rest)
