"""Logs of events, binned into counts per period and series."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dpfast._support import validation
from dpfast._support.errors import DataError
from dpfast.signals.events.columns import Column
from dpfast.signals.events.csv_columns import parse_numbers
from dpfast.signals.events.logs import read_columns
from dpfast.signals.events.periods import DAY, parse_period
from dpfast.signals.events.time_column import parse_time_column

MAX_CELLS = 50_000_000
MAX_SERIES = 1000
MAX_COUNT = 2**53  # above it, float64 no longer holds every integer
MISSING = "(missing)"


@dataclass(frozen=True, eq=False)
class EventCounts:
    """Counts of events per series and period.

    Attributes
    ----------
    counts : (series, bins) array
        Read-only; of float64, or of int64 where the span was declared.
    series : tuple of str
        Names of the rows: sorted, or as declared.
    start : numpy.datetime64
        Left edge of the first bin, in UTC or in the local time of the file.
    period : numpy.timedelta64
        Length of a bin.
    """

    counts: NDArray[np.float64 | np.int64]
    series: tuple[str, ...]
    start: np.datetime64
    period: np.timedelta64

    def times(self) -> NDArray[np.datetime64]:
        """Return the left edges of all bins."""
        edges: NDArray[np.datetime64] = self.start + np.arange(self.counts.shape[1]) * self.period
        return edges


def read_events(
    path: str | os.PathLike[str],
    *,
    time: str,
    period: str,
    by: str | None = None,
    count: str | None = None,
    time_format: str | None = None,
) -> EventCounts:
    """Read a log of events and count them per period and series.

    With o the midnight before the first event, an event at time t falls into bin floor((t - o) / period).
    All series span the bins from the first to the last event of the file; bins without events hold 0.

    Parameters
    ----------
    path : path-like
        A comma-separated file in UTF-8 with a header, plain or packed by gzip, bzip2 or zstd, or a Parquet file (told
        by its content).
    time : str
        Column of timestamps, in any order: ISO 8601 (``2013-01-01T05:15:00.123``, date alone, ``Z`` or
        ``+01:00`` after the time), ``2013/01/01 05:15``, RFC 2822 as in e-mail (``Sat, 22 Apr 2017 15:11:58
        -0500``), or Unix seconds (1e8 to 1e11) or milliseconds
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
    columns = read_columns(file, names)

    stamps = columns[time]
    if not stamps.texts:
        raise DataError(f"{file} must have rows, got a header alone: is it the right file?")
    moments = parse_time_column(stamps, time_format)
    first, last = int(moments.min()), int(moments.max())
    midnight = first - first % DAY
    first_bin = (first - midnight) // step
    n_bins = (last - midnight) // step - first_bin + 1

    series, member = _parse_series(None if by is None else columns[by])
    if n_bins * len(series) > MAX_CELLS:
        raise DataError(
            f"{file}: bins times series must be at most {MAX_CELLS:,}, got {n_bins:,} bins of {period} "
            f"for {len(series)} series: choose a longer period or check the first and last timestamp"
        )

    bins = (moments - midnight) // step - first_bin
    cells = member * n_bins + bins[stamps.codes]
    weights = None if count is None else _parse_counts(columns[count])
    counts = np.bincount(cells, weights, n_bins * len(series)).astype(np.float64)
    return EventCounts(
        counts=validation.freeze(counts.reshape(len(series), n_bins)),
        series=series,
        start=np.datetime64(midnight + first_bin * step, "us"),
        period=np.timedelta64(step, "us"),
    )


def _parse_series(column: Column | None) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """Return the sorted names of the series, and the series of every row."""
    if column is None:
        return ("all",), np.zeros(1, np.int64)
    names = [text if text.strip() else MISSING for text in column.texts]
    series = sorted(set(names))
    if len(series) > MAX_SERIES:
        raise DataError(
            f"{column.label} must have at most {MAX_SERIES} distinct values, got {len(series)}: "
            "choose a column of few categories"
        )
    rank = {name: number for number, name in enumerate(series)}
    member: NDArray[np.int64] = np.array([rank[name] for name in names])[column.codes]
    return tuple(series), member


def _parse_counts(column: Column) -> NDArray[np.float64]:
    """Return the count of every row."""
    values = parse_numbers(column.texts)
    bad = ~((values >= 0) & (values <= MAX_COUNT))  # NaN fails the comparison
    if bad.any():
        raise DataError(f"{column.label} must hold numbers from 0 to 2**53, got something else in {column.locate(bad)}")
    counts: NDArray[np.float64] = values[column.codes]
    return counts
