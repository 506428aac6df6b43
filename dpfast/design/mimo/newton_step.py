r"""Steps of Newton's method to the joint optimum of several streams with a prefilter for each input.

A step is Newton's for an error that bends as ``gain_curvature`` says, to the accuracy of a few dozen products with that
curvature. Vectors are taps of the entries of a matrix, (p m, taps). What is done to an entry is done by the thread that
has its FFT at hand (``node_transforms``); only sums over all of them are waited for.
"""

from __future__ import annotations

import numpy as np

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
        (rows, size), taps = transforms.found.shape, transforms.n_taps
        self._padded_left, self._padded_direction = np.zeros((rows, size)), np.zeros((rows, size))
        self._left, self._direction = self._padded_left[:, :taps], self._padded_direction[:, :taps]
        self._changed = self._transforms.found[:, :taps]  # what either of them was last changed to
        self._step = np.empty((rows, taps))
        self._products, self._longer = np.empty(rows), np.empty(rows)  # of entries

    def towards_least(self, at: GainPoint, residual: Array, duals: Complex, damped: float) -> tuple[Array, int]:
        """Return the step (taps, p, m) from a K, minus half the slope of J there, and how many products it took.

        Conjugate gradients are preconditioned by the inverse of the curvature frequency by frequency. What is damped
        takes a few steps more, of far fewer products: directions that hardly bend matter little.
        """
        transforms = self._transforms
        curvature = GainCurvature(self._problem, at, duals, damped, transforms.n_threads)
        self._along = transforms.taps(curvature.tangents())[:, : len(residual)]
        self._left[...] = residual.reshape(len(residual), -1).T
        for vector in (self._step, self._direction, self._changed):
            vector[...] = 0.0
        self._length = self._kept = 0.0

        def multiply(e: Complex) -> None:
            curvature.multiply(e, self._longer.reshape(e.shape[:2]).sum(axis=0))

        transforms.through(curvature.divide, self._padded_left, self._go, self._look_back)
        size, products = float(self._products.sum()), 0
        goal = self._accurate**2 * size
        while size > goal and products < _MOST_PRODUCTS:
            transforms.through(multiply, self._padded_direction, self._turn, self._look_ahead)
            self._length, products = size / float(self._products.sum()), products + 1
            transforms.through(curvature.divide, self._padded_left, self._go, self._look_back)
            size, before = float(self._products.sum()), size
            self._kept = size / before
        return np.ascontiguousarray(self._step.T).reshape(residual.shape), products

    def _turn(self, rows: slice) -> None:
        """Turn the direction to what is left, divided by the curvature, and keep some of what it was."""
        self._direction[rows] *= self._kept
        self._direction[rows] += self._changed[rows]
        self._longer[rows] = _product(self._direction[rows], self._along[rows])

    def _look_ahead(self, rows: slice) -> None:
        """Multiply the direction with what the slope changes by along it."""
        self._products[rows] = _product(self._direction[rows], self._changed[rows])

    def _go(self, rows: slice) -> None:
        """Go a length along the direction, along which the slope changes."""
        self._step[rows] += self._length * self._direction[rows]
        self._left[rows] -= self._length * self._changed[rows]

    def _look_back(self, rows: slice) -> None:
        """Multiply what is left of the slope with what it is, divided by the curvature."""
        self._products[rows] = _product(self._left[rows], self._changed[rows])


def _product(a: Array, b: Array) -> Array:
    """Return the product of each row of one with that of the other."""
    return np.asarray(np.einsum("it,it->i", a, b))
