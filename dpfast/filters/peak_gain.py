"""The H-infinity norm: the largest value of a gain over all frequencies."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from dpfast._support.safe_rounding import round_up
from dpfast._support.validation import Array, Complex

_MAY_BE = 0.99  # of the largest value on the grid: a peak that may be the largest


def fft_points(order: int) -> int:
    """Choose the length of an FFT that sees every wave of a response with so many states."""
    return 1 << (64 * (order + 1) - 1).bit_length()


def hinf_norm(gain: Callable[[Array], Array], poles: Complex, uniform: Array) -> float:
    """Find the largest value of a gain, from a grid that is dense around every pole, rounded up by 1e-9.

    The grid is refined at every peak that may be the largest.

    Parameters
    ----------
    gain : callable
        The gain at angles.
    poles : array of complex
        What makes it steep.
    uniform : array
        The gain at equidistant angles from 0 to π.
    """
    steps = np.geomspace(1e-3, 1e5, 160)
    around = np.abs(np.log(np.abs(poles)))[:, None] * [*-steps, 0, *steps]
    dense = (np.angle(poles)[:, None] + around).ravel()
    dense = dense[(dense >= 0) & (dense <= np.pi)]
    omega, first = np.unique(np.concatenate([np.linspace(0, np.pi, len(uniform)), dense]), return_index=True)
    value = np.concatenate([uniform, gain(dense)])[first]
    if not value.any():
        return 0.0
    top = (value >= np.append(value[1:], 0)) & (value >= np.append(0, value[:-1])) & (value >= _MAY_BE * value.max())
    low, high = np.append(omega[0], omega[:-1])[top], np.append(omega[1:], omega[-1])[top]
    return round_up(max(float(value.max()), _refine_peaks(gain, low, high)))


def _refine_peaks(gain: Callable[[Array], Array], low: Array, high: Array) -> float:
    """Find the largest value in any of the intervals, by golden sections in all of them at once."""
    golden = (math.sqrt(5) - 1) / 2
    peak = 0.0
    for _ in range(50):
        left, right = high - golden * (high - low), low + golden * (high - low)
        at_left, at_right = gain(left), gain(right)
        peak = max(peak, float(at_left.max()), float(at_right.max()))
        low, high = np.where(at_left < at_right, left, low), np.where(at_left < at_right, high, right)
    return peak
