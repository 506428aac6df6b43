"""Values of a known covariance become white: what is left is independent of variance one where the covariance holds."""

from __future__ import annotations

import numpy as np
from scipy import linalg

from dpfast._support.validation import Array
from dpfast.signals.model import Model, autocovariance


def whiten(x: Array, covariance: Array) -> Array:
    """Return the errors of predicting each value from those before it, of variance one.

    Parameters
    ----------
    x : array, (streams, time)
        Of mean zero.
    covariance : array, (n, n)
        Of the first n values, n ≤ time. Later values are predicted from the n - 1 before them, as the n-th is.

    Examples
    --------
    >>> whiten(np.array([[2.0, 5.0, 4.0]]), np.array([[4.0, 2.0], [2.0, 2.0]])).tolist()
    [[1.0, 4.0, 1.5]]
    """
    n, time = len(covariance), x.shape[1]
    factor = linalg.cholesky(covariance, lower=True)
    white = np.empty(x.shape)
    white[:, :n] = linalg.solve_triangular(factor, x[:, :n].T, lower=True).T
    if time > n:
        taps = linalg.solve_triangular(factor, np.eye(n)[-1], lower=True, trans="T")[::-1]
        size = 1 << (time + n - 1).bit_length()
        response = np.fft.rfft(taps, size)
        for row, out in zip(x, white, strict=True):  # one at a time: they stay in the cache
            out[n:] = np.fft.irfft(np.fft.rfft(row, size) * response, size)[n:time]
    return white


def covariance_from_start(model: Model, taps: Array, noise_variance: float, n: int) -> Array:
    """Return the covariance (n, n) of the first n values of taps ∗ u + noise, u from the first step on."""
    first = np.zeros(n)
    first[: len(taps)] = taps[:n]
    lower = linalg.toeplitz(first, np.zeros(n))
    return np.asarray(lower @ linalg.toeplitz(autocovariance(model, n)) @ lower.T + noise_variance * np.eye(n))


def covariance_when_settled(model: Model, taps: Array, noise_variance: float, n: int) -> Array:
    """Return the covariance (n, n) of n values of taps ∗ u + noise long after the first step."""
    reach = len(taps) + n
    signal = autocovariance(model, reach)
    size = 1 << (2 * reach + len(taps)).bit_length()
    both = np.concatenate([signal, np.zeros(size - 2 * reach + 1), signal[:0:-1]])
    passed = np.fft.irfft(np.fft.rfft(both) * np.abs(np.fft.rfft(taps, size)) ** 2, size)[:n]
    passed[0] += noise_variance
    return np.asarray(linalg.toeplitz(passed))
