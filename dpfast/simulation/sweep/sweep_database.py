"""The file of a store of sweeps: its tables, its transactions, and what to say when SQLite refuses."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from dpfast._support.errors import DataError

T = TypeVar("T")
APPLICATION = 0x64705377  # "dpSw", in the header of the file
FORMAT = 1
PATIENCE = 60.0  # seconds that others may take to write
_SCHEMA = """
CREATE TABLE designs (key TEXT PRIMARY KEY, content BLOB NOT NULL, crc INTEGER NOT NULL);
CREATE TABLE sweeps (
    id INTEGER PRIMARY KEY, configuration TEXT NOT NULL UNIQUE, dpfast TEXT NOT NULL, seed TEXT NOT NULL,
    content BLOB NOT NULL, created TEXT NOT NULL
);
CREATE TABLE blocks (
    sweep INTEGER NOT NULL, case_number INTEGER NOT NULL, block INTEGER NOT NULL, means BLOB NOT NULL,
    crc INTEGER NOT NULL, PRIMARY KEY (sweep, case_number, block)
) WITHOUT ROWID;
"""
_UNWRITABLE = {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH}
_NO_ROOM = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR}


def connect(path: Path | None) -> sqlite3.Connection:
    """A connection to the store in a file, begun where there is none; to one in memory for None.

    Nothing is written before the file has shown that it is a store of this format, or empty.
    """
    with explaining(path):
        connection = sqlite3.connect(":memory:" if path is None else path, timeout=PATIENCE, isolation_level=None)
        try:
            if _is_new(connection, path):
                write(connection, lambda: _create(connection, path))
            elif connection.execute("PRAGMA integrity_check(1)").fetchone() != ("ok",):
                raise damaged(path)
            _keep_log(connection)
        except BaseException:
            connection.close()
            raise
    return connection


def _is_new(connection: sqlite3.Connection, path: Path | None) -> bool:
    """Whether the file is empty; an error unless it is that or a store of this format."""
    # in one statement, so that a store which somebody begins meanwhile is seen as a whole or not at all
    query = (
        "SELECT application_id, user_version, (SELECT count(*) FROM sqlite_master) "
        "FROM pragma_application_id, pragma_user_version"
    )
    application, version, n_tables = connection.execute(query).fetchone()
    if (application, version, n_tables) == (0, 0, 0):
        return True
    if application != APPLICATION:
        raise DataError(f"the store {path} must be a store of sweeps, got another database: give another path")
    if version != FORMAT:
        raise DataError(
            f"the store {path} must have format {FORMAT}, got {version}: use the version of dpfast that wrote it, "
            "or give another path"
        )
    return False


def _create(connection: sqlite3.Connection, path: Path | None) -> None:
    """The tables, unless somebody else was faster."""
    if _is_new(connection, path):
        for statement in (*_SCHEMA.split(";"), f"PRAGMA application_id={APPLICATION}", f"PRAGMA user_version={FORMAT}"):
            connection.execute(statement)


def _keep_log(connection: sqlite3.Connection) -> None:
    """Write-ahead log: a commit is one append, and readers wait for nobody.

    Synced at checkpoints: a crash of the machine may take the last transactions, which are simulated again, but leaves
    the file whole.
    """
    connection.execute("PRAGMA synchronous=NORMAL")
    end = time.monotonic() + PATIENCE
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:  # where another connection does the same, SQLite does not wait
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                raise
            time.sleep(0.01)


def write(connection: sqlite3.Connection, action: Callable[[], T]) -> T:
    """Everything that an action does is written, or nothing, whatever interrupts it.

    No context manager: interrupted on its way in or out, one would end some later transaction, or none.
    """
    if connection.in_transaction:  # where an interruption came while another was dealt with
        connection.execute("ROLLBACK")
    try:
        connection.execute("BEGIN IMMEDIATE")
        result = action()
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return result


@contextlib.contextmanager
def explaining(path: Path | None) -> Iterator[None]:
    """Errors of SQLite, with what to do about them."""
    try:
        yield
    except sqlite3.ProgrammingError:
        raise  # of the caller: a store that is closed, or of another thread
    except sqlite3.DatabaseError as error:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF  # none where Python finds the error
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise DataError(
                f"the store {path} is busy: another process has been writing to it for {PATIENCE:g} s. What was "
                "finished is kept: end that process, and start again"
            ) from None
        if code in _NO_ROOM:
            raise DataError(
                f"the store {path} cannot be written: {error}. What was finished is kept: make room on the disk, and "
                "start again"
            ) from None
        if code in _UNWRITABLE:
            raise DataError(
                f"the store {path} cannot be used: {error}. Give the path of a file in a folder that is there and that "
                "you may write to"
            ) from None
        raise damaged(path) from None
    except UnicodeDecodeError:
        raise damaged(path) from None


def damaged(path: Path | None, what: str = "it") -> DataError:
    """What to say of a file that does not hold what was written."""
    return DataError(
        f"the store {path} is damaged, or no store of sweeps: {what} is not as it was written. Take a copy of it that "
        "is whole, or give another path: the same seed gives the same results"
    )
