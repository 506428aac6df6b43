"""Shards: streams in fixed sets, each with a store of its own, which any process or machine may publish."""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dpfast._support import validation
from dpfast._support.atomic_files import replace_file
from dpfast.mechanisms.mechanism_kinds import AnyMechanism
from dpfast.releases.arbiters import private_files
from dpfast.releases.arbiters.place import Place, PlaceLike, Postgres, check_place
from dpfast.releases.composed_releases import declared_bounds
from dpfast.releases.engines.declared_set import hold_declaration, mark_begun
from dpfast.releases.engines.open_shard import Shard
from dpfast.releases.engines.pieces import Piece, shard_name
from dpfast.releases.estimates_layout import Layout
from dpfast.releases.integer.exact_base import ExactBase
from dpfast.releases.integer.exact_forms import as_exact
from dpfast.releases.integer.inputs import Inputs
from dpfast.releases.integer.last_block import End, LastBlockChoice
from dpfast.releases.ledger.ledger import Ledger, as_ledger
from dpfast.releases.persons.declared_persons import Persons
from dpfast.releases.persons.person_events import Events, largest_value
from dpfast.releases.store.release_store import ReleaseStore
from dpfast.releases.stream import Stream
from dpfast.releases.stream_opening import check_history, open_in_store
from dpfast.signals.events.declared_counts import check_names_of_groups
from dpfast.signals.events.declared_span import Span

_MOST = 10_000


@dataclass(frozen=True)
class ColumnNames:
    """Declare which columns of a log of events hold what.

    Attributes
    ----------
    time : str
        Times with a UTC offset, or Unix times.
    by : str or None
        The group of an event; without it all are of the only group.
    count : str or None
        Whole numbers; without it every row is one event.
    person : str or None
        Ids of persons, where they are protected.
    time_format : str or None
        As in `datetime.datetime.strptime`.
    """

    time: str
    by: str | None = None
    count: str | None = None
    person: str | None = None
    time_format: str | None = None


class Shards:
    """Declare streams that are published in shards: fixed sets of them, each with a store, by whatever engine delivers.

    A group of the declared ones is a stream, a bin of the span a step. Events become *pieces* (:func:`cut_pieces` at
    the end of a file, :func:`close_bins` on a clock), an engine carries the pieces, and :meth:`open` publishes them.
    The engine owes each piece at least once, and those of a shard in order; whatever it delivers again is published
    once. The first opening declares the whole set: what differs later is refused.

    Parameters
    ----------
    mechanism : Mechanism
        With a causal receiver.
    place : path-like or Postgres
        A folder with a store for each shard; or a place in a database, whose name is the beginning of theirs.
    inputs : Inputs
        What is declared of every stream; `n_streams` is the number of all groups, and `streams_per_person` holds in
        each shard.
    span : Span
        All bins, in UTC.
    groups : sequence of str
        Names of the streams.
    columns : ColumnNames
        The columns of the log that hold the times, the groups, and what else is read.
    published : path-like
        The folder of what is public: the estimates, the guarantee and the witness of each shard.
    n_shards : int
        The number of shards. Each has neighbouring groups, as equal in number as can be: the first shards have one
        more. 1 for a mechanism of several streams, whose inputs the groups are.
    persons : Persons, optional
        As for :func:`open_stream`; its span is in steps. Where there is no key file, keys lie beside the stores.
    ledger, witness
        As for :func:`open_stream`. A witness that is a folder gets one for each shard.
    replay_steps, keep_steps : int
        As for :func:`open_stream`: an engine that delivers more than `replay_steps` again is answered without a look
        at the inputs, and one that delivers more than `keep_steps` again is refused.
    last_block : {"drop", "publish"}, optional
        As for :func:`open_stream`; the last step is that of the span.
    delete_pieces : bool
        Delete the file of a piece once it is published and lies `replay_steps` behind; the last one stays. Otherwise
        they are yours to delete, by the same rule: they are private.
    tolerance : float
        As in :func:`exact`.

    Raises
    ------
    ValueError
        For arguments of another kind.
    ReleaseError
        For a smoother, a design that depends on private data, and a private place in the folder of what is public.

    Notes
    -----
    *Privacy.* Per event the guarantee of a shard is that of all of them, as no event can be in two. Persons are bounded
    in each shard alone, so whoever has events in all shards is in `streams_per_person` streams of each: each shard's
    guarantee says so, and the costs of shards add up, as a ledger does. A bin is closed by a public clock or by the end
    of a declared file, never by what came: an event of the far future closes nothing. Every declared stream has an
    input in every bin, zero where nothing came, and rows of other keys are left out.
    """

    def __init__(
        self,
        mechanism: AnyMechanism | ExactBase,
        place: PlaceLike,
        inputs: Inputs,
        *,
        span: Span,
        groups: Sequence[str],
        columns: ColumnNames,
        published: str | os.PathLike[str],
        n_shards: int = 1,
        persons: Persons | None = None,
        ledger: Ledger | PlaceLike | None = None,
        witness: PlaceLike | None = None,
        replay_steps: int = 0,
        keep_steps: int | None = None,
        last_block: LastBlockChoice | None = None,
        delete_pieces: bool = False,
        tolerance: float = 1e-3,
    ) -> None:
        validation.instance("span", span, Span, "a Span")
        validation.instance("inputs", inputs, Inputs, "an Inputs, which says what the data are")
        validation.instance("columns", columns, ColumnNames, "a ColumnNames")
        if not span.utc:
            raise ValueError("span must be in UTC, got one of a local clock: give start and end with Z")
        if (persons is None) != (columns.person is None):
            raise ValueError("persons must be given with columns.person, and only then: whose the events are")
        self.span, self.columns = span, columns
        self.groups = check_names_of_groups(span, columns.by, groups)
        self.n_shards = validation.integer("n_shards", n_shards, 1, min(len(self.groups), _MOST))
        if inputs.n_streams != len(self.groups):
            must_have = f"n_streams={len(self.groups)}, one for each group"
            raise ValueError(f"inputs must have {must_have}, got {inputs.n_streams}")
        self._design, self._tolerance = mechanism, tolerance
        if isinstance(mechanism, ExactBase):
            self._design, self._tolerance = mechanism.mechanism, mechanism.tolerance
        self._inputs, self._end = inputs, End(last_block, span.n_bins if last_block == "publish" else None)
        self._plan = as_exact(mechanism, inputs, tolerance, *self._end)
        if self._plan.mixes_streams and self.n_shards > 1:
            raise ValueError(
                f"n_shards must be 1 for a mechanism of several streams, whose outputs may be of all groups, got "
                f"{self.n_shards}: leave it out, or take a mechanism of one stream for each group by itself"
            )
        self._plan.live(1)  # refuses a smoother
        self._plan.check_steps(span.n_bins)
        self.place, self.published = check_place("place", place), validation.path("published", published).absolute()
        self._replay_steps, self._keep_steps = check_history(replay_steps, keep_steps)
        self._persons, self._ledger, self._witness = persons, ledger, witness
        validation.instance("delete_pieces", delete_pieces, bool, "True or False")
        self._delete_pieces = delete_pieces
        self._check_places()

    def _check_places(self) -> None:
        """Refuse places that cannot be, and private ones in the folder of what is public."""
        self._place_of(self.n_shards - 1)
        if self._witness is not None:
            check_place("witness", self._witness)
        private = {"place": self.place}
        if self._ledger is not None:
            private["ledger"] = (
                self._ledger.path if isinstance(self._ledger, Ledger) else check_place("ledger", self._ledger)
            )
        if self._persons is not None:
            validation.instance("persons", self._persons, Persons, "a Persons, or None")
            private["key of persons"] = self._persons.key_file(self.place)
            largest_value(self.max_change)
        for name, path in private.items():
            if isinstance(path, Path):
                private_files.check_apart(name, path, self.published)

    def __repr__(self) -> str:
        return f"<Shards: {len(self.groups)} streams in {self.n_shards}, {self.span.n_bins} steps>"

    @property
    def max_change(self) -> float:
        """Tell what an event may change, as the mechanism protects it: of several streams the least of them."""
        return float(np.min(self._plan.mechanism.privacy.max_change))

    def groups_of(self, shard: int) -> tuple[str, ...]:
        """Return the groups of a shard, in order."""
        starts = self._starts()
        number = validation.integer("shard", shard, 0, self.n_shards - 1)
        return self.groups[starts[number] : starts[number + 1]]

    def shard_of(self, group: str) -> int:
        """Return the shard of a declared group.

        Raises
        ------
        ValueError
            For a group that is not declared: it has no stream, and gets none.
        """
        if group not in self.groups:
            raise ValueError("group must be a declared one, got another: rows of other keys are left out")
        return int(np.searchsorted(self._starts(), self.groups.index(group), "right")) - 1

    def _starts(self) -> list[int]:
        """Return the first group of each shard, and the number of all."""
        each, more = divmod(len(self.groups), self.n_shards)
        return [i * each + min(i, more) for i in range(self.n_shards + 1)]

    def split(self, first: int, inputs: Any) -> list[Piece]:
        """Return the pieces of steps of all groups, one a shard.

        Parameters
        ----------
        first : int
            The first step of the inputs.
        inputs : array of int64 (groups, n), or Events
            Of every stream of the plan and every step: zero where nothing came.
        """
        starts = self._starts()
        bounds = itertools.pairwise(starts)
        parts = [inputs.of_streams(a, b) if isinstance(inputs, Events) else inputs[a:b] for a, b in bounds]
        return [Piece(shard, first, part) for shard, part in enumerate(parts)]

    def open(self, shard: int, *, epoch: int | None = None, adopt: bool = False) -> Shard:
        """Open a shard, to publish its pieces: begin it, or go on where any process has left it.

        Parameters
        ----------
        shard : int
            Its number, from 0 on.
        epoch : int, optional
            As for :func:`open_stream`.
        adopt : bool
            As for :func:`open_stream`, and of the declaration of all shards.

        Returns
        -------
        Shard

        Raises
        ------
        ReleaseError
            As :func:`open_stream`; and where its store was begun with other declarations.
        """
        groups, name = self.groups_of(shard), shard_name(shard)
        validation.instance("adopt", adopt, bool, "True or False")
        account, at = as_ledger(self._ledger), self._place_of(shard)
        declared = self._declare_all(account)
        has_begun = hold_declaration(self.place, self.published, declared, shard, at, adopt=adopt)
        published, inputs = self.published / name, self._inputs_of(len(groups))
        witness = Path(self._witness) / name if isinstance(self._witness, str | os.PathLike) else self._witness
        store = ReleaseStore.open(at, published, adopt=adopt, epoch=epoch, witness=witness)
        stream = open_in_store(
            store,
            self._design,
            inputs,
            self._tolerance,
            self._declare(shard, self._plan_of(len(groups))),
            adopt=adopt,
            persons=self._persons_of(name),
            ledger=account,
            end=self._end,
            keep_steps=self._keep_steps,
            replay_steps=self._replay_steps,
        )
        try:
            if not has_begun:
                mark_begun(self.place, shard)
            with private_files.waiting_for_folder(published):
                replace_file(published / "guarantee-of-all-shards.txt", self._state_all(shard, stream))
            layout = Layout.of(self._plan_of(len(groups)), self.span, groups)
            deleted_behind = self._replay_steps if self._delete_pieces else None
            return Shard(stream, shard, layout, published, self.cut, deleted_behind)
        except BaseException:
            stream.suspend()
            raise

    def _place_of(self, shard: int) -> Place:
        """Return where the store of a shard is."""
        return self.place.beside(f"-{shard:04}") if isinstance(self.place, Postgres) else self.place / shard_name(shard)

    def _declare_all(self, ledger: Ledger | None) -> dict[str, Any]:
        """Return what decides which stream is in which store, what is published of it, and where that is entered."""
        return {
            **self._plan.demand,
            **self.cut,
            "persons": None if self._persons is None else {"span": self._persons.span},
            "ledger": None if ledger is None else ledger.id,
        }

    @property
    def cut(self) -> dict[str, Any]:
        """Say all that decides which event is in which piece, and where, as JSON holds it."""
        return {
            "n_shards": self.n_shards,
            "groups": list(self.groups),
            "span": asdict(self.span),
            "columns": asdict(self.columns),
            "max_change": self.max_change,
        }

    def _state_all(self, shard: int, stream: Stream) -> str:
        """Say what all shards together promise."""
        alone, n = stream.guarantee, self.n_shards
        if self._plan.mixes_streams:
            return f"{alone}\n"  # of the one shard that there is
        events = self._plan.mechanism.privacy.max_events * self._inputs.streams_per_person
        if self._persons is None and events == 1:
            return (
                f"{n} shards of the same declaration. An event is in one stream, and so in one shard: for an event all "
                f"shards together promise what each one does.\n\n{alone}\n"
            )
        sizes = [len(self.groups_of(shard)) for shard in range(n)]
        most = sum(self._inputs_of(size).streams_per_person for size in sizes)
        losses = {size: self._plan_of(size).guarantee.loss for size in set(sizes)}
        others = (losses[size] for i, size in enumerate(sizes) if i != shard)
        loss = sum(others, alone.loss)
        delta = loss.stated_delta(alone.delta)
        bounded = "is declared to be bounded" if self._persons is None else "is bounded"
        return (
            f"{n} shards of the same declaration. A person {bounded} in each of them alone, and may be in {most} "
            f"streams of all shards together: epsilon {_above(loss.epsilon(delta))} at delta {_above(delta)} for "
            f"somebody in all of them, within one span. For somebody in one shard alone:\n\n{alone}\n"
        )

    def _plan_of(self, n_streams: int) -> ExactBase:
        """Return what runs in a shard of so many streams."""
        return as_exact(self._design, self._inputs_of(n_streams), self._tolerance, *self._end)

    def _inputs_of(self, n_streams: int) -> Inputs:
        most = min(self._inputs.streams_per_person, n_streams)
        return replace(self._inputs, n_streams=n_streams, streams_per_person=most)

    def _persons_of(self, name: str) -> Persons | None:
        """Return what is declared of persons in a shard; its key is its own, as it goes when a span of it ends."""
        if self._persons is None or self._persons.key is None:
            return self._persons
        key = Path(self._persons.key)
        return Persons(self._persons.span, key.with_name(f"{key.name}-{name}"))

    def _declare(self, shard: int, plan: ExactBase) -> Mapping[str, Any]:
        """Return what the store of a shard holds all that is published to."""
        span, columns = self.span, self.columns
        return {
            **declared_bounds(plan),
            "time_column": columns.time,
            "time_format": columns.time_format,
            "zone": "UTC",
            "period_us": span.period,
            "origin": str(np.datetime64(span.start, "us")),
            "count_column": columns.count,
            "group_column": columns.by,
            "groups": list(self.groups_of(shard)),
            "last_step": span.n_bins - 1,
            "grace_us": None,
            "person_column": columns.person,
            "shard": shard,
            "n_shards": self.n_shards,
        }


def _above(value: float) -> str:
    """Return a number in six digits, none of them too small."""
    return f"{value * (1 + 1e-5):.6g}"
