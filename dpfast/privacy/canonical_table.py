r"""Canonical noise as a table: the least variance of integer noises at (ε, δ), with a δ that is proven by integers.

The ideal law (Awan and Ramasethu 2023) has P(±k) = p e^{-kε} for k < L and what is left at ±L, with p = (e^ε - 1 +
2δ)/(e^ε + 1); its probabilities are irrational. Here they are multiples of 2^-62, made of p rounded down: each
is the largest that keeps the law log-concave, and what is left goes to ±L. p is lowered until the table's own δ,

    Σ_n max(0, P(n) - E P(n - 1)),   E rational and not above e^ε,

is at most the δ that was demanded. The sum is exact, and the same for the other direction, as the law is symmetric.
"""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import dataclass
from fractions import Fraction

from dpfast.privacy.exponential_bounds import exp_below
from dpfast.privacy.table_law import BITS, TableLaw, check_demand

LEAST_DELTA = Fraction(1, 1000)  # where the variance is 4 % less than that of geometric noise at an ε of 1


@dataclass(frozen=True)
class CanonicalTable(TableLaw):
    """Hide a change of one by symmetric, log-concave noise on -L ... L; :func:`canonical_table` makes it.

    Raises
    ------
    ValueError
        For a table that is not symmetric, or not log-concave: the proofs need both.

    Examples
    --------
    >>> noise = canonical_table(1.0, 0.25)
    >>> noise.values, round(float(noise.variance), 6), noise.delta <= 0.25
    ((-1, 0, 1), 0.403412, True)
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        w, largest = self.weights, len(self.weights) // 2
        if self.values != tuple(range(-largest, largest + 1)) or w != w[::-1]:
            raise ValueError("weights must be those of -L ... L, the same for n and -n: make it by canonical_table")
        if min(w) == 0 or any(b * b < a * c for a, b, c in zip(w, w[1:], w[2:], strict=False)):
            raise ValueError("weights must be log-concave, and none of them 0: make it by canonical_table")

    @functools.cached_property
    def delta(self) -> Fraction:
        """Return a δ that holds at `epsilon` where the input changes by one: exact, but for e^ε rounded down."""
        (e, f), w = self.growth.as_integer_ratio(), (0, *self.weights)
        above = sum(max(0, f * here - e * before) for before, here in itertools.pairwise(w))
        return Fraction(above, f << self.bits)

    @functools.cached_property
    def variance(self) -> Fraction:
        """Return E N², exactly."""
        return Fraction(sum(n * n * w for n, w in zip(self.values, self.weights, strict=True)), 1 << self.bits)


def canonical_table(epsilon: float | Fraction, delta: float | Fraction) -> CanonicalTable:
    """Return noise for a change of one that is (ε, δ)-DP, whose variance is the least but for a part in a million.

    Parameters
    ----------
    epsilon : float or Fraction
        From 2^-40 to 24. A float is the binary number that it is, not the decimal that it is written as.
    delta : float or Fraction
        From 1/1000 to 1/2. Little is gained below over geometric noise, whose δ is 0.

    Raises
    ------
    ValueError
        For arguments out of range.

    Notes
    -----
    *Privacy.* With a probability of about δ/2 each, ±L tell the value before the noise: that is what δ allows. A change
    of more than one unit is not covered; k persons, each with a change of one, are so as a group.

    Examples
    --------
    >>> noise = canonical_table(1.0986, 0.05)
    >>> noise.values[-1], round(float(noise.variance), 4), noise.delta <= Fraction(0.05)
    (3, 0.8917, True)
    """
    exact_epsilon, exact_delta = check_demand(epsilon, delta, LEAST_DELTA, "take geometric noise, which needs none")
    growth = exp_below(exact_epsilon)
    ideal = math.floor((growth - 1 + 2 * exact_delta) / (growth + 1) * 2**BITS)
    tried = (_with_middle((ideal >> 1 << 1) - (1 << i), exact_epsilon, growth) for i in itertools.count(1))
    return next(table for table in tried if table.delta <= exact_delta)


def _with_middle(middle: int, epsilon: Fraction, growth: Fraction) -> CanonicalTable:
    """Return the table of this even weight of 0: each further weight is as large as it may be."""
    before, weight, rest = middle, math.ceil(middle / growth), (1 << BITS) - middle >> 1
    side = []
    while weight < rest:
        side.append(weight)
        before, weight, rest = weight, weight * weight // before, rest - weight
    side.append(rest)
    n = len(side)
    return CanonicalTable(tuple(range(-n, n + 1)), (*side[::-1], middle, *side), epsilon)
