"""Tests of noise: what is published of known zeros is noise alone, and must be what the guarantee takes."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import special

from dpfast._support.validation import Array
from dpfast.releases.audit.expected_laws import ExpectedLaw
from dpfast.releases.integer.inputs import Integers

MODULI = (2, 3, 5, 7)
_FEWEST = 50  # that are expected in a cell of its own


def residues_p_value(noise: Integers, law: ExpectedLaw) -> float:
    """Return a p-value of the counts of residues, which finds that only even values come."""
    values, probabilities = law.few_values
    found = []
    for m in MODULI:
        expected = np.full(m, 1 / m)
        if len(values):
            expected = np.bincount(values % m, probabilities, m)
        found.append(_chi_squared(np.bincount((noise % m).ravel(), minlength=m), expected))
    return min(1.0, len(MODULI) * min(found))


def zeros_p_value(noise: Integers, law: ExpectedLaw) -> float:
    """Return the probability of so many zeros or more: steps that are published without noise."""
    count = int(np.count_nonzero(noise == 0))
    return float(special.bdtrc(count - 1, noise.size, law.zero)) if count else 1.0


def law_p_value(noise: Integers, law: ExpectedLaw) -> float:
    """Return a p-value of the counts between quantiles: signs, tails, and whatever else is not as it should be."""
    if np.any(np.isneginf(law.log_probability(noise))):  # what never comes
        return 0.0
    ends, below = law.cells()
    cells = np.bincount(np.searchsorted(ends, noise.ravel()), minlength=len(ends) + 1)
    return _chi_squared(cells, np.diff(below, prepend=0.0, append=1.0))


def standardize(noise: Integers, which: Integers, laws: Sequence[ExpectedLaw]) -> Array:
    """Return noise in standard deviations of its law about its mean: of the one whose index is beside each value."""
    means, stds = (np.array(x) for x in ([law.mean for law in laws], [law.std for law in laws]))
    return np.asarray((noise.astype(np.float64) - means[which]) / stds[which])


def steps_p_value(scores: Sequence[Array]) -> float:
    """Return a p-value of the largest correlation of scores of a stream (streams, time), at all distances in time."""
    found = []
    for scaled in scores:
        power = (np.abs(_spectra(scaled)) ** 2).sum(axis=0) / math.sqrt(scaled.size)
        found.append(_symmetric(power, scaled.shape[1])[1:])
    return _largest(np.concatenate(found))


def streams_p_value(scores: Sequence[Array]) -> float:
    """Return a p-value of the largest correlation of scores of different streams, all pairs of them together."""
    found = []
    for scaled in scores:
        spectra, (n_streams, n) = _spectra(scaled), scaled.shape
        power = np.abs(spectra.sum(axis=0)) ** 2 - (np.abs(spectra) ** 2).sum(axis=0)
        found.append(_symmetric(power / math.sqrt(n_streams * (n_streams - 1) * n), n))
    return _largest(np.concatenate(found))


def releases_p_value(a: Array, b: Array) -> float:
    """Return a p-value of the largest correlation of scores of two releases of as many streams and steps."""
    # stream by stream, and all streams with all others: the first tells of the whole, the second of shifted streams
    same = (_spectra(a) * _spectra(b).conj()).sum(axis=0) / math.sqrt(a.size)
    mixed = _spectra(a).sum(axis=0) * _spectra(b).sum(axis=0).conj() / (len(a) * math.sqrt(a.shape[1]))
    return _largest(np.concatenate([np.fft.irfft(x, a.shape[1]) for x in (same, mixed)]))


def _chi_squared(counts: Integers, probabilities: Array) -> float:
    """Return the p-value of counts; the cells in which fewest are expected are one, of enough."""
    if np.any(counts[probabilities == 0] > 0):
        return 0.0
    order = np.argsort(probabilities, kind="stable")
    counts, expected = counts[order], counts.sum() * probabilities[order]
    n = min(int(np.searchsorted(np.cumsum(expected), _FEWEST)) + 1, len(counts))
    counts, expected = (np.append(x[n:], x[:n].sum()) for x in (counts, expected))
    if len(counts) == 1:
        return 1.0
    return float(special.chdtrc(len(counts) - 1, float(((counts - expected) ** 2 / expected).sum())))


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
