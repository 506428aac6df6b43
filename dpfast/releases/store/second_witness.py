"""A second witness of a store, elsewhere: it tells where a store and its first witness were set back together."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from dpfast._support import checksums, postgres
from dpfast._support.errors import ReleaseError
from dpfast.releases.arbiters.place import Place, Postgres
from dpfast.releases.arbiters.postgres_session import PostgresSession
from dpfast.releases.store.witness import Attestation, Witness

_NAME = "witnesses"
_TABLE = """CREATE TABLE witnesses (
    store TEXT PRIMARY KEY, position INTEGER NOT NULL, steps INTEGER NOT NULL, sha256 TEXT NOT NULL,
    seal INTEGER NOT NULL
)"""


class AnyWitness(Protocol):
    """Something that knows how far a store has come."""

    @property
    def place(self) -> object:
        """The place where it is, for messages."""

    def read(self) -> Attestation | None:
        """Return what it says; None where it says nothing."""

    def write(self, attestation: Attestation) -> None:
        """Replace what it says, unless it knows more already."""


class PostgresWitness:
    """Rows of a table in PostgreSQL, one a store: any number of stores may have the place as their second witness.

    Parameters
    ----------
    place : Postgres
    store : str
        The id of the store.
    reading : bool
        Whether nothing will be told.
    """

    def __init__(self, place: Postgres, store: str, *, reading: bool = False) -> None:
        self.place, self._store, self._is_made = place, store, False
        try:
            self._session = PostgresSession(place, "the second witness", reading=reading)
        except postgres.Error as error:
            raise self._unreachable_error(error) from None

    def read(self) -> Attestation | None:
        """Return what it says of the store; None where it says nothing."""
        try:
            if not self._session.has_table(_NAME):
                return None
            rows = self._session.execute("SELECT * FROM witnesses WHERE store = ?", (self._store,)).fetchall()
        except postgres.Error as error:
            raise self._unreachable_error(error) from None
        if not all(map(checksums.is_sealed, rows)):
            raise ReleaseError(f"the second witness {self.place} is damaged: put back what it said")
        return Attestation(*rows[0][:-1]) if rows else None

    def write(self, attestation: Attestation) -> None:
        """Replace what it says of the store, unless it knows more already."""
        row = checksums.seal_row(*attestation)
        try:
            if not self._is_made:
                self._session.create(lambda: self._session.execute(_TABLE), _NAME)
                self._is_made = True
            with self._session.transaction():
                self._session.put(_NAME, row, condition="WHERE witnesses.position <= EXCLUDED.position")
        except postgres.Error as error:
            raise self._unreachable_error(error) from None

    def close(self) -> None:
        """End the session."""
        self._session.close()

    def _unreachable_error(self, error: Exception) -> ReleaseError:
        return ReleaseError(
            f"the second witness {self.place} cannot be read or written ({error}): put that right and open the store "
            "again, which tells how far it came"
        )


def open_second_witness(place: Place, store: str, *, reading: bool = False) -> Witness | PostgresWitness:
    """Return the second witness of a store at a place; it may be one that will be told nothing."""
    if isinstance(place, Postgres):
        return PostgresWitness(place, store, reading=reading)
    return Witness(Path(place).absolute())
