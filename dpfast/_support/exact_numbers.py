"""Numbers that floats stand for, as people write them: 0.3, not 0.30000000000000004, and 1/3, not 0.333333."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

_LARGEST_DENOMINATOR = 1000
_SAME = 1e-11  # relative: what twelve digits tell apart


def meant_number(x: float) -> Fraction:
    """Return the number that a float stands for: a fraction of small numbers, or else a decimal of twelve digits.

    Examples
    --------
    >>> meant_number(1 / 3), meant_number(0.1 + 0.2), meant_number(2**0.5)
    (Fraction(1, 3), Fraction(3, 10), Fraction(141421356237, 100000000000))
    """
    decimal, simple = Fraction(f"{x:.12g}"), Fraction(x).limit_denominator(_LARGEST_DENOMINATOR)
    return simple if abs(simple - decimal) <= _SAME * abs(decimal) else decimal


def write_number(x: Fraction) -> str:
    """Write a number as a decimal where that is exact, and else as a fraction.

    Examples
    --------
    >>> write_number(Fraction(1, 3)), write_number(Fraction(3, 10)), write_number(Fraction(10))
    ('1/3', '0.3', '10')
    """
    rest = x.denominator
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    if rest > 1:
        return str(x)
    return str((Decimal(x.numerator) / Decimal(x.denominator)).normalize() + 0)


def write_in_python(x: Fraction) -> str:
    """Write a number as a line of Python takes it.

    Examples
    --------
    >>> write_in_python(Fraction(1, 3)), write_in_python(Fraction(3, 10))
    ('Fraction(1, 3)', '0.3')
    """
    text = write_number(x)
    return f"Fraction({x.numerator}, {x.denominator})" if "/" in text else text
