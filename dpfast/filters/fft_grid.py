"""Uniform grids on the circle for FFTs: how many angles, which, and the responses of filters there."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from dpfast._support.validation import Array, Complex
from dpfast.filters.sections import cascade_response

if TYPE_CHECKING:
    from dpfast.filters.filter import Filter

MAX_FFT = 2**22
LONG = 1024  # states, beyond which the response takes long angle by angle


def fft_length(slowest: float, *, decay: float = 40.0) -> int:
    """Choose a power of two on whose grid a mode of radius `slowest` decays by exp(-decay)."""
    length = decay / max(-math.log(slowest), 1e-12) if slowest > 0 else 1.0
    return int(min(MAX_FFT, max(1024, 2 ** math.ceil(math.log2(length)))))


def fft_angles(n: int) -> Array:
    """Return the n/2 + 1 angles of :func:`numpy.fft.rfft` of length n."""
    return np.linspace(0, np.pi, n // 2 + 1)


def circle_mean(values: Array) -> Array:
    """Return the mean over all frequencies of values at the angles of :func:`fft_angles` (angles, ...)."""
    return np.asarray((2 * values.sum(axis=0) - values[0] - values[-1]) / (2 * (len(values) - 1)))


def circle_response(filter: Filter, n: int) -> Complex:
    """Return the response at the angles of :func:`fft_angles`; of long factors, which the length holds, by FFTs."""
    omega = fft_angles(n)
    if not LONG < filter.n_states < n:
        return filter.response(omega)
    taps, sections, recursion = filter.factors
    ends = np.fft.rfft(taps, n) / np.fft.rfft(recursion, n)
    return np.asarray(ends * cascade_response(sections, np.exp(-1j * omega)))
