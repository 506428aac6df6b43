"""Riccati equations by doubling, and the stationary Kalman predictor, whose covariance solves one."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy import linalg

from dpfast._support.validation import Array
from dpfast.filters.state_space import gramian_root

_MOST_DOUBLINGS = 60
_SAME = 1e-15
_WHITE = 1e-10  # of the variance of what is seen: noise to begin with, from which steps lead to none
_STEPS = 2  # each squares what is left of that noise, but where zeros are on the circle


class RiccatiMap(NamedTuple):
    """A map X ↦ H + Aᵀ X (I + G X)⁻¹ A, from a covariance before something is seen to one before more is seen."""

    a: Array
    g: Array
    h: Array

    def then(self, second: RiccatiMap) -> RiccatiMap:
        """Return the map that is this one and then another."""
        both = np.linalg.solve(np.eye(len(self.a)) + second.g @ self.h, np.hstack([second.a, second.g]))
        a, g = both[:, : len(self.a)], both[:, len(self.a) :]
        return RiccatiMap(
            self.a @ a, _symmetric(self.g + self.a @ g @ self.a.T), _symmetric(second.h + second.a.T @ self.h @ a)
        )

    def limit(self) -> Array:
        """Return what the map leads to, repeated for ever: by doubling (Anderson 1978)."""
        now = self
        for _ in range(_MOST_DOUBLINGS):
            before, now = now, now.then(now)
            if np.abs(now.h - before.h).max() <= _SAME * np.abs(now.h).max():
                break
        return now.h


class Predictor(NamedTuple):
    """The stationary Kalman predictor ŝ⁺ = A ŝ + K e, e = v - C ŝ.

    Attributes
    ----------
    gain : array, (n, q)
        K.
    covariance : array, (n, n)
        Of its error s - ŝ.
    innovation : array, (q, q)
        The covariance of e, which is white.
    """

    gain: Array
    covariance: Array
    innovation: Array


def find_predictor(a: Array, b: Array, c: Array, d: Array, variance: float) -> Predictor:
    """Find the predictor of s⁺ = A s + B w from v = C s + D w + n, of white w, n of variances one and `variance` > 0.

    What of w is not seen in v has the covariance (I + DᵀD/variance)⁻¹: a sum, where I - Dᵀ(DDᵀ + variance)⁻¹D would
    lose the digits of little noise. Doubling loses some where zeros lie outside the circle, and Newton's step, the
    covariance that the gain so found leaves, as a sum of squares, finds them again (Kleinman 1968). States may be in
    any units: they are taken in those of what they vary by, as doubling may lose all digits where units are far apart.
    """
    sizes = np.linalg.norm(gramian_root(a, b), axis=0)
    units = np.exp2(np.round(np.log2(np.where(sizes > 0, sizes, 1.0))))  # by which nothing is rounded
    found = _double(a / units[:, None] * units, b / units[:, None], c * units, d, variance)
    return Predictor(units[:, None] * found.gain, units[:, None] * found.covariance * units, found.innovation)


def _double(a: Array, b: Array, c: Array, d: Array, variance: float) -> Predictor:
    """Find the predictor of states of variances about one."""
    seen = d @ d.T + variance * np.eye(len(d))
    by_state = linalg.solve(seen, c, assume_a="pos")
    unseen = linalg.cholesky(np.eye(d.shape[1]) + d.T @ d / variance, lower=True)
    root = linalg.solve_triangular(unseen, b.T, lower=True)
    covariance = RiccatiMap((a - b @ d.T @ by_state).T, c.T @ by_state, root.T @ root).limit() if len(a) else a
    first = _predictor(a, b, c, d, variance, covariance)
    left = gramian_root(a - first.gain @ c, np.hstack([b - first.gain @ d, math.sqrt(variance) * first.gain]))
    return _predictor(a, b, c, d, variance, left.T @ left)


def find_innovation(a: Array, b: Array, c: Array, d: Array) -> Predictor:
    """Find the predictor of a stream, x = C s + D w of variance about one, that is seen without any noise.

    There need be nothing of w that x shows at once. Newton's steps start from a little noise, stay stable, and come as
    near as one likes (Hewer 1971): where the spectrum vanishes on the circle each halves how far they are off.
    """
    found = find_predictor(a, b, c, d, _WHITE)
    for _ in range(_STEPS):
        left = gramian_root(a - found.gain @ c, b - found.gain @ d)
        found = _predictor(a, b, c, d, 0.0, left.T @ left)
    return found


def _predictor(a: Array, b: Array, c: Array, d: Array, variance: float, covariance: Array) -> Predictor:
    """Return the predictor of a covariance."""
    innovation = _symmetric(c @ covariance @ c.T + d @ d.T + variance * np.eye(len(d)))
    gain = linalg.solve(innovation, (a @ covariance @ c.T + b @ d.T).T, assume_a="pos").T
    return Predictor(gain, covariance, innovation)


def _symmetric(x: Array) -> Array:
    return np.asarray((x + x.T) / 2)
