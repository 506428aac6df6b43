"""Logs of events, binned into counts per period and series."""

from __future__ import annotations

import csv
import gzip
import io
import os
import re
import zlib
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast import _validate
from dpfast.errors import DataError

_MAX_CELLS = 50_000_000
_MAX_SERIES = 1000
_MAX_COUNT = 2.0**53  # above it, float64 no longer holds every integer
_GZIP_MAGIC = b"\x1f\x8b"
_DAY = 86_400_000_000
_MICROSECONDS = {
    "us": 1,
    "ms": 1000,
    "s": 1_000_000,
    "min": 60_000_000,
    "h": 3_600_000_000,
    "d": _DAY,
    "w": 7 * _DAY,
}
_PERIOD = re.compile(r"(\d{1,18}(?:\.\d{1,18})?)(us|ms|s|min|h|d|w)", re.ASCII)
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,4})?", re.ASCII)
_CLOCK = r"\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?"
_STAMP = re.compile(
    rf"(?P<number>{_NUMBER.pattern})"
    rf"|(?P<local>\d{{4}}-\d\d-\d\d(?:[T ]{_CLOCK})?|\d{{4}}/\d\d/\d\d(?: {_CLOCK})?)"
    rf"|(?P<offset>\d{{4}}-\d\d-\d\d[T ]{_CLOCK} ?(?:Z|[+-]\d\d(?::?\d\d)?))",
    re.ASCII,
)
_AMBIGUOUS = re.compile(r"\d{1,2}([/.-])\d{1,2}\1\d{2,4}(?!\d).*", re.ASCII)


@dataclass(frozen=True, eq=False)
class EventCounts:
    """Counts of events per series and period.

    Attributes
    ----------
    counts : (series, bins) array of float64
        Read-only.
    series : tuple of str
        Names of the rows, sorted.
    start : numpy.datetime64
        Left edge of the first bin, in UTC or in the local time of the file.
    period : numpy.timedelta64
        Length of a bin.
    """

    counts: NDArray[np.float64]
    series: tuple[str, ...]
    start: np.datetime64
    period: np.timedelta64

    def times(self) -> NDArray[np.datetime64]:
        """Left edges of all bins."""
        edges: NDArray[np.datetime64] = self.start + np.arange(self.counts.shape[1]) * self.period
        return edges


@dataclass(frozen=True, eq=False)
class _Column:
    """A column as its distinct texts, in order of appearance, and which of them every row holds."""

    label: str
    texts: list[str]
    codes: NDArray[np.int64]
    lines: NDArray[np.int64]

    def place(self, bad: NDArray[np.bool_]) -> str:
        """Where the first row with a bad text is, and how many there are."""
        rows = np.flatnonzero(bad[self.codes])
        return f"in line {self.lines[rows[0]]} ({rows.size} such row{'s' * (rows.size > 1)})"

    def bad_time(self, bad: NDArray[np.bool_], must_hold: str) -> DataError:
        """The error for timestamps that cannot be used; it says where the first one is, not what: it may be private."""
        text = self.texts[int(np.argmax(bad))].strip()
        got = f"another text of {len(text)} characters" if text else "nothing"
        return DataError(f"{self.label} must hold {must_hold}, got {got} {self.place(bad)}")


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


def read_events(
    path: str | os.PathLike[str],
    *,
    time: str,
    period: str,
    by: str | None = None,
    count: str | None = None,
    time_format: str | None = None,
) -> EventCounts:
    """Read a CSV log of events and count them per period and series.

    With o the midnight before the first event, an event at time t falls into bin floor((t - o) / period).
    All series span the bins from the first to the last event of the file; bins without events hold 0.

    Parameters
    ----------
    path : path-like
        A comma-separated file in UTF-8 with a header, plain or gzip (told by its content).
    time : str
        Column of timestamps, in any order: ISO 8601 (``2013-01-01T05:15:00.123``, date alone, ``Z`` or
        ``+01:00`` after the time), ``2013/01/01 05:15``, or Unix seconds (1e8 to 1e11) or milliseconds
        (1e11 to 1e14). Fractions of a microsecond are cut off.
    period : str
        Length of a bin, see `parse_period`.
    by : str, optional
        Column that names the series; an empty value is the series ``"(missing)"``. Without it all rows are
        one series, ``"all"``.
    count : str, optional
        Column of numbers from 0 to 2**53, summed per bin. Without it every row is one event.
    time_format : str, optional
        Format of the timestamps, as in `datetime.datetime.strptime`; needed where day and month are
        ambiguous, as in ``01/02/2013 05:15``.

    Returns
    -------
    EventCounts
        Its span and the names of its series are read off the events themselves.

    Raises
    ------
    DataError
        If the file, a column, a timestamp or a count cannot be used, or there are more than 1000 series or
        more than 50 million bins over all series.
    ValueError
        If `period` or `time_format` is not valid.

    Notes
    -----
    Timestamps without a UTC offset are taken as they stand: if they are a local clock's, the hour that
    repeats in autumn is counted into the same bins twice and the hour left out in spring is 0.
    Timestamps with an offset are converted to UTC, and bins are counted from midnight UTC; offsets may
    differ between rows. A file that mixes both is refused.

    Examples
    --------
    >>> path = "examples/nyc_departures_2013.csv.gz"
    >>> log = read_events(path, time="scheduled_departure", by="origin", period="1d")
    >>> log.series, log.counts.shape, int(log.counts.sum())
    (('EWR', 'JFK', 'LGA'), (3, 365), 336776)
    """
    step = int(parse_period(period).astype(np.int64))
    names = [name for name in (time, by, count) if name is not None]
    file = Path(path)
    columns = _read_columns(file, names)

    stamps = columns[time]
    moments = _parse_times(stamps, time_format)
    first, last = int(moments.min()), int(moments.max())
    midnight = first - first % _DAY
    first_bin = (first - midnight) // step
    n_bins = (last - midnight) // step - first_bin + 1

    series, member = _parse_series(None if by is None else columns[by])
    if n_bins * len(series) > _MAX_CELLS:
        raise DataError(
            f"{file}: bins times series must be at most {_MAX_CELLS:,}, got {n_bins:,} bins of {period} "
            f"for {len(series)} series: choose a longer period or check the first and last timestamp"
        )

    bins = (moments - midnight) // step - first_bin
    cells = member * n_bins + bins[stamps.codes]
    weights = None if count is None else _parse_counts(columns[count])
    counts = np.bincount(cells, weights, n_bins * len(series)).astype(np.float64)
    return EventCounts(
        counts=_validate.frozen(counts.reshape(len(series), n_bins)),
        series=series,
        start=np.datetime64(midnight + first_bin * step, "us"),
        period=np.timedelta64(step, "us"),
    )


def _read_columns(file: Path, names: list[str]) -> dict[str, _Column]:
    """The named columns of a CSV file, plain or gzip."""
    try:
        with file.open("rb") as raw:
            data = gzip.GzipFile(fileobj=raw) if raw.peek(2)[:2] == _GZIP_MAGIC else raw
            with io.TextIOWrapper(data, encoding="utf-8-sig", newline="") as text:
                return _split(file, text, names)
    except (EOFError, gzip.BadGzipFile, zlib.error):
        raise DataError(f"{file} must be a whole gzip file, got a damaged or truncated one") from None
    except OSError as error:
        raise DataError(f"{file} must be a readable file: {error.strerror}") from None
    except UnicodeDecodeError:
        raise DataError(f"{file} must be a CSV file in UTF-8, got other bytes: export it as UTF-8") from None


def _split(file: Path, text: io.TextIOWrapper, names: list[str]) -> dict[str, _Column]:
    """The named columns of an open CSV file."""
    rows = csv.reader(text, strict=True)
    try:
        header = next(rows, [])
        picks = _find(file, header, names)
        known: list[dict[str, int]] = [{} for _ in picks]
        codes = [array("q") for _ in picks]
        lines = array("q")
        for row in _even(file, rows, len(header)):
            lines.append(rows.line_num)
            for pick, texts, column in zip(picks, known, codes, strict=True):
                column.append(texts.setdefault(row[pick], len(texts)))
    except csv.Error as error:
        raise DataError(f"{file}: line {rows.line_num} must be valid CSV: {error}") from None
    if not lines:
        raise DataError(f"{file} must have rows, got a header alone")
    return {
        name: _Column(f"{file}: column {name!r}", list(texts), np.array(column), np.array(lines))
        for name, texts, column in zip(names, known, codes, strict=True)
    }


def _find(file: Path, header: list[str], names: list[str]) -> list[int]:
    """Positions of the named columns."""
    if not header:
        raise DataError(f"{file} must begin with a line of column names, got an empty file or line")
    if any("\0" in name for name in header):
        raise DataError(f"{file} must be a CSV file, got a binary file")
    for name in names:
        if name not in header:
            raise DataError(f"{file} must have a column {name!r}, got a first line of {len(header)} others")
        if header.count(name) > 1:
            raise DataError(f"{file} must have one column {name!r}, got {header.count(name)}: rename them")
    return [header.index(name) for name in names]


def _even(file: Path, rows: Any, width: int) -> Iterator[list[str]]:
    """The rows, all as wide as the header. A blank line is no row, unless one empty field looks like it."""
    for row in rows:
        if not row:
            if width > 1:
                continue
            row = [""]
        if len(row) != width:
            raise DataError(
                f"{file}: line {rows.line_num} must have {width} fields as the header does, got {len(row)}: "
                "put quotes around fields that hold commas"
            )
        yield row


def _parse_times(stamps: _Column, time_format: str | None) -> NDArray[np.int64]:
    """Microseconds since 1970 of every distinct timestamp."""
    texts = [text.strip() for text in stamps.texts]
    if time_format is not None:
        return _parse_formatted(stamps, texts, time_format)
    kinds = np.array([_kind(text) for text in texts])
    numbers = kinds == "number"
    if np.count_nonzero(numbers) > np.count_nonzero((kinds == "local") | (kinds == "offset")):
        return _parse_unix(stamps, texts, numbers)
    return _parse_dates(stamps, texts, kinds)


def _kind(text: str) -> str:
    match = _STAMP.fullmatch(text)
    return str(match.lastgroup) if match else "other"


def _parse_formatted(stamps: _Column, texts: list[str], time_format: str) -> NDArray[np.int64]:
    if "%" not in str(time_format):
        raise _validate.fail("time_format", "a format such as '%m/%d/%Y %H:%M'", time_format)
    # pandas would read "now" and "today" as the present, whatever the format.
    dated = [text if re.search(r"\d", text) else "" for text in texts]
    try:
        moments = _to_datetime(dated, time_format)
    except ValueError as error:
        raise ValueError(f"time_format must be a format of strptime: {error}") from None
    if np.isnat(moments).any():
        raise stamps.bad_time(np.isnat(moments), f"timestamps of the format {time_format!r}")
    return moments.astype(np.int64)


def _parse_unix(stamps: _Column, texts: list[str], numbers: NDArray[np.bool_]) -> NDArray[np.int64]:
    values = np.array([float(text) if number else np.nan for text, number in zip(texts, numbers, strict=True)])
    seconds = (1e8 <= values) & (values < 1e11)
    milliseconds = (1e11 <= values) & (values < 1e14)
    bad = ~(seconds | milliseconds)
    if bad.any():
        must_hold = "Unix seconds (1e8 to 1e11) or milliseconds (1e11 to 1e14), or else give time_format"
        raise stamps.bad_time(bad, must_hold)
    if seconds.any() and milliseconds.any():
        raise stamps.bad_time(seconds != seconds[0], "either Unix seconds or Unix milliseconds alone")
    digits = 6 if seconds[0] else 3
    return np.array([int(Decimal(text).scaleb(digits)) for text in texts], np.int64)


def _parse_dates(stamps: _Column, texts: list[str], kinds: NDArray[np.str_]) -> NDArray[np.int64]:
    offset = kinds == "offset"
    dated = offset | (kinds == "local")
    moments = _to_datetime([text if date else "" for text, date in zip(texts, dated, strict=True)], "ISO8601")
    bad = np.isnat(moments)
    if bad.any():
        if _AMBIGUOUS.fullmatch(texts[int(np.argmax(bad))]):
            must_hold = "unambiguous dates, or else give time_format, such as '%m/%d/%Y %H:%M'"
        else:
            must_hold = "timestamps such as '2013-01-01T05:15', or else give time_format"
        raise stamps.bad_time(bad, must_hold)
    if offset.any() and not offset.all():
        raise stamps.bad_time(offset != offset[0], "timestamps all with or all without a UTC offset")
    return moments.astype(np.int64)


def _to_datetime(texts: list[str], time_format: str) -> NDArray[np.datetime64]:
    """UTC in microseconds, NaT for what does not have the format."""
    pd = _validate.optional("pandas", "cli")
    index = pd.to_datetime(pd.Index(texts, dtype=object), format=time_format, errors="coerce", utc=True)
    moments: NDArray[np.datetime64] = index.tz_localize(None).to_numpy().astype("datetime64[us]")
    return moments


def _parse_series(column: _Column | None) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """Sorted names of the series, and the series of every row."""
    if column is None:
        return ("all",), np.zeros(1, np.int64)
    names = [text if text.strip() else "(missing)" for text in column.texts]
    series = sorted(set(names))
    if len(series) > _MAX_SERIES:
        raise DataError(
            f"{column.label} must have at most {_MAX_SERIES} distinct values, got {len(series)}: "
            "choose a column of few categories"
        )
    rank = {name: number for number, name in enumerate(series)}
    member: NDArray[np.int64] = np.array([rank[name] for name in names])[column.codes]
    return tuple(series), member


def _parse_counts(column: _Column) -> NDArray[np.float64]:
    """The count of every row."""
    # The pattern keeps out what float() takes beside numbers, such as "1_000"; NaN fails the comparison.
    values = np.array([float(text) if _NUMBER.fullmatch(text) else np.nan for text in map(str.strip, column.texts)])
    bad = ~((values >= 0) & (values <= _MAX_COUNT))
    if bad.any():
        raise DataError(f"{column.label} must hold numbers from 0 to 2**53, got something else {column.place(bad)}")
    counts: NDArray[np.float64] = values[column.codes]
    return counts
