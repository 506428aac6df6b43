"""Pieces are closed by the end of a declared file, or by a public clock; never by what comes."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dpfast._support import validation
from dpfast._support.errors import DataError
from dpfast.releases.arbiters import private_files
from dpfast.releases.engines.declared_set import hold_pieces
from dpfast.releases.engines.pieces import list_pieces, parse_path, shard_name, write_piece
from dpfast.releases.engines.shards import Shards
from dpfast.releases.feed.clock import Clock, Feed, SystemClock
from dpfast.releases.feed.event_lines import ByteSource, Event, Lines, read_blocks
from dpfast.releases.persons.person_events import Events, largest_value
from dpfast.signals.events.declared_counts import Rows, read_rows
from dpfast.signals.events.historical_counts import MAX_COUNT
from dpfast.signals.events.packed_files import PARQUET, open_content
from dpfast.signals.events.periods import parse_period

PathLike = str | os.PathLike[str]
Seen = Callable[[Rows], None]


def cut_pieces(
    shards: Shards, log: PathLike, folder: PathLike, *, first: int, n_steps: int, seen: Seen | None = None
) -> list[Path]:
    """Cut a file of events into pieces: its end closes the declared steps, whatever it holds.

    Use it where events come as files that are whole, such as one a day. Each row of the file is an event or nothing, as
    with ``dpfast release --follow``: one of another step, of a key that is not declared, or that cannot be read, is
    left out, and changes nothing else.

    Parameters
    ----------
    shards : Shards
        The ones whose streams the steps are for.
    log : path-like
        CSV in UTF-8 with a header, plain or packed by gzip, bzip2 or zstd; or Parquet.
    folder : path-like
        Private; pieces are written below it, one a shard, each as a whole.
    first, n_steps : int
        The first of the steps that the end of the file closes, and how many these are. They are declared, not read off
        the file.
    seen : callable, optional
        Is called with where rows fall, which is private.

    Returns
    -------
    list of Path
        One for each shard.

    Raises
    ------
    DataError
        Where a column is missing; where pieces of these steps are there with other inputs, or cut otherwise; where the
        folder has pieces of other shards.
    """
    lines, there = _lines_of(shards), _folder_of(shards, folder)
    first = validation.integer("first", first, 0, shards.span.n_bins - 1)
    n_steps = validation.integer("n_steps", n_steps, 1, shards.span.n_bins - first)
    events = _read_events(lines, validation.path("log", log), seen)
    inside = [event for event in events if first <= event.bin < first + n_steps]
    pieces = shards.split(first, _gather(shards, inside, first, n_steps))
    return [write_piece(there, piece) for piece in pieces]


def close_bins(
    shards: Shards,
    source: ByteSource,
    folder: PathLike,
    *,
    grace: str = "1s",
    clock: Clock | None = None,
    seen: Seen | None = None,
) -> Iterator[int]:
    """Close bins on a public clock: each at its end and a grace, whatever came; yield the step of each.

    Events that come later are left out. Run it in one process: what it has closed is on the disk before an engine sees
    it, and stays as it is. Begun again it goes on behind the last bin that it has closed; bins that ended while nothing
    ran are closed as zeros.

    Parameters
    ----------
    shards : Shards
        The ones whose streams the steps are for.
    source : binary file without a buffer
        CSV in UTF-8 with a header, as a pipe gives it; its end closes nothing.
    folder : path-like
        Private; a piece of each bin and shard is written below it.
    grace : str
        How long after the end of a bin its events may still come, such as "5s".
    clock : Clock, optional
        By default the system's.
    seen : callable, optional
        Is called with where rows fall, which is private.

    Raises
    ------
    DataError
        Where another process closes bins there; where pieces have a gap; where a column is missing.
    """
    lines, there = _lines_of(shards), _folder_of(shards, folder)
    microseconds = int(parse_period(grace, "grace").astype(np.int64))
    if not callable(getattr(source, "read", None)):
        raise validation.fail("source", "a binary file, such as sys.stdin.buffer.raw", source)
    ends = [_end_of(there, i) for i in range(shards.n_shards)]
    feed = Feed(
        source, lines, first=min(ends), grace=microseconds, clock=SystemClock() if clock is None else clock, seen=seen
    )
    return _close_bins(shards, feed, there, ends)


def _close_bins(shards: Shards, feed: Feed, folder: Path, ends: Sequence[int]) -> Iterator[int]:
    """Write the pieces of bins as they end, but for what a crash has left ahead of other shards."""
    try:
        let_go = private_files.hold_folder(folder)
    except BlockingIOError:
        raise DataError(f"{folder} must have one closer of bins at a time, got another one: end it") from None
    try:
        for step, inputs in feed.bins():
            for piece in shards.split(step, inputs):
                if (rest := piece.behind(ends[piece.shard])).first < rest.end:
                    write_piece(folder, rest)
            yield step
    finally:
        let_go()


def _end_of(folder: Path, shard: int) -> int:
    """Return the step behind the pieces of a shard; refuse a gap between them, which nobody would close."""
    spans = [parse_path(path)[1:] for path in list_pieces(folder, shard)]
    for (_, end), (first, _) in itertools.pairwise(spans):
        if first != end:
            raise DataError(
                f"{folder / shard_name(shard)} must have pieces one behind the other, got none from step {end} to "
                f"{first - 1}: close them first, with cut_pieces"
            )
    return spans[-1][1] if spans else 0


def _read_events(lines: Lines, file: Path, seen: Seen | None) -> list[Event]:
    events: list[Event] = []
    with open_content(file) as (kind, content):
        if kind == PARQUET:
            return _read_parquet(lines, file, seen)
        header: tuple[str, ...] | None = None
        for block in read_blocks(_AsItComes(content)):
            if header is None and block:
                header = lines.header(block.pop(0), str(file))
            events += lines.events(header or (), block, seen)
    if header is None:
        raise DataError(f"{file} must begin with a line of column names, as CSV in UTF-8, got an empty file: add one")
    return events


def _read_parquet(lines: Lines, file: Path, seen: Seen | None) -> list[Event]:
    """Return the events of a file without lines; a row that cannot be read is left out, as in CSV."""
    rows = read_rows(
        file,
        lines.span,
        lines.groups,
        time=lines.time,
        by=lines.by,
        count=lines.count,
        time_format=lines.time_format,
        person=lines.person,
        seen=seen,
        whole=False,
    )
    weights = np.minimum(rows.weights, lines.largest).tolist()
    parts = zip(rows.bins.tolist(), rows.groups.tolist(), weights, strict=True)
    persons = rows.persons or [b""] * len(weights)
    return [
        Event(*part, order, person)
        for order, (part, person) in enumerate(zip(parts, persons, strict=True))
        if person is not None
    ]


class _AsItComes:
    """A file that has been opened, read as a pipe is."""

    def __init__(self, content: Any) -> None:
        self._content = content

    def read(self, size: int, /) -> bytes:
        return bytes(self._content.read(size))


def _folder_of(shards: Shards, folder: PathLike) -> Path:
    """Return the folder of pieces, which is private."""
    there = validation.path("folder", folder)
    private_files.check_apart("folder", there, shards.published)
    if isinstance(shards.place, Path) and shards.place.resolve() in (there.resolve(), *there.resolve().parents):
        raise validation.fail("folder", "another one than that of the stores, and not in it", str(there))
    hold_pieces(there, shards.cut)
    return there


def _lines_of(shards: Shards) -> Lines:
    validation.instance("shards", shards, Shards, "a Shards, which declares what the events are of")
    columns = shards.columns
    return Lines(
        shards.span,
        shards.groups,
        columns.time,
        columns.by,
        columns.count,
        columns.time_format,
        largest_value(shards.max_change),
        columns.person,
    )


def _gather(shards: Shards, events: Sequence[Event], first: int, n_steps: int) -> Any:
    """Return the inputs of all groups: counts, or events in the order of their times."""
    if shards.columns.person is not None:
        listed = sorted(events, key=lambda event: event.time)
        return Events(
            step=np.array([x.bin - first for x in listed], np.int64),
            stream=np.array([x.group for x in listed], np.int64),
            value=np.array([x.weight for x in listed], np.int64),
            person=[x.person for x in listed],
            n_steps=n_steps,
            n_streams=len(shards.groups),
        )
    counts = np.zeros((len(shards.groups), n_steps), np.int64)
    for event in events:
        now = int(counts[event.group, event.bin - first]) + event.weight
        counts[event.group, event.bin - first] = min(now, MAX_COUNT)
    return counts
