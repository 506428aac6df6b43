"""Counts of events over a declared span and declared groups: nothing about their shape is read off the events."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from dpfast._support import validation
from dpfast._support.errors import DataError
from dpfast.signals.events.columns import Column
from dpfast.signals.events.csv_columns import parse_numbers
from dpfast.signals.events.declared_span import CLOCKS, Span
from dpfast.signals.events.historical_counts import MAX_COUNT, MISSING, EventCounts
from dpfast.signals.events.logs import read_columns
from dpfast.signals.events.time_column import check_times
from dpfast.signals.events.timestamps import Moments, parse_timestamps

MAX_GROUPS = 1_000_000  # declared names, which the operator has written down
MAX_DECLARED = 10**9  # bins times groups that are counted at once: 8 GB, and some times as many to publish them


@dataclass(frozen=True)
class Rows:
    """Numbers of the rows of a log, by where they fall; private.

    Attributes
    ----------
    unreadable : int
        Without a time of the clock of the span, or without a count.
    outside : int
        Of a time outside of the span.
    undeclared : int
        In the span, of a group that is not declared.
    groups : tuple of int
        In the span, of each declared group.
    late : int
        Of these, those that came when their bin was over; in a file none.
    unnamed : int
        Of these, those without the id of a person, where one is asked for.
    """

    unreadable: int
    outside: int
    undeclared: int
    groups: tuple[int, ...]
    late: int = 0
    unnamed: int = 0

    @classmethod
    def classify(
        cls, readable: NDArray[np.bool_], bins: NDArray[np.int64], groups: NDArray[np.int64], n_groups: int
    ) -> Self:
        """Count rows by whether each is readable, its bin and its group: -1 outside of what is declared."""
        inside = readable & (bins >= 0)
        by_group = np.bincount(groups[inside] + 1, minlength=n_groups + 1).tolist()
        return cls(int(np.sum(~readable)), int(np.sum(readable & (bins < 0))), by_group[0], tuple(by_group[1:]))

    @property
    def inside(self) -> int:
        """Number of rows in the span."""
        return self.undeclared + sum(self.groups)

    @property
    def total(self) -> int:
        """Number of all rows."""
        return self.unreadable + self.outside + self.inside

    def __add__(self, other: Rows) -> Rows:
        groups = tuple(x + y for x, y in zip(self.groups, other.groups, strict=True))
        return Rows(
            self.unreadable + other.unreadable,
            self.outside + other.outside,
            self.undeclared + other.undeclared,
            groups,
            self.late + other.late,
            self.unnamed + other.unnamed,
        )


@dataclass(frozen=True, eq=False)
class DeclaredRows:
    """Hold the rows of a log in a declared span and declared groups; they are private.

    Attributes
    ----------
    bins, groups : array of int64
    weights : array of int64
        Numbers of events.
    persons : list of bytes or None
        Ids, in the order of time and then of the file; None for a row without one. Without a column of them, empty.
    """

    bins: NDArray[np.int64]
    groups: NDArray[np.int64]
    weights: NDArray[np.int64]
    persons: list[bytes | None]


def check_groups(span: Span, by: str | None, groups: Sequence[str] | None) -> tuple[str, ...]:
    """Check declared groups and return the names of the series, in the declared order.

    Raises
    ------
    ValueError
        If they are no list of distinct printable names, are too many, or come without a column, or it without them.
    """
    if by is None and groups is not None:
        raise ValueError("groups must come with by, the column that tells them apart: give by, or leave groups out")
    if by is not None and groups is None:
        raise ValueError(
            f"groups must be declared with by={by!r}, as they must not be read off the data: list those values of the "
            "column that are to be published"
        )
    return check_names_of_groups(span, by, ("all",) if groups is None else groups)


def check_names_of_groups(span: Span, by: str | None, groups: Sequence[str]) -> tuple[str, ...]:
    """Check the names of the series, of which there is one where no column tells them apart.

    Raises
    ------
    ValueError
    """
    validation.instance("span", span, Span, "a dpfast.Span, such as Span.parse('2013-01-01', '2014-01-01', '1h')")
    if by is None and len(groups) != 1:
        raise ValueError(
            f"groups must be one name where no column is given by, got {len(groups)}: give by, the column that tells "
            "them apart"
        )
    names: tuple[Any, ...] = tuple(groups)
    if isinstance(groups, str) or not all(isinstance(name, str) and name.isprintable() for name in names):
        raise ValueError(
            "groups must be a list of printable names, got others: give each as a text without line breaks"
        )
    if not 1 <= len(names) <= MAX_GROUPS or "" in names or len(set(names)) < len(names):
        raise ValueError(f"groups must be 1 to {MAX_GROUPS:,} distinct names, none empty, got {len(names)}")
    return names


def check_counted_at_once(span: Span, n_groups: int) -> None:
    """Refuse more bins and groups than can be counted at once, which those that come bin by bin need not be.

    Raises
    ------
    ValueError
    """
    if span.n_bins * n_groups > MAX_DECLARED:
        must_be = f"bins times groups must be at most {MAX_DECLARED:,}"
        raise ValueError(f"{must_be}, got {span.n_bins:,} for {n_groups:,}: choose a longer period or a shorter span")


def group_indices(texts: Sequence[str], groups: Sequence[str]) -> NDArray[np.int64]:
    """Return the group of each text, -1 for one that is not declared."""
    rank = {name: i for i, name in enumerate(groups)}
    return np.array([rank.get(text if text.strip() else MISSING, -1) for text in texts], np.int64)


def parse_whole_numbers(texts: Sequence[str]) -> NDArray[np.float64]:
    """Read each text as a whole number from 0 to 2**53, NaN for what is none."""
    values = parse_numbers(texts)
    whole = (values >= 0) & (values <= MAX_COUNT) & (values == np.floor(values))
    for i in np.flatnonzero(values == MAX_COUNT).tolist():  # also what is rounded to it
        whole[i] = Decimal(texts[i].strip()) == MAX_COUNT
    return np.where(whole, values, np.nan)


def encode_person(text: str) -> bytes | None:
    """Return the id in a field as bytes; None for a blank one."""
    return text.encode("utf-8", "surrogateescape") if text.strip() else None


def read_rows(
    log: Any,
    span: Span,
    groups: Sequence[str],
    *,
    time: str,
    by: str | None = None,
    count: str | None = None,
    time_format: str | None = None,
    person: str | None = None,
    seen: Callable[[Rows], None] | None = None,
    whole: bool = True,
) -> DeclaredRows:
    """Read the rows of a log that are in declared bins and groups, as :func:`count_events` counts them.

    With `person`, a column of ids, they are in the order of their times, and else in that of the file. A row that
    cannot be read refuses a log that is to be read `whole`, and else is left out.
    """
    columns = read_columns(log, [name for name in (time, by, count, person) if name is not None])
    for name in (by, person):
        if name is not None:
            columns[name].check_names()
    stamps = columns[time]
    moments = parse_timestamps(stamps.texts, time_format)
    weights = None if count is None else parse_whole_numbers(columns[count].texts)[columns[count].codes]
    bins = span.bins(moments.times.astype(np.int64))[stamps.codes]
    member = np.zeros_like(bins) if by is None else group_indices(columns[by].texts, groups)[columns[by].codes]
    ids = None if person is None else [encode_person(text) for text in columns[person].texts]
    readable = (~np.isnat(moments.times) & (moments.utc == span.utc))[stamps.codes]
    readable = readable if weights is None else readable & ~np.isnan(weights)
    inside = (bins >= 0) & (member >= 0)
    if seen is not None:
        found = Rows.classify(readable, bins, member, len(groups))
        if ids is not None:
            blank = np.array([x is None for x in ids], bool)[columns[str(person)].codes]
            found = replace(found, unnamed=int(np.sum(blank & inside & readable)))
        seen(found)
    if whole:
        _refuse_unreadable(columns, moments, span, time, count, time_format)
    rows = np.flatnonzero(inside & readable)
    if ids is not None:
        times = moments.times.astype(np.int64)[stamps.codes]
        rows = rows[np.argsort(times[rows], kind="stable")]
    counted = np.ones(len(rows), np.int64) if weights is None else weights[rows].astype(np.int64)
    named = [] if ids is None else [ids[code] for code in columns[str(person)].codes[rows].tolist()]
    return DeclaredRows(bins[rows], member[rows], counted, named)


def _refuse_unreadable(
    columns: Mapping[str, Column], moments: Moments, span: Span, time: str, count: str | None, time_format: str | None
) -> None:
    """Refuse a log with a time or a count that cannot be read."""
    stamps = columns[time]
    check_times(stamps, moments, time_format)
    if (moments.utc != span.utc).any():
        must_hold = f"timestamps {CLOCKS[span.utc]} as start is, got some {CLOCKS[not span.utc]}"
        raise DataError(f"{stamps.label} must hold {must_hold}: declare start and end as the file has them")
    if count is not None and np.isnan(parse_whole_numbers(columns[count].texts)).any():
        _refuse_weights(columns[count])


def count_events(
    log: Any,
    span: Span,
    groups: Sequence[str] = ("all",),
    *,
    time: str,
    by: str | None = None,
    count: str | None = None,
    time_format: str | None = None,
    largest: int = MAX_COUNT,
    seen: Callable[[Rows], None] | None = None,
) -> EventCounts:
    """Read a log of events and count them in declared bins and groups, for release.

    An event at time t falls into bin floor((t - start) / period). Events outside of the span, and of groups that are
    not declared, are left out, and bins and groups without events hold 0: neither the shape of the result nor its
    names depend on the events. Release its `counts` by :func:`release`; events with ids are read by
    :meth:`Events.read`.

    Parameters
    ----------
    log : path-like, DataFrame or Query
        A CSV file in UTF-8 with a header, plain or packed by gzip, bzip2 or zstd, or a Parquet file, told by their
        content; a data frame of pandas or polars, or anything else with Arrow's interface of streams; or a
        :class:`Query` on a database. All follow the same rules: a value counts as the text that a CSV file would have
        of it, with null and NaN as an empty one.
    span : Span
        In UTC where the times have a UTC offset or a zone (or are Unix times), of a local clock where they have none.
    groups : sequence of str
        Distinct names of the series, the rows of the result; ``"(missing)"`` for events without a group.
    time : str
        Column of times: of a type of times, or texts in ISO 8601 or RFC 2822, or Unix seconds or milliseconds.
        Fractions of a microsecond are cut off.
    by : str, optional
        Column that names the group of an event, of texts, bytes or whole numbers; without it all rows are one series,
        that of the only group.
    count : str, optional
        Column of whole numbers from 0 to 2**53; without it every row is one event.
    time_format : str, optional
        Format of the times, which are texts then, as in `datetime.datetime.strptime`.
    largest : int
        The most that a row may count: what the mechanism protects, its `max_change`, rounded down.
    seen : callable, optional
        Is called with where the rows fall, which is private, before an unsound one is refused.

    Returns
    -------
    EventCounts
        Its counts are of dtype int64, at most 2**53.

    Raises
    ------
    DataError
        If the log is unsound: unreadable, a column missing, a row ragged, a time, name or count unusable, or times with
        UTC offsets for a span without, or the other way round. The message says where, never what.
    ValueError
        For another kind of log, and groups that are no such names.

    Notes
    -----
    *Privacy.* A count changes by at most 1 (or by the event's whole number) when an event is added, and no other count
    changes: sums above 2**53 stay there. That a log is unsound does show. Its rows must be sound, whoever is in it.

    Examples
    --------
    >>> path = "examples/nyc_departures_2013.csv.gz"
    >>> span = Span.parse("2013-01-01", "2013-01-03", "1d")
    >>> log = count_events(path, span, ("LGA", "XYZ"), time="scheduled_departure", by="origin")
    >>> log.series, log.counts.tolist()
    (('LGA', 'XYZ'), [[240, 272], [0, 0]])
    """
    groups = check_names_of_groups(span, by, groups)
    check_counted_at_once(span, len(groups))
    rows = read_rows(log, span, groups, time=time, by=by, count=count, time_format=time_format, seen=seen)
    cells = rows.groups * span.n_bins + rows.bins
    weights = None if count is None else np.minimum(rows.weights, largest)
    # Float sums of whole numbers are exact up to 2**53, and never come back below it: the minimum is exact.
    sums = np.bincount(cells, weights, span.n_bins * len(groups))
    counts = np.minimum(sums, MAX_COUNT).astype(np.int64).reshape(len(groups), span.n_bins)
    return EventCounts(
        counts=validation.freeze(counts),
        series=tuple(groups),
        start=np.datetime64(span.start, "us"),
        period=np.timedelta64(span.period, "us"),
    )


def _refuse_weights(column: Column) -> NoReturn:
    must_hold = "whole numbers from 0 to 2**53, got something else"
    raise DataError(
        f"{column.label} must hold {must_hold} in {column.locate(np.isnan(parse_whole_numbers(column.texts)))}"
    )
