"""Events that come as lines: each line is an event or nothing, whatever the lines around it."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

import numpy as np

from dpfast._support.errors import DataError
from dpfast.signals.events.csv_columns import find_columns
from dpfast.signals.events.declared_counts import Rows, encode_person, group_indices, parse_whole_numbers
from dpfast.signals.events.declared_span import Span
from dpfast.signals.events.historical_counts import MAX_COUNT
from dpfast.signals.events.timestamps import parse_timestamps

_BLOCK = 1 << 16
_LONGEST = 1 << 16  # bytes of a line


class ByteSource(Protocol):
    """An unbuffered binary file to read events from, as a pipe is."""

    def read(self, size: int, /) -> bytes | None:
        """Return what is there, as soon as there is something; nothing at the end."""


class Event(NamedTuple):
    """An event, which adds something to one count.

    Attributes
    ----------
    bin, group, weight : int
    time : int
        Microseconds since 1970, where it is of a person.
    person : bytes
        Id of that person, where one is asked for.
    """

    bin: int
    group: int
    weight: int
    time: int = 0
    person: bytes = b""


@dataclass(frozen=True)
class Lines:
    """Rules by which lines of CSV become events: one line is one event; a quoted field does not go on in the next line.

    A line is left out, without a word, where it is no CSV in UTF-8, has another number of fields than the header, is
    longer than 64 KiB, has no id where persons are asked for, or holds a count that is no whole number from 0 to 2**53,
    a time without a UTC offset that is no Unix time, or a time or a group that is not declared.

    Attributes
    ----------
    span : Span
        In UTC.
    groups : tuple of str
    time, by, count, time_format, largest
        As for :func:`dpfast.signals.events.declared_counts.count_events`.
    person : str, optional
        Column of the ids of persons.

    Notes
    -----
    *Privacy.* An error, a warning or a count of what was left out would tell of a single event. And no line can spoil
    another: an open quote ends with its line, and a time is read from its text alone.
    """

    span: Span
    groups: tuple[str, ...]
    time: str
    by: str | None
    count: str | None
    time_format: str | None
    largest: int = MAX_COUNT
    person: str | None = None

    def header(self, line: bytes, name: str = "standard input") -> tuple[str, ...]:
        """Return the names of all columns, from the first line of what has a name for messages.

        Raises
        ------
        DataError
            If one that is needed is missing, or there twice.
        """
        row = _fields(line.removeprefix(b"\xef\xbb\xbf"))
        if row is None:
            raise DataError(f"{name} must begin with a line of column names, as CSV in UTF-8, got none: add one")
        find_columns(name, row, [x for x in (self.time, self.by, self.count, self.person) if x is not None])
        return tuple(row)

    def events(
        self, header: Sequence[str], lines: Sequence[bytes], seen: Callable[[Rows], None] | None = None
    ) -> list[Event]:
        """Return the events in lines below a header; `seen` is called with where the lines fall, which is private."""
        written = [line for line in lines if line.strip()]
        rows = [row for row in map(_fields, written) if row is not None and len(row) == len(header)]

        def column(name: str) -> list[str]:
            return [row[header.index(name)] for row in rows]

        moments = parse_timestamps(column(self.time), self.time_format)
        weights = np.ones(len(rows)) if self.count is None else parse_whole_numbers(column(self.count))
        usable = moments.utc & ~np.isnat(moments.times) & ~np.isnan(weights)
        bins = self.span.bins(moments.times.astype(np.int64))
        groups = np.zeros_like(bins) if self.by is None else group_indices(column(self.by), self.groups)
        inside = usable & (bins >= 0) & (groups >= 0)
        ids = None if self.person is None else [encode_person(text) for text in column(self.person)]
        named = inside if ids is None else inside & np.array([x is not None for x in ids], bool)
        if seen is not None:
            none = Rows(len(written) - len(rows), 0, 0, (0,) * len(self.groups))
            found = none + Rows.classify(usable, bins, groups, len(self.groups))
            seen(replace(found, unnamed=int(np.sum(inside & ~named))))
        weights = np.minimum(weights, self.largest)
        parts = [part[named].astype(np.int64).tolist() for part in (bins, groups, weights)]
        if ids is not None:
            parts += [moments.times.astype(np.int64)[named].tolist(), [ids[i] for i in np.flatnonzero(named).tolist()]]
        return [Event(*parts) for parts in zip(*parts, strict=True)]


def _fields(line: bytes) -> list[str] | None:
    if len(line) > _LONGEST:
        return None
    try:
        return next(csv.reader([line.decode()], strict=True), None)
    except (UnicodeDecodeError, csv.Error):
        return None


def read_blocks(source: ByteSource) -> Iterator[list[bytes]]:
    """Yield whole lines, as soon as they are there; of those that are too long, a part that is too long too."""
    rest = b""
    while block := source.read(_BLOCK):
        *lines, rest = (rest + block).split(b"\n")
        rest = rest[: _LONGEST + 1]  # all that it takes to know that it is too long
        yield lines
    yield [rest] if rest else []
