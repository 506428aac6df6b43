"""The arbiter of a place."""

from __future__ import annotations

from pathlib import Path

from dpfast.releases.arbiters import private_files
from dpfast.releases.arbiters.arbiter import Arbiter, Begin
from dpfast.releases.arbiters.place import Place, Postgres
from dpfast.releases.arbiters.postgres_arbiter import PostgresArbiter
from dpfast.releases.arbiters.sqlite_arbiter import SqliteArbiter

ERRORS = (*PostgresArbiter.errors, *SqliteArbiter.errors)  # where a database is not there, or has no room


def open_arbiter(place: Place, begin: Begin, witness: Path, *, reading: bool) -> Arbiter:
    """Open the database of a store, or begin it where nothing was before.

    Parameters
    ----------
    place : Place
        A folder is there.
    begin : callable
        Enters the tables of a new store, and where it is.
    witness : Path
        The file of the witness: where it is there, the database must be too.
    reading : bool
        Whether nothing will be published.
    """
    if isinstance(place, Postgres):
        return PostgresArbiter.open(place, begin, witnessed=witness.exists(), reading=reading)
    return SqliteArbiter.open(place, begin, witness)


def settle_place(place: Place, published: Path | None) -> Place:
    """Make the folder of a store, or take its place in a database; refuse one within the folder of what is public."""
    if isinstance(place, Postgres):
        return place
    if published is not None:
        private_files.check_apart("the store", place, published)
    return private_files.make_folder(place)
