"""Files of SQLite: connections, transactions, and why SQLite refuses. Nothing else imports sqlite3."""

from __future__ import annotations

import contextlib
import enum
import sqlite3
import time
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal, Self, TypeVar

T = TypeVar("T")
Error, OperationalError = sqlite3.Error, sqlite3.OperationalError


class Cause(enum.Enum):
    """A reason why SQLite refuses, by what a person can do about it."""

    BUSY = enum.auto()  # another connection has the file
    NO_ROOM = enum.auto()
    UNWRITABLE = enum.auto()
    MISUSE = enum.auto()  # of a connection that is closed, or of another thread
    DAMAGE = enum.auto()  # or a foreign file: also where a table is missing
    OTHER = enum.auto()


_CAUSES = {
    sqlite3.SQLITE_BUSY: Cause.BUSY,
    sqlite3.SQLITE_LOCKED: Cause.BUSY,
    sqlite3.SQLITE_FULL: Cause.NO_ROOM,
    sqlite3.SQLITE_IOERR: Cause.NO_ROOM,
    sqlite3.SQLITE_READONLY: Cause.UNWRITABLE,
    sqlite3.SQLITE_CANTOPEN: Cause.UNWRITABLE,
    sqlite3.SQLITE_PERM: Cause.UNWRITABLE,
    sqlite3.SQLITE_AUTH: Cause.UNWRITABLE,
}


class Connection(sqlite3.Connection):
    """A connection that really closes, whatever still refers to its cursors, such as the traceback of an interruption.

    Transactions begin and end where statements say so. Opened by :meth:`open`.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._cursors: weakref.WeakSet[sqlite3.Cursor] = weakref.WeakSet()

    @classmethod
    def open(
        cls, file: Path | None, *, patience: float = 5.0, must_exist: bool = False, any_thread: bool = False
    ) -> Self:
        """Connect to a file, or to a new database in memory for None.

        Parameters
        ----------
        file : Path or None
        patience : float
            Seconds that other connections may take to write.
        must_exist : bool
            Make no new file; the path must be absolute.
        any_thread : bool
            Let several threads use the connection, which must take turns.
        """
        name = ":memory:" if file is None else f"{file.as_uri()}?mode=rw" if must_exist else file
        return sqlite3.connect(
            name,
            uri=must_exist,
            timeout=patience,
            isolation_level=None,
            check_same_thread=not any_thread,
            factory=cls,
        )

    def execute(self, *args: Any) -> sqlite3.Cursor:
        """Execute a statement with a cursor that is known, and ended by :meth:`close`."""
        cursor = self.cursor()
        self._cursors.add(cursor)
        return cursor.execute(*args)

    def close(self) -> None:
        """Close the file: unfinished statements, which would keep it and its lock, are ended before."""
        self.end_statements()
        super().close()

    def end_statements(self) -> None:
        """End all statements that are unfinished."""
        cursors = list(self._cursors)  # not by `pop`, which fails where an interruption has left a dead one
        self._cursors.clear()
        for cursor in cursors:
            cursor.close()

    def is_whole(self) -> bool:
        """Tell whether SQLite finds no damage in the pages of the file."""
        return bool(self.execute("PRAGMA integrity_check(1)").fetchone() == ("ok",))

    def keep_log(self, synchronous: Literal["NORMAL", "FULL"], *, patience: float = 0.0) -> None:
        """Write ahead to a log: a commit is one append, and readers wait for nobody.

        Parameters
        ----------
        synchronous : str
            "FULL" syncs every commit; "NORMAL" checkpoints alone: a crash of the machine may then take the last
            transactions, but leaves the file whole.
        patience : float
            Seconds for which the switch is tried again while another connection makes it, as SQLite does not wait then.
        """
        self.execute(f"PRAGMA synchronous={synchronous}")
        end = time.monotonic() + patience
        while True:
            try:
                self.execute("PRAGMA journal_mode=WAL")
                return
            except sqlite3.OperationalError as error:
                if cause_of(error) is not Cause.BUSY or time.monotonic() > end:
                    raise
                time.sleep(0.01)

    def write(self, action: Callable[[], T]) -> T:
        """Write everything that an action does, or nothing, whatever interrupts it.

        No context manager: interrupted on its way in or out, one would end some later transaction, or none.
        """
        if self.in_transaction:  # where an interruption came while another was dealt with
            self.execute("ROLLBACK")
        try:
            self.execute("BEGIN IMMEDIATE")
            result = action()
            self.execute("COMMIT")
        except BaseException:
            if self.in_transaction:
                self.execute("ROLLBACK")
            raise
        return result


def log_path(file: Path) -> Path:
    """Return where SQLite keeps the write-ahead log of a database."""
    return file.with_name(f"{file.name}-wal")


# --- errors ---------------------------------------------------------------------------------------


def cause_of(error: Exception) -> Cause:
    """Say why SQLite refused, from its error, or from that of a lock or of a text beside it."""
    if isinstance(error, BlockingIOError):
        return Cause.BUSY
    if isinstance(error, sqlite3.ProgrammingError):
        return Cause.MISUSE
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF  # none where Python finds the error
    unexpected = isinstance(error, sqlite3.OperationalError) and code != sqlite3.SQLITE_ERROR
    return _CAUSES.get(code, Cause.OTHER if unexpected else Cause.DAMAGE)


@contextlib.contextmanager
def explaining(explain: Callable[[Cause, Exception], Exception | None]) -> Iterator[None]:
    """Raise, for an error of SQLite, what `explain` makes of its cause; the error itself where it gives None."""
    try:
        yield
    except (sqlite3.DatabaseError, BlockingIOError, UnicodeDecodeError) as error:
        explained = explain(cause_of(error), error)
        if explained is None:
            raise
        raise explained from None
