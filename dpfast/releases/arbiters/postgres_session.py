"""Sessions of PostgreSQL that a release may rest on: a durable server, and a schema of their own."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from dpfast._support.errors import ReleaseError
from dpfast._support.postgres import PostgresConnection, quote_name
from dpfast.releases.arbiters.place import Postgres

SETTINGS = "current_setting('fsync'), current_setting('full_page_writes'), current_setting('synchronous_commit')"
_DURABLE = ("on", "remote_apply")  # of synchronous_commit; with any other a crash may take back what was published
# Another writer that stopped in the middle of a transaction would hold the rest for ever.
_IDLE, _PATIENCE = "60s", "90s"
_TYPES = {" BLOB": " BYTEA", " INTEGER": " BIGINT", ") WITHOUT ROWID": ")"}  # of SQLite, and here


class PostgresSession:
    """A session with the schema of a place. It refuses a server that may forget what it has committed.

    Parameters
    ----------
    place : Postgres
    what : str
        For messages, such as "the store".
    reading : bool
        Whether nothing will be written.
    """

    def __init__(self, place: Postgres, what: str, *, reading: bool = False) -> None:
        self.place, self.what, self.reading = place, f"{what} {place}", reading
        self._connection = PostgresConnection(place.address)
        self._known: dict[str, tuple[list[str], list[str]]] = {}
        try:
            self._prepare()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> PostgresSession:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _prepare(self) -> None:
        """Check the server, and set up the session: nothing that is set for others may loosen it later."""
        found = self.execute(f"SELECT {SETTINGS}, pg_is_in_recovery(), current_setting('server_encoding')").fetchone()
        *settings, recovering, encoding = found
        if recovering:
            raise ReleaseError(
                f"the server of {self.what} is a standby, or not up yet: give the address of the one that writes"
            )
        if not self.reading:
            self.check_settings(settings)
            if self.place.failover == "synchronous":
                self._check_standbys()
            self.execute(f"SET synchronous_commit = {settings[2]}")
            self.execute(f"SET idle_in_transaction_session_timeout = '{_IDLE}'")
        if encoding != "UTF8":
            raise ReleaseError(f"the database of {self.what} must have the encoding UTF8, got {encoding}")
        self.execute(f"SET lock_timeout = '{_PATIENCE}'")
        self.execute(f"SET search_path = {quote_name(self.place.schema)}")

    def check_settings(self, settings: Sequence[Any]) -> None:
        """Refuse a server whose :data:`SETTINGS` let it forget."""
        fsync, pages, commit = settings
        if (fsync, pages) != ("on", "on") or commit not in _DURABLE:
            raise ReleaseError(
                f"the server of {self.what} must have fsync on, full_page_writes on and synchronous_commit on (or "
                f"remote_apply), got {fsync}, {pages} and {commit}: a crash would take back what was published, and it "
                "would be published again with other noise. Set them, for this user too, and open it again"
            )

    def _check_standbys(self) -> None:
        ((names,),) = self.execute("SELECT current_setting('synchronous_standby_names')").fetchall()
        if not names.strip():
            raise ReleaseError(
                f"the server of {self.what} must show synchronous_standby_names where failover is 'synchronous', got "
                "none: a standby that lacks commits would publish steps again. Set it, or declare failover='none'"
            )

    def create(self, begin: Callable[[], None], table: str) -> bool:
        """Make the schema with its tables, as a whole or not at all; return False where a table is there already."""
        self.execute("BEGIN")
        self.execute("SELECT pg_advisory_xact_lock(hashtext(?))", (self.place.schema,))
        if self.has_table(table):  # somebody else was faster
            self.execute("ROLLBACK")
            return False
        self.execute(f"CREATE SCHEMA IF NOT EXISTS {quote_name(self.place.schema)}")
        begin()
        self.execute("COMMIT")
        return True

    def execute(self, statement: str, values: Sequence[Any] = ()) -> Any:
        """Execute a statement of SQLite's kind."""
        if statement.lstrip().startswith(("CREATE", "ALTER")):
            for theirs, ours in _TYPES.items():
                statement = statement.replace(theirs, ours)
        return self._connection.execute(statement, values)

    def stream(self, query: str) -> Iterator[tuple[Any, ...]]:
        """Return the rows of a query, one after the other; within a transaction."""
        return self._connection.stream(query)

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """Write all or nothing; what ends it early leaves it to be rolled back by closing."""
        self.execute("BEGIN")
        yield
        self.execute("COMMIT")

    def put(self, table: str, row: Sequence[Any], *, condition: str = "") -> None:
        """Enter a row, in place of the one with its key if there is one, and if that meets a condition."""
        columns, key = self._columns(table)
        rest = ", ".join(f"{x} = EXCLUDED.{x}" for x in columns if x not in key)
        places, keys = ", ".join("?" * len(row)), ", ".join(key)
        self.execute(
            f"INSERT INTO {table} VALUES ({places}) ON CONFLICT ({keys}) DO UPDATE SET {rest} {condition}", row
        )

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
            (self.place.schema, name),
        )
        return found.fetchone() is not None

    def locate(self) -> tuple[str, str]:
        """Return the server, the database and the schema, and the timeline where no standby may take over."""
        found = self.execute(
            "SELECT (SELECT system_identifier FROM pg_control_system())::text, "
            "(SELECT oid FROM pg_database WHERE datname = current_database())::text, "
            "(SELECT oid FROM pg_namespace WHERE nspname = ?)::text",
            (self.place.schema,),
        ).fetchone()
        timeline: tuple[str, ...] = ()
        if self.place.failover == "none":
            timeline = self.execute("SELECT substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)").fetchone()
        return "/".join([*found, *timeline]), str(self.place)

    def close(self) -> None:
        """End the session; what is not committed never happened."""
        self._connection.close()
