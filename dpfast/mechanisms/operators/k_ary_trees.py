"""Sums over the nodes of trees with k branches, and least-squares estimates from them, level by level."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpfast._support.validation import Array
from dpfast.filters.toeplitz import check_horizon, convolve_series
from dpfast.mechanisms.operators.dense import Dense
from dpfast.mechanisms.operators.sparse import Sparse

_CHUNK = 256  # rows that are estimated at once


def check_tree(horizon: int, branching: int, n_levels: int) -> None:
    """Refuse what is no tree: every level but the highest must have more than one node."""
    check_horizon(horizon)
    if branching < 2:
        raise ValueError(f"branching must be at least 2, got {branching}")
    if n_levels < 1 or (n_levels > 1 and branching ** (n_levels - 2) >= horizon):
        raise ValueError(
            f"levels must be at least 1, and no more than make one node of {horizon} steps, got {n_levels}: take fewer"
        )


def node_counts(horizon: int, branching: int, n_levels: int, *, whole: bool) -> list[int]:
    """Return the number of nodes of every level, leaves first; `whole` leaves out one that the horizon cuts."""
    lengths = [branching**level for level in range(n_levels)]
    return [horizon // length if whole else -(-horizon // length) for length in lengths]


def k_ary_strategy(horizon: int, branching: int, n_levels: int, *, whole: bool) -> Sparse:
    """Return the strategy of ones: a row for each node, level after level, leaves first."""
    columns, ends = [], []
    for level, count in enumerate(node_counts(horizon, branching, n_levels, whole=whole)):
        stops = np.minimum(np.arange(1, count + 1) * branching**level, horizon)
        columns.append(np.arange(stops[-1] if count else 0))
        ends.append(np.diff(stops, prepend=0))
    indices = np.concatenate(columns)
    return Sparse(np.ones(len(indices)), indices, np.cumsum(np.concatenate([[0], *ends])), horizon)


class CausalTree(NamedTuple):
    """A map to prefix sums, times a gain, from the whole nodes of a tree that end by then: A_t C_{≤t}⁺.

    A prefix is a sum of whole nodes, as many of a level as a digit of its length in base k says, and each is best
    estimated from its own subtree: its own sum has the variance 1, that of its children's estimates k v, so that v_l =
    1/(1 + 1/(k v_{l-1})) from v_0 = 1 (Honaker 2015, for k = 2).
    """

    horizon: int
    branching: int
    n_levels: int
    gain: float

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of steps and of nodes."""
        return self.horizon, sum(self._counts)

    @property
    def _counts(self) -> list[int]:
        return node_counts(self.horizon, self.branching, self.n_levels, whole=True)

    @property
    def _variances(self) -> Array:
        v = np.ones(self.n_levels)
        for level in range(1, self.n_levels):
            v[level] = 1 / (1 + 1 / (self.branching * v[level - 1]))
        return v

    def _digits(self) -> list[NDArray[np.int64]]:
        lengths = np.arange(1, self.horizon + 1)
        ends = [lengths // self.branching**level for level in range(self.n_levels)]
        return [*(x % self.branching for x in ends[:-1]), ends[-1]]

    def apply(self, x: Array) -> Array:
        """Estimate the nodes from their subtrees, and add them up to sums of prefixes."""
        k, counts, v = self.branching, self._counts, self._variances
        own = np.split(x, np.cumsum(counts)[:-1], axis=-1)
        prefix, best = np.zeros((*x.shape[:-1], self.horizon)), own[0]
        for level, (count, digits) in enumerate(zip(counts, self._digits(), strict=True)):
            if level > 0:
                # The estimate keeps v of this node's own variance, 1: so much weight has its own sum
                children = best[..., : k * count].reshape(*x.shape[:-1], count, k).sum(axis=-1)
                best = v[level] * own[level] + (1 - v[level]) * children
            steps = np.flatnonzero(digits)
            last = np.arange(1, self.horizon + 1)[steps] // k**level - 1
            prefix[..., steps] += self._sums_of_siblings(best, level)[..., last]
        return self.gain * prefix

    def _sums_of_siblings(self, nodes: Array, level: int) -> Array:
        """Add up nodes from the first of their siblings on; those of the highest level are all siblings."""
        if level == self.n_levels - 1:
            return np.cumsum(nodes, axis=-1)
        k, count = self.branching, nodes.shape[-1]
        padded = np.zeros((*nodes.shape[:-1], -(-count // k) * k))
        padded[..., :count] = nodes
        sums = np.cumsum(padded.reshape(*nodes.shape[:-1], -1, k), axis=-1)
        return sums.reshape(padded.shape)[..., :count]

    def products(self) -> Array:
        """Return the products of columns, for a short horizon."""
        return Dense(self.matrix()).products()

    def largest_l1(self) -> float:
        """Return the largest ℓ₁ norm of a column, for a short horizon."""
        return Dense(self.matrix()).largest_l1()

    def squared_rows(self) -> Array:
        """Return the variances of the nodes of a prefix, which have no noise in common."""
        shares = [v * digits for v, digits in zip(self._variances, self._digits(), strict=True)]
        return np.asarray(self.gain**2 * np.sum(shares, axis=0))

    def matrix(self) -> Array:
        """Return all entries, for a short horizon."""
        return self.apply(np.eye(self.shape[1])).T

    def check(self) -> None:
        """Refuse what is no tree."""
        check_tree(self.horizon, self.branching, self.n_levels)


class TreeLeastSquares(NamedTuple):
    """The best linear unbiased estimate of a target from all nodes of a tree, B = A C⁺.

    Up the tree every node is estimated from its own subtree; down the tree every estimate is corrected by that of its
    parent, in the proportion of its variance among its siblings (Hay, Rastogi, Miklau and Suciu 2010). What comes out
    at the leaves is C⁺ v, to which the target is applied.
    """

    response: Array
    branching: int
    n_levels: int

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of steps and of nodes."""
        return len(self.response), sum(self._counts)

    @property
    def _counts(self) -> list[int]:
        return node_counts(len(self.response), self.branching, self.n_levels, whole=False)

    @property
    def _is_sum(self) -> bool:
        return bool((self.response == self.response[0]).all())

    def _variances(self) -> list[Array]:
        """Return the variances of all nodes, estimated from their subtrees: those at the end may have fewer leaves."""
        found = [np.ones(len(self.response))]
        for _ in range(1, self.n_levels):
            below = _add_siblings(found[-1], self.branching)
            found.append(below / (below + 1))
        return found

    def _leaves(self, x: Array) -> Array:
        """Return C⁺ x."""
        k, v = self.branching, self._variances()
        own = np.split(x, np.cumsum(self._counts)[:-1], axis=-1)
        best, children = [own[0]], []
        for level in range(1, self.n_levels):
            children.append(_add_siblings(best[-1], k))
            best.append(v[level] * own[level] + (1 - v[level]) * children[-1])
        found = best[-1]
        for level in reversed(range(self.n_levels - 1)):
            parent = np.arange(len(v[level])) // k
            share = v[level] / _add_siblings(v[level], k)[parent]
            found = best[level] + share * (found - children[level])[..., parent]
        return found

    def _target(self, u: Array) -> Array:
        return self.response[0] * np.cumsum(u, axis=-1) if self._is_sum else convolve_series(self.response, u)

    def apply(self, x: Array) -> Array:
        """Estimate the leaves, and apply the target to them."""
        return self._target(self._leaves(x))

    def products(self) -> Array:
        """Return the products of columns, for a short horizon."""
        return Dense(self.matrix()).products()

    def largest_l1(self) -> float:
        """Return the largest ℓ₁ norm of a column, for a short horizon."""
        return Dense(self.matrix()).largest_l1()

    def squared_rows(self) -> Array:
        """Return the squared norms of the rows: of a sum up the tree, of other targets step by step."""
        n = len(self.response)
        return self._variances_of_sums() if self._is_sum else self.squared_rows_at(np.arange(n))

    def squared_rows_at(self, steps: NDArray[np.int64]) -> Array:
        """Return the squared norms of some rows, a_tᵀ (CᵀC)⁻¹ a_t, where (CᵀC)⁻¹ a_t = C⁺ x of x that is a_t at leaves.

        The time is that of a product of so many rows with the horizon.
        """
        n, total = self.shape
        found = np.empty(len(steps))
        for first in range(0, len(steps), _CHUNK):
            here = steps[first : first + _CHUNK]
            age = here[:, None] - np.arange(n)
            rows = np.zeros((len(here), total))
            rows[:, :n] = np.where(age >= 0, self.response[np.maximum(age, 0)], 0.0)
            found[first : first + _CHUNK] = np.einsum("ij,ij->i", rows[:, :n], self._leaves(rows))
        return found

    def _variances_of_sums(self) -> Array:
        """Return the variances of the sums of prefixes, of which the part in a subtree is estimated from it.

        With q the variance of that part and r its covariance with the whole subtree: to the next level both get the
        variances of the siblings before, and where all siblings have v, the node's own sum takes r²/(v + 1) off q.
        """
        steps, k, v = np.arange(len(self.response)), self.branching, self._variances()
        q, r = np.ones(len(steps)), np.ones(len(steps))
        for level in range(1, self.n_levels):
            node = steps // k ** (level - 1)
            before = np.cumsum(v[level - 1]) - v[level - 1]
            left = before[node] - before[node // k * k]
            whole = _add_siblings(v[level - 1], k)[node // k]
            q, r = q + left, r + left
            q, r = q - r**2 / (whole + 1), r / (whole + 1)
        before = np.cumsum(v[-1]) - v[-1]
        return np.asarray(self.response[0] ** 2 * (q + before[steps // k ** (self.n_levels - 1)]))

    def matrix(self) -> Array:
        """Return all entries, for a short horizon."""
        return self.apply(np.eye(self.shape[1])).T

    def check(self) -> None:
        """Refuse what is no tree."""
        check_tree(len(self.response), self.branching, self.n_levels)


def _add_siblings(nodes: Array, branching: int) -> Array:
    """Add up the nodes of each parent."""
    return np.asarray(np.add.reduceat(nodes, np.arange(0, nodes.shape[-1], branching), axis=-1))
