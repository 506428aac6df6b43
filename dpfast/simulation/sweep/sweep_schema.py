"""The file of a store of sweeps: its tables, and what to say when SQLite refuses."""

from __future__ import annotations

import functools
from contextlib import AbstractContextManager
from pathlib import Path

from dpfast._support import sqlite
from dpfast._support.errors import DataError
from dpfast._support.sqlite import Cause, Connection

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


def connect(path: Path | None) -> Connection:
    """Connect to the store in a file, begun where there is none; to one in memory for None.

    Nothing is written before the file has shown that it is a store of this format, or empty.
    """
    with explaining(path):
        connection = Connection.open(path, patience=PATIENCE)
        try:
            if _is_new(connection, path):
                connection.write(lambda: _create(connection, path))
            elif not connection.is_whole():
                raise damage_error(path)
            connection.keep_log("NORMAL", patience=PATIENCE)  # what a crash of the machine takes is simulated again
        except BaseException:
            connection.close()
            raise
    return connection


def _is_new(connection: Connection, path: Path | None) -> bool:
    """Tell whether the file is empty, and refuse it unless it is that or a store of this format."""
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


def _create(connection: Connection, path: Path | None) -> None:
    """Create the tables, unless somebody else was faster."""
    if _is_new(connection, path):
        for statement in (*_SCHEMA.split(";"), f"PRAGMA application_id={APPLICATION}", f"PRAGMA user_version={FORMAT}"):
            connection.execute(statement)


def explaining(path: Path | None) -> AbstractContextManager[None]:
    """Turn errors of SQLite into ones that say what to do about them."""
    return sqlite.explaining(functools.partial(_explain, path))


def _explain(path: Path | None, cause: Cause, error: Exception) -> DataError | None:
    if cause is Cause.MISUSE:
        return None  # a mistake of the caller: a store that is closed, or of another thread
    if cause is Cause.BUSY:
        return DataError(
            f"the store {path} is busy: another process has been writing to it for {PATIENCE:g} s. What was "
            "finished is kept: end that process, and start again"
        )
    if cause is Cause.NO_ROOM:
        return DataError(
            f"the store {path} cannot be written: {error}. What was finished is kept: make room on the disk, and "
            "start again"
        )
    if cause is Cause.UNWRITABLE:
        return DataError(
            f"the store {path} cannot be used: {error}. Give the path of a file in a folder that is there and that "
            "you may write to"
        )
    return damage_error(path)


def damage_error(path: Path | None, what: str = "it") -> DataError:
    """Return the error for a file that does not hold what was written."""
    return DataError(
        f"the store {path} is damaged, or no store of sweeps: {what} is not as it was written. Take a copy of it that "
        "is whole, or give another path: the same seed gives the same results"
    )
