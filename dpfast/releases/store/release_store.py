"""The store of a release keeps what was published, so that no step is ever published twice. It knows no mechanisms."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any

from dpfast._support import validation
from dpfast._support.errors import ReleaseError
from dpfast._support.validation import Array
from dpfast.releases.arbiters.opened_arbiter import ERRORS, open_arbiter, settle_place
from dpfast.releases.arbiters.place import Place, PlaceLike, check_place
from dpfast.releases.arbiters.sqlite_arbiter import NAME
from dpfast.releases.arbiters.store_errors import unopenable_error
from dpfast.releases.store import migration, opening_checks, release_schema
from dpfast.releases.store.declaration import Declaration
from dpfast.releases.store.earlier_releases import Earlier, StorableGuarantee, list_releases
from dpfast.releases.store.push_limits import MAX_BATCH, MAX_STEP, check_push, cut_rows
from dpfast.releases.store.release_rows import Integers, Memory, PartState, PersonState
from dpfast.releases.store.second_witness import open_second_witness
from dpfast.releases.store.store_transactions import StoreTransactions
from dpfast.releases.store.witness import Attestation, Witness, default_folder

__all__ = ["NAME", "Earlier", "ReleaseStore"]
PUSHES_OF_LOG = 64  # after which SQLite's log, where deleted inputs stay, is emptied


class ReleaseStore(StoreTransactions):
    """A database of what was published, and its witness in a public folder.

    It is opened by :meth:`open`, and is a context manager that closes. Whatever interrupts a method that writes, Ctrl-C
    too, leaves the store closed, as what is in memory and what is on the disk may then differ: open it again. It is for
    one process, and refuses a forked child; and for one thread at a time.

    Notes
    -----
    *Privacy.* The database holds inputs, in clear, as long as a filter needs them; one in PostgreSQL is as private as
    :class:`Postgres` says. In a folder it is SQLite's: folder 0700, file 0600, on a disk
    that deserves it. They are deleted with the push after which they are not needed, and overwritten with zeros; older
    pages stay in SQLite's log (``store.sqlite-wal``) until that is overwritten with zeros too and emptied: every 64
    pushes, and at every opening and closing. This holds for the blocks of the file, and no further: a solid-state disk,
    a file system that copies on write or journals data, and snapshots may keep what was there before.
    """

    @classmethod
    def open(
        cls,
        path: PlaceLike,
        published: str | os.PathLike[str] | None = None,
        *,
        adopt: bool = False,
        epoch: int | None = None,
        witness: PlaceLike | None = None,
        reading: bool = False,
    ) -> ReleaseStore:
        """Open a store, or begin one where there is none.

        Parameters
        ----------
        path : path-like or Postgres
            A folder for its owner alone, made with mode 0700 where it is missing; or a place in a database.
        published : path-like, optional
            The folder of what is public, with the witness; where none is given, beside the store, its name with
            "-published" ("published" in `path`, where a version before put the witness there). Keep it out of the
            backups of the store: only a witness that is newer tells for sure that a store is an old copy.
        adopt : bool
            Go on with a copy, or with a store that was moved or written over, after the original is gone for good.
        epoch : int, optional
            Of this writer, higher than that of all before; by default the next one.
        witness : path-like or Postgres, optional
            A second witness, elsewhere: it tells where store and published folder were set back together. A store that
            has one is not written without it; where it is given to read, it must know the store.
        reading : bool
            Nothing will be published: whoever writes goes on to.

        Raises
        ------
        ReleaseError
            Where the store is in use, open to others, damaged, copied, written over or behind its witness; the message
            says what to do.
        """
        validation.instance("adopt", adopt, bool, "True or False")
        if epoch is not None:
            epoch = validation.integer("epoch", epoch, 1, MAX_STEP)
        given = check_place("path", path)
        second = None if witness is None else check_place("witness", witness)
        public = None if published is None else validation.path("published", published)
        try:
            place = settle_place(given, public)
            first = Witness(default_folder(place) if public is None else public.absolute())
            arbiter = open_arbiter(place, release_schema.begin, first.path, reading=reading)
            store = None
            try:
                with arbiter.explaining():
                    seen = first.read()
                    with arbiter.opening():
                        store = cls(arbiter, first)
                        store._have_second_witness(second, reading)
                        store._check_and_upgrade(seen, adopt, reading)
                        if not reading:
                            arbiter.take_over(epoch)
                    if arbiter.is_reading:
                        store._wait_until_told()
                    else:
                        store._renew_public()
                    return store
            except BaseException:
                if store is not None:
                    store.abandon()
                arbiter.close()
                raise
        except ERRORS as error:
            raise unopenable_error(given, error) from None

    def __enter__(self) -> ReleaseStore:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "open" if self._usable else "closed"
        return f"ReleaseStore({str(self.path)!r}, {self._attestation.position} pushes, {state})"

    # --- opening ----------------------------------------------------------------------------------

    def _have_second_witness(self, place: Place | None, reading: bool) -> None:
        """Open the second witness, of a store that has one, or gets one now."""
        opening_checks.check_second_witness(self.path, self._records.second_witness(), place, reading=reading)
        if place is not None:
            self._second = open_second_witness(place, self.id, reading=self._arbiter.is_reading)

    def _check_and_upgrade(self, seen: Attestation | None, adopt: bool, reading: bool) -> None:
        arbiter, here = self._arbiter, self._arbiter.locate()
        opening_checks.check_place(self.path, self._records, here, adopt=adopt)
        said = [opening_checks.Said(self._witness.place, seen, needed=False)]
        known = self._records.second_witness()
        if self._second is not None:
            words = f"{self._second.place} (the second)"
            said.append(opening_checks.Said(words, self._second.read(), needed=reading or known is not None))
        self._attestation = opening_checks.attest_last_push(self.path, self._records, said)
        if not adopt:
            arbiter.check_newest()
        new_witness = self._second is not None and not reading and known != str(self._second.place)
        if new_witness and self._second is not None:  # first told, then known: else a crash would make it missing
            self._second.write(self._attestation)
        if (
            (adopt and not arbiter.is_reading)
            or self._records.version != release_schema.FORMAT
            or not arbiter.is_settled
            or new_witness
        ):
            with arbiter.transaction(settle=True):
                if self._records.version != release_schema.FORMAT:
                    migration.upgrade(self._records, self.published)
                if new_witness and self._second is not None:
                    self._records.keep_second_witness(str(self._second.place))
                self._records.move(here)

    def _wait_until_told(self) -> None:
        witnesses = [self._witness] if self._second is None else [self._witness, self._second]
        opening_checks.wait_until_told(self.path, self._attestation, witnesses)

    def _renew_public(self) -> None:
        """Write what a crash may have left behind."""
        self._tell_witnesses(promised=True)
        self._arbiter.forget_deleted()

    # --- reading ----------------------------------------------------------------------------------

    def releases(self) -> list[Earlier]:
        """Return all releases, in the order in which they began."""
        self.check_usable()
        return self._records.releases()

    @property
    def declaration(self) -> Declaration | None:
        """The declaration of the store, or that of the next steps; None where nothing is declared, as in Python."""
        self.check_usable()
        return self._new or self._records.declaration()

    @property
    def id(self) -> str:
        """Return the id of the store."""
        return self._records.store_id

    def persons(self) -> PersonState | None:
        """Return what the store knows of persons in the present span; None where it protects events."""
        self.check_usable()
        return self._records.persons()

    @property
    def unchecked(self) -> tuple[str, ...]:
        """Declared fields that are the operator's word, or of which nobody knows anything."""
        declaration = self.declaration
        return () if declaration is None else (*declaration.unknown, *declaration.unchecked)

    def find_overlapping(self, first: int, count: int) -> list[Earlier]:
        """Return the releases with inputs of some of these steps; a stream that may go on has all from its first."""
        return [entry for entry in self.releases() if entry.overlaps(first, count)]

    def check_released(self, first: int, count: int, *, compose: bool) -> list[Earlier]:
        """Return :meth:`find_overlapping`, with which a further release composes; refuse it without `compose`."""
        earlier = self.find_overlapping(first, count)
        if earlier and not compose:
            raise ReleaseError(
                f"steps from {first} on were released already (release {earlier[0].id} of the store): "
                "dp.read_release gives what was published; or pass compose=True for a guarantee that covers both"
            )
        return earlier

    def memory(self, release: int) -> Memory:
        """Return what a stream needs to go on."""
        self.check_usable()
        return self._records.memory(release)

    def inputs(self, release: int, first: int, n: int) -> Integers:
        """Return stored inputs (n_streams, n) of a stream."""
        self.check_usable()
        return self._records.inputs(release, first, n)

    def receivers(self, release: int) -> Iterator[PartState]:
        """Yield the stored states of parts of the receiver of a stream."""
        self.check_usable()
        return self._records.receivers(release)

    def first_kept(self, release: int) -> int:
        """Return the first step of a release that was not pruned."""
        self.check_usable()
        return self._records.first_kept(release)

    def length(self, release: int) -> int:
        """Return how many steps of a release are published, with those of declared zeros that flush the filters."""
        self.check_usable()
        return self._records.length(release)

    def read(self, release: int, first: int, count: int, *, estimates: bool = True) -> tuple[Integers, Array]:
        """Return what was published of some steps: v (rows, count), and the estimate of those that have one."""
        self.check_usable()
        return self._records.read(release, first, count, estimates=estimates)

    # --- writing ----------------------------------------------------------------------------------

    def declare(self, given: Mapping[str, Any], *, adopt: bool = False) -> None:
        """Hold all that is published from now on to a declaration.

        The declaration of an empty store is entered in the transaction of the first steps, or never; and so is, with
        the next steps, what the operator says of releases that nobody declared.

        Parameters
        ----------
        given : mapping
            All fields of it.
        adopt : bool
            Take the operator's word for what nobody knows of the releases that there are.

        Raises
        ------
        ReleaseError
            Where the store has another declaration, naming what differs; and for releases that nobody declared.
        """
        self.check_usable()
        self._new = migration.agree_declaration(
            self.path, self._records.declaration(), self.releases(), given, adopt=adopt
        )

    def hold(self, bounds: Mapping[str, Any]) -> None:
        """Refuse bounds that differ from what is declared, where something is."""
        if (declaration := self.declaration) is not None:
            declaration.hold(bounds, self.path, whole=False)

    def begin_live(
        self,
        configuration: Mapping[str, Any],
        guarantee: StorableGuarantee,
        n_streams: int,
        *,
        persons: PersonState | None = None,
    ) -> int:
        """Begin a stream at step 0, in a store without other releases, and return its id."""
        others = self.releases()
        if others:
            raise ReleaseError(
                f"the store {self.path} has {list_releases(others)} already, and a stream would publish the same steps "
                "again: give it a store of its own, with data that were never published"
            )
        with self._publication(new=True, persons=persons):
            return self._records.begin("live", configuration, guarantee, n_streams, 0)

    def append(
        self,
        release: int,
        first: int,
        v: Integers,
        estimate: Array,
        *,
        x: Integers,
        memory: int,
        receivers: Sequence[PartState],
        last: bool = False,
        persons: PersonState | None = None,
        prune_before: int = 0,
    ) -> None:
        """Publish the next steps of a stream: all of them are in the store when this returns, and the witness knows.

        Parameters
        ----------
        release, first : int
        v, estimate : array (rows, n)
        x : int64 array (n_streams, n)
            Their inputs.
        memory : int
            So many inputs are kept for the next steps, older ones deleted.
        receivers : sequence of PartState
            States of parts of the receiver behind these steps; others go on from what they have.
        last : bool
            The stream is over: the steps only flush it, their inputs are declared zeros, and none are kept.
        persons : PersonState, optional
            What is new of persons.
        prune_before : int
            What was published at earlier steps is deleted, in whole pushes; a chain over all of it is kept.
        """
        position = first + v.shape[-1]
        with self._publication(new=False, persons=persons):
            if position > first:
                self._attestation = self._records.push(self._attestation, release, first, v, estimate)
            self._records.remember(release, position, x, 0 if last else memory)
            self._records.progress(release, position, first if last else position, closed=last)
            if last:
                self._records.forget_receivers(release)
            else:
                self._records.keep_receivers(release, receivers)
            if prune_before > 0:
                self._records.prune(release, prune_before)
        if self._attestation.position % PUSHES_OF_LOG == 0:
            self.forget_deleted()

    def enter_batch(
        self,
        configuration: Mapping[str, Any],
        guarantee: StorableGuarantee,
        first: int,
        privatized: Integers,
        estimate: Array,
        *,
        n_streams: int | None = None,
        compose: bool,
        name: str | None = None,
        persons: PersonState | None = None,
    ) -> int:
        """Publish a release that is made at once, in one transaction: no release is spent in part.

        Parameters
        ----------
        configuration : mapping
            Of the mechanism: public, and of what JSON can hold.
        guarantee : Guarantee
        first : int
            The step of the first input.
        privatized : int64 array (rows, n + lag)
        estimate : array (rows, n)
            n is the number of steps whose inputs are published.
        n_streams : int, optional
            Of inputs; by default as many as estimates have rows.
        compose : bool
            Publish steps that an earlier release of the store published: the guarantees then compose.
        name : str, optional
            Of the release.
        persons : PersonState, optional
            What is new of persons.

        Returns
        -------
        int
            The id of the release.

        Raises
        ------
        ReleaseError
            For steps of an earlier release without `compose`.
        """
        count, n_steps = estimate.shape[1], privatized.shape[-1]
        first = check_push(first, math.prod(privatized.shape[:-1]), n_steps, MAX_BATCH)
        self.check_released(first, count, compose=compose)
        with self._publication(new=True, persons=persons):
            release = self._records.begin("batch", configuration, guarantee, n_streams or len(estimate), first)
            if name is not None:
                self._records.name(release, name)
            for steps in cut_rows(math.prod(privatized.shape[:-1]), n_steps):
                row = first + steps.start, privatized[..., steps], estimate[:, steps]
                self._attestation = self._records.push(self._attestation, release, *row)
            self._records.progress(release, first + n_steps, count, closed=True)
        return release
