"""The tables of the database of a store, and how a new one begins."""

from __future__ import annotations

import uuid

from dpfast._support.checksums import seal_row
from dpfast.releases.arbiters.arbiter import WRITERS, Arbiter

FORMAT = 4
_DECLARATION = "CREATE TABLE declaration (id INTEGER PRIMARY KEY, content TEXT NOT NULL, seal INTEGER NOT NULL)"
_NAMES = "CREATE TABLE names (release INTEGER PRIMARY KEY, name TEXT NOT NULL, seal INTEGER NOT NULL)"
_PERSONS = """
CREATE TABLE persons (
    id INTEGER PRIMARY KEY, terms TEXT NOT NULL, span INTEGER NOT NULL, key_check BLOB NOT NULL, count INTEGER NOT NULL,
    seal INTEGER NOT NULL
);
CREATE TABLE kept (
    person BLOB NOT NULL, stream INTEGER NOT NULL, step INTEGER NOT NULL, seal INTEGER NOT NULL,
    PRIMARY KEY (person, stream, step)
) WITHOUT ROWID;
"""
_PARTS = """
CREATE TABLE receivers (
    release INTEGER NOT NULL, part INTEGER NOT NULL, position INTEGER NOT NULL, state BLOB NOT NULL,
    seal INTEGER NOT NULL, PRIMARY KEY (release, part)
) WITHOUT ROWID;
ALTER TABLE progress DROP COLUMN receiver;
CREATE TABLE second_witness (id INTEGER PRIMARY KEY, place TEXT NOT NULL, seal INTEGER NOT NULL);
CREATE TABLE pruned (
    release INTEGER PRIMARY KEY, next INTEGER NOT NULL, push INTEGER NOT NULL, steps INTEGER NOT NULL,
    chain BLOB NOT NULL, seal INTEGER NOT NULL
);
"""
_SCHEMA = """
CREATE TABLE meta (format INTEGER NOT NULL, id TEXT NOT NULL, inode TEXT NOT NULL, path TEXT NOT NULL);
CREATE TABLE releases (
    id INTEGER PRIMARY KEY, kind TEXT NOT NULL, configuration TEXT NOT NULL, guarantee TEXT NOT NULL,
    guarantee_json TEXT NOT NULL, streams INTEGER NOT NULL, first INTEGER NOT NULL, seal INTEGER NOT NULL
);
CREATE TABLE progress (
    release INTEGER PRIMARY KEY, position INTEGER NOT NULL, count INTEGER NOT NULL, closed INTEGER NOT NULL,
    receiver BLOB NOT NULL, seal INTEGER NOT NULL
);
CREATE TABLE pushes (
    id INTEGER PRIMARY KEY, release INTEGER NOT NULL, first INTEGER NOT NULL, count INTEGER NOT NULL,
    privatized BLOB NOT NULL, estimate BLOB NOT NULL, chain BLOB NOT NULL, seal INTEGER NOT NULL
);
CREATE UNIQUE INDEX pushes_by_step ON pushes (release, first);
CREATE TABLE inputs (
    release INTEGER NOT NULL, step INTEGER NOT NULL, x BLOB NOT NULL, seal INTEGER NOT NULL,
    PRIMARY KEY (release, step)
) WITHOUT ROWID;
"""
_NOTHING = "null"  # declared: a row that is missing is damage


def begin(arbiter: Arbiter, place: tuple[str, str]) -> None:
    """Enter the tables of a new store, and where it is."""
    _execute_all(arbiter, _SCHEMA)
    for add in (add_format_2, add_format_3, add_format_4):
        add(arbiter)
    arbiter.add("meta", (FORMAT, str(uuid.uuid4()), *place))


def add_format_2(arbiter: Arbiter) -> None:
    """Add what format 2 has and format 1 has not, with nothing declared, and no release that has a name."""
    arbiter.execute(_NAMES)
    arbiter.execute(_DECLARATION)
    arbiter.add("declaration", seal_row(1, _NOTHING))


def add_format_3(arbiter: Arbiter) -> None:
    """Add what format 3 has and format 2 has not, with no bounds on persons: the store protects events."""
    _execute_all(arbiter, _PERSONS)


def add_format_4(arbiter: Arbiter) -> None:
    """Add what format 4 has and format 3 has not: states of parts of receivers, pruned history, and writers."""
    _execute_all(arbiter, _PARTS)
    arbiter.execute(WRITERS)
    arbiter.add("writers", seal_row(1, 0))  # that is looked at, and locked


def _execute_all(arbiter: Arbiter, statements: str) -> None:
    for statement in statements.split(";")[:-1]:
        arbiter.execute(statement)
