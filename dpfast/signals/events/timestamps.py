"""Points in time and lengths of time, from their texts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpfast._support import validation
from dpfast._support.errors import DataError
from dpfast.signals.events.csv_columns import NUMBER, Column, parse_numbers
from dpfast.signals.events.declared_time_format import check_format, has_offset, parse_formatted
from dpfast.signals.events.standard_date_formats import DAY, parse_date

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
_AMBIGUOUS = re.compile(r"\d{1,2}([/.-])\d{1,2}\1\d{2,4}(?!\d).*", re.ASCII)
_NONE = np.iinfo(np.int64).min  # of a numpy.datetime64: NaT


class Moments(NamedTuple):
    """Points in time, each read from its text alone.

    Attributes
    ----------
    times : array of numpy.datetime64
        In microseconds, UTC or local; NaT where there is none.
    kinds : array of str
        Of each text: "local" or "offset" (a date and time), "seconds" or "milliseconds" (since 1970), "number" (another
        one), "other".
    """

    times: NDArray[np.datetime64]
    kinds: NDArray[np.str_]

    @property
    def utc(self) -> NDArray[np.bool_]:
        """True for each point in UTC, rather than of a local clock."""
        return np.isin(self.kinds, ("offset", "seconds", "milliseconds"))


def parse_period(text: str) -> np.timedelta64:
    """Read the length of a period such as ``"5min"``.

    Parameters
    ----------
    text : str
        A positive number, then us, ms, s, min, h, d (24 hours) or w (7 days), or the U, L, S, T, H, D or W of pandas.
        Units of the calendar, as months, have no fixed length and are refused.

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
        raise validation.fail("period", must_be, text)
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


def parse_timestamps(texts: Sequence[str], time_format: str | None = None) -> Moments:
    """Read texts as points in time; what one of them is does not depend on the others."""
    stripped = [text.strip() for text in texts]
    if time_format is not None:
        check_format(time_format)
        kind = "offset" if has_offset(time_format) else "local"
        return Moments(parse_formatted(stripped, time_format), np.full(len(texts), kind))
    read = [_parse_timestamp(text) for text in stripped]
    times = np.array([_NONE if time is None else time for _, time in read], np.int64)
    return Moments(times.view("datetime64[us]"), np.array([kind for kind, _ in read], np.str_))


def _parse_timestamp(text: str) -> tuple[str, int | None]:
    """Return kind and microseconds since 1970, None where there are none."""
    if NUMBER.fullmatch(text) is None:
        date = parse_date(text)
        return ("other", None) if date is None else ("offset" if date[0] else "local", date[1])
    (value,) = parse_numbers([text])
    if 1e8 <= value < 1e11:
        return "seconds", int(Decimal(text).scaleb(6))
    return ("milliseconds", int(Decimal(text).scaleb(3))) if 1e11 <= value < 1e14 else ("number", None)


def parse_moment(name: str, text: str) -> tuple[int, bool]:
    """Read an argument as microseconds since 1970, and whether they are UTC, rather than of a local clock.

    Examples
    --------
    >>> parse_moment("start", "1970-01-02T00:00Z"), parse_moment("start", "1970-01-02")
    ((86400000000, True), (86400000000, False))
    """
    (time,), (utc,) = (moment := parse_timestamps([str(text)])).times, moment.utc
    if np.isnat(time):
        raise validation.fail(name, "a point in time such as '2013-01-01T05:15' or '2013-01-01T05:15Z'", text)
    return int(time.astype(np.int64)), bool(utc)


def parse_time_column(stamps: Column, time_format: str | None) -> NDArray[np.int64]:
    """Read a file's distinct timestamps as microseconds since 1970.

    Raises
    ------
    DataError
        Where one is unusable, or they are of several kinds.
    """
    moments = parse_timestamps(stamps.texts, time_format)
    check_times(stamps, moments, time_format)
    return moments.times.astype(np.int64)


def check_times(stamps: Column, moments: Moments, time_format: str | None) -> None:
    """Refuse a file in which a timestamp is unusable, or which has several kinds of them.

    Raises
    ------
    DataError
    """
    if time_format is not None:
        bad = np.isnat(moments.times)
        if bad.any():
            raise stamps.time_error(bad, f"timestamps of the format {time_format!r}")
    elif np.count_nonzero(_is_numeric(moments)) > np.count_nonzero(np.isin(moments.kinds, ("local", "offset"))):
        _check_unix(stamps, moments)
    else:
        _check_dates(stamps, moments)


def _is_numeric(moments: Moments) -> NDArray[np.bool_]:
    return np.isin(moments.kinds, ("number", "seconds", "milliseconds"))


def _check_unix(stamps: Column, moments: Moments) -> None:
    seconds, milliseconds = (moments.kinds == kind for kind in ("seconds", "milliseconds"))
    bad = ~(seconds | milliseconds)
    if bad.any():
        must_hold = "Unix seconds (1e8 to 1e11) or milliseconds (1e11 to 1e14), or else give time_format"
        raise stamps.time_error(bad, must_hold)
    if seconds.any() and milliseconds.any():
        raise stamps.time_error(seconds != seconds[0], "either Unix seconds or Unix milliseconds alone")


def _check_dates(stamps: Column, moments: Moments) -> None:
    bad = np.isnat(moments.times) | _is_numeric(moments)
    if bad.any():
        if _AMBIGUOUS.fullmatch(stamps.texts[int(np.argmax(bad))].strip()):
            raise DataError(
                f"{stamps.label}, {stamps.locate(bad)}: a date such as 01/02/2013 could be day/month or month/day; "
                "pass --time-format '%d/%m/%Y %H:%M:%S' or the like (in Python, time_format)"
            )
        raise stamps.time_error(bad, "timestamps such as '2013-01-01T05:15', or else give time_format")
    offset = moments.kinds == "offset"
    if offset.any() and not offset.all():
        raise stamps.time_error(offset != offset[0], "timestamps all with or all without a UTC offset")
