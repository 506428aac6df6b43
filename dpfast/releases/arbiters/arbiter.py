"""An arbiter is the database of a store: what it has committed was published, and nothing else was."""

from __future__ import annotations

import abc
import contextlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar, Protocol

from dpfast._support.checksums import is_sealed, seal_row
from dpfast._support.errors import ReleaseError
from dpfast.releases.arbiters.place import Place
from dpfast.releases.arbiters.store_errors import damage_error, fenced_error, old_epoch_error

WRITERS = "CREATE TABLE writers (id INTEGER PRIMARY KEY, epoch INTEGER NOT NULL, seal INTEGER NOT NULL)"
Begin = Callable[["Arbiter", tuple[str, str]], None]


class Fetched(Protocol):
    """The rows that a statement gives, and how many it has changed."""

    def fetchone(self) -> Any:
        """Return the next row; None behind the last one."""

    def fetchall(self) -> list[Any]:
        """Return all rows that are left."""


class Arbiter(abc.ABC):
    """The database of a store: statements of SQL, and transactions of one writer.

    Statements are in what SQLite and PostgreSQL have in common, with ``?`` for values. A transaction that does not come
    to its end is rolled back when the arbiter is closed. Each opening for writing takes an *epoch*, a number that is
    higher than all before; and every transaction that writes begins by looking whether it is still the last one.

    Parameters
    ----------
    place : Place

    Attributes
    ----------
    place : Place
    epoch : int or None
        Of this writer; None where it only reads.
    errors : tuple of types
        What statements raise where the database refuses.
    """

    errors: ClassVar[tuple[type[Exception], ...]]

    def __init__(self, place: Place) -> None:
        self.place = place
        self.epoch: int | None = None
        self._before = 0

    # --- statements -------------------------------------------------------------------------------

    @abc.abstractmethod
    def execute(self, statement: str, values: Sequence[Any] = ()) -> Fetched:
        """Execute a statement."""

    @abc.abstractmethod
    def stream(self, query: str) -> Iterator[tuple[Any, ...]]:
        """Return the rows of a query one after the other: all of them together may not fit into memory."""

    @abc.abstractmethod
    def put(self, table: str, row: Sequence[Any]) -> None:
        """Enter a row, in place of the one with its key if there is one."""

    def add(self, table: str, row: Sequence[Any]) -> None:
        """Enter a row whose key is new; one that is there is an error."""
        self.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)

    @abc.abstractmethod
    def has_table(self, name: str) -> bool:
        """Tell whether there is a table."""

    @abc.abstractmethod
    def explaining(self) -> AbstractContextManager[None]:
        """Turn errors of the database into refusals that say what to do, while a store is read."""

    def damage_error(self) -> ReleaseError:
        """Return the error for a database that does not hold what was written."""
        return damage_error(self.place)

    @property
    def is_reading(self) -> bool:
        """Tell whether everything is as it was at one moment, and nothing may be written."""
        return False

    # --- transactions -----------------------------------------------------------------------------

    @contextlib.contextmanager
    def transaction(self, *, settle: bool = False) -> Iterator[None]:
        """Write all or nothing, on the disk at the end; the epoch is checked in it.

        Parameters
        ----------
        settle : bool
            It belongs to the opening, when there is no epoch so far.
        """
        with self._transaction():
            if not settle:
                self._enter_epoch()
            yield

    def opening(self) -> AbstractContextManager[None]:
        """Look at a store, and take it over, with nobody writing in between."""
        return contextlib.nullcontext()

    @abc.abstractmethod
    def _transaction(self) -> AbstractContextManager[None]:
        """Begin to write, alone, and commit behind; what ends it early leaves it to be rolled back by closing."""

    @abc.abstractmethod
    def _read_epoch(self) -> list[tuple[Any, ...]]:
        """Return the row of the last writer, which no other can change before the end of the transaction."""

    def take_over(self, wanted: int | None) -> None:
        """Take the next epoch, or the one that is wanted: writers before it are refused from then on.

        It is entered in the first transaction that writes, which is soon enough where nobody else can write meanwhile.

        Raises
        ------
        ReleaseError
            Where a later writer was there already.
        """
        last = self._last_epoch()
        if wanted is not None and wanted <= last:
            raise old_epoch_error(self.place, wanted, last)
        self._before, self.epoch = last, last + 1 if wanted is None else wanted

    def _enter_epoch(self) -> None:
        """Enter the epoch, or look whether it is still the last one; within a transaction."""
        last = self._last_epoch()
        if self.epoch is None or last not in (self._before, self.epoch):
            raise fenced_error(self.place, self.epoch, last)
        if last != self.epoch:
            self.put("writers", seal_row(1, self.epoch))
            self._before = self.epoch

    def _last_epoch(self) -> int:
        rows = self._read_epoch()
        if len(rows) != 1 or not is_sealed(rows[0]):
            raise self.damage_error()
        return int(rows[0][1])

    # --- where it is, and whether it is the newest -------------------------------------------------

    @abc.abstractmethod
    def locate(self) -> tuple[str, str]:
        """Return where the database is: what a copy of it has otherwise, and its place for messages."""

    @abc.abstractmethod
    def check_newest(self) -> None:
        """Refuse a database that was set back, as far as it can tell by itself; the witness tells the rest."""

    @property
    @abc.abstractmethod
    def is_settled(self) -> bool:
        """Tell whether it has all that this version keeps beside the tables."""

    # --- the end ----------------------------------------------------------------------------------

    @abc.abstractmethod
    def forget_deleted(self) -> None:
        """Let go of what was deleted, as far as a database can by itself."""

    @abc.abstractmethod
    def close(self) -> None:
        """Let the database go, for others; what is not committed never happened."""

    @abc.abstractmethod
    def unforgotten_error(self, cause: Exception) -> ReleaseError:
        """Return the error for deleted inputs that could not be let go of."""
