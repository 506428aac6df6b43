"""The tables of the database of a store, and how a new one begins."""

from __future__ import annotations

import contextlib
import uuid
from pathlib import Path

from dpfast._support import atomic_files, sqlite
from dpfast.releases.store import private_files
from dpfast.releases.store.private_connection import PrivateConnection

FORMAT = 4
_DECLARATION = "CREATE TABLE declaration (id INTEGER PRIMARY KEY, content TEXT NOT NULL, seal INTEGER NOT NULL)"
_NAMES = "CREATE TABLE names (release INTEGER PRIMARY KEY, name TEXT NOT NULL, seal INTEGER NOT NULL)"
_PERSONS = """
CREATE TABLE persons (
    id INTEGER PRIMARY KEY, terms TEXT NOT NULL, span INTEGER NOT NULL, key_check BLOB NOT NULL, count INTEGER NOT NULL,
    seal INTEGER NOT NULL
);
CREATE TABLE kept (
    person BLOB NOT NULL, stream INTEGER NOT NULL, step INTEGER NOT NULL, seal INTEGER NOT NULL,
    PRIMARY KEY (person, stream, step)
) WITHOUT ROWID;
"""
_PARTS = """
CREATE TABLE receivers (
    release INTEGER NOT NULL, part INTEGER NOT NULL, position INTEGER NOT NULL, state BLOB NOT NULL,
    seal INTEGER NOT NULL, PRIMARY KEY (release, part)
) WITHOUT ROWID;
ALTER TABLE progress DROP COLUMN receiver;
CREATE TABLE pruned (
    release INTEGER PRIMARY KEY, next INTEGER NOT NULL, push INTEGER NOT NULL, steps INTEGER NOT NULL,
    chain BLOB NOT NULL, seal INTEGER NOT NULL
);
"""
_SCHEMA = """
CREATE TABLE meta (format INTEGER NOT NULL, id TEXT NOT NULL, inode TEXT NOT NULL, path TEXT NOT NULL);
CREATE TABLE releases (
    id INTEGER PRIMARY KEY, kind TEXT NOT NULL, configuration TEXT NOT NULL, guarantee TEXT NOT NULL,
    guarantee_json TEXT NOT NULL, streams INTEGER NOT NULL, first INTEGER NOT NULL, seal INTEGER NOT NULL
);
CREATE TABLE progress (
    release INTEGER PRIMARY KEY, position INTEGER NOT NULL, count INTEGER NOT NULL, closed INTEGER NOT NULL,
    receiver BLOB NOT NULL, seal INTEGER NOT NULL
);
CREATE TABLE pushes (
    id INTEGER PRIMARY KEY, release INTEGER NOT NULL, first INTEGER NOT NULL, count INTEGER NOT NULL,
    privatized BLOB NOT NULL, estimate BLOB NOT NULL, chain BLOB NOT NULL, seal INTEGER NOT NULL
);
CREATE INDEX pushes_by_step ON pushes (release, first);
CREATE TABLE inputs (
    release INTEGER NOT NULL, step INTEGER NOT NULL, x BLOB NOT NULL, seal INTEGER NOT NULL,
    PRIMARY KEY (release, step)
) WITHOUT ROWID;
"""
_NOTHING = "null"  # declared: a row that is missing is damage


def locate(file: Path) -> tuple[str, str]:
    """Return where a database is: the number of the file, and its absolute path."""
    return str(file.lstat().st_ino), str(file)


def create(file: Path) -> None:
    """Make a new database, which is there as a whole or not at all."""
    new = file.with_name(f"{file.name}.{uuid.uuid4().hex}")
    private_files.make_file(new)
    try:
        with contextlib.closing(PrivateConnection.open(new)) as connection:
            connection.executescript(f"BEGIN; {_SCHEMA}")
            add_format_2(connection)
            add_format_3(connection)
            add_format_4(connection)
            meta = (FORMAT, str(uuid.uuid4()), locate(new)[0], str(file))
            connection.execute("INSERT INTO meta VALUES (?, ?, ?, ?)", meta)
            connection.execute("COMMIT")
        with contextlib.suppress(FileExistsError):  # somebody else was faster
            file.hardlink_to(new)
    finally:
        new.unlink()
    atomic_files.sync_folder(file.parent)


def add_format_2(connection: sqlite.Connection) -> None:
    """Add what format 2 has and format 1 has not, with nothing declared, and no release that has a name."""
    connection.execute(_NAMES)
    connection.execute(_DECLARATION)
    connection.execute("INSERT INTO declaration VALUES (?, ?, ?)", sqlite.seal_row(1, _NOTHING))


def add_format_3(connection: sqlite.Connection) -> None:
    """Add what format 3 has and format 2 has not, with no bounds on persons: the store protects events."""
    _execute_all(connection, _PERSONS)


def add_format_4(connection: sqlite.Connection) -> None:
    """Add what format 4 has and format 3 has not: states of parts of receivers, and pruned history."""
    _execute_all(connection, _PARTS)


def _execute_all(connection: sqlite.Connection, statements: str) -> None:
    for statement in statements.split(";")[:-1]:
        connection.execute(statement)
