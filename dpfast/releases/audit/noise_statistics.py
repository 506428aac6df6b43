"""Tests of noise: what is published of known zeros is noise alone, and must be what the guarantee takes."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import special

from dpfast._support.validation import Array
from dpfast.privacy.discrete_gaussian_accounting import Sigma
from dpfast.releases.integer.inputs import Integers

MODULI = (2, 3, 5, 7)
_CELLS = 64
_FINE = 1000.0  # a larger σ has the density of the continuous law between integers, and equally many of all residues
_WIDEST = 12.0  # standard deviations, for a smaller one


def std_bound(noise: Integers, miss: float) -> float:
    """Bound σ from above, but for a probability `miss`, by the second moment, a chi-squared variable for that σ.

    Examples
    --------
    >>> round(std_bound(np.repeat([-3, 3], 100_000), 1e-3), 3)
    3.015
    """
    square = float((noise.astype(np.float64) ** 2).sum())
    return math.sqrt(square / float(special.chdtri(noise.size, 1 - miss)))


def largest_lack(n_values: int, miss: float, power: float) -> float:
    """Return by how much, relative, σ is too small where `std_bound` finds that with a probability `power`."""
    usual, low = (float(special.chdtri(n_values, 1 - p)) for p in (power, miss))
    return 1 - math.sqrt(low / usual)


def residues_p_value(noise: Integers, sigma: Sigma) -> float:
    """Return a p-value of the counts of residues, which finds that only even values come."""
    values, probabilities = _law_of_values(sigma)
    found = []
    for m in MODULI:
        expected = np.full(m, 1 / m)
        if len(values):
            expected = np.bincount(values % m, probabilities, m)
        found.append(_chi_squared(np.bincount((noise % m).ravel(), minlength=m), expected))
    return min(1.0, len(MODULI) * min(found))


def zeros_p_value(noise: Integers, sigma: Sigma) -> float:
    """Return the probability of so many zeros or more: steps that are published without noise."""
    count = int(np.count_nonzero(noise == 0))
    # the normaliser, but for one part in 1e34
    return float(special.bdtrc(count - 1, noise.size, 1 / (sigma.std * math.sqrt(2 * math.pi)))) if count else 1.0


def law_p_value(noise: Integers, sigma: Sigma) -> float:
    """Return a p-value of the counts between quantiles: signs, tails, and whatever else is not that of a Gaussian."""
    levels = np.arange(1, _CELLS) / _CELLS
    values, probabilities = _law_of_values(sigma)
    if len(values):
        ends = np.unique(values[np.searchsorted(np.cumsum(probabilities), levels)])
        below = np.cumsum(probabilities)[np.searchsorted(values, ends)]
    else:
        ends = np.floor(sigma.std * special.ndtri(levels)).astype(np.int64)
        below = special.ndtr((ends + 0.5) / sigma.std)
    cells = np.bincount(np.searchsorted(ends, noise.ravel()), minlength=len(ends) + 1)
    return _chi_squared(cells, np.diff(below, prepend=0.0, append=1.0))


def steps_p_value(series: Sequence[Integers], sigma: Sigma) -> float:
    """Return a p-value of the largest correlation of values of a stream (streams, time), at all distances in time."""
    found = []
    for x in series:
        scaled = _standardize(x, sigma)
        power = (np.abs(_spectra(scaled)) ** 2).sum(axis=0) / math.sqrt(scaled.size)
        found.append(_symmetric(power, x.shape[1])[1:])
    return _largest(np.concatenate(found))


def streams_p_value(series: Sequence[Integers], sigma: Sigma) -> float:
    """Return a p-value of the largest correlation of values of different streams, all pairs of them together."""
    found = []
    for x in series:
        scaled = _standardize(x, sigma)
        spectra, (n_streams, n) = _spectra(scaled), scaled.shape
        power = np.abs(spectra.sum(axis=0)) ** 2 - (np.abs(spectra) ** 2).sum(axis=0)
        found.append(_symmetric(power / math.sqrt(n_streams * (n_streams - 1) * n), n))
    return _largest(np.concatenate(found))


def releases_p_value(first: Integers, second: Integers, sigma: Sigma) -> float:
    """Return a p-value of the largest correlation of values of two releases of as many streams and steps."""
    a, b = (_standardize(x, sigma) for x in (first, second))
    # stream by stream, and all streams with all others: the first tells of the whole, the second of shifted streams
    same = (_spectra(a) * _spectra(b).conj()).sum(axis=0) / math.sqrt(a.size)
    mixed = _spectra(a).sum(axis=0) * _spectra(b).sum(axis=0).conj() / (len(a) * math.sqrt(a.shape[1]))
    return _largest(np.concatenate([np.fft.irfft(x, a.shape[1]) for x in (same, mixed)]))


def _law_of_values(sigma: Sigma) -> tuple[Integers, Array]:
    """Return the values that may come, and their probabilities; none where σ is so large that no test needs them."""
    if sigma.std > _FINE:
        return np.zeros(0, np.int64), np.zeros(0)
    most = math.ceil(_WIDEST * sigma.std)
    values = np.arange(-most, most + 1)
    weights = np.exp(-0.5 * (values / sigma.std) ** 2)
    return values, weights / weights.sum()


def _chi_squared(counts: Integers, probabilities: Array) -> float:
    expected = counts.sum() * probabilities
    return float(special.chdtrc(len(counts) - 1, float(((counts - expected) ** 2 / expected).sum())))


def _standardize(x: Integers, sigma: Sigma) -> Array:
    return x.astype(np.float64) / sigma.std


def _spectra(x: Array) -> NDArray[np.complex128]:
    return np.fft.rfft(x, axis=-1)


def _symmetric(power: Array, n: int) -> Array:
    """Return circular correlations at the distances 0 to n/2; at both ends every product counts twice."""
    correlations = np.fft.irfft(power, n)[: n // 2 + 1]
    ends = [0, n // 2] if n % 2 == 0 else [0]
    correlations[ends] /= math.sqrt(2)
    return np.asarray(correlations)


def _largest(scores: Array) -> float:
    """Return a p-value of the largest of standard normal scores."""
    return min(1.0, 2 * len(scores) * float(special.ndtr(-np.abs(scores).max())))
