r"""From zero-concentrated differential privacy to (ε, δ), rounded upwards.

A mechanism of ρ-zCDP has, for every α > 1, the δ of Canonne, Kamath and Steinke 2020 (Proposition 12 and Corollary 13),

    δ(α) = exp((α - 1)(αρ - ε)) · (1 - 1/α)^α / (α - 1),

and the ε at a δ that follows from it. Each α gives a bound: the search for the best one need not be exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable

_STEPS = 60  # of the golden section: the best ln(α - 1) to 1e-10
_MARGIN = 1e-13  # relative to the terms of a sum, a thousand times what they may be wrong by
_GOLDEN = (math.sqrt(5) - 1) / 2
_LOWEST, _HIGHEST = -30.0, 60.0  # of ln(α - 1)


def epsilon_of_rho(rho: float, delta: float) -> float:
    """Return the least ε that this conversion gives for ρ-zCDP at a δ above 0, rounded upwards.

    Examples
    --------
    >>> round(epsilon_of_rho(0.1, 1e-6), 4)
    2.1419
    """
    if rho == 0:
        return 0.0
    if math.isinf(rho):
        return math.inf
    log_delta = math.log(delta)

    def bound(x: float) -> float:
        above_1 = math.exp(x)
        alpha = 1 + above_1
        terms = alpha * rho, -log_delta / above_1, -math.log1p(above_1) / above_1, x - math.log1p(above_1)
        return math.fsum(terms) + _MARGIN * sum(map(abs, terms))

    return max(0.0, _least(bound))


def delta_of_rho(rho: float, epsilon: float) -> float:
    """Return the least δ that this conversion gives for ρ-zCDP at an ε, rounded upwards and at most 1."""
    if rho == 0:
        return 0.0
    if math.isinf(rho):
        return 1.0

    def bound(x: float) -> float:
        above_1 = math.exp(x)
        alpha = 1 + above_1
        terms = above_1 * alpha * rho, -above_1 * epsilon, alpha * (x - math.log1p(above_1)), -x
        return math.fsum(terms) + _MARGIN * sum(map(abs, terms))

    return math.nextafter(math.exp(min(0.0, _least(bound))), math.inf) if _least(bound) < 0 else 1.0


def _least(bound: Callable[[float], float]) -> float:
    """Return the least value that a golden section finds; whatever it misses, the value is one of the bound's."""
    low, high = _LOWEST, _HIGHEST
    first, second = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_first, at_second = bound(first), bound(second)
    for _ in range(_STEPS):
        if at_first <= at_second:
            high, second, at_second = second, first, at_first
            first = high - _GOLDEN * (high - low)
            at_first = bound(first)
        else:
            low, first, at_first = first, second, at_second
            second = low + _GOLDEN * (high - low)
            at_second = bound(second)
    return min(at_first, at_second)
