"""Points in time and lengths of time, from their texts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpfast import _validate
from dpfast.columns import NUMBER, Column, numbers

DAY = 86_400_000_000
_MICROSECONDS = {
    "us": 1,
    "ms": 1000,
    "s": 1_000_000,
    "min": 60_000_000,
    "h": 3_600_000_000,
    "d": DAY,
    "w": 7 * DAY,
}
_PERIOD = re.compile(r"(\d{1,18}(?:\.\d{1,18})?)(us|ms|s|min|h|d|w)", re.ASCII)
_CLOCK = r"\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?"
_STAMP = re.compile(
    rf"(?P<number>{NUMBER.pattern})"
    rf"|(?P<local>\d{{4}}-\d\d-\d\d(?:[T ]{_CLOCK})?|\d{{4}}/\d\d/\d\d(?: {_CLOCK})?)"
    rf"|(?P<offset>\d{{4}}-\d\d-\d\d[T ]{_CLOCK} ?(?:Z|[+-]\d\d(?::?\d\d)?))",
    re.ASCII,
)
_AMBIGUOUS = re.compile(r"\d{1,2}([/.-])\d{1,2}\1\d{2,4}(?!\d).*", re.ASCII)


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
        """Whether each is a point in UTC, rather than of a local clock."""
        return np.isin(self.kinds, ("offset", "seconds", "milliseconds"))


def parse_period(text: str) -> np.timedelta64:
    """Length of a period such as ``"5min"``.

    Parameters
    ----------
    text : str
        A positive number, then us, ms, s, min, h, d (24 hours) or w (7 days). Units of the calendar,
        as months, have no fixed length and are refused.

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
    >>> parse_period("1.5h")
    np.timedelta64(5400000000,'us')
    """
    match = _PERIOD.fullmatch(str(text))
    length = Decimal(match[1]) * _MICROSECONDS[match[2]] if match else Decimal(0)
    if not 0 < length < 2**63 or length != int(length):
        must_be = "a positive number of us, ms, s, min, h, d or w, whole in microseconds, such as '5min'"
        raise _validate.fail("period", must_be, text)
    return np.timedelta64(int(length), "us")


def parse_each(texts: Sequence[str], time_format: str | None = None) -> Moments:
    """Points in time of texts; what one of them is does not depend on the others."""
    stripped = [text.strip() for text in texts]
    if time_format is not None:
        return _formatted(stripped, time_format)
    kinds = np.array([_kind(text) for text in stripped], np.str_)
    dated = np.isin(kinds, ("local", "offset"))
    times = _to_datetime([text if date else "" for text, date in zip(stripped, dated, strict=True)], "ISO8601")
    for i in np.flatnonzero(np.isin(kinds, ("seconds", "milliseconds"))):
        times[i] = int(Decimal(stripped[i]).scaleb(6 if kinds[i] == "seconds" else 3))
    return Moments(times, kinds)


def _kind(text: str) -> str:
    match = _STAMP.fullmatch(text)
    if match is None or match.lastgroup != "number":
        return str(match.lastgroup) if match else "other"
    (value,) = numbers([text])
    if 1e8 <= value < 1e11:
        return "seconds"
    return "milliseconds" if 1e11 <= value < 1e14 else "number"


def _formatted(texts: list[str], time_format: str) -> Moments:
    if "%" not in str(time_format):
        raise _validate.fail("time_format", "a format such as '%m/%d/%Y %H:%M'", time_format)
    # pandas would read "now" and "today" as the present, whatever the format.
    dated = [text if re.search(r"\d", text) else "" for text in texts]
    try:
        times = _to_datetime(dated, time_format)
    except ValueError as error:
        raise ValueError(f"time_format must be a format of strptime: {error}") from None
    kind = "offset" if re.search("%[zZ]", time_format.replace("%%", "")) else "local"
    return Moments(times, np.full(len(texts), kind))


def _to_datetime(texts: list[str], time_format: str) -> NDArray[np.datetime64]:
    """UTC in microseconds, NaT for what does not have the format."""
    pd = _validate.optional("pandas", "cli")
    index = pd.to_datetime(pd.Index(texts, dtype=object), format=time_format, errors="coerce", utc=True)
    moments: NDArray[np.datetime64] = index.tz_localize(None).to_numpy().astype("datetime64[us]")
    return moments


def parse_moment(name: str, text: str) -> tuple[int, bool]:
    """Microseconds since 1970 of an argument, and whether they are UTC, rather than of a local clock.

    Examples
    --------
    >>> parse_moment("start", "1970-01-02T00:00Z"), parse_moment("start", "1970-01-02")
    ((86400000000, True), (86400000000, False))
    """
    (time,), (utc,) = (moment := parse_each([str(text)])).times, moment.utc
    if np.isnat(time):
        raise _validate.fail(name, "a point in time such as '2013-01-01T05:15' or '2013-01-01T05:15Z'", text)
    return int(time.astype(np.int64)), bool(utc)


def parse_times(stamps: Column, time_format: str | None) -> tuple[NDArray[np.int64], bool | None]:
    """Microseconds since 1970 of a file's distinct timestamps, and whether they are UTC: None where there are none.

    Raises
    ------
    DataError
        Where one is unusable, or they are of several kinds.
    """
    moments = parse_each(stamps.texts, time_format)
    if time_format is not None:
        bad = np.isnat(moments.times)
        if bad.any():
            raise stamps.bad_time(bad, f"timestamps of the format {time_format!r}")
    elif np.count_nonzero(_numeric(moments)) > np.count_nonzero(np.isin(moments.kinds, ("local", "offset"))):
        _check_unix(stamps, moments)
    else:
        _check_dates(stamps, moments)
    return moments.times.astype(np.int64), bool(moments.utc[0]) if stamps.texts else None


def _numeric(moments: Moments) -> NDArray[np.bool_]:
    return np.isin(moments.kinds, ("number", "seconds", "milliseconds"))


def _check_unix(stamps: Column, moments: Moments) -> None:
    seconds, milliseconds = (moments.kinds == kind for kind in ("seconds", "milliseconds"))
    bad = ~(seconds | milliseconds)
    if bad.any():
        must_hold = "Unix seconds (1e8 to 1e11) or milliseconds (1e11 to 1e14), or else give time_format"
        raise stamps.bad_time(bad, must_hold)
    if seconds.any() and milliseconds.any():
        raise stamps.bad_time(seconds != seconds[0], "either Unix seconds or Unix milliseconds alone")


def _check_dates(stamps: Column, moments: Moments) -> None:
    bad = np.isnat(moments.times) | _numeric(moments)
    if bad.any():
        if _AMBIGUOUS.fullmatch(stamps.texts[int(np.argmax(bad))].strip()):
            must_hold = "unambiguous dates, or else give time_format, such as '%m/%d/%Y %H:%M'"
        else:
            must_hold = "timestamps such as '2013-01-01T05:15', or else give time_format"
        raise stamps.bad_time(bad, must_hold)
    offset = moments.kinds == "offset"
    if offset.any() and not offset.all():
        raise stamps.bad_time(offset != offset[0], "timestamps all with or all without a UTC offset")
