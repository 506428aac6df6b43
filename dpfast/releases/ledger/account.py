"""A store and its ledger: each is a witness of the other."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dpfast._support.errors import ReleaseError
from dpfast._support.safe_rounding import float_above
from dpfast.releases.composed_releases import load_plans
from dpfast.releases.guarantee import Guarantee
from dpfast.releases.integer.exact_base import ExactBase
from dpfast.releases.ledger.entry import Entry
from dpfast.releases.ledger.ledger import Attested, Ledger
from dpfast.releases.persons.person_bounds import PersonBounds, streams_reached
from dpfast.releases.persons.person_spans import PersonSpans
from dpfast.releases.store.earlier_releases import Earlier
from dpfast.releases.store.release_store import ReleaseStore
from dpfast.releases.store.spent_entries import Remembered


class Account:
    """Enter what a store spends in the ledger that it is given.

    Parameters
    ----------
    store : ReleaseStore
    ledger : Ledger or None
        None is refused where the store has entered releases in one.

    Raises
    ------
    ReleaseError
        Where the ledger is not the one that the store remembers, or older than that.
    """

    def __init__(self, store: ReleaseStore, ledger: Ledger | None) -> None:
        self._store, self._ledger = store, ledger
        remembered = store.spent.remembered()
        if ledger is None and remembered is not None:
            raise ReleaseError(
                f"ledger must be given: the store {store.path} enters its releases in the ledger {remembered.path} "
                "(--ledger of the command)"
            )
        self._seen, self._reached = None, 0
        if remembered is not None and ledger is not None:
            self._seen = Attested(remembered.ledger, remembered.entries, remembered.chain)
            ledger.check([], self._seen, list(store.spent.releases()))
            ledger.confirm(list(store.spent.releases()))

    def check(self, guarantee: Guarantee, first: int, count: int, *, name: str | None = None) -> None:
        """Refuse a release that would go beyond the cap; enter nothing."""
        if self._ledger is not None:
            entries = [*self._missing(), self._entry(guarantee, first, count, "batch", name)]
            self._ledger.check(entries, self._seen, list(self._store.spent.releases()))

    def enter(
        self, guarantee: Guarantee, first: int, count: int | None, *, kind: str = "batch", name: str | None = None
    ) -> None:
        """Enter what a release will cost, and what the store has published without a ledger before.

        When this returns it is spent. The store learns of it with its next publication, in the same transaction; if
        that never comes, the entry is found by the same release, and no other.

        Parameters
        ----------
        guarantee : Guarantee
            Of the release alone, composed with no other.
        first : int
        count : int or None
            Of steps; None for a stream, whose declared last step counts, if there is one.
        kind : str
            "batch" or "live".
        name : str, optional
        """
        if self._ledger is not None:
            self._enter([*self._missing(), self._entry(guarantee, first, count, kind, name)])

    def enter_published(self) -> None:
        """Enter what the store has published without a ledger, as a stream that is given one for the first time."""
        if self._ledger is not None and (missing := self._missing()):
            self._enter(missing)

    def _enter(self, entries: Sequence[Entry]) -> None:
        assert self._ledger is not None
        numbers, attested = self._ledger.enter(entries, self._seen, list(self._store.spent.releases()))
        remembered = Remembered(attested.ledger, str(self._ledger.path), attested.entries, attested.chain)
        releases = [x.release for x in entries]
        said = self._ledger.statement().summary
        self._store.spent.remember(remembered, dict(zip(numbers, releases, strict=True)), said)
        self._seen = attested

    def reach(self, guarantee: Guarantee, n_spans: int) -> None:
        """Enter a stream without a declared end over so many spans of persons, before the first step of the last.

        The entry is that of a person over all these spans together, and stands for those before it.
        """
        spans = guarantee.persons
        if self._ledger is None or spans is None or spans.n_spans is not None or spans.span_steps is None:
            return
        if n_spans > self._reached:
            entry = make_entry(Home.of(self._store), guarantee, 1, 0, None, kind="live", n_spans=n_spans)
            lines = self._ledger.lines
            entered = [x for x in lines if x.entry.series == entry.series and x.entry.size >= n_spans]
            known = self._store.spent.releases()
            if not any(line.number in known for line in entered):
                self._enter([entered[-1].entry if entered else entry])  # an interrupted push may have entered it
            self._reached = n_spans

    def confirm(self) -> None:
        """Tell the ledger that a release is published; where that fails, as by a crash, the next opening tells it."""
        if self._ledger is not None:
            with contextlib.suppress(ReleaseError):  # it would pass for a release that was not published
                self._ledger.confirm(list(self._store.spent.releases()))

    def _entry(self, guarantee: Guarantee, first: int, count: int | None, kind: str, name: str | None) -> Entry:
        number = len(self._store.releases()) + 1
        return make_entry(Home.of(self._store), guarantee, number, first, count, kind=kind, name=name)

    def _missing(self) -> list[Entry]:
        """Return the entries of what the store has published, and no ledger knows of."""
        known = set(self._store.spent.releases().values())
        left = [x for x in self._store.releases() if x.id not in known]
        plans = load_plans(left)
        return [self._entry_of(x, plans[x.id]) for x in left]

    def _entry_of(self, release: Earlier, plan: ExactBase) -> Entry:
        """Return the entry of a release that the store has."""
        home, guarantee, state = Home.of(self._store), plan.guarantee, self._store.persons()
        count, n_spans = release.count if release.closed else home.length, 1
        if state is not None:
            bounds = PersonBounds(**state.terms)
            spans = PersonSpans.of(bounds, plan.memory, release.first, count)
            guarantee, n_spans = replace(guarantee, persons=spans), bounds.count_spans(release.first, release.count)
        kind, name = release.kind, release.name
        return make_entry(home, guarantee, release.id, release.first, count, kind=kind, name=name, n_spans=n_spans)


def catch_up(store: ReleaseStore, ledger: Ledger) -> None:
    """Enter and confirm in a ledger what a store has published, where it has not heard of it so far.

    It has not where the releases were made without it, or where a crash or a full disk came between.
    """
    Account(store, ledger).enter_published()


class Home(NamedTuple):
    """Name the store that an entry is of: its id, its path, and the fields that it declares."""

    id: str
    path: str
    fields: Mapping[str, Any]

    @classmethod
    def of(cls, store: ReleaseStore) -> Home:
        """Return what an open store is and declares."""
        declaration = store.declaration
        return cls(store.id, str(store.path), {} if declaration is None else declaration.fields)

    @property
    def length(self) -> int | None:
        """Return the declared steps of a stream; None without a declared end."""
        last = self.fields.get("last_step")
        return None if last is None else int(last) + 1


def check_new_store(
    ledger: Ledger | None, path: Path, declared: Mapping[str, Any], guarantee: Guarantee, *, first: int, count: int
) -> None:
    """Refuse the first release of a store that is not there yet, where it would go beyond the cap; enter nothing."""
    if ledger is not None:
        ledger.check([make_entry(Home("", str(path), declared), guarantee, 1, first, count)], None, [])


def make_entry(
    home: Home,
    guarantee: Guarantee,
    number: int,
    first: int,
    count: int | None,
    *,
    kind: str = "batch",
    name: str | None = None,
    n_spans: int = 1,
) -> Entry:
    """Return the entry of a release.

    Parameters
    ----------
    home : Home
        Its store.
    guarantee : Guarantee
        Of the release alone, composed with no other.
    number : int
        Of the release in its store.
    first : int
    count : int or None
        Of steps; None for a stream, whose declared last step counts, if there is one.
    kind : str
        "batch" or "live".
    name : str, optional
    n_spans : int
        Spans of persons that a stream without a declared end has steps in so far.
    """
    fields, spans, series = home.fields, guarantee.persons, None
    count = home.length if count is None else count
    loss, size = guarantee.loss, 1
    if spans is not None:
        size = max(1, n_spans if spans.n_spans is None else spans.n_spans)
        loss = spans.over(loss, size)
        if spans.n_spans is None and spans.span_steps is not None:
            series, count = f"{home.id}/{kind}", size * spans.span_steps
    start, end = _span(fields, first, count)
    column, groups = fields.get("group_column"), fields.get("groups")
    names = None if column is None or groups is None else tuple(groups)
    return Entry(
        store=home.id,
        path=home.path,
        release=number,
        name=name,
        kind=kind,
        unit="event" if spans is None else "person",
        max_events=guarantee.privacy.max_events,
        streams_per_person=streams_reached(guarantee.privacy, guarantee.inputs),
        first=first,
        count=count,
        start=start,
        end=end,
        clock=None if start is None else _clock(fields),
        column=column,
        groups=names,
        bounding=None,
        size=size,
        series=series,
        delta=Fraction(max(guarantee.delta, float_above(loss.zcdp()[1]))),
        loss=loss,
    )


def _clock(fields: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return what tells whether times are of one column and one clock; JSON tells a format from none."""
    return fields["time_column"], json.dumps(fields.get("time_format")), fields["zone"]


def _span(fields: Mapping[str, Any], first: int, count: int | None) -> tuple[int | None, int | None]:
    """Return the declared span of time of some steps, in microseconds since 1970; nothing where none is declared."""
    needed = (fields.get(name) for name in ("time_column", "zone", "period_us", "origin"))
    if any(value is None for value in needed):
        return None, None
    period = fields["period_us"]
    start = int(np.datetime64(fields["origin"], "us").astype(np.int64)) + first * period
    return start, None if count is None else start + count * period
