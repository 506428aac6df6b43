"""PostgreSQL as arbiter: a schema of a database, which any machine may take over."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

from dpfast._support import postgres
from dpfast._support.errors import ReleaseError
from dpfast._support.postgres import Refusal
from dpfast.releases.arbiters.arbiter import Arbiter, Begin, Fetched
from dpfast.releases.arbiters.place import Postgres
from dpfast.releases.arbiters.postgres_session import PostgresSession
from dpfast.releases.arbiters.store_errors import damage_error, fenced_error, missing_store_error


class PostgresArbiter(Arbiter):
    """The tables of a store in a database of PostgreSQL. :meth:`open` opens them, and begins them where there are none.

    Parameters
    ----------
    session : PostgresSession
        One that reads sees everything as it was at one moment.
    """

    errors = (postgres.Error, OSError)

    def __init__(self, session: PostgresSession) -> None:
        super().__init__(session.place)
        self._session, self._opening = session, False

    @classmethod
    def open(cls, place: Postgres, begin: Begin, *, witnessed: bool, reading: bool) -> PostgresArbiter:
        """Open the tables of a place, or make them where nothing was before.

        Parameters
        ----------
        place : Postgres
        begin : callable
            Enters the tables of a new store, and where it is.
        witnessed : bool
            Whether a witness of the store is there: then the tables must be too.
        reading : bool
            They must be there, and are not written into.
        """
        arbiter = cls(PostgresSession(place, "the store", reading=reading))
        try:
            if not arbiter.has_table("meta"):
                if reading or witnessed:
                    raise missing_store_error(place, witnessed=witnessed)
                arbiter._session.create(lambda: begin(arbiter, arbiter.locate()), "meta")
        except BaseException:
            arbiter.close()
            raise
        return arbiter

    @contextlib.contextmanager
    def opening(self) -> Iterator[None]:
        """Look at the store, and take it over, in one transaction: nobody writes in between."""
        if self.is_reading:  # until it is closed
            self._session.begin_reading()
            yield
            return
        with self._transaction():
            self._opening = True
            self._read_epoch()
            yield
            self._opening = False

    def execute(self, statement: str, values: Sequence[Any] = ()) -> Fetched:
        """Execute a statement."""
        fetched: Fetched = self._session.execute(statement, values)
        return fetched

    def stream(self, query: str) -> Iterator[tuple[Any, ...]]:
        """Return the rows of a query, one after the other."""
        return self._session.stream(query)

    def put(self, table: str, row: Sequence[Any]) -> None:
        """Enter a row, in place of the one with its key if there is one."""
        self._session.put(table, row)

    def has_table(self, name: str) -> bool:
        """Tell whether there is a table."""
        return self._session.has_table(name)

    @property
    def is_reading(self) -> bool:
        """Tell whether everything is as it was at one moment."""
        return self._session.reading

    def explaining(self) -> AbstractContextManager[None]:
        """Turn errors of PostgreSQL into refusals that say what to do, while a store is read."""
        return self._explaining()

    @contextlib.contextmanager
    def _explaining(self) -> Iterator[None]:
        try:
            yield
        except postgres.Error as error:
            if error.why is Refusal.DAMAGE:
                raise self.damage_error() from None
            what = f"cannot read the store {self.place}: {error}; put that right and open it again"
            raise ReleaseError(what) from None

    def damage_error(self) -> ReleaseError:
        """Return the error for a database that does not hold what was written, or what another writer has changed."""
        error = self._session.explain_damage(damage_error(f"the store {self.place}"))
        with contextlib.suppress(postgres.Error):  # in a transaction that has failed
            rows = self.execute("SELECT epoch FROM writers").fetchall()
            if self.epoch is not None and rows and rows[0][0] > self.epoch:
                return fenced_error(self.place, self.epoch, rows[0][0])
        return error

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        if self._opening:  # all of the opening is one
            yield
            return
        with self._session.transaction():
            yield

    def _read_epoch(self) -> list[tuple[Any, ...]]:
        return self.execute("SELECT * FROM writers FOR UPDATE").fetchall()  # nobody else takes over before the end

    def take_over(self, wanted: int | None) -> None:
        """Take an epoch, and enter it at once: the writer before may be alive, anywhere."""
        super().take_over(wanted)
        self._enter_epoch()

    def locate(self) -> tuple[str, str]:
        """Return the server, the database and the schema, and where it is in words."""
        return self._session.locate()

    def check_newest(self) -> None:
        """Leave it to the witness: a database cannot tell by itself."""

    @property
    def is_settled(self) -> bool:
        """Nothing is kept beside the tables."""
        return True

    def forget_deleted(self) -> None:
        """Leave it to the server, whose log, replicas and backups are within the private boundary."""

    def close(self) -> None:
        """End the session."""
        self._session.close()

    def unforgotten_error(self, cause: Exception) -> ReleaseError:
        """Return the error for a session that could not be ended."""
        return ReleaseError(f"the session of the store {self.place} could not be ended: {cause}")
