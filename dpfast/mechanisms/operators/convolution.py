"""Toeplitz matrices: a filter over a horizon."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dpfast._support.validation import Array
from dpfast.filters.toeplitz import convolve_series
from dpfast.mechanisms.operators.operator_protocol import check_shape, largest_from_here


class Convolution(NamedTuple):
    """A lower-triangular Toeplitz matrix."""

    coefficients: Array

    @property
    def shape(self) -> tuple[int, int]:
        """The rows and columns, as many as there are coefficients."""
        return len(self.coefficients), len(self.coefficients)

    def apply(self, x: Array) -> Array:
        """Apply the matrix to sequences, in FFTs."""
        return convolve_series(self.coefficients, x)

    def products(self) -> Array:
        """Bound them by autocorrelations of the magnitudes.

        That is exact where no coefficient is negative and none is larger than before.
        """
        size = 1 << (2 * len(self.coefficients) - 1).bit_length()
        r = np.fft.irfft(np.abs(np.fft.rfft(np.abs(self.coefficients), size)) ** 2, size)[: len(self.coefficients)]
        energy = float(self.coefficients @ self.coefficients)
        r += _ROUNDING * energy
        r[0] = energy
        return largest_from_here(np.minimum(r, energy))

    def largest_l1(self) -> float:
        """Return the ℓ₁ norm of the first column, which is the largest."""
        return float(np.abs(self.coefficients).sum())

    def squared_rows(self) -> Array:
        """Return the squared norms of the rows, of which row t has the first t + 1 coefficients."""
        return np.cumsum(self.coefficients**2)

    def matrix(self) -> Array:
        """Return all entries, for a short horizon."""
        from scipy.linalg import toeplitz

        return np.asarray(toeplitz(self.coefficients, np.zeros(len(self.coefficients))))

    def check(self) -> None:
        """Refuse coefficients that are not of one dimension."""
        check_shape("coefficients", self.coefficients, 1)


_ROUNDING = 1e-13  # of FFTs, relative to the energy
