"""Noise on the integers that several published values share: larger on each of them, smaller on their sum."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dpfast._support import validation
from dpfast._support.validation import Array
from dpfast.privacy.integer_noise.law import check_rate, whole

_UNSEEN = 40.0  # e^-40 of the law is left out
_MOST_NUMBERS = 2**22  # of its table
LARGEST_GROUP = 64


@dataclass(frozen=True)
class SharedGeometric(validation.Frozen):
    r"""P(x) ∝ exp(-(ε/d) max(|x_1 + ... + x_q|, |x_1| + ... + |x_q| - c)) for the q noises of a group, on the integers.

    ε-DP for a change of one of the q values by at most d steps, as each argument of the maximum changes by no more than
    that value does. For c = 0 the noises are independent and two-sided geometric. For c > 0 they may cancel one another
    at no cost, up to c: each is larger, and their sum is smaller.

    Attributes
    ----------
    epsilon : float
        What it guarantees for a change of at most `steps` in one value.
    group : int
        q.
    slack : int
        c.
    steps : int
        d, the largest change that it was made for, in steps of the lattice.

    Notes
    -----
    *Privacy.* A change of one value by k steps costs ε|k|/d, whatever k is, and changes in several add up. It holds for
    values that depend on what was published before, also within a group: for given published values v the law of the
    noise is taken at v - S(v), and two inputs that differ in one place change that in one coordinate, by at most d.

    Examples
    --------
    >>> noise = SharedGeometric(1.0, group=6, slack=6)
    >>> round(noise.variance, 3), round(noise.covariance, 3), noise.guarantee(2)
    (3.28, -0.476, (2.0, 0.0))
    """

    epsilon: float
    group: int
    slack: int
    steps: int = 1
    delta: float = field(default=0.0, init=False, repr=False)
    kind: ClassVar[str] = "shared geometric"

    def __post_init__(self) -> None:
        validation.integer("steps", self.steps, 1)
        validation.integer("group", self.group, 1, LARGEST_GROUP)
        validation.integer("slack", self.slack, 0)
        check_rate(self.epsilon, self.steps)
        if not self.is_possible(self.rate, self.group, self.slack):
            raise ValueError(
                f"group must be smaller, got {self.group} at an epsilon of {self.rate:g} for each step of the lattice: "
                f"the table of the noise that these blocks share would have more than {_MOST_NUMBERS:,} numbers"
            )

    @staticmethod
    def is_possible(rate: float, group: int, slack: int) -> bool:
        """Tell whether the table of such a law is not too large."""
        return group * _n_sizes(rate, group, slack) ** 2 <= _MOST_NUMBERS

    @property
    def rate(self) -> float:
        """ε/d, what a change by one step costs."""
        return self.epsilon / self.steps

    @property
    def _n_sizes(self) -> int:
        """The sizes above and below zero that are told apart."""
        return _n_sizes(self.rate, self.group, self.slack)

    def log_weight(self, x: ArrayLike) -> Array:
        """Return ln P(x) but for a constant, of integers (..., q)."""
        values = whole("x", x)
        if values.ndim == 0 or values.shape[-1] != self.group:
            raise validation.fail("x", f"{self.group} integers along its last axis", x)
        spread = np.abs(values).sum(axis=-1) - self.slack
        return np.asarray(-self.rate * np.maximum(np.abs(values.sum(axis=-1)), spread))

    def log_probability(self, x: ArrayLike) -> Array:
        """Return ln P(x) of integers (..., q)."""
        return self.log_weight(x) - self._remaining[1]

    @functools.cached_property
    def _remaining(self) -> tuple[Array, float]:
        """R_j(a, b) for j = 1 ... q, relative to R_0(0, 0), whose logarithm comes with them.

        R_q is the law, R_j what it adds up to over all values of the noises behind the first j.
        """
        n = self._n_sizes
        up, down = np.arange(n)[:, None], np.arange(n)
        tables = [np.exp(-self.rate * np.maximum(np.abs(up - down), up + down - self.slack))]
        for _ in range(self.group):
            later = tables[-1]
            above = np.cumsum(later[::-1], axis=0)[::-1]
            below = np.cumsum(later[:, ::-1], axis=1)[:, ::-1]
            tables.append(above + below - later)
        whole_law = float(tables[-1][0, 0])
        return np.array(tables[-2::-1]) / whole_law, math.log(whole_law)

    def table(self) -> Array:
        """Return R_1 ... R_q relative to R_0(0, 0), (q, sizes, sizes): what studies draw from."""
        return self._remaining[0]

    def tails(self) -> tuple[Array, float]:
        """Return P(x_1 ≥ 1), P(x_1 ≥ 2), ... and 1, as laws of single values do."""
        return np.cumsum(self.table()[0][:0:-1, 0])[::-1], 1.0

    @functools.cached_property
    def variance(self) -> float:
        """The variance of the noise of one value, in squared steps."""
        first, size = self.table()[0], np.arange(self._n_sizes)
        return float(2 * (size**2 @ first[:, 0]))

    @functools.cached_property
    def covariance(self) -> float:
        """The covariance of the noises of two values of a group, in squared steps; at most zero."""
        if self.group == 1:
            return 0.0
        second, size = self.table()[1], np.arange(self._n_sizes, dtype=np.float64)
        alike = second[:, 0] @ (size**3 - size) / 6  # of two that are above zero: Σ x (s - x) over x = 1 ... s - 1
        return float(2 * (alike - size @ second @ size))

    @property
    def own_variance(self) -> float:
        """The variance of one noise less the covariance of two: of what each has for itself, to second order."""
        return self.variance - self.covariance

    def guarantee(self, change: int) -> tuple[float, float]:
        """Return (ε·change/d, 0), what a change of one value by so many steps costs."""
        return self.rate * validation.integer("change", change, 0), 0.0


def _n_sizes(rate: float, group: int, slack: int) -> int:
    return math.ceil((_UNSEEN + 4 * group) / rate + slack) + 2
