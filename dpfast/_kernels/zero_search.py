"""Sums of Aberth's iteration, which finds all zeros of a long polynomial at once: as many of each as there are zeros.

Zeros that are looked for lie side by side, so that the compiler puts them into the lanes of vectors; real and imaginary
parts are rows of their own. The sums run over the coefficients, or over all zeros, in their order.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpfast._kernels._jit import kernel

Array = NDArray[np.float64]
LANES = 64  # zeros at a time: their sums stay in the first cache
N_SUMS = 8  # rows of the scratch
_NONE = 1e-100  # the square of a distance so short is none


@kernel
def add_repulsion(own: Array, every: Array, sums: Array, out: Array) -> None:
    """Set out (2, n) to Σ 1/(z - x) over all x of every (2, m) but z itself, for each z of own (2, n).

    n is a multiple of the lanes; sums (N_SUMS, lanes) is scratch.
    """
    for first in range(0, own.shape[1], LANES):
        for i in range(LANES):
            sums[0, i], sums[1, i] = own[0, first + i], own[1, first + i]
            sums[2, i] = sums[3, i] = 0.0
        for j in range(every.shape[1]):
            x, y = every[0, j], every[1, j]
            for i in range(LANES):
                right, up = sums[0, i] - x, sums[1, i] - y
                squared = right * right + up * up
                weight = 0.0 if squared < _NONE else 1.0 / squared
                sums[2, i] += right * weight
                sums[3, i] -= up * weight
        for i in range(LANES):
            out[0, first + i], out[1, first + i] = sums[2, i], sums[3, i]


@kernel
def evaluate(c: Array, own: Array, sums: Array, out: Array) -> None:
    """Set out (5, n) to Σ c_k z^(m-k), its derivative and Σ |c_k| |z|^(m-k), for each z of own (3, n) with its modulus.

    Values and derivatives have two rows. n is a multiple of the lanes; sums (N_SUMS, lanes) is scratch.
    """
    for first in range(0, own.shape[1], LANES):
        for i in range(LANES):
            for row in range(3):
                sums[row, i] = own[row, first + i]
            for row in range(3, N_SUMS):
                sums[row, i] = 0.0
        for k in range(len(c)):
            x, size = c[k], abs(c[k])
            for i in range(LANES):
                right, up = sums[0, i], sums[1, i]
                value, turned = sums[3, i], sums[4, i]
                slope, other = sums[5, i], sums[6, i]
                sums[5, i] = slope * right - other * up + value
                sums[6, i] = slope * up + other * right + turned
                sums[3, i] = value * right - turned * up + x
                sums[4, i] = value * up + turned * right
                sums[7, i] = sums[7, i] * sums[2, i] + size
        for i in range(LANES):
            for row in range(5):
                out[row, first + i] = sums[row + 3, i]
