"""The file of a ledger: a row that says what it is, and entries in a chain, each sealed."""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import uuid
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import NamedTuple, TypeVar

from dpfast._support import atomic_files, checksums, sqlite
from dpfast._support.errors import ReleaseError
from dpfast.releases.arbiters import private_files
from dpfast.releases.ledger.entry import Entry
from dpfast.releases.ledger.ledger_errors import damage_error, explaining, missing_error

T = TypeVar("T")
FORMAT = 1
_PATIENCE = 30.0  # seconds for which other releases may enter
_SCHEMA = """
CREATE TABLE meta (
    format INTEGER NOT NULL, id TEXT NOT NULL, population TEXT NOT NULL, cap TEXT NOT NULL, seal INTEGER NOT NULL
);
CREATE TABLE place (inode TEXT NOT NULL, path TEXT NOT NULL);
CREATE TABLE entries (
    number INTEGER PRIMARY KEY, entered TEXT NOT NULL, content TEXT NOT NULL, chain TEXT NOT NULL, seal INTEGER NOT NULL
);
CREATE TABLE published (number INTEGER PRIMARY KEY, seal INTEGER NOT NULL);
"""


class Meta(NamedTuple):
    """Say what a ledger is: its format and id, whose data it is for, and its cap as text."""

    format: int
    id: str
    population: str
    cap: str


class Line(NamedTuple):
    """Hold a line of a ledger.

    Attributes
    ----------
    number : int
        From 1 on.
    entered : str
        When it was entered.
    entry : Entry
    chain : str
        The chain up to it.
    published : bool
        Whether its store has told that it is published; one that was interrupted may have had no occasion so far.
    """

    number: int
    entered: str
    entry: Entry
    chain: str
    published: bool


class LedgerFile:
    """Read and write the database of a ledger; each use opens it, and closes it behind.

    Parameters
    ----------
    path : Path
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def create(self, population: str, cap: str) -> None:
        """Make the file, which is there as a whole or not at all, in a folder for its owner alone."""
        folder = private_files.make_folder(self.path.parent)
        file = self.path = folder / self.path.name
        if os.path.lexists(file):
            raise ReleaseError(f"the ledger {file} is there already: open it, or choose another path for a new one")
        new = file.with_name(f"{file.name}.{uuid.uuid4().hex}")
        private_files.make_file(new)
        try:
            with contextlib.closing(sqlite.Connection.open(new)) as connection:
                connection.executescript(f"PRAGMA synchronous=EXTRA; BEGIN; {_SCHEMA}")
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

    def read(self) -> tuple[Meta, list[Line]]:
        """Return what the file holds, after all checks."""
        with self._connected() as connection:
            connection.execute("BEGIN")
            return self._read(connection)

    def write(self, action: Callable[[Meta, list[Line]], tuple[T, list[tuple[str, Entry]]]]) -> T:
        """Append what an action makes of all that is there, with the times of entering: all of it or nothing.

        Whatever the action raises leaves the file as it was. No other program writes in between.
        """
        with self._connected() as connection:

            def transaction() -> T:
                meta, lines = self._read(connection)
                result, entries = action(meta, lines)
                chain = lines[-1].chain if lines else start_of_chain(meta)
                for number, (entered, entry) in enumerate(entries, start=len(lines) + 1):
                    content = entry.to_json()
                    chain = _link(chain, number, entered, content)
                    row = checksums.seal_row(number, entered, content, chain)
                    connection.execute("INSERT INTO entries VALUES (?, ?, ?, ?, ?)", row)
                return result

            return connection.write(transaction)

    def confirm(self, numbers: Collection[int]) -> None:
        """Note that entries are published."""
        with self._connected() as connection:

            def transaction() -> None:
                known = {line.number for line in self._read(connection)[1] if not line.published}
                for number in known.intersection(numbers):
                    connection.execute("INSERT INTO published VALUES (?, ?)", checksums.seal_row(number))

            connection.write(transaction)

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
            raise ReleaseError(
                f"the ledger {self.path} was copied or moved: it was at {rows[0][1]}, or in another file there. Two "
                "copies that go on would each know a part of what was spent. Use the original; only if that is gone "
                f"for good, take this one over: dpfast ledger {self.path} --adopt, or adopt=True"
            )

    def _read(self, connection: sqlite.Connection) -> tuple[Meta, list[Line]]:
        if not connection.is_whole():
            raise damage_error(self.path)
        rows = connection.execute("SELECT * FROM meta").fetchall()
        if len(rows) != 1 or not checksums.is_sealed(rows[0]):
            raise damage_error(self.path)
        meta = Meta(*rows[0][:-1])
        if meta.format != FORMAT:
            raise ReleaseError(
                f"the ledger {self.path} must have format {FORMAT}, got {meta.format}: use the version of dpfast that "
                "wrote it"
            )
        notes = connection.execute("SELECT * FROM published").fetchall()
        if not all(map(checksums.is_sealed, notes)):
            raise damage_error(self.path)
        published = {number for number, _ in notes}
        chain = start_of_chain(meta)
        lines: list[Line] = []
        for row in connection.execute("SELECT * FROM entries ORDER BY number").fetchall():
            number, entered, content, found, _ = row
            chain = _link(chain, number, entered, content)
            if not checksums.is_sealed(row) or (number, found) != (len(lines) + 1, chain):
                raise damage_error(self.path)
            lines.append(Line(number, entered, Entry.from_json(content), chain, number in published))
        return meta, lines


def start_of_chain(meta: Meta) -> str:
    """Return the chain of a ledger without entries."""
    return hashlib.sha256(repr(tuple(meta)).encode()).hexdigest()


def _link(chain: str, number: int, entered: str, content: str) -> str:
    return hashlib.sha256("\0".join((chain, str(number), entered, content)).encode()).hexdigest()


def _locate(file: Path, path: Path) -> tuple[str, str]:
    return str(file.lstat().st_ino), str(path)
