"""The mark of a store: an empty file that every publication makes anew.

An older copy that is written over the files of a store leaves them where they are, and brings back all that is in them,
the witness too if it was copied with them. It does not bring back when the mark was made.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from dpfast._support import atomic_files, checksums, sqlite
from dpfast.releases.arbiters import private_files, store_errors

NAME = "mark"
_TABLE = "CREATE TABLE IF NOT EXISTS mark (id INTEGER PRIMARY KEY, born INTEGER, before INTEGER, seal INTEGER NOT NULL)"


class Mark:
    """The file of the mark, and what the database says of it.

    Parameters
    ----------
    file : Path
        The database, in whose folder the mark lies.
    connection : Connection
    """

    def __init__(self, file: Path, connection: sqlite.Connection) -> None:
        self.path, self._new = file.with_name(NAME), file.with_name(f".{NAME}.new")
        self._file, self._connection = file, connection

    def is_known(self) -> bool:
        """Tell whether the database has heard of any mark; one of a version before has not."""
        return bool(self._connection.execute("SELECT name FROM sqlite_master WHERE name = 'mark'").fetchall())

    def agrees(self) -> bool:
        """Tell whether the file is the one that the database knows, or an older one, as a loss of power may leave."""
        if not self.is_known():
            return not os.path.lexists(self.path)
        rows = self._connection.execute("SELECT * FROM mark").fetchall()
        if len(rows) != 1 or not checksums.is_sealed(rows[0]):
            raise store_errors.damage_error(self._file)
        _, born, before, _ = rows[0]
        if born is None:
            return True
        found = self._birth_time()
        return found == before or (found is not None and found <= born)

    def renew(self) -> None:
        """Make the file that is to be the mark, before the transaction that speaks of it."""
        with contextlib.suppress(FileNotFoundError):
            self._new.unlink()
        private_files.make_file(self._new)

    def enter(self) -> None:
        """Enter the new mark in the database, within the transaction."""
        self._connection.execute(_TABLE)
        row = checksums.seal_row(1, private_files.birth_time(self._new), self._birth_time())
        self._connection.execute("INSERT OR REPLACE INTO mark VALUES (?, ?, ?, ?)", row)

    def put(self) -> None:
        """Put the mark in its place, behind the transaction; a crash before leaves the last one, which is known too."""
        first = not self.path.exists()
        self._new.replace(self.path)
        if first:  # later ones may be lost with the power, the name may not
            atomic_files.sync_folder(self.path.parent)

    def _birth_time(self) -> int | None:
        return private_files.birth_time(self.path) if os.path.lexists(self.path) else None
