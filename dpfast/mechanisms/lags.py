"""Lags: by how many samples an estimate is late, or that it is a smoother's, which waits for the whole signal."""

from __future__ import annotations

from typing import Any, Literal

from dpfast._support import validation
from dpfast._support.errors import DesignError

SMOOTHER: Literal["smoother"] = "smoother"
Lag = int | Literal["smoother"] | None  # of what people give; None is the smoother too


def check_lag(value: Any) -> int | None:
    """Return a lag in samples, and None for the smoother, which people may call by its name; refuse all else.

    Examples
    --------
    >>> check_lag(5), check_lag("smoother"), check_lag(None)
    (5, None, None)
    """
    if value is None or (isinstance(value, str) and value == SMOOTHER):
        return None
    try:
        return validation.lag(value)
    except ValueError as error:
        raise ValueError(f"{error}; or {SMOOTHER!r}, or None, which is the same") from None


def check_causal(value: Any, why: str) -> int:
    """Return the lag of a design that cannot be a smoother; `why` goes on after the lag that is refused."""
    if value is None or (isinstance(value, str) and value == SMOOTHER):
        raise DesignError(f"{validation.fail('lag', 'a number of samples', value)}: {why}")
    return validation.lag(value)


def lag_text(lag: int | None) -> str:
    """Write a lag as tables have it."""
    return SMOOTHER if lag is None else str(lag)
