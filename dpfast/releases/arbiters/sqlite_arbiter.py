"""SQLite as arbiter: a file in a private folder, which one process has to itself."""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from dpfast._support import atomic_files, sqlite
from dpfast._support.errors import ReleaseError
from dpfast.releases.arbiters import private_files
from dpfast.releases.arbiters.arbiter import Arbiter, Begin, Fetched
from dpfast.releases.arbiters.private_connection import PrivateConnection, connect
from dpfast.releases.arbiters.rollback_mark import NAME as MARK
from dpfast.releases.arbiters.rollback_mark import Mark
from dpfast.releases.arbiters.store_errors import damage_error, refusing_damage, unfolded_log_error, written_over_error

NAME = "store.sqlite"


class SqliteArbiter(Arbiter):
    """A file of SQLite in a folder for its owner alone. :meth:`open` opens it, and begins one where there is none.

    Parameters
    ----------
    file : Path
    connection : PrivateConnection
    """

    errors = (sqlite.Error, OSError)

    def __init__(self, file: Path, connection: PrivateConnection) -> None:
        super().__init__(file.parent)
        self._file, self._connection = file, connection
        self._mark = Mark(file, connection)

    @classmethod
    def open(cls, folder: Path, begin: Begin, witness: Path) -> SqliteArbiter:
        """Open the file of a folder, or make it where nothing was before.

        Parameters
        ----------
        folder : Path
        begin : callable
            Enters the tables of a new store, and where it is.
        witness : Path
            Of the store: where it is there, the file must be too.
        """
        file = private_files.make_folder(folder) / NAME
        log = sqlite.log_path(file)
        if not os.path.lexists(file):
            left = [path for path in (log, witness, file.with_name(MARK)) if os.path.lexists(path)]
            if left:
                raise ReleaseError(
                    f"{file} is missing, while {left[0]} is there: nobody can tell what was published. Put it back, or "
                    "begin in other folders, with data that were never published"
                )
            cls._create(file, begin)
        for path in (file, log):
            with contextlib.suppress(FileNotFoundError):  # a log goes when another writer ends
                private_files.check_private(path)
        return cls(file, connect(file))

    @classmethod
    def _create(cls, file: Path, begin: Begin) -> None:
        """Make a new database, which is there as a whole or not at all."""
        new = file.with_name(f"{file.name}.{uuid.uuid4().hex}")
        private_files.make_file(new)
        try:
            with contextlib.closing(PrivateConnection.open(new)) as connection:
                connection.execute("BEGIN")
                begin(cls(new, connection), (locate(new)[0], str(file)))
                connection.execute("COMMIT")
            with contextlib.suppress(FileExistsError):  # somebody else was faster
                file.hardlink_to(new)
        finally:
            new.unlink()
        atomic_files.sync_folder(file.parent)

    def execute(self, statement: str, values: Sequence[Any] = ()) -> Fetched:
        """Execute a statement."""
        return self._connection.execute(statement, values)

    def stream(self, query: str) -> Iterator[tuple[Any, ...]]:
        """Return the rows of a query, one after the other."""
        return self._connection.execute(query)

    def put(self, table: str, row: Sequence[Any]) -> None:
        """Enter a row, in place of the one with its key if there is one."""
        self._connection.execute(f"INSERT OR REPLACE INTO {table} VALUES ({', '.join('?' * len(row))})", row)

    def has_table(self, name: str) -> bool:
        """Tell whether there is a table."""
        return bool(self._connection.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (name,)).fetchall())

    def explaining(self) -> AbstractContextManager[None]:
        """Turn errors of SQLite into refusals that say what to do, while a store is read."""
        return refusing_damage(self._file)

    def damage_error(self) -> ReleaseError:
        """Return the error for a file that is not what was written."""
        return damage_error(self._file)

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        """Write a transaction, and the mark that is of it."""
        self._mark.renew()
        self._connection.execute("BEGIN IMMEDIATE")
        yield
        self._mark.enter()
        self._connection.execute("COMMIT")
        self._mark.put()

    def _read_epoch(self) -> list[tuple[Any, ...]]:
        # nobody else writes: the connection has the file alone
        return self._connection.execute("SELECT * FROM writers").fetchall()

    def locate(self) -> tuple[str, str]:
        """Return the number of the file, and its absolute path."""
        return locate(self._file)

    def check_newest(self) -> None:
        """Refuse an older copy that was written over the store and its witness."""
        if not self._mark.agrees():
            raise written_over_error(self.place)

    @property
    def is_settled(self) -> bool:
        """Tell whether it has a mark; stores of a version before have none."""
        return self._mark.is_known()

    def forget_deleted(self) -> None:
        """Fold SQLite's log into the database: what was deleted is gone from the log too."""
        self._connection.empty_log()

    def close(self) -> None:
        """Let the file go, without a log where that is possible."""
        self._connection.close()

    def unforgotten_error(self, cause: Exception) -> ReleaseError:
        """Return the error for a log with inputs that could not be emptied."""
        return unfolded_log_error(sqlite.log_path(self._file), cause)


def locate(file: Path) -> tuple[str, str]:
    """Return where a database is: the number of the file, and its absolute path."""
    return str(file.lstat().st_ino), str(file)
