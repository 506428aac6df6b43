"""Points in time, from their texts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpfast._support import validation
from dpfast.signals.events.csv_columns import NUMBER, parse_numbers
from dpfast.signals.events.declared_time_format import check_format, has_offset, parse_formatted
from dpfast.signals.events.standard_date_formats import parse_date

_MANY = 64  # texts from which on it pays to look whether they are alike
_PLAIN = re.compile(r"(?!0000)\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d{1,6})?", re.ASCII)
_PLAIN_UTC = re.compile(f"{_PLAIN.pattern}Z", re.ASCII)
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


def parse_timestamps(texts: Sequence[str], time_format: str | None = None) -> Moments:
    """Read texts as points in time; what one of them is does not depend on the others."""
    stripped = [text.strip() for text in texts]
    if time_format is not None:
        check_format(time_format)
        kind = "offset" if has_offset(time_format) else "local"
        return Moments(parse_formatted(stripped, time_format), np.full(len(texts), kind))
    if len(stripped) >= _MANY and (alike := _parse_alike(stripped)) is not None:
        return alike
    read = [_parse_timestamp(text) for text in stripped]
    times = np.array([_NONE if time is None else time for _, time in read], np.int64)
    return Moments(times.view("datetime64[us]"), np.array([kind for kind, _ in read], np.str_))


def _parse_alike(texts: list[str]) -> Moments | None:
    """Read texts all of which are of the plainest form, as NumPy reads them, in a fraction of the time; or None."""
    utc = texts[0].endswith("Z")
    if not all(map((_PLAIN_UTC if utc else _PLAIN).fullmatch, texts)):
        return None
    try:
        times = np.array([text[:-1] for text in texts] if utc else texts, "M8[us]")
    except ValueError:  # where one is of no day
        return None
    return Moments(times, np.full(len(texts), "offset" if utc else "local"))


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
