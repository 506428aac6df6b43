"""What (ε, δ) means for somebody who asks whether an event is in the data: odds before and after, never understated."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

PRIORS = (1, 10, 100)  # to one against
SLACK = Decimal("1.1")  # times the factor, for which the probability of larger odds is stated
FIXED = "\u00a0"  # a space at which no line ends
_CONTEXT = Context(prec=60, traps=[])
_LARGEST_EXPONENT = 1000  # beyond it nothing is left of what is unlikely
_DIGITS, _MOST_PLACES = 3, 6  # of percentages


def bound_probability(against: int, epsilon: float) -> tuple[Decimal, Decimal]:
    """Return the least and the largest probability of what was 1 : `against`, where odds change by e^ε at most.

    Parameters
    ----------
    against : int
        The odds beforehand are one to this.
    epsilon : float

    Examples
    --------
    >>> [f"{x:.4f}" for x in bound_probability(1, 1.0)]
    ['0.2689', '0.7311']
    """
    c = _CONTEXT
    factor = c.exp(Decimal(min(epsilon, _LARGEST_EXPONENT)))
    low = c.divide(Decimal(1), c.add(Decimal(1), c.multiply(factor, Decimal(against))))
    return low, c.divide(factor, c.add(factor, Decimal(against)))


def probability_beyond(epsilon: float, delta: float) -> Decimal:
    """Return a bound of the probability that odds change by more than e^ε times `SLACK`, whatever the data are.

    Where odds grow by more than k·e^ε, what is published has a probability of at most δ/(1 - 1/k) with the event; where
    they fall by as much, of that without it, and e^-ε/k times that with it.
    """
    c = _CONTEXT
    one_side = c.divide(Decimal(delta), 1 - c.divide(Decimal(1), SLACK))
    least = c.divide(c.exp(Decimal(-min(epsilon, _LARGEST_EXPONENT))), SLACK)
    return min(Decimal(1), c.multiply(one_side, 1 + least))


def format_bounds(low: Decimal, high: Decimal) -> tuple[str, str]:
    r"""Write two bounds of a probability in percent, the one rounded down and the other up.

    Examples
    --------
    >>> format_bounds(Decimal("0.26894"), Decimal("0.73106"))
    ('26.8\xa0%', '73.2\xa0%')
    """
    return _format_percent(low, ROUND_FLOOR), _format_percent(high, ROUND_CEILING)


def format_prior(against: int) -> str:
    """Write what was one to so many beforehand, as odds and as a probability."""
    return f"1 : {against} ({100 / (1 + against):.2g} %)".replace(" ", FIXED)


def _format_percent(x: Decimal, rounding: str) -> str:
    """Write a percentage with the digits that tell it from 0 and from 100."""
    percent = 100 * x
    rest = min(percent, 100 - percent)
    places = max(0, min(_MOST_PLACES, _DIGITS - 1 - rest.adjusted())) if rest > 0 else 0
    shown = percent.quantize(Decimal(1).scaleb(-places), rounding=rounding, context=_CONTEXT)
    return f"{shown.normalize() if shown in (0, 100) else shown:f}{FIXED}%"


def format_chance(probability: Decimal) -> str:
    """Write a small probability as one in so many, never below it.

    Examples
    --------
    >>> format_chance(Decimal("1e-6"))
    '1 in 1,000,000'
    """
    number = int(_CONTEXT.divide(Decimal(1), probability))
    return f"1 in {number:,}" if number < 10**15 else f"{Context(prec=3, rounding=ROUND_CEILING).plus(probability):.3g}"
