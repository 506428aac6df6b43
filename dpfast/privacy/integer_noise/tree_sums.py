"""Sums over all noises of a tree of groups: level by level upwards, and the laws of its nodes downwards."""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from dpfast._support.validation import Array

FINE, COARSE = 36.0, 15.0  # e^-36 of the law is left out, or e^-15 where designs are compared
_HALVINGS = 60
_EDGE = 0.9  # of a table, beyond which there must be nothing
_GROWTH = 1.4  # of tables where there is


class Level(NamedTuple):
    """The nodes of a level, which have so many children each: weights of (|s|, φ), and those of some children together.

    The weight A(s, φ) of all noises under a node is proportional to weights[|s|, φ] e^{-tilt φ}. That of j children, of
    sums s and of φ that add up to T, is proportional to power(j)[|s|, T] e^{-tilt T}.

    Attributes
    ----------
    branches, slack : int
    tilt : float
        By which the convolutions of this level are exact where the law has its mass.
    children : array, (sizes, sizes)
        The weights of one child for that tilt, which add up to one.
    spectrum : array
        Their transform, on a circle.
    shape : (int, int)
        Of the circle.
    weights : array, (sizes, sizes)
    log_scale : float
        The logarithm of the factor of the weights.
    log_total : float
        That of what the children's weights added up to.
    """

    branches: int
    slack: int
    tilt: float
    children: Array
    spectrum: NDArray[np.complex128]
    shape: tuple[int, int]
    weights: Array
    log_scale: float
    log_total: float

    def power(self, j: int) -> Array:
        """Return the weights of j children together."""
        if j == 1:
            return resize(self.children, self.n_sums)
        return _half(fft.irfft2(self.spectrum**j, self.shape), self.n_sums)

    def powers(self) -> Array:
        """Return the weights of 1, 2, ... children together."""
        return np.array([self.power(j) for j in range(1, self.branches + 1)])

    def parts(self, rate: float) -> Array:
        """Return the weights of T for each sum of all children: of the noises with φ = |s| where T ≤ |s| + slack."""
        s, t = np.arange(self.n_sums)[:, None], np.arange(self.n_sums)
        free = (t >= s) & (t <= s + self.slack)
        return self.power(self.branches) * np.exp((rate - self.tilt) * np.where(free, t - s - self.slack, 0)) * free

    @property
    def n_sums(self) -> int:
        """The sizes of T that are told apart."""
        return len(self.weights) + self.slack


def climb(
    rate: float,
    branches: tuple[int, ...],
    slacks: tuple[int, ...],
    unseen: float,
    scale: float,
    centres: list[float] | None = None,
) -> list[Level]:
    """Return the levels from the leaves up; what is beyond e^-unseen of the law is left out, tables grow with scale.

    Convolutions are most exact about `centres`, the mean φ of a child of each level; by default a guess.
    """
    means = _guess_means(branches, slacks)
    reach = [math.ceil(scale * unseen * max(m, 1.2 / rate)) + 2 for m in (*means, 0.0)]
    size = np.arange(reach[0] + 1)
    weights, tilt, log_scale = np.eye(len(size)), rate, 0.0
    found: list[Level] = []
    for level, (k, c) in enumerate(zip(branches, slacks, strict=True)):
        size = np.arange(len(weights))
        by_size = _both_signs(weights).sum(axis=0)
        next_tilt = _find_tilt(by_size, tilt, rate, (centres or means)[level])
        children = weights * np.exp((next_tilt - tilt) * size)
        total = float(_both_signs(children).sum())
        children = children / total
        mean = k * float(_both_signs(children).sum(axis=0) @ size)
        spread = math.sqrt(k * float(_both_signs(children).sum(axis=0) @ size**2))
        n = math.ceil(max(0.0, mean - c) + 4 * scale * spread * (mean > c)) + reach[level + 1] + 1
        widest = max(n + c, len(size), math.ceil(mean + 4 * scale * spread) + reach[level]) + 1
        shape = (fft.next_fast_len(2 * widest), fft.next_fast_len(widest, real=True))
        spectrum = fft.rfft2(_circle(children, shape))
        together = _half(fft.irfft2(spectrum**k, shape), n + c) if k > 1 else resize(children, n + c)
        log_scale = k * (log_scale + math.log(total)) + (rate - next_tilt) * c
        weights, tilt = _squash(together, c, n, rate - next_tilt), next_tilt
        found.append(Level(k, c, tilt, children, spectrum, shape, weights, log_scale, math.log(total)))
    return found


def descend(rate: float, levels: list[Level]) -> list[Array]:
    """Return the laws of (|s|, φ) of a leaf, of a node of each level, and of the root; both signs together."""
    top = levels[-1]
    outside = np.broadcast_to(np.exp(-top.tilt * np.arange(len(top.weights))), top.weights.shape)
    outside = outside / _both_signs(top.weights * outside).sum()
    laws = [_both_signs(top.weights * outside)]
    for level, below in zip(levels[::-1], [*levels[-2::-1], None], strict=True):
        s, t = np.arange(len(outside))[:, None], np.arange(level.n_sums)
        phi = np.maximum(s, t - level.slack)
        spent = np.where(phi < len(outside), np.take_along_axis(outside, np.minimum(phi, len(outside) - 1), 1), 0.0)
        spent = spent * np.exp((rate - level.tilt) * np.minimum(t - s - level.slack, 0)) * (t >= s)
        around = fft.rfft2(_circle(spent, level.shape)) * np.conj(level.spectrum ** (level.branches - 1))
        n = len(level.children)
        share = np.maximum(fft.irfft2(around, level.shape)[:n, :n], 0.0)
        laws.append(_both_signs(level.children * share))
        step = level.tilt - (rate if below is None else below.tilt)
        outside = share * np.exp(step * np.arange(n) - level.log_total)
    return laws[::-1]


class TreeSums(NamedTuple):
    """The levels of a tree from the leaves up, and the laws of (|s|, φ) of a leaf, of their nodes, and of the root."""

    levels: list[Level]
    laws: list[Array]

    @property
    def log_total(self) -> float:
        """The logarithm of Σ exp(-rate φ) over all noises."""
        top = self.levels[-1]
        weights = top.weights * np.exp(-top.tilt * np.arange(len(top.weights)))
        return top.log_scale + math.log(float(_both_signs(weights).sum()))

    def tails(self) -> Array:
        """Return P(x ≥ 1), P(x ≥ 2), ... of a leaf."""
        return np.cumsum(np.diagonal(self.laws[0])[:0:-1])[::-1] / 2

    def covariances(self) -> tuple[float, ...]:
        """Return the variance of a leaf and the covariances of two, by the level of their lowest common node."""
        squares = [float(np.arange(len(x)) ** 2 @ x.sum(axis=1)) for x in self.laws]
        found, below = [squares[0]], 1
        for level, (child, node) in zip(self.levels, itertools.pairwise(squares), strict=True):
            k = level.branches
            found.append((node - k * child) / (k * (k - 1) * below**2))
            below *= k
        return tuple(found)


def solve(rate: float, branches: tuple[int, ...], slacks: tuple[int, ...], unseen: float = FINE) -> TreeSums:
    """Return the sums over all noises of a tree, in tables that are large enough for levels and laws."""
    scale, centres = 1.0, None
    while True:
        levels = climb(rate, branches, slacks, unseen, scale, centres)
        laws = descend(rate, levels)
        if all(_at_edge(x) < math.exp(-0.6 * unseen) for x in laws):
            return TreeSums(levels, laws)
        scale, centres = scale * _GROWTH, [_mean(x) for x in laws]


def largest_table(rate: float, branches: tuple[int, ...], slacks: tuple[int, ...], unseen: float) -> int:
    """Estimate the sizes of the largest table, before any is made: a tree without slack adds up all of its leaves."""
    means = [*_guess_means(branches, slacks), 0.0]
    mean, largest = 1 / rate, 0.0
    for k, c, above in zip(branches, slacks, means[1:], strict=True):
        left = max(k * mean - c, 0.0)
        largest = max(largest, unseen * max(above, 1.2 / rate) + c + left)
        mean = max(left, 1 / rate)
    return math.ceil(max(largest, unseen * means[0]))


def resize(table: Array, n: int) -> Array:
    """Return the first n rows and columns of a table, with zeros where it has less."""
    made = np.zeros((n, n))
    m = min(n, len(table))
    made[:m, :m] = table[:m, :m]
    return made


def _guess_means(branches: tuple[int, ...], slacks: tuple[int, ...]) -> list[float]:
    """Return about where the law has the φ of a child, by level: slacks fill up, and large nodes have large children.

    Convolutions that are most exact elsewhere leave nothing but rounding where a level above looks for the law.
    """
    means, above = [], 0.0
    for k, c in zip(branches[::-1], slacks[::-1], strict=True):
        above = max(c, above) / k
        means.append(above)
    return means[::-1]


def _find_tilt(by_size: Array, tilt: float, rate: float, wanted: float) -> float:
    """Return the tilt at which a child's φ has the wanted mean; zero where it is larger already."""
    size = np.arange(len(by_size))

    def mean(t: float) -> float:
        exponents = (t - tilt) * size
        weights = by_size * np.exp(exponents - exponents.max())
        return float(weights @ size / weights.sum())

    low, high = 0.0, rate
    if mean(low) >= wanted:
        return low
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if mean(middle) < wanted else (low, middle)
    return low


def _squash(together: Array, slack: int, n: int, growth: float) -> Array:
    """Return the weights of (|s|, φ) from those of (|s|, T): φ = max(|s|, T - slack)."""
    weights = np.triu(together[:n, slack : slack + n], 1)
    t = np.arange(together.shape[1])
    for s in range(n):
        free = slice(s, s + slack + 1)
        weights[s, s] = together[s, free] @ np.exp(growth * (t[free] - s - slack))
    return weights


def _circle(half: Array, shape: tuple[int, int]) -> Array:
    made = np.zeros(shape)
    made[: half.shape[0], : half.shape[1]] = half
    made[-1 : -half.shape[0] : -1, : half.shape[1]] = half[1:]
    return made


def _half(circle: Array, n: int) -> Array:
    """Return the sums from zero on, without what is none: a sum is no larger than T."""
    return np.triu(np.maximum(circle[:n, :n], 0.0))


def _both_signs(table: Array) -> Array:
    """Count sums other than zero twice."""
    return np.concatenate([table[:1], 2 * table[1:]])


def _mean(law: Array) -> float:
    by_size = law.sum(axis=0)
    return float(by_size @ np.arange(len(by_size)) / by_size.sum())


def _at_edge(law: Array) -> float:
    return float(law[:, int(_EDGE * law.shape[1]) :].sum())
