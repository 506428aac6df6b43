"""The root of a function between two points, by Brent's method, without the seconds that importing an optimiser takes.

R. P. Brent, *Algorithms for Minimization without Derivatives* (1973), chapter 4: steps by the secant or, where three
points are known, by inverse interpolation, and by halving the interval where those do not shrink it fast enough. The
operations and their order are those of ``scipy.optimize.brentq``, and so are the bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class _Point(NamedTuple):
    x: float
    y: float


def root_between(
    function: Callable[[float], float], low: float, high: float, *, xtol: float, rtol: float, steps: int = 100
) -> float:
    """Return where a continuous function is zero, to xtol + rtol |root|; it has different signs at low and high.

    Raises
    ------
    ArithmeticError
        Where the signs are the same, or so many steps do not find it.
    """
    before, now = _Point(low, function(low)), _Point(high, function(high))
    if before.y == 0 or now.y == 0:
        return before.x if before.y == 0 else now.x
    if (before.y < 0) == (now.y < 0):
        raise ArithmeticError(f"the function must change its sign between {low:g} and {high:g}")
    across, last, step = before, 0.0, 0.0
    for _ in range(steps):
        if before.y != 0 and (before.y < 0) != (now.y < 0):
            across, last, step = before, now.x - before.x, now.x - before.x
        if abs(across.y) < abs(now.y):  # `now` is the best that is known
            before, now, across = now, across, now
        least = (xtol + rtol * abs(now.x)) / 2
        half = (across.x - now.x) / 2
        if now.y == 0 or abs(half) < least:
            return now.x
        try:
            last, step = _next_steps(before, now, across, last, step, least)
        except ZeroDivisionError:  # values too close, or too small, for a line
            last = step = half
        x = now.x + (step if abs(step) > least else least if half > 0 else -least)
        before, now = now, _Point(x, function(x))
    raise ArithmeticError(f"no root is found between {low:g} and {high:g} in {steps} steps")


def _next_steps(
    before: _Point, now: _Point, across: _Point, last: float, step: float, least: float
) -> tuple[float, float]:
    """Return the step before the next, by which that one is judged, and the next."""
    half = (across.x - now.x) / 2
    if not (abs(last) > least and abs(now.y) < abs(before.y)):
        return half, half
    tried = _interpolate(before, now, across)
    if 2 * abs(tried) < min(abs(last), 3 * abs(half) - least):
        return step, tried
    return half, half


def _interpolate(before: _Point, now: _Point, across: _Point) -> float:
    """Step to the root of the line through two points, or of the inverse parabola through three."""
    if before.x == across.x:
        return -now.y * (now.x - before.x) / (now.y - before.y)
    slope = (before.y - now.y) / (before.x - now.x)
    other = (across.y - now.y) / (across.x - now.x)
    return -now.y * (across.y * other - before.y * slope) / (other * slope * (across.y - before.y))
