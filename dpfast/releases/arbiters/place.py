"""Where a store is: in a private folder, or in a database of PostgreSQL."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from dpfast._support import validation

Failover = Literal["none", "synchronous"]
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,47}")


@dataclass(frozen=True)
class Postgres:
    """Keep a store in a database of PostgreSQL: give this where other functions take the path of a store.

    Use it where a stream outgrows one machine: any machine may go on with a store that is there, and one that was
    replaced is refused. It needs the extra ``dpfast[postgres]``.

    Parameters
    ----------
    address : str
        The address of the database, as libpq takes it: "host=db.example dbname=releases user=dpfast", or a URI. What
        it leaves out comes from libpq's environment and files, where a password belongs: PGSERVICE, PGPASSFILE,
        ~/.pgpass. It must lead to the server itself, or to a pooler that gives each client a session of its own.
    name : str
        The name of the store, which no other store there has: a letter, then up to 47 small letters, digits, ``_`` and
        ``-``.
    failover : {"none", "synchronous"}
        Which server may take over from this one: none, so that a database that was restored to an earlier time is
        refused; or a standby that has every commit: `synchronous_standby_names` of the server must name some, a commit
        counts once one of them has it, and whoever opens or reads a store waits until one has all that is read.

    Notes
    -----
    *Privacy.* The database holds inputs, in clear, as long as a filter needs them, and pseudonyms of persons: it, its
    log, its replicas and its backups are as private as the data. The server must run with `fsync`, `full_page_writes`
    and `synchronous_commit` on, which is looked at in every transaction that publishes: otherwise a crash would take
    back what was published. The release is in tables of a schema of its own, ``dpfast_`` and the name.

    Examples
    --------
    >>> import dpfast as dp
    >>> dp.Postgres("host=db.example dbname=releases password=secret", "departures")
    Postgres(name='departures', failover='none')
    """

    address: str = field(default="", repr=False)
    name: str = ""
    failover: Failover = "none"

    def __post_init__(self) -> None:
        if type(self.address) is not str:
            raise ValueError("address must be text, as libpq takes it: 'host=... dbname=...' or a URI, or ''")
        if not _NAME.fullmatch(str(self.name)):
            must_be = "a small letter, and up to 47 small letters, digits, _ and - behind it"
            raise validation.fail("name", must_be, self.name)
        if self.failover not in get_args(Failover):
            raise validation.fail("failover", "'none' or 'synchronous'", self.failover)

    def __str__(self) -> str:
        return f"{self.name!r} in PostgreSQL"

    @property
    def schema(self) -> str:
        """The schema of its tables."""
        return f"dpfast_{self.name}"

    def beside(self, suffix: str) -> Postgres:
        """Return a place with a longer name in the same database."""
        return Postgres(self.address, f"{self.name}{suffix}", self.failover)


Place = Path | Postgres
PlaceLike = str | os.PathLike[str] | Postgres


def check_place(name: str, value: Any) -> Place:
    """Return a path, or a place in a database; refuse anything else."""
    return value if isinstance(value, Postgres) else validation.path(name, value)
