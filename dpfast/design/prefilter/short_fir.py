"""Short FIR prefilters: truncations of the ideal impulse response."""

from __future__ import annotations

import math

import numpy as np

from dpfast._support.validation import Array
from dpfast.design.prefilter.canonical_factor import canonical_factor
from dpfast.design.prefilter.objectives import Excess
from dpfast.filters.fft_grid import fft_angles, fft_length
from dpfast.filters.filter import MAX_POLE_RADIUS, Filter
from dpfast.filters.spectral_factor import Spectrum, minimum_phase

MAX_TAPS = 4096
_FEW_TAPS = 32
MAX_ROOT_RADIUS = MAX_POLE_RADIUS - 1e-6  # of a realised prefilter, so that its inverse is stable too


def shortest_fir(shape: Spectrum, measure: Excess, tolerance: float, most: int) -> tuple[float, Filter]:
    """Return the shortest truncation of the ideal impulse response within the tolerance, to an eighth of its length.

    If `most` taps are not enough, the result has so many.
    """
    ideal = ideal_impulse_response(shape)
    low, high = 0, min(8, most)
    while (result := truncate_impulse_response(ideal, high, measure))[0] > tolerance:
        if high == most:
            return result
        low, high = high, min(2 * high, most)
    while high - low > max(1, high // 8):
        middle = (low + high) // 2
        tried = truncate_impulse_response(ideal, middle, measure)
        if tried[0] <= tolerance:
            high, result = middle, tried
        else:
            low = middle
    return result


def ideal_impulse_response(shape: Spectrum) -> Array:
    """Return the impulse response of the minimum-phase filter with |G|² the shape, long enough for every FIR here."""
    n = 16 * MAX_TAPS
    return np.fft.irfft(minimum_phase(raise_to_floor(shape(fft_angles(n)))))


def truncate_impulse_response(ideal: Array, n: int, measure: Excess) -> tuple[float, Filter]:
    """Return the first n taps, with zeros reflected into the circle and kept so far off it that 1/G is a filter."""
    reflected = _reflect_zeros(ideal[:n])
    nearest = float(np.abs(reflected.zeros).max(initial=0.0))
    if nearest > MAX_ROOT_RADIUS:
        reflected = Filter(reflected.b * (MAX_ROOT_RADIUS / nearest) ** np.arange(len(reflected.b)))
    return measure(reflected), reflected


def _reflect_zeros(taps: Array) -> Filter:
    """Return taps of the same gain with no zero outside of the circle: of many by FFTs, where roots take longer."""
    if len(taps) <= _FEW_TAPS:
        gain, monic = canonical_factor(Filter(taps))
        return monic * math.sqrt(gain)
    magnitude = np.abs(np.fft.rfft(taps, fft_length(MAX_ROOT_RADIUS, decay=8.0))) ** 2
    return Filter(np.fft.irfft(minimum_phase(raise_to_floor(magnitude, 1e-14)))[: len(taps)])


def raise_to_floor(spectrum: Array, floor: float = 1e-9) -> Array:
    """Return a spectrum raised to at least a part of its largest value, so that it has a logarithm."""
    return np.asarray(np.maximum(spectrum, floor * spectrum.max()))
