r"""Steps of Newton's method to the joint optimum of several streams with a prefilter for each input.

A step is Newton's for an error that bends as ``gain_curvature`` says, to the accuracy of a few dozen products with that
curvature. Vectors are rows of taps, one for each entry of a matrix, as ``node_transforms`` has them. What is done to a
row is done by the thread that has its FFT at hand; only sums over all of them are waited for.
"""

from __future__ import annotations

import numpy as np

from dpfast._kernels import row_products
from dpfast._kernels.matrix_tiles import aligned
from dpfast._kernels.simd import lanes
from dpfast._support.validation import Array, Complex
from dpfast.design.mimo.channel_weights import SampledChannels
from dpfast.design.mimo.gain_curvature import GainCurvature
from dpfast.design.mimo.gain_norm import GainPoint
from dpfast.design.mimo.node_transforms import NodesAlone, NodeTransforms

_MOST_PRODUCTS = 1000


class NewtonSteps:
    """Steps on one circle, with the room that they take.

    Parameters
    ----------
    problem : SampledChannels
    transforms : NodeTransforms or NodesAlone
        The latter where no causality is asked.
    accurate : float
        Of the residual: what is left of it.
    """

    def __init__(self, problem: SampledChannels, transforms: NodeTransforms | NodesAlone, accurate: float) -> None:
        self._problem, self._transforms, self._accurate = problem, transforms, accurate
        self._changed = transforms.found[:, :, : transforms.n_kept]  # what one of the next was last changed to
        vectors = (aligned(self._changed.shape) for _ in range(4))
        self._left, self._direction, self._step, self._along = vectors
        self._products, self._longer = (aligned((len(self._changed), lanes(np.float64))) for _ in range(2))
        self._n = self._changed.shape[2] // lanes(np.float64)

    def towards_least(self, at: GainPoint, residual: Array, duals: Complex, damped: float) -> tuple[Array, int]:
        """Return the step (taps, p, m) from a K, minus half the slope of J there, and how many products it took.

        Conjugate gradients are preconditioned by the inverse of the curvature frequency by frequency. What is damped
        takes a few steps more, of far fewer products: directions that hardly bend matter little.
        """
        transforms = self._transforms
        curvature = GainCurvature(self._problem, at, duals, damped, transforms.order, transforms.n_threads)
        self._along[...] = transforms.taps(curvature.tangents())[:, :, : transforms.n_kept]
        self._left[...] = transforms.rows(residual)
        for vector in (self._step, self._direction, self._changed):
            vector[...] = 0.0
        self._length = self._kept = 0.0

        def multiply(e: Array) -> None:
            curvature.multiply(e, self._longer.sum(axis=1).reshape(residual.shape[1:]).sum(axis=0))

        transforms.through(curvature.divide, self._left, self._go, self._look_back)
        size, products = float(self._products.sum()), 0
        goal = self._accurate**2 * size
        while size > goal and products < _MOST_PRODUCTS:
            transforms.through(multiply, self._direction, self._turn, self._look_ahead)
            self._length, products = size / float(self._products.sum()), products + 1
            transforms.through(curvature.divide, self._left, self._go, self._look_back)
            size, before = float(self._products.sum()), size
            self._kept = size / before
        return transforms.matrices(self._step), products

    def _turn(self, first: int, count: int) -> None:
        """Turn the direction to what is left, divided by the curvature, and keep some of what it was."""
        vectors = self._direction, self._changed, self._kept, self._along, self._longer
        row_products.turn(*vectors, self._n, first, count)

    def _look_ahead(self, first: int, count: int) -> None:
        """Multiply the direction with what the slope changes by along it."""
        row_products.multiply(self._direction, self._changed, self._products, self._n, first, count)

    def _go(self, first: int, count: int) -> None:
        """Go a length along the direction, along which the slope changes."""
        vectors = self._step, self._direction, self._left, self._changed
        row_products.go(*vectors, self._length, self._n, first, count)

    def _look_back(self, first: int, count: int) -> None:
        """Multiply what is left of the slope with what it is, divided by the curvature."""
        row_products.multiply(self._left, self._changed, self._products, self._n, first, count)
