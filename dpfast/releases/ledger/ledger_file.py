"""The file of a ledger: a row that says what it is, and entries in a chain, each sealed."""

from __future__ import annotations

import contextlib
import os
import stat
import uuid
from collections.abc import Iterator
from pathlib import Path

from dpfast._support import atomic_files, checksums, sqlite
from dpfast._support.errors import ReleaseError
from dpfast.releases.arbiters import private_files
from dpfast.releases.ledger.ledger_database import FORMAT, SCHEMA, LedgerDatabase, Meta
from dpfast.releases.ledger.ledger_errors import copied_error, damage_error, existing_error, explaining, missing_error

_PATIENCE = 30.0  # seconds for which other releases may enter


class LedgerFile(LedgerDatabase):
    """A ledger in a file of SQLite.

    Parameters
    ----------
    path : Path
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.path = path

    def create(self, population: str, cap: str) -> None:
        """Make the file, which is there as a whole or not at all, in a folder for its owner alone."""
        folder = private_files.make_folder(self.path.parent)
        file = self.place = self.path = folder / self.path.name
        if os.path.lexists(file):
            raise existing_error(file)
        new = file.with_name(f"{file.name}.{uuid.uuid4().hex}")
        private_files.make_file(new)
        try:
            with contextlib.closing(sqlite.Connection.open(new)) as connection:
                connection.executescript(f"PRAGMA synchronous=EXTRA; BEGIN; {SCHEMA}")
                meta = checksums.seal_row(*Meta(FORMAT, str(uuid.uuid4()), population, cap))
                connection.execute("INSERT INTO meta VALUES (?, ?, ?, ?, ?)", meta)
                connection.execute("INSERT INTO place VALUES (?, ?)", _locate(new, file))
                connection.execute("COMMIT")
            try:
                file.hardlink_to(new)
            except FileExistsError:  # somebody else was faster
                raise ReleaseError(f"the ledger {file} was made by another process just now: open it") from None
        finally:
            new.unlink()
        atomic_files.sync_folder(folder)

    def adopt(self) -> None:
        """Enter that the file is where it is now."""
        with self._connected(anywhere=True) as connection:
            place = _locate(self.path, self.path)
            connection.write(lambda: connection.execute("UPDATE place SET inode = ?, path = ?", place))

    @contextlib.contextmanager
    def _connected(self, *, anywhere: bool = False) -> Iterator[sqlite.Connection]:
        self._check_private()
        with (
            explaining(self.path),
            contextlib.closing(sqlite.Connection.open(self.path, patience=_PATIENCE, must_exist=True)) as connection,
        ):
            connection.execute("PRAGMA synchronous=EXTRA")  # and the folder, where SQLite's journal goes
            if not anywhere:
                self._check_place(connection)
            yield connection

    def _check_private(self) -> None:
        for path in (self.path.parent, self.path):
            if not os.path.lexists(path):
                raise missing_error(self.path)
            mode = path.lstat().st_mode
            if stat.S_ISLNK(mode) or (atomic_files.POSIX and mode & 0o077):
                kind = "is a link" if stat.S_ISLNK(mode) else f"is open to others (mode {stat.S_IMODE(mode):03o})"
                raise ReleaseError(
                    f"the ledger {self.path} must be for its owner alone, and {path} {kind}: put the ledger into a "
                    "folder of its own, of mode 700, with a file of mode 600"
                )

    def _check_place(self, connection: sqlite.Connection) -> None:
        rows = connection.execute("SELECT inode, path FROM place").fetchall()
        if len(rows) != 1:
            raise damage_error(self.path)
        if rows[0] != _locate(self.path, self.path):
            raise copied_error(self.path, rows[0][1])


def _locate(file: Path, path: Path) -> tuple[str, str]:
    return str(file.lstat().st_ino), str(path)
