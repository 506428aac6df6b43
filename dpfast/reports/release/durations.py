"""Numbers of steps for people: with the time that they take, where the length of a step is declared."""

from __future__ import annotations

import numpy as np

from dpfast.signals.events.periods import DAY, format_period

_UNITS = {7 * DAY: "week", DAY: "day", DAY // 24: "hour", DAY // 1440: "minute"}


def format_steps(n: int, period: np.timedelta64 | None) -> str:
    """Write a number of steps, and beside it how long they are.

    Parameters
    ----------
    n : int
    period : numpy.timedelta64 or None
        The length of a step; None where none is declared.

    Examples
    --------
    >>> format_steps(2016, np.timedelta64(15, "m")), format_steps(1, None)
    ('2,016 steps (3 weeks)', '1 step')
    """
    steps = f"{n:,} step{'s' * (n != 1)}"
    return steps if period is None else f"{steps} ({format_duration(n * period)})"


def format_duration(length: np.timedelta64) -> str:
    """Write a length of time in the largest unit of which it is a whole number.

    Examples
    --------
    >>> format_duration(np.timedelta64(36, "h")), format_duration(np.timedelta64(24, "h"))
    ('36 hours', '1 day')
    """
    microseconds = int(length.astype("timedelta64[us]").astype(np.int64))
    unit = next((unit for unit in _UNITS if microseconds % unit == 0), None)
    if unit is None:
        return format_period(length)
    n = microseconds // unit
    return f"{n:,} {_UNITS[unit]}{'s' * (n != 1)}"
