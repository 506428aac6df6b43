"""A Toeplitz matrix that is applied with few buffers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dpfast._support.validation import Array
from dpfast.filters.filter import Filter
from dpfast.filters.toeplitz import check_horizon
from dpfast.mechanisms.operators.convolution import Convolution
from dpfast.mechanisms.operators.operator_protocol import check_shape


class BufferedToeplitz(NamedTuple):
    """A Toeplitz matrix that runs as a cascade of few real poles and zeros, all inside of the unit circle.

    It is C(z) = Π (1 - p_i z⁻¹)/(1 - q_i z⁻¹) over a horizon, with zeros p and poles q.
    """

    zeros: Array
    poles: Array
    horizon: int

    @property
    def coefficients(self) -> Array:
        """The impulse response over the horizon."""
        impulse = np.zeros(self.horizon)
        impulse[0] = 1.0
        return cascade(self.zeros, self.poles, impulse)

    def filter(self) -> Filter:
        """Return the same as a stable filter, which has one state for every pole and runs step by step.

        Examples
        --------
        >>> BufferedToeplitz(np.array([0.5]), np.array([0.9]), 8).filter().impulse(3).round(3)
        array([1.  , 0.4 , 0.36])
        """
        return Filter.from_zpk(self.zeros, self.poles, 1.0)

    @property
    def shape(self) -> tuple[int, int]:
        """The rows and columns, as many as the horizon has steps."""
        return self.horizon, self.horizon

    def apply(self, x: Array) -> Array:
        """Apply the matrix to sequences, pole by pole."""
        return cascade(self.zeros, self.poles, x)

    def products(self) -> Array:
        """Bound the products of columns, as those of a convolution."""
        return Convolution(self.coefficients).products()

    def largest_l1(self) -> float:
        """Return the ℓ₁ norm of the first column, which is the largest."""
        return Convolution(self.coefficients).largest_l1()

    def squared_rows(self) -> Array:
        """Return the squared norms of the rows, as those of a convolution."""
        return Convolution(self.coefficients).squared_rows()

    def matrix(self) -> Array:
        """Return all entries, for a short horizon."""
        return Convolution(self.coefficients).matrix()

    def check(self) -> None:
        """Refuse zeros and poles that are not as many, and a horizon that is none."""
        check_shape("zeros", self.zeros, 1)
        if self.poles.shape != self.zeros.shape:
            raise ValueError(f"poles must be as many as zeros, got {len(self.poles)} and {len(self.zeros)}")
        check_horizon(self.horizon)


def cascade(zeros: Array, poles: Array, x: Array) -> Array:
    """Filter sequences (..., n) by Π (1 - p_i z⁻¹)/(1 - q_i z⁻¹), pair after pair: clustered poles do no harm."""
    from scipy.signal import lfilter  # late: it takes half as long to import as all of dpfast

    for p, q in zip(zeros, poles, strict=True):
        x = lfilter([1.0, -p], [1.0, -q], x)
    return x
