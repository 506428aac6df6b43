"""Lengths of time, from texts such as "5min", and as texts."""

from __future__ import annotations

import re
from decimal import Decimal

import numpy as np

from dpfast._support import validation

DAY = 86_400_000_000  # microseconds
_MICROSECONDS = {
    "us": 1,
    "ms": 1000,
    "s": 1_000_000,
    "min": 60_000_000,
    "h": 3_600_000_000,
    "d": DAY,
    "w": 7 * DAY,
}
# Those of pandas that are one length: not M, which is a month there.
_CAPITALS = {"U": "us", "L": "ms", "S": "s", "T": "min", "H": "h", "D": "d", "W": "w"}
_PERIOD = re.compile(rf"(\d{{1,18}}(?:\.\d{{1,18}})?)({'|'.join([*_MICROSECONDS, *_CAPITALS])})", re.ASCII)


def parse_period(text: str, name: str = "period") -> np.timedelta64:
    """Read the length of a period such as ``"5min"``.

    Parameters
    ----------
    text : str
        A positive number, then us, ms, s, min, h, d (24 hours) or w (7 days), or the U, L, S, T, H, D or W of pandas.
        Units of the calendar, as months, have no fixed length and are refused.
    name : str
        Of the argument, for messages.

    Returns
    -------
    numpy.timedelta64
        A whole number of microseconds.

    Raises
    ------
    ValueError
        If the text is no such length.

    Examples
    --------
    >>> parse_period("1.5h"), parse_period("1D")
    (np.timedelta64(5400000000,'us'), np.timedelta64(86400000000,'us'))
    """
    match = _PERIOD.fullmatch(str(text))
    length = Decimal(match[1]) * _MICROSECONDS[_CAPITALS.get(match[2], match[2])] if match else Decimal(0)
    if not 0 < length < 2**63 or length != int(length):
        must_be = "a positive number of us, ms, s, min, h, d or w, whole in microseconds, such as '5min'"
        raise validation.fail(name, must_be, text)
    return np.timedelta64(int(length), "us")


def format_period(period: np.timedelta64) -> str:
    """Write a period as `parse_period` reads it, in the largest unit of which it is a whole number, but for weeks.

    Examples
    --------
    >>> format_period(np.timedelta64(1, "D")), format_period(np.timedelta64(90, "m"))
    ('1d', '90min')
    """
    length = int(period.astype("timedelta64[us]").astype(np.int64))
    unit = next(x for x in ("d", "h", "min", "s", "ms", "us") if length % _MICROSECONDS[x] == 0)
    return f"{length // _MICROSECONDS[unit]}{unit}"
