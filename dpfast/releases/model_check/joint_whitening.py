"""Channels of a known covariance become white together, each behind the past of all of them."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from dpfast._support.validation import Array, Complex


@dataclass(frozen=True, eq=False)
class JointWhitening:
    """Make channels white by the covariance of their first steps.

    Attributes
    ----------
    channels : int
        q, how many there are.
    factor : array, (n q, n q)
        Its Cholesky factor, step after step. Values of later steps are predicted from the n - 1 steps before them, and
        from the channels before theirs at the same step, as those of the n-th are.
    """

    channels: int
    factor: Array

    @property
    def reach(self) -> int:
        """Count the steps whose covariance is known."""
        return len(self.factor) // self.channels

    @functools.cached_property
    def taps(self) -> Array:
        """The filters that make later values white, (q, q, n)."""
        last = np.eye(len(self.factor))[:, -self.channels :]
        weights = linalg.solve_triangular(self.factor, last, lower=True, trans="T")
        return np.asarray(weights.reshape(self.reach, self.channels, self.channels)[::-1].transpose(2, 1, 0))

    def whiten(self, x: Array) -> Array:
        """Return the errors of predicting the values of x (..., q, time), of mean zero: of variance one."""
        q, n, time = self.channels, self.reach, x.shape[-1]
        rows = x.reshape(-1, q, time)
        first = rows[..., :n].transpose(2, 1, 0).reshape(n * q, -1)
        white = np.empty(rows.shape)
        white[..., :n] = linalg.solve_triangular(self.factor, first, lower=True).reshape(n, q, -1).transpose(2, 1, 0)
        if time > n:
            white[..., n:] = filter_channels(self.taps, rows)[..., n:]
        return white.reshape(x.shape)

    def noise_gain(self, n_angles: int) -> Array:
        """Return the power that white noise of variance one has in each white channel, at angles from 0 to π."""
        gains = np.abs(np.fft.rfft(self.taps, 2 * (n_angles - 1))) ** 2
        return np.asarray(gains.sum(axis=1))


def filter_channels(taps: Array, x: Array) -> Array:
    """Return what taps (q, m, n) make of x (rows, m, time), from rest."""
    time = x.shape[-1]
    size = 1 << (time + taps.shape[-1]).bit_length()
    response = np.fft.rfft(taps, size)
    out = np.empty((len(x), len(taps), time))
    for row, into in zip(x, out, strict=True):  # one at a time: they stay in the cache
        into[:] = np.fft.irfft((response * np.fft.rfft(row, size)).sum(axis=1), size)[:, :time]
    return out


def whitening_from_start(covariances: Array, taps: Array, noise_variance: float, n: int) -> JointWhitening:
    """Return the whitening by the first n values of taps ∗ x + noise, x from the first step on.

    Parameters
    ----------
    covariances : array, (m, m, at least n)
        R_0, R_1, … of x, R_k = E x_{t+k} x_tᵀ.
    taps : array, (q, m, length)
    noise_variance : float
        Of the white noise on each channel.
    n : int
    """
    weights = np.zeros((*taps.shape[:2], n))
    weights[..., : taps.shape[-1]] = taps[..., :n]
    lower = _block_toeplitz(weights, np.zeros((*weights.shape[:2], n)))
    signal = lower @ _of_covariances(covariances[..., :n]) @ lower.T
    return JointWhitening(len(taps), linalg.cholesky(signal + noise_variance * np.eye(len(signal)), lower=True))


def whitening_when_settled(covariances: Array, taps: Array, noise_variance: float, n: int) -> JointWhitening:
    """Return the whitening by n values of taps ∗ x + noise long after the first step.

    Parameters
    ----------
    covariances : array, (m, m, at least n + length)
        As of :func:`whitening_from_start`, with `taps`, `noise_variance` and `n`.
    taps : array, (q, m, length)
    noise_variance : float
    n : int
    """
    reach = covariances.shape[-1]
    size = 1 << (2 * reach + taps.shape[-1]).bit_length()
    both = np.zeros((*covariances.shape[:2], size))
    both[..., :reach] = covariances
    both[..., size - reach + 1 :] = covariances.swapaxes(0, 1)[..., :0:-1]
    spectra: Complex = np.moveaxis(np.fft.rfft(both), -1, 0)
    gains: Complex = np.moveaxis(np.fft.rfft(taps, size), -1, 0)
    passed = gains @ spectra @ gains.conj().swapaxes(-1, -2)
    settled = np.fft.irfft(np.moveaxis(passed, 0, -1), size)[..., :n]
    covariance = _of_covariances(settled) + noise_variance * np.eye(n * len(taps))
    return JointWhitening(len(taps), linalg.cholesky(covariance, lower=True))


def _of_covariances(r: Array) -> Array:
    """Return the covariance of n steps, step after step, of R_0 … R_{n-1}."""
    return _block_toeplitz(r, r.swapaxes(0, 1))


def _block_toeplitz(below: Array, above: Array) -> Array:
    """Return the matrix of blocks (p, m) that depend on how far below or above the diagonal they are, (p, m, n)."""
    p, m, n = below.shape
    blocks = np.concatenate([above[..., :0:-1], below], axis=-1)  # the highest above the diagonal first
    steps = np.arange(n)
    placed = blocks[:, :, n - 1 + steps[:, np.newaxis] - steps]
    return np.asarray(placed.transpose(2, 0, 3, 1).reshape(n * p, n * m))
