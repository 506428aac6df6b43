"""PostgreSQL as arbiter: a schema of a database, which any machine may take over."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

from dpfast._support import postgres
from dpfast._support.errors import ReleaseError
from dpfast._support.postgres import Cause, Connection, quote_name
from dpfast.releases.arbiters.arbiter import Arbiter, Begin, Fetched
from dpfast.releases.arbiters.place import Postgres
from dpfast.releases.arbiters.store_errors import damage_error, missing_store_error

_DURABLE = ("on", "remote_apply")  # of synchronous_commit; with any other a crash may take back what was published
# Another writer that stopped in the middle of a transaction would hold the store for ever.
_IDLE, _PATIENCE = "60s", "90s"
_SETTINGS = "current_setting('fsync'), current_setting('full_page_writes'), current_setting('synchronous_commit')"
_TYPES = {" BLOB": " BYTEA", " INTEGER": " BIGINT", ") WITHOUT ROWID": ")"}  # of SQLite, and here


class PostgresArbiter(Arbiter):
    """The tables of a store in a database of PostgreSQL. :meth:`open` opens them, and begins them where there are none.

    Parameters
    ----------
    place : Postgres
    connection : Connection
    reading : bool
        Everything is read as it was at one moment, and nothing written.
    """

    errors = (postgres.Error, OSError)

    def __init__(self, place: Postgres, connection: Connection, *, reading: bool) -> None:
        super().__init__(place)
        self._postgres, self._connection, self._reading = place, connection, reading
        self._opening = False
        self._known: dict[str, tuple[list[str], list[str]]] = {}

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
        arbiter = cls(place, Connection(place.address), reading=reading)
        try:
            arbiter._prepare()
            if not arbiter._exists():
                if reading or witnessed:
                    raise missing_store_error(place, witnessed=witnessed)
                arbiter._create(begin)
        except BaseException:
            arbiter.close()
            raise
        return arbiter

    def _prepare(self) -> None:
        """Check the server, and set up the session: nothing that is set for others may loosen it later."""
        found = self.execute(f"SELECT {_SETTINGS}, pg_is_in_recovery(), current_setting('server_encoding')").fetchone()
        *settings, recovering, encoding = found
        if recovering:
            raise ReleaseError(
                f"the server of the store {self.place} is a standby, or not up yet: give the address of the one that "
                "writes"
            )
        if not self._reading:
            self._check_settings(settings)
            if self._postgres.failover == "synchronous":
                self._check_standbys()
            self.execute(f"SET synchronous_commit = {settings[2]}")
            self.execute(f"SET idle_in_transaction_session_timeout = '{_IDLE}'")
        if encoding != "UTF8":
            raise ReleaseError(f"the database of the store {self.place} must have the encoding UTF8, got {encoding}")
        self.execute(f"SET lock_timeout = '{_PATIENCE}'")
        self.execute(f"SET search_path = {quote_name(self._postgres.schema)}")

    def _check_settings(self, settings: Sequence[Any]) -> None:
        fsync, pages, commit = settings
        if (fsync, pages) != ("on", "on") or commit not in _DURABLE:
            raise ReleaseError(
                f"the server of the store {self.place} must have fsync on, full_page_writes on and synchronous_commit "
                f"on (or remote_apply), got {fsync}, {pages} and {commit}: a crash would take back what was published, "
                "and it would be published again with other noise. Set them, for this user too, and open it again"
            )

    def _check_standbys(self) -> None:
        ((names,),) = self.execute("SELECT current_setting('synchronous_standby_names')").fetchall()
        if not names.strip():
            raise ReleaseError(
                f"the server of the store {self.place} must show synchronous_standby_names where failover is "
                "'synchronous', got none: a standby that lacks commits would publish steps again. Set it, or declare "
                "failover='none'"
            )

    def _exists(self) -> bool:
        return self.has_table("meta")

    def _create(self, begin: Begin) -> None:
        """Make the schema, which is there as a whole or not at all."""
        self.execute("BEGIN")
        self.execute("SELECT pg_advisory_xact_lock(hashtext(?))", (self._postgres.schema,))
        if self._exists():  # somebody else was faster
            self.execute("ROLLBACK")
            return
        self.execute(f"CREATE SCHEMA IF NOT EXISTS {quote_name(self._postgres.schema)}")
        begin(self, self.locate())
        self.execute("COMMIT")

    @contextlib.contextmanager
    def opening(self) -> Iterator[None]:
        """Look at the store, and take it over, in one transaction: nobody writes in between."""
        if self._reading:  # until it is closed
            self.execute("BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            yield
            return
        with self._transaction():
            self._opening = True
            self._read_epoch()
            yield
            self._opening = False

    def execute(self, statement: str, values: Sequence[Any] = ()) -> Fetched:
        """Execute a statement."""
        if statement.lstrip().startswith(("CREATE", "ALTER")):
            for theirs, ours in _TYPES.items():
                statement = statement.replace(theirs, ours)
        fetched: Fetched = self._connection.execute(statement, values)
        return fetched

    def stream(self, query: str) -> Iterator[tuple[Any, ...]]:
        """Return the rows of a query, one after the other."""
        return self._connection.stream(query)

    def put(self, table: str, row: Sequence[Any]) -> None:
        """Enter a row, in place of the one with its key if there is one."""
        columns, key = self._columns(table)
        rest = ", ".join(f"{x} = EXCLUDED.{x}" for x in columns if x not in key)
        places = ", ".join("?" * len(row))
        self.execute(f"INSERT INTO {table} VALUES ({places}) ON CONFLICT ({', '.join(key)}) DO UPDATE SET {rest}", row)

    def _columns(self, table: str) -> tuple[list[str], list[str]]:
        """Return the columns of a table, and those of its key; of each table they are looked up once."""
        if table not in self._known:
            self._known[table] = self._look_up_columns(table)
        return self._known[table]

    def _look_up_columns(self, table: str) -> tuple[list[str], list[str]]:
        rows = self.execute(
            "SELECT a.attname::text, a.attnum = ANY (i.indkey) FROM pg_attribute a JOIN pg_index i ON "
            "i.indrelid = a.attrelid AND i.indisprimary WHERE a.attrelid = ?::text::regclass AND a.attnum > 0 "
            "AND NOT a.attisdropped ORDER BY a.attnum",
            (table,),
        ).fetchall()
        return [quote_name(x) for x, _ in rows], [quote_name(x) for x, in_key in rows if in_key]

    def has_table(self, name: str) -> bool:
        """Tell whether there is a table."""
        found = self.execute(
            "SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
            "WHERE n.nspname = ? AND c.relname = ?",
            (self._postgres.schema, name),
        )
        return found.fetchone() is not None

    def explaining(self) -> AbstractContextManager[None]:
        """Turn errors of PostgreSQL into refusals that say what to do, while a store is read."""
        return self._explaining()

    @contextlib.contextmanager
    def _explaining(self) -> Iterator[None]:
        try:
            yield
        except postgres.Error as error:
            if error.cause is Cause.DAMAGE:
                raise damage_error(f"the store {self.place}") from None
            what = f"cannot read the store {self.place}: {error}; put that right and open it again"
            raise ReleaseError(what) from None

    @property
    def is_reading(self) -> bool:
        """Tell whether everything is as it was at one moment."""
        return self._reading

    def damage_error(self) -> ReleaseError:
        """Return the error for a database that does not hold what was written."""
        return damage_error(f"the store {self.place}")

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        if self._opening:  # all of the opening is one
            yield
            return
        self.execute("BEGIN")
        yield
        self.execute("COMMIT")

    def _read_epoch(self) -> list[tuple[Any, ...]]:
        """Look at the server and the last writer in one statement; nobody else takes over before the end."""
        rows = self.execute(f"SELECT {_SETTINGS}, writers.* FROM writers FOR UPDATE").fetchall()
        for row in rows:
            self._check_settings(row[:3])
        return [row[3:] for row in rows]

    def take_over(self, wanted: int | None) -> None:
        """Take an epoch, and enter it at once: the writer before may be alive, anywhere."""
        super().take_over(wanted)
        self._enter_epoch()

    def locate(self) -> tuple[str, str]:
        """Return the server, the database and the schema, and the timeline where no standby may take over."""
        found = self.execute(
            "SELECT (SELECT system_identifier FROM pg_control_system())::text, "
            "(SELECT oid FROM pg_database WHERE datname = current_database())::text, "
            "(SELECT oid FROM pg_namespace WHERE nspname = ?)::text",
            (self._postgres.schema,),
        ).fetchone()
        timeline: tuple[str, ...] = ()
        if self._postgres.failover == "none":
            timeline = self.execute("SELECT substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)").fetchone()
        return "/".join([*found, *timeline]), str(self.place)

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
        self._connection.close()

    def unforgotten_error(self, cause: Exception) -> ReleaseError:
        """Return the error for a session that could not be ended."""
        return ReleaseError(f"the session of the store {self.place} could not be ended: {cause}")
