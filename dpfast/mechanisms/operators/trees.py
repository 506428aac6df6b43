"""Sums over the nodes of binary trees, and estimates from them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpfast._support.validation import Array
from dpfast.filters.toeplitz import check_horizon
from dpfast.mechanisms.operators.dense import Dense

Index = NDArray[np.int64]


class Prefixes(NamedTuple):
    """The nodes that make up [0, t + 1): one for every digit of t + 1 in base two; all steps in one list."""

    steps: Index
    levels: Index
    nodes: Index


def n_levels(horizon: int) -> int:
    """Return the number of levels, ⌊log₂ n⌋ + 1, whose nodes [j 2^l, (j + 1) 2^l) lie inside [0, n)."""
    return horizon.bit_length()


def level_sizes(horizon: int) -> Index:
    """Return the number of nodes of every level, leaves first."""
    return horizon >> np.arange(n_levels(horizon))


def node_rows(horizon: int, shares: Array, levels: Index, nodes: Index) -> Index:
    """Return the rows of nodes in the strategy: level after level, leaves first, levels without a share left out."""
    sizes = level_sizes(horizon)[: len(shares)] * (shares > 0)
    return np.asarray((np.cumsum(sizes) - sizes)[levels] + nodes)


def prefixes(horizon: int) -> Prefixes:
    """List the nodes of all prefixes."""
    lengths = np.arange(1, horizon + 1)
    digits = (lengths[:, None] >> np.arange(n_levels(horizon))) & 1
    steps, levels = np.nonzero(digits)
    return Prefixes(steps, levels, (lengths[steps] >> levels) - 1)


def honaker_variances(horizon: int) -> Array:
    """Return the variances of nodes that are estimated from their whole subtrees.

    They are v_l = 1/(1 + 1/(2 v_{l-1})), from v_0 = 1.
    """
    v = np.ones(n_levels(horizon))
    for level in range(1, len(v)):
        v[level] = 1 / (1 + 1 / (2 * v[level - 1]))
    return v


def node_ages(lengths: Index, level: int) -> Array:
    """Return the steps since the end of the last node of a level in prefixes."""
    return (lengths & ((1 << level) - 1)).astype(float)


class DecayedPrefixes(NamedTuple):
    """A map from the nodes of a tree to prefix sums that decay by a ratio with each step, times a gain.

    For the sum of t + 1 steps: one node for each digit 1 of t + 1 below the highest level with a share, and all the
    nodes of that level that end there or before, each decayed since its end and over its share.
    """

    horizon: int
    shares: Array
    ratio: float
    gain: float

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of steps and of nodes."""
        return self.horizon, int(level_sizes(self.horizon)[np.flatnonzero(self.shares)].sum())

    def apply(self, x: Array) -> Array:
        """Add the nodes up to sums of prefixes, level by level."""
        from scipy.signal import lfilter

        kept = [int(level) for level in np.flatnonzero(self.shares)]
        nodes = np.split(x, np.cumsum(level_sizes(self.horizon)[kept])[:-1], axis=-1)
        nodes[-1] = lfilter([1.0], [1.0, -(self.ratio ** float(1 << kept[-1]))], nodes[-1])
        lengths = np.arange(1, self.horizon + 1)
        total = np.zeros((*x.shape[:-1], self.horizon))
        for level, values in zip(kept, nodes, strict=True):
            steps = np.flatnonzero(lengths >> level if level == kept[-1] else (lengths >> level) & 1)
            weights = self.gain / self.shares[level] * self.ratio ** node_ages(lengths[steps], level)
            total[..., steps] += weights * values[..., (lengths[steps] >> level) - 1]
        return total

    def products(self) -> Array:
        """Return the products of columns, for a short horizon."""
        return Dense(self.matrix()).products()

    def largest_l1(self) -> float:
        """Return the largest ℓ₁ norm of a column, for a short horizon."""
        return Dense(self.matrix()).largest_l1()

    def squared_rows(self) -> Array:
        """Return the squared norms of the rows: the same sums of ones, everything squared."""
        squared = DecayedPrefixes(self.horizon, self.shares**2, self.ratio**2, self.gain**2)
        return squared.apply(np.ones(self.shape[1]))

    def matrix(self) -> Array:
        """Return all entries, for a short horizon."""
        return self.apply(np.eye(self.shape[1])).T

    def check(self) -> None:
        """Refuse shares that are not of levels that there are, and a highest level without one."""
        check_horizon(self.horizon)
        most = n_levels(self.horizon)
        if self.shares.ndim != 1 or not 1 <= len(self.shares) <= most or not self.shares[-1] > 0:
            raise ValueError(
                f"shares must be one for each of at most {most} levels, the last above 0, got {self.shares.tolist()}"
            )


class TreeEstimator(NamedTuple):
    """A map to prefix sums, times a gain, from nodes that are estimated bottom up (Honaker 2015).

    A node's own sum, of variance 1, and the sum of its children's estimates, of variance 2 v, weighted by the inverses
    of their variances: the best linear unbiased estimate of a node from its subtree.
    """

    horizon: int
    gain: float

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of steps and of nodes."""
        return self.horizon, int(level_sizes(self.horizon).sum())

    def apply(self, x: Array) -> Array:
        """Estimate the nodes and add them up to sums of prefixes, level by level."""
        lengths = np.arange(1, self.horizon + 1)
        own = np.split(x, np.cumsum(level_sizes(self.horizon))[:-1], axis=-1)
        best, v = own[0], honaker_variances(self.horizon)
        prefix = np.zeros((*x.shape[:-1], self.horizon))
        for level, size in enumerate(level_sizes(self.horizon)):
            if level > 0:
                # The estimate keeps v of this node's own variance, 1: so much weight has its own sum.
                children = best[..., 0 : 2 * size : 2] + best[..., 1 : 2 * size : 2]
                best = v[level] * own[level] + (1 - v[level]) * children
            steps = np.flatnonzero((lengths >> level) & 1)
            prefix[..., steps] += best[..., (lengths[steps] >> level) - 1]
        return self.gain * prefix

    def products(self) -> Array:
        """Return the products of columns, for a short horizon."""
        return Dense(self.matrix()).products()

    def largest_l1(self) -> float:
        """Return the largest ℓ₁ norm of a column, for a short horizon."""
        return Dense(self.matrix()).largest_l1()

    def squared_rows(self) -> Array:
        """Return the variances of the nodes of a prefix, which have no noise in common."""
        found = prefixes(self.horizon)
        v = honaker_variances(self.horizon)
        return np.asarray(self.gain**2 * np.bincount(found.steps, v[found.levels], self.horizon), float)

    def matrix(self) -> Array:
        """Return all entries, for a short horizon."""
        return self.apply(np.eye(self.shape[1])).T

    def check(self) -> None:
        """Refuse a horizon that is none."""
        check_horizon(self.horizon)
