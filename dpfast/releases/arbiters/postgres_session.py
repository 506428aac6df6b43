"""Sessions of PostgreSQL that a release may rest on: a durable server, and a schema of their own."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from dpfast._support import postgres
from dpfast._support.errors import ReleaseError
from dpfast._support.postgres import PostgresConnection, quote_name
from dpfast.releases.arbiters.place import Postgres

_SETTINGS = ", ".join(
    f"current_setting('{x}')" for x in ("fsync", "full_page_writes", "synchronous_commit", "synchronous_standby_names")
)
_SESSION = "pg_backend_pid(), current_schema()::text, current_setting('client_min_messages')"
_STATE = f"SELECT {_SETTINGS}, {_SESSION}"
# Defaults of the server, the database and the user may be others.
_BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED, READ WRITE"
_BEGIN_READING = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY"
# Its commit waits for standbys, as it writes into the log; unlike a lock on a row it needs no rights and no turn.
_MESSAGE = "SELECT pg_logical_emit_message(true, 'dpfast', '')"
_MESSAGES = "notice"  # so that a commit that is on no standby is told from others
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
        self._name = what
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
        *settings, self._process, recovering, encoding = self.execute(
            f"SELECT {_SETTINGS}, pg_backend_pid(), pg_is_in_recovery(), current_setting('server_encoding')"
        ).fetchone()
        if recovering:
            raise ReleaseError(
                f"the server of {self.what} is a standby, or not up yet: give the address of the one that writes"
            )
        if not self.reading:
            self._check_settings(settings)
            self.execute(f"SET synchronous_commit = {settings[2]}")
            self.execute(f"SET idle_in_transaction_session_timeout = '{_IDLE}'")
        if encoding != "UTF8":
            raise ReleaseError(f"the database of {self.what} must have the encoding UTF8, got {encoding}")
        self.execute(f"SET lock_timeout = '{_PATIENCE}'")
        self.execute(f"SET client_min_messages = {_MESSAGES}")
        self.execute(f"SET search_path = {quote_name(self.place.schema)}")

    def check_state(self) -> None:
        """Refuse a server that may forget by now, and a session that is not the one that was set up."""
        *settings, process, schema, messages = self.execute(_STATE).fetchone()
        if not self.reading:
            self._check_settings(settings)
        if (process, schema, messages) != (self._process, self.place.schema, _MESSAGES):
            raise ReleaseError(
                f"the address of {self.what} must lead to one session of the server, got another, or one that others "
                f"have changed (process {process}, before {self._process}; schema {schema}): what was set for it is "
                "lost. That is a pooler which shares sessions, such as pgbouncer with pool_mode = transaction: give "
                "the address of the server itself, or set pool_mode = session, and open it again"
            )

    def explain_damage(self, error: ReleaseError) -> ReleaseError:
        """Return an error for what is not there; that of :meth:`check_state` where another session was looked into."""
        try:
            with contextlib.suppress(postgres.Error):  # in a transaction that has failed
                self.check_state()
        except ReleaseError as other:
            return other
        return error

    def _check_settings(self, settings: Sequence[Any]) -> None:
        """Refuse a server whose settings let it forget, or let a standby take over that lacks commits."""
        fsync, pages, commit, standbys = settings
        if (fsync, pages) != ("on", "on") or commit not in _DURABLE:
            raise ReleaseError(
                f"the server of {self.what} must have fsync on, full_page_writes on and synchronous_commit on (or "
                f"remote_apply), got {fsync}, {pages} and {commit}: a crash would take back what was published, and it "
                "would be published again with other noise. Set them, for this user too, and open it again"
            )

        if self.place.failover == "synchronous" and not standbys.strip():
            raise ReleaseError(
                f"the server of {self.what} must show synchronous_standby_names where failover is 'synchronous', got "
                "none: a standby that lacks commits would publish steps again. Set it, or declare failover='none'"
            )

    def create(self, begin: Callable[[], None], table: str) -> bool:
        """Make the schema with its tables, as a whole or not at all; return False where a table is there already."""
        self.execute(_BEGIN)
        self.execute("SELECT pg_advisory_xact_lock(hashtext(?))", (self.place.schema,))
        if self.has_table(table):  # somebody else was faster
            self.execute("ROLLBACK")
            return False
        self.execute(f"CREATE SCHEMA IF NOT EXISTS {quote_name(self.place.schema)}")
        self.check_state()
        begin()
        self._commit()
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
        """Write all or nothing, on a server that keeps it; what ends it early is rolled back by closing."""
        self.execute(_BEGIN)
        self.check_state()
        yield
        self._commit()

    def _commit(self) -> None:
        """Commit, and take the server's plain word alone that everything is where it has to be."""
        self._connection.forget_notices()
        answer = self.execute("COMMIT").statusmessage
        if answer != "COMMIT":  # no error for PostgreSQL where a statement before had one
            raise ReleaseError(
                f"{self.what} was not written: the server answered COMMIT with {answer}, as a statement before had "
                "failed. Open it again, which tells how far it came"
            )
        if self._connection.noticed:
            raise ReleaseError(
                f"{self.what} was written on its server, which did not wait until a standby has that too (it warned, "
                f"SQLSTATE {self._connection.noticed[0]}): the wait was cancelled, by somebody or by a "
                "statement_timeout. Nothing was returned: see that the standby is there, and open it again, which "
                "waits for it and tells how far it came"
            )
        if self.place.failover == "synchronous":  # no standby is waited for, without a warning, once none is named
            self.check_state()

    def begin_reading(self) -> None:
        """See everything as it is at one moment, until the session ends: nothing that a standby may lack."""
        self.execute(_BEGIN_READING)
        self.check_state()  # from here on; a wait that was cancelled has let others see what no standby has
        if self.place.failover == "synchronous":
            with PostgresSession(self.place, self._name) as other, other.transaction():
                other.execute(_MESSAGE)

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
