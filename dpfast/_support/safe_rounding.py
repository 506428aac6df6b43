"""Rounding of what a guarantee rests on: errors of floating point must be on the safe side."""

from __future__ import annotations

import math
from fractions import Fraction

_MARGIN = 1 + 1e-9  # far more than the rounding of what is rounded up here


def round_up(value: float) -> float:
    """Raise a bound by 1e-9 of it, so that no rounding has left it too small."""
    return value * _MARGIN


def float_above(x: Fraction) -> float:
    """Return the smallest float that is not below; infinity where there is none."""
    try:
        nearest = float(x)
    except OverflowError:
        return math.inf if x > 0 else -math.nextafter(math.inf, 0)
    return nearest if nearest >= x else math.nextafter(nearest, math.inf)


def float_below(x: Fraction) -> float:
    """Return the largest float that is not above."""
    return -float_above(-x)


def decimal_below(x: float) -> Fraction:
    """Return the lesser of a float and of the decimal that it is written as: what is written is then not below it.

    Examples
    --------
    >>> decimal_below(0.05), decimal_below(1e-6) == Fraction(1e-6)
    (Fraction(1, 20), True)
    """
    return min(Fraction(x), Fraction(repr(x)))
