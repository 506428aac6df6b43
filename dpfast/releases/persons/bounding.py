"""The bounding of persons in one span: which events of each are kept. Nobody's events decide about another's."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable
from typing import NamedTuple

from dpfast.releases.persons.person_bounds import PersonBounds

_Record = dict[int, list[int]]  # of a person: the steps of kept events by stream, in order


class Kept(NamedTuple):
    """Note a kept event: that a person has one in a stream at a step, and no more.

    Attributes
    ----------
    person : bytes
    stream, step : int
    """

    person: bytes
    stream: int
    step: int


class Chosen(NamedTuple):
    """Hold what is taken of some events.

    Attributes
    ----------
    taken : list of bool
        Of each event, in the order in which they came.
    kept : list of Kept
        What is new in the state.
    records : dict
        Of the persons who have something new.
    """

    taken: list[bool]
    kept: list[Kept]
    records: dict[bytes, _Record]


class Bounding:
    """Hold the kept events of all persons in one span, and decide about further ones.

    Parameters
    ----------
    bounds : PersonBounds
    kept : iterable of Kept
        Those of the span so far.

    Notes
    -----
    *Privacy.* What is kept of one person depends on the events of that person alone, and on nothing else. So all kept
    events with a person and those without differ by the kept ones of that person: at most m, b apart, in each of at
    most k streams.
    """

    def __init__(self, bounds: PersonBounds, kept: Iterable[Kept] = ()) -> None:
        self._bounds = bounds
        self._records: dict[bytes, _Record] = {}
        for person, stream, step in kept:
            insort(self._records.setdefault(person, {}).setdefault(stream, []), step)

    def choose(self, events: Iterable[tuple[int, int, bytes]], is_decided: Callable[[int], bool]) -> Chosen:
        """Decide about events, in this order; the state changes only when the choice is settled.

        At a step that is decided, as it was published, nothing is decided again: of a person's events one is taken
        where one was kept, and no other.

        Parameters
        ----------
        events : iterable of (step, stream, person)
        is_decided : callable
            Tells whether a step is.
        """
        choice, repeated = Chosen([], [], {}), set()
        for step, stream, person in events:
            record = choice.records.get(person) or self._records.get(person, {})
            event = Kept(person, stream, step)
            if is_decided(step):
                taken = event not in repeated and step in record.get(stream, ())
                repeated.add(event)
            elif taken := self._may_keep(record, stream, step):
                if person not in choice.records:
                    record = choice.records[person] = {x: list(steps) for x, steps in record.items()}
                insort(record.setdefault(stream, []), step)
                choice.kept.append(event)
            choice.taken.append(taken)
        return choice

    def _may_keep(self, record: _Record, stream: int, step: int) -> bool:
        """Tell whether an event may be kept beside those that a person has."""
        steps, bounds = record.get(stream), self._bounds
        if steps is None:
            return len(record) < bounds.streams_per_person
        at = bisect_left(steps, step)
        near = steps[max(at - 1, 0) : at + 1]  # the last before, and the next from here on
        return len(steps) < bounds.max_events and all(abs(x - step) >= bounds.min_separation for x in near)

    def settle(self, choice: Chosen) -> None:
        """Take over a choice, once it is published."""
        self._records.update(choice.records)
