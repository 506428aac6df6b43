"""Randomised response to two levels as a table: told for certain, told truly or told falsely, in multiples of 2^-62.

c = P(certain) is δ rounded down, l = P(told falsely) is (1 - c)/(1 + E) rounded up, E rational and not above e^ε, and
t = P(told truly) is the rest. Certain answers tell the level; of each other answer the probability is t for one level
and l for the other, and t ≤ E l ≤ e^ε l: the response is (ε, c)-DP.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from fractions import Fraction

from dpfast.privacy.exponential_bounds import exp_below
from dpfast.privacy.table_law import BITS, TableLaw, check_demand

CERTAIN, TRULY, FALSELY = OUTCOMES = 0, 1, 2


@dataclass(frozen=True)
class ResponseTable(TableLaw):
    """Tell a level for certain (0), truly (1) or falsely (2); :func:`response_table` makes the table of it.

    What is published is the level together with whether it is certain, or the level that is told.

    Examples
    --------
    >>> response = response_table(1.0, 0.25)
    >>> response.delta == 0.25, round(float(response.trust), 6), round(float(response.variance), 6)
    (True, 0.462117, 0.359512)
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.values != OUTCOMES or not 0 < self.falsely <= self.truly:
            raise ValueError("weights must be of certain, truly and falsely, the last the least: take response_table")

    @property
    def certain(self) -> Fraction:
        """Return the probability with which the level is told, and said to be certain."""
        return self.probabilities[CERTAIN]

    @property
    def truly(self) -> Fraction:
        """Return the probability with which the level is told, and nobody knows whether it is the level."""
        return self.probabilities[TRULY]

    @property
    def falsely(self) -> Fraction:
        """Return the probability with which the other level is told."""
        return self.probabilities[FALSELY]

    @functools.cached_property
    def delta(self) -> Fraction:
        """Return a δ that holds at `epsilon` whatever the two inputs, exact but for e^ε, which is rounded down."""
        return self.certain + max(Fraction(0), self.truly - self.growth * self.falsely)

    @property
    def trust(self) -> Fraction:
        """Return z, which stands for a level that is not told for certain: (t - l)/(t + l), tanh(ε/2) rounded."""
        return (self.truly - self.falsely) / (self.truly + self.falsely)

    @property
    def shown(self) -> Fraction:
        """Return the share r = E z² of the input in z."""
        return self.certain + (1 - self.certain) * self.trust**2

    @functools.cached_property
    def variance(self) -> Fraction:
        """Return the variance (1 - r)/(4 r) of z/(2 r) about the input, for levels that are one apart."""
        return (1 - self.shown) / (4 * self.shown)


def response_table(epsilon: float | Fraction, delta: float | Fraction) -> ResponseTable:
    """Return the response to two levels that is (ε, δ)-DP, and no further from the best one than 2^-62.

    Parameters
    ----------
    epsilon : float or Fraction
        From 2^-40 to 24. A float is the binary number that it is, not the decimal that it is written as.
    delta : float or Fraction
        From 0 to 1/2.

    Raises
    ------
    ValueError
        For arguments out of range.

    Notes
    -----
    *Privacy.* δ is the probability with which the level is told for certain.

    Examples
    --------
    >>> response = response_table(1.0, 0.0)
    >>> response.weights[0], response.delta
    (0, Fraction(0, 1))
    """
    exact_epsilon, exact_delta = check_demand(epsilon, delta, Fraction(0), "ask for less")
    certain = math.floor(exact_delta * 2**BITS)
    told = (1 << BITS) - certain
    falsely = math.ceil(told / (1 + exp_below(exact_epsilon)))
    return ResponseTable(OUTCOMES, (certain, told - falsely, falsely), exact_epsilon)
