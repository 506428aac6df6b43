"""A Toeplitz matrix that is applied with few buffers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dpfast._support.validation import Array
from dpfast.filters.filter import Filter
from dpfast.filters.toeplitz import check_horizon
from dpfast.mechanisms.operators.operators import Convolution, check_shape


class BufferedToeplitz(NamedTuple):
    """C(z) = Π (1 - p_i z⁻¹)/(1 - q_i z⁻¹) over a horizon, p and q real and inside of the unit circle."""

    zeros: Array
    poles: Array
    horizon: int

    @property
    def coefficients(self) -> Array:
        """The impulse response."""
        impulse = np.zeros(self.horizon)
        impulse[0] = 1.0
        return cascade(self.zeros, self.poles, impulse)

    def filter(self) -> Filter:
        """The same as a stable filter, which has one state for every pole and runs step by step.

        Examples
        --------
        >>> BufferedToeplitz(np.array([0.5]), np.array([0.9]), 8).filter().impulse(3).round(3)
        array([1.  , 0.4 , 0.36])
        """
        return Filter.from_zpk(self.zeros, self.poles, 1.0)

    @property
    def shape(self) -> tuple[int, int]:
        """Square."""
        return self.horizon, self.horizon

    def apply(self, x: Array) -> Array:
        """Pole by pole."""
        return cascade(self.zeros, self.poles, x)

    def products(self) -> Array:
        """As those of a convolution."""
        return Convolution(self.coefficients).products()

    def largest_l1(self) -> float:
        """Of the first column."""
        return Convolution(self.coefficients).largest_l1()

    def squared_rows(self) -> Array:
        """As those of a convolution."""
        return Convolution(self.coefficients).squared_rows()

    def matrix(self) -> Array:
        """For a short horizon."""
        return Convolution(self.coefficients).matrix()

    def check(self) -> None:
        """A pole for every zero."""
        check_shape("zeros", self.zeros, 1)
        if self.poles.shape != self.zeros.shape:
            raise ValueError(f"poles must be as many as zeros, got {len(self.poles)} and {len(self.zeros)}")
        check_horizon(self.horizon)


def cascade(zeros: Array, poles: Array, x: Array) -> Array:
    """Sequences (..., n) through Π (1 - p_i z⁻¹)/(1 - q_i z⁻¹), pair after pair: clustered poles do no harm."""
    from scipy.signal import lfilter  # late: it takes half as long to import as all of dpfast

    for p, q in zip(zeros, poles, strict=True):
        x = lfilter([1.0, -p], [1.0, -q], x)
    return x
