"""Numbers of a guarantee as people read them, rounded up: what is computed is a bound."""

from __future__ import annotations

import math
import sys
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction

_LARGEST_EXPONENT = 100


def format_factor(epsilon: float) -> str:
    """Write e^ε where a reader can make something of it, and its exponent where not; never below it.

    Examples
    --------
    >>> format_factor(1.0)
    '2.72'
    """
    if epsilon > _LARGEST_EXPONENT:
        return f"e^{format_rounded_up(epsilon, 3)}"
    context = Context(prec=30, traps=[])
    factor = context.exp(Decimal(epsilon))
    return format_rounded_up(context.next_plus(factor) if epsilon else factor, 3)


def format_rounded_up(value: float | Fraction | Decimal, digits: int) -> str:
    """Write a number with so many digits, never below it: what is computed is a bound; "∞" where there is none."""
    if value == math.inf:
        return "∞"
    exact, context = Fraction(value), Context(prec=digits, rounding=ROUND_CEILING, traps=[])
    shown = context.divide(Decimal(exact.numerator), Decimal(exact.denominator))
    if exact and not sys.float_info.min <= abs(float(shown)) < math.inf:  # floats have not so many digits there
        return f"{shown.normalize():e}"
    return f"{float(shown):.{digits}g}"
