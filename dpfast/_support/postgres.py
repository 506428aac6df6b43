"""Databases of PostgreSQL: connections, and why the server refuses. Nothing else imports psycopg.

Nothing that the driver says comes through: its messages quote values. What does is the code of the error
(SQLSTATE) and words of our own.
"""

from __future__ import annotations

import contextlib
import enum
import functools
from collections.abc import Iterator, Sequence
from typing import Any

from dpfast._support.validation import optional

_AT_ONCE = 64  # rows of a long query that are fetched together


class Refusal(enum.Enum):
    """A reason why PostgreSQL refuses, by what a person can do about it."""

    LOST = "the connection was lost, or the server is not there"
    REFUSED = "the server does not let this user in, or has no such database"
    FORBIDDEN = "the user may not do that, or the database is read-only"
    BUSY = "another writer is in the middle of a transaction, and did not end it"
    TIMED_OUT = "the server ended the session, which was idle in a transaction"
    NO_ROOM = "the server has no room left on its disk, or no memory"
    CONFLICT = "there is a row with that key already"
    DAMAGE = "a table is missing, or its pages are damaged"
    OTHER = "the server refused"


# by the first characters of the code, the longest that are there
_CAUSES = {
    "08": Refusal.LOST,
    "57P": Refusal.LOST,
    "28": Refusal.REFUSED,
    "3D": Refusal.REFUSED,
    "42501": Refusal.FORBIDDEN,
    "25006": Refusal.FORBIDDEN,
    "55P03": Refusal.BUSY,
    "40": Refusal.BUSY,
    "25P03": Refusal.TIMED_OUT,
    "53": Refusal.NO_ROOM,
    "58030": Refusal.NO_ROOM,
    "23505": Refusal.CONFLICT,
    "42P01": Refusal.DAMAGE,
    "3F000": Refusal.DAMAGE,
    "XX": Refusal.DAMAGE,
}


class Error(Exception):
    """Say that PostgreSQL refused, and why.

    Attributes
    ----------
    why : Refusal
    code : str or None
        SQLSTATE; None where the driver has none, as of a connection that was lost.
    """

    def __init__(self, code: str | None) -> None:
        found = [code[:n] for n in (5, 3, 2) if code is not None and code[:n] in _CAUSES]
        self.code, self.why = code, _CAUSES[found[0]] if found else Refusal.LOST if code is None else Refusal.OTHER
        super().__init__(self.why.value + ("" if code is None else f" (SQLSTATE {code})"))


def _psycopg() -> Any:
    return optional("psycopg", "postgres")


@contextlib.contextmanager
def _without_words() -> Iterator[None]:
    try:
        yield
    except _psycopg().Error as error:
        raise Error(error.sqlstate) from None


def _keep_remark(noticed: list[str | None], said: Any) -> None:
    """Keep the code of a remark; the end of a session is none, which comes behind an answer and does not change it."""
    if said.severity_nonlocalized != "FATAL":
        noticed.append(said.sqlstate)


class PostgresConnection:
    """A connection whose transactions begin and end where statements say so. It is for one thread at a time.

    Parameters
    ----------
    address : str
        As libpq takes it: "host=... dbname=...", a URI, or "", for what its environment says.

    Attributes
    ----------
    noticed : list of str or None
        Codes of what the server has remarked, such as warnings, since :meth:`forget_notices`.
    """

    def __init__(self, address: str) -> None:
        with _without_words():
            self._connection = _psycopg().connect(
                address, autocommit=True, application_name="dpfast", connect_timeout=20, keepalives_idle=20
            )
        noticed: list[str | None] = []
        self._connection.add_notice_handler(functools.partial(_keep_remark, noticed))
        self.noticed = noticed

    def execute(self, statement: str, values: Sequence[Any] = ()) -> Any:
        """Execute a statement with ``?`` for values, which go as bytes and come as such."""
        with _without_words():
            return self._connection.execute(statement.replace("?", "%b"), values or None, binary=True)

    def stream(self, query: str) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a query, some at a time; within a transaction."""
        with _without_words(), self._connection.cursor(name="dpfast", binary=True) as cursor:
            cursor.itersize = _AT_ONCE
            cursor.execute(query)
            yield from cursor

    def forget_notices(self) -> None:
        """Begin anew to collect what the server remarks."""
        self.noticed.clear()

    @property
    def in_transaction(self) -> bool:
        """Tell whether a transaction has begun and not ended, be it one that failed."""
        return bool(self._connection.info.transaction_status != 0)

    @property
    def descriptor(self) -> int:
        """Return the number of the socket."""
        return int(self._connection.fileno())

    def close(self) -> None:
        """End the session; what is not committed never happened."""
        self._connection.close()


def quote_name(name: str) -> str:
    """Return a name as SQL has it."""
    return '"' + name.replace('"', '""') + '"'
