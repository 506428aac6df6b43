"""The tables of a store of sweeps, and connections to it."""

from __future__ import annotations

from pathlib import Path

from dpfast._support.errors import DataError
from dpfast._support.sqlite import Connection
from dpfast.simulation.sweep import sweep_store_errors
from dpfast.simulation.sweep.sweep_store_errors import damage_error, explaining

APPLICATION = 0x64705377  # "dpSw", in the header of the file
FORMAT = 1
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
        connection = Connection.open(path, patience=sweep_store_errors.PATIENCE)
        try:
            if _is_new(connection, path):
                connection.write(lambda: _create(connection, path))
            elif not connection.is_whole():
                raise damage_error(path)
            # what a crash of the machine takes is simulated again
            connection.keep_log("NORMAL", patience=sweep_store_errors.PATIENCE)
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
