"""Laws of a few integers whose probabilities are fractions of a power of two: drawn exactly, and proven exactly."""

from __future__ import annotations

import abc
import functools
from dataclasses import dataclass
from fractions import Fraction

from dpfast.privacy.exponential_bounds import exp_below

BITS = 62  # of a probability
_LEAST_EPSILON = Fraction(1, 2**40)
_LARGEST_EPSILON = 24  # e^24 < 2^35, so that the rarest value has a weight of 2^26 or more
_LARGEST_DELTA = Fraction(1, 2)
_MAKE_IT = "make it by canonical_table or response_table"


@dataclass(frozen=True)
class TableLaw(abc.ABC):
    """Describe a law of finitely many integers, and the ε at which its δ is read off the table itself.

    Parameters
    ----------
    values : tuple of int
        In rising order.
    weights : tuple of int
        Of each value, at least 0; a probability is a weight over their sum, which is a power of two, at most 2^62.
    epsilon : Fraction
        From 2^-40 to 24.
    """

    values: tuple[int, ...]
    weights: tuple[int, ...]
    epsilon: Fraction

    def __post_init__(self) -> None:
        total = sum(self.weights)
        if min(self.weights, default=-1) < 0 or total & (total - 1) or not 2 <= total <= 1 << BITS:
            must_be = f"integers of at least 0 that sum to a power of two from 2 to 2**{BITS}"
            raise ValueError(
                f"weights must be {must_be}, got a sum of {total}: make it by canonical_table or response_table"
            )
        if len(self.values) != len(self.weights) or list(self.values) != sorted(set(self.values)):
            raise ValueError(
                "values must rise, and be as many as the weights: make it by canonical_table or response_table"
            )
        check_epsilon(self.epsilon)

    @property
    def bits(self) -> int:
        """Count the random bits that decide about a sample."""
        return sum(self.weights).bit_length() - 1

    @property
    def probabilities(self) -> tuple[Fraction, ...]:
        """Return the probability of each value, exactly."""
        return tuple(Fraction(weight, 1 << self.bits) for weight in self.weights)

    @functools.cached_property
    def growth(self) -> Fraction:
        """Return the rational that stands for e^ε, and is not above it: what is computed with it is not below δ."""
        return exp_below(self.epsilon)

    @property
    @abc.abstractmethod
    def delta(self) -> Fraction:
        """Return a δ that holds together with `epsilon`."""

    @property
    @abc.abstractmethod
    def variance(self) -> Fraction:
        """Return the variance of the noise that a receiver has to deal with, exactly."""


def check_demand(
    epsilon: float | Fraction, delta: float | Fraction, least_delta: Fraction, instead: str
) -> tuple[Fraction, Fraction]:
    """Return what is demanded as fractions; a float is the binary number that it is. Refuse what no table gives."""
    check_epsilon(epsilon)
    if not least_delta <= delta <= _LARGEST_DELTA:
        must_be = f"from {float(least_delta):g} to {float(_LARGEST_DELTA):g} for a law that is a table"
        raise ValueError(f"delta must be {must_be}, got {float(delta):g}: {instead}")
    return Fraction(epsilon), Fraction(delta)


def check_epsilon(epsilon: float | Fraction) -> None:
    """Refuse an ε at which weights of 62 bits are too coarse."""
    if not _LEAST_EPSILON <= epsilon <= _LARGEST_EPSILON:
        must_be = f"from 2**-40 to {_LARGEST_EPSILON} for a law that is a table"
        raise ValueError(f"epsilon must be {must_be}, got {float(epsilon):g}: more hides next to nothing")
