"""The database of a ledger, wherever it is: a row that says what it is, and entries in a chain, each sealed."""

from __future__ import annotations

import abc
import hashlib
from collections.abc import Callable, Collection
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol, TypeVar

from dpfast._support import checksums
from dpfast._support.errors import ReleaseError
from dpfast.releases.arbiters.place import Place
from dpfast.releases.ledger.entry import Entry
from dpfast.releases.ledger.ledger_errors import damage_error

T = TypeVar("T")
FORMAT = 1
SCHEMA = """
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


class LedgerSession(Protocol):
    """A connection to the database of a ledger."""

    def execute(self, statement: str, values: Any = ..., /) -> Any:
        """Execute a statement."""

    def write(self, action: Callable[[], T], /) -> T:
        """Write everything that an action does, or nothing; nobody else writes meanwhile."""

    def is_whole(self) -> bool:
        """Tell whether no damage is found in its pages."""


class LedgerDatabase(abc.ABC):
    """Read and write the database of a ledger; each use opens it, and closes it behind.

    Parameters
    ----------
    place : Place
    """

    def __init__(self, place: Place) -> None:
        self.place = place

    @abc.abstractmethod
    def create(self, population: str, cap: str) -> None:
        """Make the database, which is there as a whole or not at all."""

    @abc.abstractmethod
    def adopt(self) -> None:
        """Enter that the database is where it is now."""

    @abc.abstractmethod
    def _connected(self) -> AbstractContextManager[LedgerSession]:
        """Open it for one use, checked for where it is."""

    def read(self) -> tuple[Meta, list[Line]]:
        """Return what it holds, after all checks."""
        with self._connected() as connection:
            connection.execute("BEGIN")
            return self._read(connection)

    def write(self, action: Callable[[Meta, list[Line]], tuple[T, list[tuple[str, Entry]]]]) -> T:
        """Append what an action makes of all that is there, with the times of entering: all of it or nothing.

        Whatever the action raises leaves it as it was. No other program writes in between.
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

    def _read(self, connection: LedgerSession) -> tuple[Meta, list[Line]]:
        if not connection.is_whole():
            raise damage_error(self.place)
        rows = connection.execute("SELECT * FROM meta").fetchall()
        if len(rows) != 1 or not checksums.is_sealed(rows[0]):
            raise damage_error(self.place)
        meta = Meta(*rows[0][:-1])
        if meta.format != FORMAT:
            raise ReleaseError(
                f"the ledger {self.place} must have format {FORMAT}, got {meta.format}: use the version of dpfast that "
                "wrote it"
            )
        notes = connection.execute("SELECT * FROM published").fetchall()
        if not all(map(checksums.is_sealed, notes)):
            raise damage_error(self.place)
        published = {number for number, _ in notes}
        chain = start_of_chain(meta)
        lines: list[Line] = []
        for row in connection.execute("SELECT * FROM entries ORDER BY number").fetchall():
            number, entered, content, found, _ = row
            chain = _link(chain, number, entered, content)
            if not checksums.is_sealed(row) or (number, found) != (len(lines) + 1, chain):
                raise damage_error(self.place)
            lines.append(Line(number, entered, Entry.from_json(content), chain, number in published))
        return meta, lines


def start_of_chain(meta: Meta) -> str:
    """Return the chain of a ledger without entries."""
    return hashlib.sha256(repr(tuple(meta)).encode()).hexdigest()


def _link(chain: str, number: int, entered: str, content: str) -> str:
    return hashlib.sha256("\0".join((chain, str(number), entered, content)).encode()).hexdigest()
