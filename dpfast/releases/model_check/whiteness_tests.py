r"""Tests of mean, power and spectrum on values that are white where a model holds.

Where z_1 … z_n are independent and standard normal, so is d·z/|d| for any d, and the ordinates of the periodogram of z
are independent and exponential: the laws of all statistics here are known, for short signals too. For inputs or noise
that are not normal a fourth cumulant widens the laws of powers, which is then an approximation: ``simulated_chances``
says how good it is.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy import special

from dpfast._support.root_finding import root_between
from dpfast._support.validation import Array

_FEWEST = 4  # ordinates of the lowest octave
_INVISIBLE = 1e-12  # square of what a mean adds
_NOTHING = 1e-20  # square of weights
_WIDER = 1 + 1e-6  # than the interval that the saddlepoint is in, for rounding
_CERTAIN = 1e9  # times what is expected, or a part of it: chances below 1e-9
_NEAR = 1e-2  # of the middle of a law, in standard deviations


class Excess(NamedTuple):
    """Hold by how much fourth moments exceed those of normal values: of the innovations of u, and of the noise."""

    signal: float
    noise: float

    def added_variance(self, weights: Array, signal: Array, count: int) -> float:
        """Return what it adds to the variance of Σ weights · ordinates of one stream of so many values."""
        by_signal, by_noise = float(weights @ signal), float(weights @ (1 - signal))
        return (self.signal * by_signal**2 + self.noise * by_noise**2) / count


NORMAL = Excess(0.0, 0.0)


class PowerBand(NamedTuple):
    """Set the power of an octave beside what it should be."""

    longest: float  # period, in steps
    shortest: float
    ratio: float
    p_value: float


class Powers(NamedTuple):
    """Hold what the tests of power and spectrum found.

    Attributes
    ----------
    signal_ratio : float
        Power of the signal in v over that of the model, to first order.
    p_variance, p_spectrum : float
        Each is uniform at most where the model holds.
    bands : tuple of PowerBand
    line : PowerBand or None
        The largest single ordinate.
    """

    signal_ratio: float
    p_variance: float
    p_spectrum: float
    bands: tuple[PowerBand, ...]
    line: PowerBand | None


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

    @property
    def chances(self) -> Array:
        """Return those of mean, variance and spectrum."""
        return np.array([self.p_mean, self.p_variance, self.p_spectrum])

    def with_chances(self, chances: Array) -> Whiteness:
        """Return the same with other chances of mean, variance and spectrum."""
        mean, variance, spectrum = map(float, chances)
        return self._replace(p_mean=mean, p_variance=variance, p_spectrum=spectrum)


def find_departures(z: Array, rise: Array, share: Array, excess: Excess) -> Whiteness:
    """Test values that should be white.

    Parameters
    ----------
    z : array, (streams, time)
        Whitened values.
    rise : array, (time,)
        What a mean that is larger by one adds to each of them.
    share : array, (k,)
        The part of the power of v that is signal, at k angles from 0 to π.
    excess : Excess
    """
    mean_error, deviation, p_mean, rest = _test_mean(z, rise)
    powers = find_powers(*_ordinates(rest, rise), share, excess, z.shape)
    ratio, p_variance, p_spectrum, bands, line = powers
    return Whiteness(mean_error, deviation, ratio, p_mean, p_variance, p_spectrum, bands, line)


def find_powers(ordinates: Array, angles: Array, share: Array, excess: Excess, size: tuple[int, ...]) -> Powers:
    """Test the power and the spectrum of values that should be white, by the ordinates of their periodogram.

    Parameters
    ----------
    ordinates : array, (n,)
        Averaged over the streams, of expectation one.
    angles : array, (n,)
        Those of the ordinates, from the lowest up.
    share : array
        As of :func:`find_departures`, with `excess`.
    excess : Excess
    size : (int, int)
        Of the values: (streams, time).
    """
    if not len(ordinates):
        return Powers(1.0, 1.0, 1.0, (), None)
    n, count = size
    signal = _at_angles(share, angles)
    p_variance = _chance_of_sum(ordinates, signal, excess.added_variance(signal, signal, count), n)
    ratio = 1 + float(signal @ (ordinates - 1)) / max(float(signal @ signal), 1e-300)
    bands = tuple(_octaves(ordinates, angles, signal, excess, (n, count)))
    chances = _chances_of_lines(ordinates, signal, excess, (n, count))
    likely = int(np.argmin(chances))
    largest = likely if chances[likely] > 0 else int(np.argmax(ordinates))
    p_line = min(1.0, len(ordinates) * float(chances[largest]))
    period = 2 * np.pi / float(angles[largest])
    line = PowerBand(period, period, float(ordinates[largest]), p_line)
    p_bands = len(bands) * min(x.p_value for x in bands)
    return Powers(ratio, p_variance, min(1.0, 2 * min(p_bands, p_line)), bands, line)


def rank_departures(z: Array, rise: Array, share: Array, excess: Excess) -> Array:
    """Return (v, 3) numbers for each of many v (v, streams, time): the smaller, the less white, each test by its own.

    They are like the chances of mean, variance and spectrum in :func:`find_departures`, and fast for many v. No chance
    is read off them: they are compared with those of other v.
    """
    n, found = z.shape[1], np.ones((len(z), 3))
    weight = float(rise @ rise)
    if weight > _INVISIBLE:
        along = z @ rise
        p_all = 2 * special.ndtr(-np.abs(along.sum(axis=1)) / math.sqrt(n * weight))
        found[:, 0] = np.minimum(p_all, special.chdtrc(n, (along**2).sum(axis=1) / weight))
        z = z - along[..., np.newaxis] / weight * rise
    found[:, 1:] = rank_powers(*_ordinates(z, rise), share, excess, z.shape[1:])
    return found


def rank_powers(ordinates: Array, angles: Array, share: Array, excess: Excess, size: tuple[int, ...]) -> Array:
    """Return (v, 2) numbers for the ordinates (v, n) of many v: the smaller, the less white in power and spectrum."""
    found = np.ones((len(ordinates), 2))
    if not len(angles):
        return found
    n, count = size
    signal = _at_angles(share, angles)
    if float(signal @ signal) > _NOTHING:
        found[:, 0] = _gamma_chance(ordinates @ signal, signal, signal, excess, (n, count))
    parts = octave_parts(len(angles))
    octaves = [
        _gamma_chance(ordinates[:, x].sum(axis=1), np.ones(x.stop - x.start), signal[x], excess, (n, count))
        for x in parts
    ]
    largest = ordinates.argmax(axis=1)
    lines = _chances_of_lines(ordinates.max(axis=1), signal[largest], excess, (n, count))
    found[:, 1] = np.minimum(len(parts) * np.min(octaves, axis=0), len(angles) * lines)
    return found


def _test_mean(z: Array, rise: Array) -> tuple[float | None, float, float, Array]:
    """Return the error of the mean with its deviation, the chance of it, and z without it."""
    weight = float(rise @ rise)
    if weight <= _INVISIBLE:
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
    """Return the periodograms of z (..., streams, time), averaged over streams, and the angles without 0 and π.

    Their expectation is one.
    """
    count = z.shape[-1]
    half = (count - 1) // 2
    total = np.zeros((*z.shape[:-2], half))
    for stream in range(z.shape[-2]):
        total += np.abs(np.fft.rfft(z[..., stream, :])[..., 1 : half + 1]) ** 2
    lost = np.abs(np.fft.rfft(rise)[1 : half + 1]) ** 2 / max(float(rise @ rise), 1e-300)
    kept = count - lost
    seen = kept > 0.1 * count
    angles = 2 * np.pi * np.arange(1, half + 1) / count
    return (total / z.shape[-2])[..., seen] / kept[seen], angles[seen]


def _at_angles(share: Array, angles: Array) -> Array:
    """Return the share of the signal at the angles of ordinates."""
    return np.interp(angles, np.linspace(0, np.pi, len(share)), share)


def octave_parts(n: int) -> list[slice]:
    """Return which of n ordinates are in each octave, from the highest down."""
    parts, high = [], n
    while high > 0:
        low = high // 2 if high >= 2 * _FEWEST else 0
        parts.append(slice(low, high))
        high = low
    return parts


def _octaves(ordinates: Array, angles: Array, signal: Array, excess: Excess, size: tuple[int, int]) -> list[PowerBand]:
    """Return power and chance of octaves, from the highest down; `size` is that of v, (streams, time)."""
    bands = []
    for part in octave_parts(len(ordinates)):
        ones = np.ones(part.stop - part.start)
        further = excess.added_variance(ones, signal[part], size[1])
        p_value = _chance_of_sum(ordinates[part], ones, further, size[0])
        longest, shortest = 2 * np.pi / float(angles[part.start]), 2 * np.pi / float(angles[part.stop - 1])
        bands.append(PowerBand(longest, shortest, float(ordinates[part].mean()), p_value))
    return bands


def _chances_of_lines(ordinates: Array, signal: Array, excess: Excess, size: tuple[int, int]) -> Array:
    """Return the chance of each ordinate to be as large; `size` is that of v, (streams, time)."""
    shape = size[0] / (1 + (excess.signal * signal**2 + excess.noise * (1 - signal) ** 2) / size[1])
    return np.asarray(special.gammaincc(shape, shape * ordinates))


def _chance_of_sum(ordinates: Array, weights: Array, further: float, n: int) -> float:
    """Return the two-sided chance of Σ weights · ordinates, each the mean of n exponentials of mean one.

    By the saddlepoint approximation of Lugannani and Rice, which is within a few percent in both tails. `further` is n
    times the variance that a kurtosis adds, as if there were as many fewer exponentials.
    """
    squares, at = float(weights @ weights), float(weights @ ordinates)
    if squares <= _NOTHING or at <= 0:
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


def _gamma_chance(at: Array, weights: Array, signal: Array, excess: Excess, size: tuple[int, int]) -> Array:
    """Return the two-sided chance of sums `at` by the gamma law of the same mean and variance, for many at once."""
    mean, squares = float(weights.sum()), float(weights @ weights)
    shape = size[0] * mean**2 / (squares + excess.added_variance(weights, signal, size[1]))
    x = shape * at / mean
    return np.asarray(2 * np.minimum(special.gammainc(shape, x), special.gammaincc(shape, x)))
