"""Round numbers and dates along axes."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

_MOST = 4  # labels on an axis, which fit on the screen of a telephone
_SECOND, _DAY = 1_000_000, 86_400_000_000
_MICROSECONDS = (
    *(m * 10**k for k in range(6) for m in (1, 2, 5)),
    *(m * _SECOND for m in (1, 2, 5, 10, 15, 30)),
    *(m * 60 * _SECOND for m in (1, 2, 5, 10, 15, 30)),
    *(m * 3600 * _SECOND for m in (1, 2, 3, 6, 12)),
    *(m * _DAY for m in (1, 2, 7, 14)),
)
_MONTHS = (1, 2, 3, 6, *(12 * m * 10**k for k in range(6) for m in (1, 2, 5)))
_LARGE = 1e6  # numbers from here on, and below its inverse, are written with exponents


class Ticks(NamedTuple):
    """Place ticks on an axis, as parts of its length, with what is written there."""

    places: tuple[float, ...]
    labels: tuple[str, ...]


def number_ticks(low: float, high: float) -> Ticks:
    """Choose round numbers between two.

    Examples
    --------
    >>> number_ticks(0.0, 10.0).labels
    ('0', '5', '10')
    """
    unit = _round_step(high - low)
    numbers = range(math.ceil(low / unit - 1e-9), math.floor(high / unit + 1e-9) + 1)
    values = [k * unit for k in numbers]
    labels = tuple(_format_number(x, unit, max(-low, high)) for x in values)
    return Ticks(tuple((x - low) / (high - low) for x in values), labels)


def _round_step(length: float) -> float:
    exponent = math.floor(math.log10(length / _MOST))
    steps = (m * 10.0**k for k in (exponent, exponent + 1) for m in (1, 2, 5))
    return next(x for x in steps if length / x <= _MOST)


def _format_number(x: float, unit: float, largest: float) -> str:
    """Write a multiple of a unit on an axis whose ends are not beyond the largest."""
    if largest >= _LARGE or unit < 1 / _LARGE:
        return f"{x:.{max(1, round(math.log10(max(abs(x), unit) / unit) + 1.5))}g}"
    return f"{x:,.{max(0, -math.floor(math.log10(unit) + 1e-9))}f}"


def step_ticks(first: int, count: int) -> Ticks:
    """Choose round numbers of steps."""
    unit = max(1, round(_round_step(count)))
    numbers = range(-(-first // unit) * unit, first + count, unit)
    return Ticks(tuple((k - first) / count for k in numbers), tuple(f"{k:,}" for k in numbers))


def time_ticks(start: int, length: int) -> Ticks:
    """Choose round times of a span, in microseconds since 1970, each with so much of the date as the steps are short.

    Examples
    --------
    >>> time_ticks(0, 3 * 86_400_000_000).labels
    ('1970-01-01', '1970-01-02', '1970-01-03', '1970-01-04')
    """
    for unit in _MICROSECONDS:
        if length // unit < _MOST:
            times = np.arange(-(-start // unit) * unit, start + length + 1, unit)
            return _place(times, start, length, _kind_of(unit))
    for months in _MONTHS:
        times = _calendar(start, start + length, months)
        if len(times) <= _MOST:
            break
    return _place(times, start, length, "Y" if months % 12 == 0 else "M")


def _kind_of(unit: int) -> str:
    return "D" if unit >= _DAY else "m" if unit >= 60 * _SECOND else "s" if unit >= _SECOND else "us"


def _calendar(start: int, end: int, months: int) -> NDArray[np.int64]:
    """Return the beginnings of every so many months."""
    first, last = (int(np.datetime64(x, "us").astype("datetime64[M]").astype(np.int64)) for x in (start, end))
    count = np.arange(-(-first // months) * months, last + 1, months)
    times = count.astype("datetime64[M]").astype("datetime64[us]").astype(np.int64)
    return times[times >= start]


def _place(times: NDArray[np.int64], start: int, length: int, kind: Any) -> Ticks:
    texts = np.datetime_as_string(times.astype("datetime64[us]"), unit=kind).tolist()
    short = {"m": slice(5, None), "s": slice(11, None), "us": slice(11, None)}  # the caption has the whole date
    labels = tuple(text[short.get(kind, slice(None))].replace("T", " ") for text in texts)
    return Ticks(tuple(((times - start) / length).tolist()), labels)
