"""Declared bins of time, and the formats under which a timestamp can be in one of them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from dpfast._support import validation
from dpfast.signals.events.declared_time_format import check_format, has_offset
from dpfast.signals.events.periods import DAY, parse_period
from dpfast.signals.events.timestamps import parse_moment, parse_timestamps

_1970 = datetime(1970, 1, 1, tzinfo=UTC)
_DAYS = range(-719162, 2932896 + 1)  # since 1970, of the years 1 to 9999
CLOCKS = {True: "with a UTC offset", False: "without a UTC offset"}


@dataclass(frozen=True)
class Span:
    """Declare the bins in which events are counted.

    These are [start + i·period, start + (i+1)·period), i = 0, …, n_bins - 1.

    Attributes
    ----------
    start, period : int
        Microseconds, the start since 1970.
    n_bins : int
    utc : bool
        Whether the start is in UTC, rather than of a local clock.
    """

    start: int
    period: int
    n_bins: int
    utc: bool

    @classmethod
    def parse(cls, start: str, end: str, period: str) -> Span:
        """Make the span of two points in time, the end left out, and the length of its bins.

        Raises
        ------
        ValueError
            If it is not a whole number of periods, at least one.

        Examples
        --------
        >>> Span.parse("2013-01-01", "2013-01-02", "6h").n_bins
        4
        """
        step = int(parse_period(period).astype(np.int64))
        (first, utc), (last, utc_end) = parse_moment("start", start), parse_moment("end", end)
        if utc != utc_end:
            raise ValueError(f"end must be {CLOCKS[utc]} as start is, got one {CLOCKS[utc_end]}")
        n_bins, rest = divmod(last - first, step)
        if rest or n_bins < 1:
            must_be = f"a whole number of periods of {period} after start, at least one"
            raise ValueError(f"end must be {must_be}, got {end!r} for the start {start!r}")
        return cls(first, step, n_bins, utc)

    def time(self, bin: int) -> int:
        """Return the left edge of a bin, in microseconds since 1970."""
        return self.start + bin * self.period

    def bins(self, moments: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the bin of each moment, -1 outside of the span."""
        bins: NDArray[np.int64] = (moments - self.start) // self.period
        return np.where((0 <= bins) & (bins < self.n_bins), bins, -1)


def check_time_format(span: Span, time_format: str | None) -> None:
    """Refuse a format under which no timestamp could be one of the span, whatever the events.

    Raises
    ------
    ValueError
        For a format that is none, one with UTC offsets where the span has none, or the other way round, and one that
        lacks what tells the days of the span, as the year.
    """
    if time_format is None:
        return
    check_format(time_format)
    if has_offset(time_format) != span.utc:
        of_format = "with %z (the UTC offset, or Z)" if span.utc else "without %z and %Z"
        must_be = f"{of_format} where start is {CLOCKS[span.utc]}: otherwise no timestamp could be read"
        raise validation.fail("time_format", must_be, time_format)
    # A year has all that a format may leave out, and offsets move a time by less than a day.
    first, last = max(span.start // DAY - 1, _DAYS[0]), min((span.time(span.n_bins) - 1) // DAY + 1, _DAYS[-1])
    days = range(first, min(last, first + 368) + 1)
    texts = [(_1970 + timedelta(day)).strftime(time_format) for day in days]
    moments = parse_timestamps(texts, time_format).times.astype(np.int64)
    if not ((first * DAY <= moments) & (moments <= last * DAY)).any():
        must_be = "one that tells the days from start to end, with the year"
        raise validation.fail("time_format", f"{must_be}: otherwise no timestamp could be read", time_format)
