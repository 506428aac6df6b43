r"""Steps of Newton's method to the joint optimum of several streams with a prefilter that mixes them.

Half the curvature of J along E is E P + κ²g times that of ``mixing_norm``, of one mixture, to which is added that the
mixture and the size of the norm change: UᵀU, of as few ranks as there are events.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import linalg

from dpfast._support.validation import Array, Complex
from dpfast.design.mimo.channel_weights import SampledChannels
from dpfast.design.mimo.circle_taps import at_nodes, causal_taps
from dpfast.design.mimo.mixing_norm import NormPoint

_PRODUCTS, _OF_LOUD = 100, 1000  # of the conjugate gradients of a step; where streams are loud
_ACCURATE = 1e-2  # of the residual: what is left of it


class MixingModel:
    """J near a K, minimized by conjugate gradients.

    They are preconditioned by the inverse of its curvature: that of one mixture frequency by frequency, A, and UᵀU.

    Parameters
    ----------
    problem : SampledChannels
    norm : NormPoint
        At K.
    """

    def __init__(self, problem: SampledChannels, norm: NormPoint) -> None:
        self._problem, self._norm, self._circle = problem, norm, problem.circle
        self._size = problem.noise**2 * norm.value
        self._inverse = norm.inverse_curvature(problem.psd, self._size)
        few = self._few_directions()
        self._few = few.reshape(len(few), -1)
        self._conditioned = self._condition_alone(few).reshape(self._few.shape)
        self._stiffened = linalg.cho_factor(np.eye(len(few)) + self._few @ self._conditioned.T)

    def step(self, residual: Array) -> tuple[Array, int]:
        """Return the step (taps, p, m) from K, minus half the slope of J there, and how many products it took."""
        step, left, products = np.zeros_like(residual), residual, 0
        most = _OF_LOUD if self._problem.loud else _PRODUCTS
        direction = conditioned = self._condition(left)
        size = first = float((left * conditioned).sum())
        while size > _ACCURATE**2 * first and products < most:
            curved, products = self._curve(direction), products + 1
            length = size / float((direction * curved).sum())
            step, left = step + length * direction, left - length * curved
            conditioned = self._condition(left)
            size, before = float((left * conditioned).sum()), size
            direction = conditioned + size / before * direction
        return step, products

    def _few_directions(self) -> Array:
        """Return U (directions, taps, p, m)."""
        norm = self._norm
        directions = np.concatenate([norm.slope[None], math.sqrt(norm.value) * norm.mixing()])
        return self._problem.noise * causal_taps(self._circle, directions)

    def _curve(self, taps: Array) -> Array:
        """Return half the curvature of J along taps."""
        e = at_nodes(self._circle, taps)
        alone = causal_taps(self._circle, e @ self._problem.psd + self._size * self._norm.curve_alone(e))
        return np.asarray(alone + ((self._few @ taps.ravel()) @ self._few).reshape(taps.shape))

    def _condition(self, taps: Array) -> Array:
        """Apply (A + UᵀU)⁻¹ = A⁻¹ - A⁻¹Uᵀ(1 + UA⁻¹Uᵀ)⁻¹UA⁻¹."""
        alone = self._condition_alone(taps[None])[0]
        shares = linalg.cho_solve(self._stiffened, self._few @ alone.ravel())
        return np.asarray(alone - (shares @ self._conditioned).reshape(taps.shape))

    def _condition_alone(self, taps: Array) -> Array:
        """Apply A⁻¹ to many (..., taps, p, m)."""
        values = at_nodes(self._circle, taps)
        flat = np.moveaxis(self._inverse @ np.moveaxis(flatten(values), 0, -1), -1, 0)
        return causal_taps(self._circle, join_parts(flat, values.shape))


def flatten(values: Complex) -> Array:
    """Return real and imaginary parts of (..., p, m) as one axis."""
    flat = values.reshape(*values.shape[:-2], -1)
    return np.concatenate([flat.real, flat.imag], axis=-1)


def join_parts(flat: Array, shape: tuple[int, ...]) -> Complex:
    """Return what `flatten` makes real and imaginary parts of."""
    half = flat.shape[-1] // 2
    return np.asarray((flat[..., :half] + 1j * flat[..., half:]).reshape(shape))
