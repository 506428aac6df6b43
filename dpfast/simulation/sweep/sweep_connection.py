"""Connections to the file of a store of sweeps, which is begun, or refused where it is another one."""

from __future__ import annotations

import functools
from contextlib import AbstractContextManager
from pathlib import Path

from dpfast._support import sqlite
from dpfast._support.errors import DataError
from dpfast._support.sqlite import Connection
from dpfast.simulation.sweep.sweep_schema import APPLICATION, FORMAT, SCHEMA
from dpfast.simulation.sweep.sweep_store_errors import damage_error, explain_refusal

PATIENCE = 60.0  # seconds that others may take to write


def explaining(path: Path | None) -> AbstractContextManager[None]:
    """Turn errors of SQLite into ones that say what to do about them."""
    return sqlite.explaining(functools.partial(explain_refusal, path, PATIENCE))


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
            # what a crash of the machine takes is simulated again
            connection.keep_log("NORMAL", patience=PATIENCE)
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
        for statement in (*SCHEMA.split(";"), f"PRAGMA application_id={APPLICATION}", f"PRAGMA user_version={FORMAT}"):
            connection.execute(statement)
