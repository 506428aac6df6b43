r"""The factorization of a running sum without a horizon: a half-integrator between two slowly varying scales.

Strategy C = diag(a) T diag(1/e), reconstruction B = S diag(e) T⁻¹ diag(1/a), S the running sum and T the rational
half-integrator (``filters.half_integrator``). a_t² = exp(-4 ((1 + ln(t + 1)/3)^(2/3) - 1)) falls so fast that all that
is ever published about an input has a finite norm, and slower than any power of t; e_s, no smaller than the norm of
column s of diag(a) T over all time, makes each column of C at most 1. Both are constant on intervals.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np

from dpfast._support import validation
from dpfast._support.safe_rounding import round_up
from dpfast._support.validation import Array
from dpfast.filters.half_integrator import N_POLES, half_integrator
from dpfast.filters.toeplitz import check_horizon
from dpfast.mechanisms.operators.dense import Dense

_SINGLE = 16  # first intervals of a step each
_PER_OCTAVE = 8  # intervals while time doubles
_OCTAVES = 2 * N_POLES  # until the last interval, which has no end
_ROWS = 4096  # steps whose errors are computed at once


class GrowingScales(NamedTuple):
    """The scales of the factorization, constant on intervals of time.

    Attributes
    ----------
    starts : array of float, (intervals,)
        The first step of each; the last has no end.
    row_scales : array, (intervals,)
        a of each.
    column_scales : array, (intervals,)
        e of each: never growing, and at least the norm of every column of diag(a) T that begins there.
    """

    starts: Array
    row_scales: Array
    column_scales: Array

    def spread(self, scales: Array, n: int) -> Array:
        """Return the scale of each of the first n steps, of scales of the intervals."""
        begun = int(np.searchsorted(self.starts, n))
        return np.repeat(scales[:begun], np.diff(np.append(self.starts[:begun], n)).astype(int))


@functools.cache
def growing_scales() -> GrowingScales:
    """Return the intervals and scales, which are the same for all mechanisms, and made once."""
    octaves = np.arange((_OCTAVES - 4) * _PER_OCTAVE + 1) / _PER_OCTAVE
    starts: Array = np.append(np.arange(_SINGLE), np.round(_SINGLE * 2.0**octaves))
    squares: Array = np.asarray(np.exp(-4 * ((1 + np.log1p(starts) / 3) ** (2 / 3) - 1)), float)
    columns = [_column_energy(starts[i:], squares[i:]) for i in range(len(starts))]
    scales = np.array([round_up(x) for x in np.sqrt(columns)])
    return GrowingScales(*(validation.freeze(x) for x in (starts, np.sqrt(squares), scales)))


def _column_energy(starts: Array, squares: Array) -> float:
    """Return Σ_k c_k² a²_{s+k} over all k ≥ 0, s the first start; columns of later s have less, as a never grows.

    By parts, Σ_m E(start_{m+1} - s)(a_m² - a_{m+1}²) + E(∞) a_last², E the energies of the first coefficients of T: no
    term is below zero.
    """
    half = half_integrator()
    first = half.partial_energy(starts[1:] - starts[0])
    return float(first @ -np.diff(squares) + half.energy * squares[-1])


def squared_rows(first: int, count: int) -> Array:
    """Return the squared norms of the rows first, first + 1, ... of the reconstruction, (count,).

    It is the variance of the estimate for noise of variance 1. With e and a constant, what is added up is a sum of
    exponentials of the noise, of which the covariance has a closed form, interval by interval; at a new e what was
    added up so far stays as it is. Nothing in these sums is below zero.
    """
    counts = first + 1.0 + np.arange(count)  # of steps that are over
    found = np.empty(count)
    starts = growing_scales().starts
    interval = np.searchsorted(starts, counts) - 1
    for i in np.unique(interval):
        here = np.flatnonzero(interval == i)
        for rows in np.array_split(here, -(-len(here) // _ROWS)):
            found[rows] = _interval_sums()[i].variances(counts[rows] - starts[i])
    return found


class _NoisySum(NamedTuple):
    """The noise in the buffers and in the sum at the start of an interval, and the scales of the interval.

    The buffers R_j, of which the reconstruction's exponentials are weights v_j, have the covariance `spread`; the sum
    is e v·R + K, where K, which has covariances `with_kept` with R and the variance `kept`, is constant meanwhile.
    """

    spread: Array
    with_kept: Array
    kept: float
    noise: float  # the variance of what enters a buffer at a step, 1/a²
    scale: float  # e

    def variances(self, m: Array) -> Array:
        """Return the variance of the sum after m more steps, for each m."""
        half = half_integrator()
        d, v = half.zero_distances, half.sum_weights
        left = v * np.exp(np.multiply.outer(m, np.log1p(-d)))
        old = np.einsum("mi,ij,mj->m", left, self.spread, left, optimize=True)
        return np.asarray(
            self.scale**2 * (old + self.noise * _new_energy(m)) + 2 * self.scale * (left @ self.with_kept) + self.kept
        )

    def after(self, m: float, noise: float, scale: float) -> _NoisySum:
        """Return the state m steps on, where an interval with other scales begins."""
        half = half_integrator()
        d, v = half.zero_distances, half.sum_weights
        decay = m * np.log1p(-d)
        joint = np.add.outer(decay, decay)
        spread = np.exp(joint) * self.spread + self.noise * _geometric_sums(m)
        with_kept = np.exp(decay) * self.with_kept
        change, products = self.scale - scale, spread @ v
        kept = self.kept + 2 * change * float(v @ with_kept) + change**2 * float(v @ products)
        return _NoisySum(spread, with_kept + change * products, kept, noise, scale)


def _geometric_sums(m: float) -> Array:
    """Return Σ_{k < m} (p_i p_j)ᵏ of the zeros p of T, and 1."""
    d = half_integrator().zero_distances
    logs = np.log1p(-d)
    gaps = np.add.outer(d, d) - np.outer(d, d)
    gaps[-1, -1] = 1.0
    sums = -np.expm1(m * np.add.outer(logs, logs)) / gaps
    sums[-1, -1] = m
    return np.asarray(sums)


def _new_energy(m: Array) -> Array:
    """Return Σ_{k < m} l_k², l the coefficients of 1/((1 - z⁻¹) T), for each m."""
    half = half_integrator()
    d, v = half.zero_distances[:-1], half.sum_weights[:-1]
    last = half.sum_weights[-1]
    left = np.exp(np.multiply.outer(m, np.log1p(-d)))
    products = np.outer(v, v) / (np.add.outer(d, d) - np.outer(d, d))
    faded = np.einsum("mi,ij,mj->m", left, products, left, optimize=True)
    return np.asarray(products.sum() - faded + 2 * last * ((1 - left) @ (v / d)) + last**2 * m)


@functools.cache
def _interval_sums() -> tuple[_NoisySum, ...]:
    starts, rows, columns = growing_scales()
    n = N_POLES + 1
    states = [_NoisySum(np.zeros((n, n)), np.zeros(n), 0.0, rows[0] ** -2, columns[0])]
    for i in range(1, len(starts)):
        states.append(states[-1].after(starts[i] - starts[i - 1], rows[i] ** -2, columns[i]))
    return tuple(states)


def _spread_scales(n: int) -> tuple[Array, Array]:
    """Return the scales of the first n rows and of the first n columns."""
    scales = growing_scales()
    return scales.spread(scales.row_scales, n), scales.spread(scales.column_scales, n)


class GrowingStrategy(NamedTuple):
    """The first rows and columns of the strategy C of a running sum without a horizon.

    Its norms are those of the whole columns, which have no end: noise for it is that for as many steps as may come.
    """

    horizon: int

    @property
    def shape(self) -> tuple[int, int]:
        """The rows and columns, as many as the horizon has steps."""
        return self.horizon, self.horizon

    def apply(self, x: Array) -> Array:
        """Apply the matrix to sequences, in so many buffers as T has poles."""
        fainter, column = _spread_scales(x.shape[-1])
        return np.asarray(fainter * half_integrator().apply(x / column))

    def products(self) -> Array:
        """Bound the products of columns by 1, as the norm of each is at most 1 over all time."""
        return np.ones(self.horizon)

    def largest_l1(self) -> float:
        """Bound the ℓ₁ norm of a column by its ℓ₂ norm."""
        return float(np.sqrt(self.horizon))

    def squared_rows(self) -> Array:
        """Return the squared norms of the rows, for a short horizon."""
        return Dense(self.matrix()).squared_rows()

    def matrix(self) -> Array:
        """Return all entries, for a short horizon."""
        return self.apply(np.eye(self.horizon)).T

    def check(self) -> None:
        """Refuse a horizon that is none."""
        check_horizon(self.horizon)


class GrowingReconstruction(NamedTuple):
    """The first rows and columns of the reconstruction B of a running sum without a horizon."""

    horizon: int

    @property
    def shape(self) -> tuple[int, int]:
        """The rows and columns, as many as the horizon has steps."""
        return self.horizon, self.horizon

    def apply(self, x: Array) -> Array:
        """Apply the matrix to sequences, in so many buffers as T has poles."""
        fainter, column = _spread_scales(x.shape[-1])
        return np.cumsum(column * half_integrator().undo(x / fainter), axis=-1)

    def products(self) -> Array:
        """Return the products of columns, for a short horizon."""
        return Dense(self.matrix()).products()

    def largest_l1(self) -> float:
        """Return the largest ℓ₁ norm of a column, for a short horizon."""
        return Dense(self.matrix()).largest_l1()

    def squared_rows(self) -> Array:
        """Return the squared norms of the rows, exactly."""
        return squared_rows(0, self.horizon)

    def matrix(self) -> Array:
        """Return all entries, for a short horizon."""
        return self.apply(np.eye(self.horizon)).T

    def check(self) -> None:
        """Refuse a horizon that is none."""
        check_horizon(self.horizon)
