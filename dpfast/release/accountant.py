"""What the noise of a release must be, and what it guarantees."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple


class Sigma(NamedTuple):
    """A standard deviation, exactly: a / 2**j."""

    a: int
    j: int

    @property
    def std(self) -> float:
        """As a number."""
        return float(Fraction(self.a, 2**self.j))

    @property
    def variance(self) -> Fraction:
        """Its square."""
        return Fraction(self.a, 2**self.j) ** 2
