"""Noise on the integers that several values share: larger on each of them, smaller on sums of them."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfast._kernels.shared_draws import SharedTable
from dpfast._kernels.tree_draws import TreeTable
from dpfast._support import validation
from dpfast._support.validation import Array
from dpfast.privacy.integer_noise import group_sums, tree_sums
from dpfast.privacy.integer_noise.law import check_rate, whole

_UNSEEN_BY_BITS = 23.0  # e^-23 of the law is less than 32 random bits show
_MOST_NUMBERS = 2**22  # of all tables that studies draw from
_MOST_LEVELS, _MOST_VALUES = 24, 2**24
LARGEST_GROUP = 64  # of one level
_KEPT = 4096  # laws, of each some figures


@dataclass(frozen=True)
class SharedGeometric(validation.Frozen):
    r"""P(x) ∝ exp(-(ε/d) φ), φ that of the root of a tree over the noises x of one draw, on the integers.

    A leaf has one noise, and φ = \|x\|. A node of level l has k_l children, the noises below it add up to s, and φ =
    max(\|s\|, Σ φ(child) - c_l). ε-DP for a change of one of the values by at most d steps: by induction from the leaf
    up, φ of no node changes by more than that value does. For c = 0 the noises are independent and two-sided geometric;
    for c_l > 0 those of a node may cancel one another at no cost, up to c_l: each is larger, and sums over large parts
    have little noise. A tree of one level is a group: φ = max(\|Σ x\|, Σ \|x\| - c).

    Attributes
    ----------
    epsilon : float
        What it guarantees for a change of at most `steps` in one value.
    branches : tuple of int
        k_1 ... k_L, from the leaves up.
    slacks : tuple of int
        c_1 ... c_L.
    steps : int
        d, the largest change that it was made for, in units.

    Notes
    -----
    *Privacy.* A change of one value by k steps costs ε|k|/d, whatever k is, and changes in several add up. It holds for
    values that depend on what was published before, also within a draw: for given published values v the law of the
    noise is taken at v - u(v), and two inputs that differ in one place change that in one coordinate, by at most d.

    *One group* has the law of a tree of one level, but sums over its noises and a way to draw them of its own
    (``group_sums``). By those of trees, studies take a tenth to a quarter longer, as each group takes two draws more,
    and where the slack is large the tables take a thousand times as long to make.

    Examples
    --------
    >>> group = SharedGeometric(1.0, branches=(6,), slacks=(6,))
    >>> [round(x, 3) for x in group.covariances], group.guarantee(2)
    ([3.28, -0.476], (2.0, 0.0))
    >>> tree = SharedGeometric(1.0, branches=(4, 4), slacks=(6, 12))
    >>> [round(x, 3) for x in tree.covariances]
    [7.728, -1.86, -0.148]
    """

    epsilon: float
    branches: tuple[int, ...]
    slacks: tuple[int, ...]
    steps: int = 1
    delta: float = field(default=0.0, init=False, repr=False)

    def __post_init__(self) -> None:
        validation.integer("steps", self.steps, 1)
        check_rate(self.epsilon, self.steps)
        branches, slacks = check_tree(self.branches, self.slacks)
        object.__setattr__(self, "branches", branches)
        object.__setattr__(self, "slacks", slacks)
        if self.is_group:
            validation.integer("group", branches[0], 1, LARGEST_GROUP)
        if self.is_possible(self.rate, branches, slacks):
            return
        rate = f"{self.rate:g} for each unit"
        if self.is_group:
            raise ValueError(
                f"group must be smaller, got {branches[0]} at an epsilon of {rate}: the table of the noise that these "
                f"blocks share would have more than {_MOST_NUMBERS:,} numbers, which grow with group, with slack, here "
                f"{slacks[0]}, and with 1/epsilon"
            )
        raise ValueError(
            f"branches must be fewer or slacks others, got {branches} and {slacks} at an epsilon of {rate}: the tables "
            f"of such noise would have more than {_MOST_NUMBERS:,} numbers; slacks near k (2 to 4)/epsilon keep them "
            "small, and so does a larger epsilon"
        )

    @staticmethod
    def is_possible(rate: float, branches: tuple[int, ...], slacks: tuple[int, ...]) -> bool:
        """Tell whether the tables of such a law are not too large."""
        if len(branches) == 1:
            return branches[0] * group_sums.n_sizes(rate, branches[0], slacks[0]) ** 2 <= _MOST_NUMBERS
        n = tree_sums.largest_table(rate, branches, slacks, _UNSEEN_BY_BITS)
        return n**2 * (sum(branches) + len(branches)) <= _MOST_NUMBERS

    @property
    def is_group(self) -> bool:
        """True where the tree has one level."""
        return len(self.branches) == 1

    @property
    def kind(self) -> str:
        """Its name in sentences: that of a group, or of groups of groups."""
        return "shared geometric" if self.is_group else "nested geometric"

    @property
    def rate(self) -> float:
        """ε/d, what a change by one step costs."""
        return self.epsilon / self.steps

    @property
    def n_values(self) -> int:
        """The noises of one draw."""
        return math.prod(self.branches)

    def size(self, x: ArrayLike) -> NDArray[np.int64]:
        """Return φ of the root for integers (..., n_values): what the law punishes."""
        values = whole("x", x)
        if values.ndim == 0 or values.shape[-1] != self.n_values:
            raise validation.fail("x", f"{self.n_values} integers along its last axis", x)
        s, phi = values, np.abs(values)
        for k, slack in zip(self.branches, self.slacks, strict=True):
            s, phi = (part.reshape(*values.shape[:-1], -1, k).sum(axis=-1) for part in (s, phi))
            phi = np.maximum(np.abs(s), phi - slack)
        return np.asarray(phi[..., 0])

    def log_probability(self, x: ArrayLike) -> Array:
        """Return ln P(x) of integers (..., n_values)."""
        return np.asarray(-self.rate * self.size(x) - self._sums.log_total)

    @functools.cached_property
    def _sums(self) -> group_sums.GroupSums | tree_sums.TreeSums:
        """The sums that the law adds up to over all noises."""
        return _solve(self.rate, self.branches, self.slacks)

    @functools.cached_property
    def covariances(self) -> tuple[float, ...]:
        """γ_0, the variance of a noise, and γ_l, the covariance of two whose lowest common node is of level l."""
        return _find_covariances(self.rate, self.branches, self.slacks)

    @property
    def variance(self) -> float:
        """The variance of the noise of one value, in squared steps."""
        return self.covariances[0]

    def tails(self) -> tuple[Array, float]:
        """Return P(x ≥ 1), P(x ≥ 2), ... of one value, and 1, as laws of single values do."""
        return self._sums.tails(), 1.0

    def table(self) -> SharedTable | TreeTable:
        """Return what studies draw from."""
        if isinstance(self._sums, group_sums.GroupSums):
            return SharedTable(self._sums.remaining)
        levels, laws = tree_sums.solve(self.rate, self.branches, self.slacks, _UNSEEN_BY_BITS)
        powers, parts = tuple(x.powers() for x in levels), tuple(x.parts(self.rate) for x in levels)
        return TreeTable(self.branches, self.slacks, powers, parts, laws[-1])

    def guarantee(self, change: int) -> tuple[float, float]:
        """Return (ε·change/d, 0), what a change of one value by so many steps costs."""
        return self.rate * validation.integer("change", change, 0), 0.0


def _solve(
    rate: float, branches: tuple[int, ...], slacks: tuple[int, ...]
) -> group_sums.GroupSums | tree_sums.TreeSums:
    if len(branches) == 1:
        return group_sums.solve(rate, branches[0], slacks[0])
    return tree_sums.solve(rate, branches, slacks)


@functools.lru_cache(maxsize=_KEPT)
def _find_covariances(rate: float, branches: tuple[int, ...], slacks: tuple[int, ...]) -> tuple[float, ...]:
    """Find them once: searches for the best law at other lags and of other targets come by the same trees again."""
    return _solve(rate, branches, slacks).covariances()


def check_tree(
    branches: object, slacks: object, names: tuple[str, str] = ("branches", "slacks")
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Take branches and slacks of as many levels each; refuse anything else."""
    branching, slack = names
    wanted = f"a tuple of 1 to {_MOST_LEVELS} integers, one a level from the leaves up"
    if not isinstance(branches, tuple | list) or not 1 <= len(branches) <= _MOST_LEVELS:
        raise validation.fail(branching, wanted, branches)
    if not isinstance(slacks, tuple | list):
        raise validation.fail(slack, wanted, slacks)
    if len(branches) != len(slacks):
        raise ValueError(f"{slack} must be as many as {branching}, {len(branches)}, got {len(slacks)}")
    k = tuple(validation.integer(branching, x, 2) for x in branches)
    c = tuple(validation.integer(slack, x, 0) for x in slacks)
    if math.prod(k) > _MOST_VALUES:
        raise ValueError(f"{branching} must make at most {_MOST_VALUES:,} values, got {math.prod(k):,}: take fewer")
    return k, c
