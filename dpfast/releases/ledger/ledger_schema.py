"""A ledger in PostgreSQL: stores on any machine enter into it."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from dpfast._support import checksums, postgres
from dpfast._support.errors import ReleaseError
from dpfast._support.postgres import Refusal
from dpfast.releases.arbiters.place import Postgres
from dpfast.releases.arbiters.postgres_session import PostgresSession
from dpfast.releases.ledger.ledger_database import FORMAT, SCHEMA, LedgerDatabase, Meta
from dpfast.releases.ledger.ledger_errors import copied_error, damage_error, existing_error, missing_error

T = TypeVar("T")
_TABLE = "entries"  # which no store has


class _Session:
    """A session in which one writes at a time, looked at as a ledger."""

    def __init__(self, session: PostgresSession) -> None:
        self._session = session

    def execute(self, statement: str, values: Any = (), /) -> Any:
        return self._session.execute(statement, values)

    def write(self, action: Callable[[], T], /) -> T:
        with self._session.transaction():
            self._session.execute("SELECT 1 FROM meta FOR UPDATE")
            return action()

    def is_whole(self) -> bool:
        """Leave pages to the server, which checks them as it reads."""
        return True


class LedgerSchema(LedgerDatabase):
    """A ledger in the schema of a place.

    Parameters
    ----------
    place : Postgres
    """

    def __init__(self, place: Postgres) -> None:
        super().__init__(place)
        self._postgres = place

    def create(self, population: str, cap: str) -> None:
        """Make the tables, which are there as a whole or not at all."""
        with self._session() as session:

            def begin() -> None:
                if session.has_table("meta"):
                    raise existing_error(self._postgres)  # or a store
                for statement in SCHEMA.split(";")[:-1]:
                    session.execute(statement)
                meta = checksums.seal_row(*Meta(FORMAT, str(uuid.uuid4()), population, cap))
                session.execute("INSERT INTO meta VALUES (?, ?, ?, ?, ?)", meta)
                session.execute("INSERT INTO place VALUES (?, ?)", session.locate())

            if not session.create(begin, _TABLE):
                raise existing_error(self._postgres)

    def adopt(self) -> None:
        """Enter that the tables are where they are now."""
        with self._session() as session, session.transaction():
            self._check_there(session)
            session.execute("UPDATE place SET inode = ?, path = ?", session.locate())

    @contextlib.contextmanager
    def _session(self) -> Iterator[PostgresSession]:
        try:
            with PostgresSession(self._postgres, "the ledger") as session:
                try:
                    yield session
                except postgres.Error as error:
                    if error.why is Refusal.DAMAGE:
                        raise session.explain_damage(damage_error(self._postgres)) from None
                    raise
        except postgres.Error as error:
            what = f"the ledger {self._postgres} cannot be read or written ({error}): put that right and try again"
            raise ReleaseError(what) from None

    @contextlib.contextmanager
    def _connected(self) -> Iterator[_Session]:
        with self._session() as session:
            self._check_there(session)
            rows = session.execute("SELECT inode, path FROM place").fetchall()
            if len(rows) != 1:
                raise damage_error(self._postgres)
            if rows[0] != session.locate():
                raise copied_error(self._postgres, rows[0][1])
            yield _Session(session)

    def _check_there(self, session: PostgresSession) -> None:
        if not session.has_table(_TABLE):
            raise missing_error(self._postgres)
