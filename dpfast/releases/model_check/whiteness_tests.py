r"""Tests of mean, power and spectrum on values that are white where a model holds.

Where z_1 … z_n are independent and standard normal, so is d·z/|d| for any d, and the ordinates of the periodogram of z
are independent and exponential: the laws of all statistics here are known, for short signals too. For inputs of
a few levels the fourth cumulant of u widens those of powers.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy import special

from dpfast._support.root_finding import root_between
from dpfast._support.validation import Array

_FEWEST = 4  # ordinates of the lowest octave
_WIDER = 1 + 1e-6  # than the interval that the saddlepoint is in, for rounding
_CERTAIN = 1e9  # times what is expected, or a part of it: chances below 1e-9
_NEAR = 1e-2  # of the middle of a law, in standard deviations


class PowerBand(NamedTuple):
    """Set the power of an octave beside what it should be."""

    longest: float  # period, in steps
    shortest: float
    ratio: float
    p_value: float


class Whiteness(NamedTuple):
    """Hold what the tests found.

    Attributes
    ----------
    mean_error : float or None
        By how much the mean of u is above that of the model; None where v does not show it.
    mean_deviation : float
        Its standard deviation, where only the mean is wrong.
    signal_ratio : float
        Power of the signal in v over that of the model, to first order.
    p_mean, p_variance, p_spectrum : float
        Each is uniform at most where the model holds.
    bands : tuple of PowerBand
    line : PowerBand or None
        The largest single ordinate.
    """

    mean_error: float | None
    mean_deviation: float
    signal_ratio: float
    p_mean: float
    p_variance: float
    p_spectrum: float
    bands: tuple[PowerBand, ...]
    line: PowerBand | None


def find_departures(z: Array, rise: Array, share: Array, excess: float) -> Whiteness:
    """Test values that should be white.

    Parameters
    ----------
    z : array, (streams, time)
        Whitened values.
    rise : array, (time,)
        What a mean that is larger by one adds to each of them.
    share : array, (k,)
        The part of the power of v that is signal, at k angles from 0 to π.
    excess : float
        Of the kurtosis of the innovations of u, 0 for a normal one.
    """
    mean_error, deviation, p_mean, rest = _test_mean(z, rise)
    ordinates, angles = _ordinates(rest, rise)
    n, count = z.shape
    if not len(ordinates):
        return Whiteness(mean_error, deviation, 1.0, p_mean, 1.0, 1.0, (), None)
    signal = np.interp(angles, np.linspace(0, np.pi, len(share)), share)
    widening = excess / count
    p_variance = _chance_of_sum(ordinates, signal, widening * float(signal @ signal) ** 2, n)
    ratio = 1 + float(signal @ (ordinates - 1)) / max(float(signal @ signal), 1e-300)
    bands = tuple(_octaves(ordinates, angles, signal, widening, n))
    largest = int(np.argmax(ordinates))
    p_line = min(1.0, len(ordinates) * float(special.gammaincc(n, n * ordinates[largest])))
    period = 2 * np.pi / float(angles[largest])
    line = PowerBand(period, period, float(ordinates[largest]), p_line)
    p_bands = len(bands) * min(x.p_value for x in bands)
    return Whiteness(mean_error, deviation, ratio, p_mean, p_variance, min(1.0, 2 * min(p_bands, p_line)), bands, line)


def _test_mean(z: Array, rise: Array) -> tuple[float | None, float, float, Array]:
    """Return the error of the mean with its deviation, the chance of it, and z without it."""
    weight = float(rise @ rise)
    if weight <= 1e-12:
        return None, float("inf"), 1.0, z
    along = z @ rise
    n = len(z)
    deviation = (n * weight) ** -0.5
    error = float(along.mean()) / weight
    p_all = 2 * float(special.ndtr(-abs(error) / deviation))
    p_each = float(special.chdtrc(n, float(along @ along) / weight))
    p_value = p_all if n == 1 else min(1.0, 2 * min(p_all, p_each))
    return error, deviation, p_value, z - np.outer(along / weight, rise)


def _ordinates(z: Array, rise: Array) -> tuple[Array, Array]:
    """Return the periodogram, averaged over streams and of expectation one, and its angles, without 0 and π."""
    count = z.shape[1]
    half = (count - 1) // 2
    total = np.zeros(half)
    for row in z:
        total += np.abs(np.fft.rfft(row)[1 : half + 1]) ** 2
    lost = np.abs(np.fft.rfft(rise)[1 : half + 1]) ** 2 / max(float(rise @ rise), 1e-300)
    kept = count - lost
    seen = kept > 0.1 * count
    angles = 2 * np.pi * np.arange(1, half + 1) / count
    return (total / len(z))[seen] / kept[seen], angles[seen]


def _octaves(ordinates: Array, angles: Array, signal: Array, widening: float, n: int) -> list[PowerBand]:
    """Return power and chance of octaves, from the highest down."""
    bands, high = [], len(ordinates)
    while high > 0:
        low = high // 2 if high >= 2 * _FEWEST else 0
        part = slice(low, high)
        further = widening * float(signal[part].sum()) ** 2
        p_value = _chance_of_sum(ordinates[part], np.ones(high - low), further, n)
        longest, shortest = 2 * np.pi / float(angles[low]), 2 * np.pi / float(angles[high - 1])
        bands.append(PowerBand(longest, shortest, float(ordinates[part].mean()), p_value))
        high = low
    return bands


def _chance_of_sum(ordinates: Array, weights: Array, further: float, n: int) -> float:
    """Return the two-sided chance of Σ weights · ordinates, each the mean of n exponentials of mean one.

    By the saddlepoint approximation of Lugannani and Rice, which is within a few percent in both tails. `further` is n
    times the variance that a kurtosis adds, as if there were as many fewer exponentials.
    """
    squares, at = float(weights @ weights), float(weights @ ordinates)
    if squares <= 1e-20 or at <= 0:
        return 1.0
    shape = n / (1 + further / squares)
    sizes = weights / shape
    largest = float(sizes.max())
    if not at / _CERTAIN < float(weights.sum()) < at * _CERTAIN:  # beyond it rounding would decide
        return 0.0
    low, high = ((1 - k * shape * largest / at) / largest for k in (len(sizes) * _WIDER, 1 / _WIDER))
    t = root_between(lambda t: shape * float((sizes / (1 - sizes * t)).sum()) - at, low, high, xtol=0, rtol=1e-12)
    generating = -shape * float(np.log1p(-sizes * t).sum())
    distance = math.copysign(math.sqrt(max(0.0, 2 * (t * at - generating))), t)
    if abs(distance) < _NEAR:
        return 1.0
    slope = t * math.sqrt(shape * float(((sizes / (1 - sizes * t)) ** 2).sum()))
    density = math.exp(-(distance**2) / 2) / math.sqrt(2 * math.pi)
    beyond = float(special.ndtr(-abs(distance))) + math.copysign(density, distance) * (1 / slope - 1 / distance)
    return min(1.0, max(0.0, 2 * beyond))
