"""The protection of persons: from all events to those that are kept, by what the store remembers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpfast._support import validation
from dpfast._support.errors import ReleaseError
from dpfast.privacy.privacy import Privacy
from dpfast.releases.arbiters.private_files import check_apart
from dpfast.releases.integer.exact_base import ExactBase
from dpfast.releases.persons.bounding import Bounding, Chosen, Kept
from dpfast.releases.persons.declared_persons import Persons
from dpfast.releases.persons.person_bounds import PersonBounds
from dpfast.releases.persons.person_events import Events, largest_value
from dpfast.releases.persons.person_key import KeyFile, PersonKey
from dpfast.releases.store.declaration import Declaration
from dpfast.releases.store.earlier_releases import Earlier
from dpfast.releases.store.release_rows import PersonState
from dpfast.releases.store.release_store import ReleaseStore


class Bounded(NamedTuple):
    """Hold the kept events of some steps, and what is new of persons; all of it is private.

    Attributes
    ----------
    counts : array of int64, (streams, steps)
        Sums of the values of the kept events.
    n_dropped : int
        Events that were left out as their persons had others.
    change : PersonState
        For the store, in the transaction of the steps.
    last : tuple
        State, choice and key of the last span.
    """

    counts: NDArray[np.int64]
    n_dropped: int
    change: PersonState
    last: tuple[Bounding, Chosen | None, PersonKey]


class Protection:
    """Keep the bounding state of a store: what each person has contributed to the present span, by all releases.

    A span has ended when a step of a later one is published: then its persons are forgotten, its key is destroyed, and
    none of its steps is published again.

    Parameters
    ----------
    store : ReleaseStore
    persons : Persons
    bounds : PersonBounds
    largest : int
        What an event adds at most, on either side of zero.

    Attributes
    ----------
    bounds : PersonBounds

    Raises
    ------
    ReleaseError
        Where the store has other bounds, or none, or the key is not there.
    """

    def __init__(self, store: ReleaseStore, persons: Persons, bounds: PersonBounds, largest: int) -> None:
        self.bounds, self._largest = bounds, largest
        place = persons.key_file(store.path)
        check_apart("person_key", place, store.published)
        self._file = KeyFile(place, store.path, store.id)
        state = store.persons()
        if state is None and store.releases():
            raise ReleaseError(
                f"persons must not be declared for the store {store.path}, whose releases protect events: what persons "
                "have contributed to them was not bounded. Begin another store (--new-store, or other folders)"
            )
        if state is not None:
            Declaration(state.terms).hold(bounds.terms(), store.path, whole=True)
        self._span = None if state is None else state.span
        self._key = self._file.begin() if state is None else self._file.read(state.key_check)
        kept = () if state is None else (Kept(*x) for x in state.kept)
        self._bounding = Bounding(bounds, kept)

    @property
    def first_step(self) -> int:
        """Return the step at which the present span begins: what was before is forgotten."""
        return (self._span or 0) * (self.bounds.span_steps or 0)

    @property
    def beginning(self) -> PersonState:
        """Say what a store enters with a release that has no steps so far."""
        return PersonState(self.bounds.terms(), self._span or 0, self._key.check, ())

    def bound(self, events: Events, first: int, decided: Sequence[range]) -> Bounded:
        """Decide which events are kept, at the steps from `first` on; nothing changes before it is settled.

        Parameters
        ----------
        events : Events
        first : int
        decided : sequence of range
            Steps that are published: nothing is decided there again, whatever the events are now.

        Raises
        ------
        ReleaseError
            For steps of a span that has ended.
        """
        begin = self.bounds.span_of(first)
        now = begin if self._span is None else self._span
        end = self.bounds.span_of(first + events.n_steps - 1) if events.n_steps else now
        if begin < now and events.n_steps:
            raise ReleaseError(
                f"first must be at least {self.first_step}, where the present span of persons "
                f"begins, got {first}: the span before has ended, and what persons contributed to it is forgotten; "
                "read what was published"
            )
        rows, listed = events.in_order()
        bounding, key = self._begin_last(end, now)
        taken: list[bool] = []
        choice: Chosen | None = None
        moved = ((first + step, stream, person) for step, stream, person in listed)
        for span, of_span in groupby(moved, key=lambda event: self.bounds.span_of(event[0])):
            given = self._bounding if span == now else bounding if span == end else Bounding(self.bounds)
            known: dict[bytes, bytes] = {}
            secret = self._key if span == now else key
            named = (
                (step, stream, known.get(person) or known.setdefault(person, secret.pseudonym(person)))
                for step, stream, person in of_span
            )
            made = given.choose(named, lambda step: any(step in steps for steps in decided))
            taken += made.taken
            choice = made if given is bounding else choice
        kept = () if choice is None else tuple(choice.kept)
        change = PersonState(self.bounds.terms(), end, key.check, kept, forget=end > now)
        mask = np.array(taken, bool)
        counts = events.sum_rows(rows[mask], self._largest)
        return Bounded(counts, int(np.sum(~mask)), change, (bounding, choice, key))

    def _begin_last(self, span: int, now: int) -> tuple[Bounding, PersonKey]:
        """Return the state and the key of the last span of some steps: new ones, where it is not the present one."""
        if span == now:
            return self._bounding, self._key
        return Bounding(self.bounds), self._key if self._span is None else self._file.prepare()

    def settle(self, bounded: Bounded) -> None:
        """Take over what the store has entered; the key of a span that has ended is destroyed."""
        bounding, choice, key = bounded.last
        if choice is not None:
            bounding.settle(choice)
        if key is not self._key:
            self._file.put()
        self._bounding, self._key, self._span = bounding, key, bounded.change.span


def open_protection(store: ReleaseStore, persons: Persons | None, plan: ExactBase) -> Protection | None:
    """Return the protection of persons in a store for the bounds of a mechanism; None where events are protected.

    Raises
    ------
    ReleaseError
        Where the store does not protect what the release is to protect.
    """
    if persons is not None:
        privacy = plan.mechanism.privacy
        _check_enforceable(privacy)
        bounds = PersonBounds.of(privacy, plan.inputs, persons.span)
        return Protection(store, persons, bounds, largest_value(privacy.max_change))
    if store.persons() is not None:
        raise ReleaseError(
            f"persons must be declared for the store {store.path}, whose releases protect persons: give persons=, or "
            "--person"
        )
    return None


def _check_enforceable(privacy: Privacy) -> None:
    """Refuse what is promised of several streams where keeping some events of a person does not make it true."""
    if privacy.adjacency == "each_input_same_time":
        raise ReleaseError(
            "persons must not be declared where the adjacency is 'each_input_same_time', as nothing keeps the events "
            "of a person to the same step of all streams: design it for 'each_input', or for 'one_input'"
        )
    if isinstance(privacy.max_change, tuple):
        raise ReleaseError(
            f"persons must not be declared where max_change is one for each stream, got {privacy.max_change}: events "
            "are cut to one size in all streams; design it with one number"
        )


def published_steps(releases: Sequence[Earlier]) -> list[range]:
    """Return the steps of releases, at which nothing is decided again."""
    return [range(entry.first, entry.first + entry.count) for entry in releases]


def check_events(name: str, u: object, persons: Persons | None) -> Events | None:
    """Return a table of events where persons are protected; None where they are not.

    Raises
    ------
    ValueError
        Where one is given without the other.
    """
    if persons is None:
        if isinstance(u, Events):
            raise ValueError(
                f"{name} must be an array where persons are not declared, got Events: give persons=dp.Persons() too"
            )
        return None
    validation.instance("persons", persons, Persons, "a Persons, or None")
    if not isinstance(u, Events):
        must_be = "a dp.Events, which says whose each event is, where persons are declared"
        raise ValueError(f"{name} must be {must_be}, got {type(u).__name__}")
    return u


def bound_afresh(events: Events, first: int, bounds: PersonBounds, largest: int) -> tuple[NDArray[np.int64], int]:
    """Return the counts of the events that a new store would keep, and how many it would not; both are private."""
    rows, listed = events.in_order()
    moved = ((first + step, stream, person) for step, stream, person in listed)
    taken: list[bool] = []
    for _, of_span in groupby(moved, key=lambda event: bounds.span_of(event[0])):
        taken += Bounding(bounds).choose(of_span, lambda step: False).taken
    mask = np.array(taken, bool)
    return events.sum_rows(rows[mask], largest), int(np.sum(~mask))
