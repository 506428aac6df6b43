"""Connections to the database of a store that have it alone, and leave no inputs behind."""

from __future__ import annotations

import contextlib
import ctypes
import os
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dpfast._support import sqlite
from dpfast.releases.arbiters import private_files
from dpfast.releases.arbiters.store_errors import damage_error, refusing_damage


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
