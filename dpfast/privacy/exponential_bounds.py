"""e^x between two rationals, by integers alone: what an ε in exact proofs is compared with."""

from __future__ import annotations

from fractions import Fraction

BITS = 128  # behind the point, of the sums


def exp_below(x: Fraction) -> Fraction:
    """Return a rational that is not above e^x, and less than 1e-30 of it below, for 0 <= x <= 64.

    Every term x^n / n! is rounded down, and what follows the last one is left out.

    Examples
    --------
    >>> float(exp_below(Fraction(1)))
    2.718281828459045
    """
    numerator = (x.numerator << BITS) // x.denominator
    term = total = 1 << BITS
    n = 0
    while term:
        n += 1
        term = (term * numerator // n) >> BITS
        total += term
    return Fraction(total, 1 << BITS)


def exp_above(x: Fraction) -> Fraction:
    """Return a rational that is not below e^x, and less than 1e-30 of it above, for 0 <= x <= 64.

    Every term is rounded up. From n >= 2 x on each is at most half of the one before, so that those that follow the
    last one are together at most as large as it is.

    Examples
    --------
    >>> exp_below(Fraction(1)) < exp_above(Fraction(1)), float(exp_above(Fraction(1)))
    (True, 2.718281828459045)
    """
    numerator = -((-x.numerator << BITS) // x.denominator)
    term = total = 1 << BITS
    n = 0
    while n < 2 * x or term > 1:
        n += 1
        term = -(-(term * numerator) // (n << BITS))
        total += term
    return Fraction(total + term, 1 << BITS)
