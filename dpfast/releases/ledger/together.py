"""Which entries add up for one person or one event, and in which windows of time.

Entries add up unless nobody can be in both. For guarantees per event that is known of releases by the same declared
columns: an event has one time and one group, and each release takes events of its own span and groups alone. For
guarantees per person it is known only of groups of one state that bounds persons, within one of its spans, where each
person is in one group; never of spans, as a person has events in many.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Sequence
from fractions import Fraction

from dpfast.privacy.composition import Loss
from dpfast.releases.ledger.entry import Entry

Together = tuple[Entry, ...]
_HOUR = 3_600_000_000
_FARTHEST_EAST, _FARTHEST_WEST = 14 * _HOUR, 12 * _HOUR  # of a clock, before UTC and behind it
_MOST = 256  # alternatives that are looked at; beyond them all entries add up


def alternatives(entries: Sequence[Entry]) -> list[Together]:
    """Return the sets of entries of one unit that one event, or one person, may be in; any other is part of one.

    Sets that cost the same stand there once.
    """
    classes: dict[object, list[Entry]] = defaultdict(list)
    for entry in entries:
        classes[_class_of(entry)].append(entry)
    result: list[Together] = [()]
    for key, members in classes.items():
        choices = [tuple(members)] if key is None else _distinct(_within_class(members))
        if len(result) * len(choices) > _MOST:
            choices = [tuple(members)]
        result = [known + choice for known in result for choice in choices]
    return result


def loss_of(together: Together) -> Loss:
    """Return what some entries cost together."""
    losses = [entry.loss for entry in together]
    return Loss(
        tuple(x for loss in losses for x in loss.shifts),
        tuple(x for loss in losses for x in loss.pure),
        tuple(x for loss in losses for x in loss.approximate),
    )


def windows(entries: Sequence[Entry], length: int) -> list[tuple[int | None, Together]]:
    """Return the windows of time, of so many microseconds, with the entries whose spans they touch.

    An entry without a span of time is in all of them. Of each window the first moment is given; None where no entry has
    a span. Any window's entries are all in one of these: a window can be moved on until the first of their spans is
    about to leave it, or, where all go on for ever, until all have begun. Windows are by the clock of the entries;
    where some are by UTC and some by a local clock, whose offset nobody has declared, the latter have any offset.
    """
    timeless = tuple(entry for entry in entries if entry.start is None)
    zones = {entry.clock[2] for entry in entries if entry.clock is not None}
    timed = [(entry, *_widen(entry, len(zones) > 1)) for entry in entries if entry.start is not None]
    moments = {end - 1 for _, _, end in timed if end is not None}
    moments |= {max(start for _, start, _ in timed)} if timed else set()
    result: list[tuple[int | None, Together]] = []
    for moment in sorted(moments):
        inside = (entry for entry, start, end in timed if start < moment + length and (end is None or moment < end))
        result.append((moment, (*timeless, *inside)))
    return result or [(None, timeless)]


def _widen(entry: Entry, mixed: bool) -> tuple[int, int | None]:
    """Return the span of time of an entry; among others by UTC, all that a local one may be."""
    start, end = entry.start or 0, entry.end
    if not mixed or entry.clock is None or entry.clock[2] == "UTC":
        return start, end
    return start - _FARTHEST_EAST, None if end is None else end + _FARTHEST_WEST


def _class_of(entry: Entry) -> object:
    """Return what entries must share to be told apart: a clock, or steps of one store; None where they add up."""
    if entry.unit == "person":
        one_group = entry.streams_per_person == 1 and entry.bounding is not None and entry.groups is not None
        return ("bounding", entry.bounding, entry.column) if one_group else None
    if not entry.is_single:
        return None
    return ("steps", entry.store) if entry.clock is None else ("clock", entry.clock)


def _within_class(members: list[Entry]) -> list[Together]:
    """Return the sets of members that share a moment, and a group of each column of groups."""
    if members[0].unit == "person":
        return _by_group(members)
    spans = [_span(entry) for entry in members]
    result = []
    for moment in {begin for begin, _ in spans}:
        there = [x for x, (begin, end) in zip(members, spans, strict=True) if begin <= moment and _before(moment, end)]
        result += _by_group(there)
    return result


def _span(entry: Entry) -> tuple[int, int | None]:
    """Return the span of time, or of steps where no time is declared."""
    if entry.clock is None or entry.start is None:
        return entry.first, None if entry.count is None else entry.first + entry.count
    return entry.start, entry.end


def _before(moment: int, end: int | None) -> bool:
    return end is None or moment < end


def _by_group(members: Sequence[Entry]) -> list[Together]:
    """Return the sets of members that share one group of each column: an event has one value in each of them."""
    everywhere = tuple(entry for entry in members if entry.column is None or entry.groups is None)
    columns: dict[str, list[Entry]] = defaultdict(list)
    for entry in members:
        if entry.column is not None and entry.groups is not None:
            columns[entry.column].append(entry)
    choices = [_distinct(_sharing_group(of_column)) for of_column in columns.values()]
    if _product(len(x) for x in choices) > _MOST:
        return [tuple(members)]
    return [everywhere + tuple(itertools.chain(*chosen)) for chosen in itertools.product(*choices)]


def _sharing_group(members: Sequence[Entry]) -> list[Together]:
    """Return the sets of members that have a group in common, each once; there may be a million groups."""
    of_group: dict[str, list[int]] = defaultdict(list)
    for i, entry in enumerate(members):
        for group in dict.fromkeys(entry.groups or ()):
            of_group[group].append(i)
    found = dict.fromkeys(map(tuple, of_group.values()))
    return [tuple(members[i] for i in x) for x in found] or [()]


def _distinct(sets: list[Together]) -> list[Together]:
    """Return one of all sets that cost the same, without those that are part of another."""
    by_cost: dict[tuple[tuple[Loss, Fraction], ...], Together] = {}
    for together in sets:
        cost = tuple(sorted(((entry.loss, entry.delta) for entry in together), key=repr))
        by_cost.setdefault(cost, together)
    kept = [frozenset(id(entry) for entry in x) for x in by_cost.values()]
    return [
        together for together, ids in zip(by_cost.values(), kept, strict=True) if not any(ids < other for other in kept)
    ]


def _product(sizes: Iterable[int]) -> int:
    result = 1
    for size in sizes:
        result *= size
    return result
