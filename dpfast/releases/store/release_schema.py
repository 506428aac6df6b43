"""The file of a store: its tables, and connections that have it alone."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import uuid
import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from dpfast._support import atomic_files, sqlite
from dpfast._support.errors import ReleaseError
from dpfast._support.sqlite import Cause
from dpfast.releases.store import private_files

FORMAT = 2
_DECLARATION = "CREATE TABLE declaration (id INTEGER PRIMARY KEY, content TEXT NOT NULL, seal INTEGER NOT NULL)"
_NAMES = "CREATE TABLE names (release INTEGER PRIMARY KEY, name TEXT NOT NULL, seal INTEGER NOT NULL)"
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


class PrivateConnection(sqlite.Connection):
    """A connection that has a store to itself, and leaves no inputs in the log of SQLite when it closes.

    A forked child never closes it: SQLite would fold the log of the parent's store under its feet.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._let_go: Callable[[], object] = lambda: None
        self._log: Path | None = None

    def own(self, file: Path) -> None:
        """Take the file for a store, whose log is overwritten before it goes."""
        self._log = sqlite.log_path(file)

    def empty_log(self) -> None:
        """Fold the log into the database, overwrite it with zeros, cut it off: until then deleted inputs stay in it.

        Its header is overwritten before the rest: of a log that lost its end alone SQLite would take the beginning for
        news, and set pages back.
        """
        self.end_statements()
        busy, frames, folded = self.execute("PRAGMA wal_checkpoint(FULL)").fetchone()
        if busy or frames != folded:
            raise sqlite.OperationalError("the log is in use")
        if self._log is not None and self._log.exists():
            private_files.overwrite(self._log)
        if self.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] != 0:
            raise sqlite.OperationalError("the log is in use")

    def hold(self, folder: Path) -> None:
        """Have the folder of the file to itself, until it is closed or forgotten."""
        self._let_go = weakref.finalize(self, private_files.hold_folder(folder))

    def close(self) -> None:
        """Close the file, without a log, and let its folder go."""
        self.end_statements()
        try:
            if self._log is not None:
                with contextlib.suppress(sqlite.Error, OSError):  # closed before, or a disk that takes nothing more
                    self.rollback()
                    self.empty_log()
        finally:
            self._log = None  # it may be another's from now on
            super().close()  # folds the log too, where there still is one, and removes it
            self._let_go()

    def keep_in_child(self) -> None:
        """Keep it open in a forked child for ever, but give up the child's hold, which would outlive the parent's."""
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self))
        self._let_go()


_OPEN: weakref.WeakSet[PrivateConnection] = weakref.WeakSet()


def _keep_in_child() -> None:
    for connection in list(_OPEN):
        connection.keep_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_keep_in_child)


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


def connect(file: Path) -> PrivateConnection:
    """Open the only connection to a database, of this process and of all others."""
    # threads take turns by the lock of whoever holds the connection
    connection = PrivateConnection.open(file, patience=0, must_exist=True, any_thread=True)
    _OPEN.add(connection)
    try:
        with refusing_damage(file):
            connection.hold(file.parent)
            connection.execute("PRAGMA locking_mode=EXCLUSIVE")
            connection.execute("SELECT count(*) FROM meta").fetchone()  # before anything writes into a foreign file
            connection.keep_log("FULL")
            # temporary files would hold inputs, and nobody overwrites them
            for statement in ("PRAGMA secure_delete=ON", "PRAGMA temp_store=MEMORY", "BEGIN EXCLUSIVE", "COMMIT"):
                connection.execute(statement)
            if not connection.is_whole():
                raise damage_error(file)
            connection.own(file)
    except BaseException:
        connection.close()
        raise
    return connection


def refusing_damage(file: Path) -> AbstractContextManager[None]:
    """Turn errors of SQLite into refusals, while a store is read."""
    return sqlite.explaining(functools.partial(_explain, file))


def _explain(file: Path, cause: Cause, error: Exception) -> ReleaseError:
    if cause is Cause.BUSY:
        return _in_use_error(file)
    if cause in (Cause.DAMAGE, Cause.MISUSE):
        return damage_error(file)
    return ReleaseError(
        f"cannot open the store {file.parent}: {error}; its disk must have room and let you write, also to read "
        "what was published"
    )


def _in_use_error(file: Path) -> ReleaseError:
    return ReleaseError(
        f"the store {file.parent} is in use, by another process or by an object of this one: "
        "one at a time may publish from it. End the other one (a stream: suspend it) and open it again"
    )


def damage_error(file: Path) -> ReleaseError:
    """Return the error for a file that is not what was written."""
    return ReleaseError(
        f"{file} is damaged, or no store of dpfast: nothing may be published from it. Only a copy that is as new as "
        "its witness can take its place; without one begin a new store, with data that were never published"
    )
