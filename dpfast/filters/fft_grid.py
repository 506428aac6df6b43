"""Uniform grids on the circle for FFTs: how many angles, and which."""

from __future__ import annotations

import math

import numpy as np

from dpfast._support.validation import Array

MAX_FFT = 2**22


def fft_length(slowest: float, *, decay: float = 40.0) -> int:
    """Choose a power of two on whose grid a mode of radius `slowest` decays by exp(-decay)."""
    length = decay / max(-math.log(slowest), 1e-12) if slowest > 0 else 1.0
    return int(min(MAX_FFT, max(1024, 2 ** math.ceil(math.log2(length)))))


def fft_angles(n: int) -> Array:
    """Return the n/2 + 1 angles of :func:`numpy.fft.rfft` of length n."""
    return np.linspace(0, np.pi, n // 2 + 1)
