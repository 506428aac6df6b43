"""A rational half-integrator, (1 - z⁻¹)^(-1/2) by poles and zeros that alternate at geometric distances from 1."""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import numpy as np

from dpfast._kernels import buffered_recursion
from dpfast._support import validation
from dpfast._support.validation import Array

_RATIO = 4.0  # of the distance of a pole from 1 to that of the next
N_POLES = 31  # down to a distance of 2⁻⁶²: so many steps it is near to (1 - z⁻¹)^(-1/2)


class HalfIntegrator(NamedTuple):
    r"""T(z) = Π (1 - p_j z⁻¹)/(1 - q_j z⁻¹), which is near to (1 - z⁻¹)^(-1/2).

    It is 1 + Σ_j w_j z⁻¹/(1 - q_j z⁻¹), and 1/((1 - z⁻¹) T(z)) = Σ_j v_j/(1 - p_j z⁻¹) with the last p = 1. As
    ln (1 - p z⁻¹)/(1 - q z⁻¹) is the integral of z⁻¹/(1 - x z⁻¹) over p < x < q, and half of that over 0 < x < 1 is
    ln (1 - z⁻¹)^(-1/2), the intervals from p_j to q_j are to be half of all: they are half of each cell [4⁻ʲ⁻¹, 4⁻ʲ] of
    distances from 1, on a logarithmic scale (the recursive poles and zeros of Oustaloup et al. 2000). They alternate,
    so that all weights are positive, and the coefficients of T and of 1/((1 - z⁻¹) T) completely monotone: sums of them
    have no cancellation.

    Attributes
    ----------
    pole_distances, weights : array, (31,)
        1 - q_j and w_j.
    zero_distances, sum_weights : array, (32,)
        1 - p_j and v_j, with the pole at 1 last.
    """

    pole_distances: Array
    weights: Array
    zero_distances: Array
    sum_weights: Array

    @property
    def energy(self) -> float:
        """The square of the ℓ₂ norm of all coefficients of T."""
        return float(1 + self._pole_products.sum())

    @property
    def _pole_products(self) -> Array:
        """The sums Σ_k w_i q_iᵏ w_j q_jᵏ over all k."""
        return np.outer(self.weights, self.weights) / _joint(self.pole_distances)

    def partial_energy(self, n: Array) -> Array:
        """Return the sum of the squares of the first n ≥ 1 coefficients of T, for each n."""
        left = _powers(self.pole_distances, np.asarray(n) - 1.0)
        return np.asarray(self.energy - np.einsum("...i,ij,...j->...", left, self._pole_products, left, optimize=True))

    def apply(self, x: Array) -> Array:
        """Filter sequences (..., n) by T, from rest."""
        return self._run(buffered_recursion.accumulate, x)

    def undo(self, y: Array) -> Array:
        """Filter sequences (..., n) by 1/T, from rest: what :meth:`apply` has made, to rounding."""
        return self._run(buffered_recursion.recover, y)

    def _run(self, kernel: object, x: Array) -> Array:
        streams = np.ascontiguousarray(x, float).reshape(math.prod(x.shape[:-1]), x.shape[-1])
        out, buffers = np.empty(streams.shape), np.zeros((len(streams), len(self.weights)))
        kernel(self.pole_distances, self.weights, buffers, streams, out)  # type: ignore[operator]
        return out.reshape(x.shape)


@functools.cache
def half_integrator() -> HalfIntegrator:
    """Return the half-integrator, which is made once.

    Examples
    --------
    >>> half_integrator().apply(np.array([1.0, 0.0, 0.0, 0.0])).round(3)
    array([1.   , 0.471, 0.383, 0.322])
    """
    middle = _RATIO ** -(np.arange(N_POLES) + 0.5)
    poles, zeros = middle * _RATIO**-0.25, np.append(middle * _RATIO**0.25, 0.0)
    above, between = zeros[None, :-1] - poles[:, None], poles[None] - poles[:, None]
    weights = _products_of_ratios(above, between)
    above, between = poles[None] - zeros[:, None], zeros[None] - zeros[:, None]
    sums = _products_of_ratios(above, between)
    return HalfIntegrator(*(validation.freeze(x) for x in (poles, weights, zeros, sums)))


def _products_of_ratios(above: Array, below: Array) -> Array:
    """Return Π_i above[j, i] / Π_{i ≠ j} below[j, i] for each j, ratio by ratio, as the products alone underflow."""
    found = np.empty(len(above))
    for j in range(len(found)):
        top, bottom = above[j], np.delete(below[j], j)
        m = min(len(top), len(bottom))
        found[j] = np.prod(top[:m] / bottom[:m]) * np.prod(top[m:])
    return found


def _joint(distances: Array) -> Array:
    """Return 1 - x_i x_j of numbers at distances from 1."""
    return np.asarray(np.add.outer(distances, distances) - np.outer(distances, distances))


def _powers(distances: Array, exponents: Array) -> Array:
    """Return (1 - d_j)ⁿ (..., j) for exponents n."""
    return np.asarray(np.exp(np.multiply.outer(exponents, np.log1p(-distances))))
