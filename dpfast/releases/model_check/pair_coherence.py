r"""Tests of whether two series that should be white depend on one another, at any period or lag.

Where one of them is normal and independent of the other, the laws of these are known, whatever the other one is, so
that powers that are not those of the model do not count as a dependence. Of K independent ordinates of each the
coherence :math:`|\sum x_k \bar y_k|^2 / (\sum |x_k|^2 \sum |y_k|^2)` is above c with the chance (1 - c)^(K - 1): it is
found whatever the phase, at periods that are long beside the lag. The square of a correlation at a lag is that of 2 K
real numbers each, Beta(½, K - ½).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import special

from dpfast._support.validation import Array, Complex
from dpfast.releases.model_check.whiteness_tests import octave_parts

_FEWEST = 2  # ordinates that have a coherence below one


class Ordinates(NamedTuple):
    """Hold ordinates of periodograms, from the lowest angle up.

    Attributes
    ----------
    values : array of complex, (v, n)
        Of many series.
    angles : array, (n,)
        Multiples of 2π/length, above 0 and below π.
    length : int
        Values of each series.
    """

    values: Complex
    angles: Array
    length: int


class Tie(NamedTuple):
    """Hold how far two channels depend on one another, where that is the least likely.

    Attributes
    ----------
    channels : (int, int)
    periods : (float, float)
        The longest and the shortest of them, in steps.
    coherence : float
        Over these periods.
    lag : int or None
        After how many steps the first channel follows the second one, where a single lag is less likely than what all
        periods have in common.
    correlation : float
        At the likeliest lag.
    p_value : float
        For all periods and lags together.
    """

    channels: tuple[int, int]
    periods: tuple[float, float]
    coherence: float
    lag: int | None
    correlation: float
    p_value: float


def find_tie(x: Ordinates, y: Ordinates, channels: tuple[int, int]) -> Tie | None:
    """Return the least likely dependence of two series; None where there is too little of them.

    Parameters
    ----------
    x, y : Ordinates
        Of one series each, at the same angles.
    channels : (int, int)
        Which channels they are.
    """
    bands, angles = coherence_bands(len(x.angles)), x.angles
    if not bands:
        return None
    coherences, correlations = _coherences(x, y, bands)[0], _correlations(x, y)
    of_bands, of_lags = _chances_of_bands(coherences, bands), _chance_of_lags(correlations, len(angles))
    least = int(np.argmin(of_bands)) if of_bands.min() > 0 else int(np.argmax(coherences))
    part, shift = bands[least], int(np.argmax(np.abs(correlations[0])))
    lag = shift if 2 * shift <= x.length else shift - x.length
    periods = 2 * np.pi / float(angles[part.start]), 2 * np.pi / float(angles[part.stop - 1])
    chances = float(of_bands.min()), float(of_lags[0])
    told = lag if lag and chances[1] < chances[0] else None
    p_value = min(1.0, 2 * min(chances))
    return Tie(channels, periods, float(coherences[least]), told, float(correlations[0, shift]), p_value)


def rank_ties(x: Ordinates, y: Ordinates) -> Array:
    """Return for each of many pairs, (v,), the chance that :func:`find_tie` gives."""
    bands = coherence_bands(len(x.angles))
    if not bands:
        return np.ones(len(x.values))
    of_bands = _chances_of_bands(_coherences(x, y, bands), bands).min(axis=1)
    of_lags = _chance_of_lags(_correlations(x, y), len(x.angles))
    return np.asarray(np.minimum(1.0, 2 * np.minimum(of_bands, of_lags)))


def coherence_bands(n: int) -> list[slice]:
    """Return the ordinates that are looked at together: each octave, and all that are not above it."""
    octaves = [x for x in octave_parts(n) if x.stop - x.start >= _FEWEST]
    return [*octaves, *(slice(0, x.stop) for x in octaves if x.start > 0)]


def _coherences(x: Ordinates, y: Ordinates, bands: list[slice]) -> Array:
    """Return the coherence in each band, (v, bands)."""
    cross = x.values * y.values.conj()
    powers = np.abs(x.values) ** 2, np.abs(y.values) ** 2
    found = np.empty((len(cross), len(bands)))
    for k, part in enumerate(bands):
        both = powers[0][:, part].sum(axis=1) * powers[1][:, part].sum(axis=1)
        found[:, k] = np.abs(cross[:, part].sum(axis=1)) ** 2 / np.maximum(both, np.finfo(float).tiny)
    return np.minimum(found, 1.0)


def _chances_of_bands(coherences: Array, bands: list[slice]) -> Array:
    """Return the chance that independent series are as coherent in each band, times how many there are."""
    freedom = np.array([x.stop - x.start - 1 for x in bands])
    return np.asarray(len(bands) * (1 - coherences) ** freedom)


def _correlations(x: Ordinates, y: Ordinates) -> Array:
    """Return the correlation of x, later by each lag 0, 1, … (around the circle), with y, (v, length)."""
    cross = np.zeros((len(x.values), x.length // 2 + 1), np.complex128)
    cross[:, np.rint(x.angles * x.length / (2 * np.pi)).astype(np.int64)] = x.values * y.values.conj()
    both = (np.abs(x.values) ** 2).sum(axis=1) * (np.abs(y.values) ** 2).sum(axis=1)
    size = np.sqrt(np.maximum(both, np.finfo(float).tiny))[:, np.newaxis]
    return np.asarray(np.clip(np.fft.irfft(cross, x.length) * (x.length / 2) / size, -1.0, 1.0))


def _chance_of_lags(correlations: Array, n: int) -> Array:
    """Return the chance that independent series of n ordinates are as correlated at some lag, (v,) of (v, lags)."""
    largest = np.abs(correlations).max(axis=1)
    return np.asarray(correlations.shape[1] * special.betainc(n - 0.5, 0.5, 1 - largest**2))
