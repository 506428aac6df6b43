"""Transactions of a store: what is published is on the disk, with its mark and its witness, or not at all."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping

from dpfast._support.errors import ReleaseError
from dpfast.releases.arbiters.arbiter import Arbiter
from dpfast.releases.arbiters.store_errors import unwritten_error
from dpfast.releases.store.declaration import Declaration
from dpfast.releases.store.guarantee_files import state_guarantees
from dpfast.releases.store.release_rows import PersonState, Records
from dpfast.releases.store.second_witness import PostgresWitness
from dpfast.releases.store.spent_entries import SpentEntries
from dpfast.releases.store.witness import NO_FILES, Attestation, Witness


class StoreTransactions:
    """Open the database of a store, whose every transaction ends with its witness, or leaves the store closed.

    Parameters
    ----------
    arbiter : Arbiter
    witness : Witness
    """

    _second: Witness | PostgresWitness | None = None

    def __init__(self, arbiter: Arbiter, witness: Witness) -> None:
        self.path, self.published = arbiter.place, witness.path.parent
        self._arbiter, self._witness = arbiter, witness
        self._records, self.spent = Records(arbiter), SpentEntries(arbiter)
        self._process, self._usable = os.getpid(), True
        self._new: Declaration | None = None
        self._attestation: Attestation

    def close(self) -> None:
        """Let the database go, without deleted inputs; do nothing a second time, nor in a forked child."""
        try:
            if self._usable and self.owned:
                self._arbiter.forget_deleted()
        except self._arbiter.errors as error:
            raise self._arbiter.unforgotten_error(error) from None
        finally:
            self.abandon()

    def abandon(self) -> bool:
        """Let the database go as it is, so that it can be opened again; return False where that was done before."""
        usable, self._usable = self._usable and self.owned, False
        if self.owned:
            self._arbiter.close()
            if isinstance(self._second, PostgresWitness):
                self._second.close()
        return usable

    @property
    def owned(self) -> bool:
        """Tell whether the store is of this process, and not of one that was forked into this."""
        return self._process == os.getpid()

    def check_process(self) -> None:
        """Refuse a forked child."""
        if not self.owned:
            raise ReleaseError(
                f"the store {self.path} is of process {self._process}, and this one is a fork of it: open stores in "
                "the process that publishes"
            )

    def check_usable(self) -> None:
        """Refuse a forked child, and a store that is closed."""
        self.check_process()
        if not self._usable:
            raise ReleaseError(f"the store {self.path} was closed, or interrupted while it was written: open it again")

    def forget_deleted(self) -> None:
        """Let go of deleted inputs, as far as the database can."""
        with self._closing_if_interrupted():
            self._arbiter.forget_deleted()

    def damage_error(self) -> ReleaseError:
        """Return the error for a store that does not hold what was written, or what another writer has changed."""
        return self._arbiter.damage_error()

    @contextlib.contextmanager
    def _publication(self, *, new: bool, persons: PersonState | None) -> Iterator[None]:
        """Write a transaction, then what a new release promises and the witness: a crash between them loses nothing."""
        with self._closing_if_interrupted():
            declaration = self._new
            with self._arbiter.transaction():
                yield
                if declaration is not None:
                    self._records.declare(declaration)
                if persons is not None:
                    self._records.keep_persons(persons)
                self.spent.write()
            if persons is not None and persons.forget:
                self._arbiter.forget_deleted()
            self._new = None
            self._tell_witnesses(promised=new or declaration is not None)

    def _tell_witnesses(self, *, promised: bool) -> None:
        """Tell how far the store has come, before anything is returned: what is not told can be taken back unseen.

        Where something new is promised, the files that say so go into the public folder, before the witness.
        """
        self._witness.write(self._attestation, self._state_guarantees() if promised else NO_FILES)
        if self._second is not None:
            self._second.write(self._attestation)

    def _state_guarantees(self) -> Mapping[str, str]:
        """Say what is promised, in files by their names; in none where nothing was released."""
        if not (releases := self._records.releases()):
            return NO_FILES
        texts = state_guarantees(releases, self._records.declaration())
        return dict(zip(("guarantee.txt", "guarantee.json"), texts, strict=True))

    @contextlib.contextmanager
    def _closing_if_interrupted(self) -> Iterator[None]:
        """Leave the store closed behind what is not done to its end."""
        self.check_usable()
        self._usable = False
        try:
            yield
        except BaseException as error:
            self.abandon()
            if isinstance(error, self._arbiter.errors):
                raise unwritten_error(self.path, error) from None
            raise
        self._usable = True
