r"""The rate of exact two-sided geometric noise, and what it guarantees: all of it rational.

The noise has P(n) ∝ e^{-r|n|} on the integers, r = s/2^j. As |n| and |n - c| differ by at most |c|, a change of the
input by c steps changes the probability of any output by a factor of e^{rc} at most: the mechanism is rc-DP, and no
digits are lost.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

from dpfast._support import validation

_BITS = 30  # of s, where j need not be larger
_LARGEST_J = 40
_LARGEST_RATE = 2**20


class GeometricRate(NamedTuple):
    """The rate s/2^j of two-sided geometric noise: what a change by one step costs.

    Examples
    --------
    >>> rate = GeometricRate.below(1.0, 3)
    >>> rate.epsilon(3) <= 1, float(1 - rate.epsilon(3)) < 1e-8
    (True, True)
    """

    s: int
    j: int

    @property
    def per_step(self) -> Fraction:
        """The rate, exactly."""
        return Fraction(self.s, 2**self.j)

    @property
    def variance(self) -> float:
        """The variance 1/(2 sinh²(r/2)) of the noise."""
        half = float(self.per_step) / 2
        return 2 * math.exp(-2 * half) / math.expm1(-2 * half) ** 2

    def epsilon(self, change: int) -> Fraction:
        """Return ε for a change of the input by so many steps, exactly."""
        return change * self.per_step

    @classmethod
    def below(cls, epsilon: float | Fraction, steps: int) -> GeometricRate:
        """Return the largest rate of about 30 bits that is ε-DP for a change of so many steps.

        Parameters
        ----------
        epsilon : float or Fraction
            A float is the binary number that it is, not the decimal that it is written as.
        steps : int
            At least 1.

        Raises
        ------
        ValueError
            For more than 2**20, or less than 2**-40, for a step.
        """
        rate = Fraction(epsilon) / validation.integer("steps", steps, 1)
        j = min(max(_BITS - _size(rate), 0), _LARGEST_J) if rate > 0 else 0
        s = math.floor(rate * 2**j)
        if not 1 <= s or rate > _LARGEST_RATE:
            must_be = f"from 2**-{_LARGEST_J} to {_LARGEST_RATE:,} for each unit"
            raise ValueError(f"epsilon must be {must_be}, got {float(epsilon):g} over {steps:,}")
        return cls(s, j)


def _size(x: Fraction) -> int:
    """Return the k with 2^(k-1) <= x < 2^(k+1), about."""
    return x.numerator.bit_length() - x.denominator.bit_length()
