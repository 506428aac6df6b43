"""What a store remembers of its ledger: which entries its releases are, and how far the ledger had come."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from dpfast._support import sqlite
from dpfast.releases.store import release_store_errors

_LEDGER = """CREATE TABLE IF NOT EXISTS ledger (
    id INTEGER PRIMARY KEY, ledger TEXT NOT NULL, path TEXT NOT NULL, entries INTEGER NOT NULL, chain TEXT NOT NULL,
    seal INTEGER NOT NULL
)"""
_SPENT = "CREATE TABLE IF NOT EXISTS spent (entry INTEGER PRIMARY KEY, release INTEGER NOT NULL, seal INTEGER NOT NULL)"


class Remembered(NamedTuple):
    """The last word of a store about its ledger: its id, where it was, its entries and their chain."""

    ledger: str
    path: str
    entries: int
    chain: str


class SpentEntries:
    """The rows of a store about its ledger; new ones are written with the next publication, or never.

    Parameters
    ----------
    file : Path
    connection : Connection
    """

    def __init__(self, file: Path, connection: sqlite.Connection) -> None:
        self._file, self._connection = file, connection
        self._new: tuple[Remembered, Mapping[int, int]] | None = None

    def remembered(self) -> Remembered | None:
        """Return what is known of the ledger; None where no release was entered in one."""
        rows = self._fetch("ledger")
        if not rows:
            return None
        _, *remembered = rows[0]
        return Remembered(*remembered)

    def releases(self) -> dict[int, int]:
        """Return the release of each entry."""
        return dict(self._fetch("spent"))

    def remember(self, ledger: Remembered, releases: Mapping[int, int]) -> None:
        """Keep, with the next publication, what is known of the ledger, and the releases of further entries."""
        self._new = ledger, {**(self._new[1] if self._new else {}), **releases}

    def write(self) -> None:
        """Write what is to be remembered, within a transaction."""
        if self._new is None:
            return
        for table in (_LEDGER, _SPENT):
            self._connection.execute(table)
        ledger, releases = self._new
        row = sqlite.seal_row(1, *ledger)
        self._connection.execute("INSERT OR REPLACE INTO ledger VALUES (?, ?, ?, ?, ?, ?)", row)
        for entry, release in releases.items():
            self._connection.execute("INSERT INTO spent VALUES (?, ?, ?)", sqlite.seal_row(entry, release))
        self._new = None

    def _fetch(self, table: str) -> list[tuple[Any, ...]]:
        """Return sealed rows without their seals; none where the store never had a ledger."""
        with release_store_errors.refusing_damage(self._file):
            if not self._connection.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (table,)).fetchall():
                return []
            rows = self._connection.execute(f"SELECT * FROM {table} ORDER BY 1").fetchall()
        if not all(map(sqlite.is_sealed, rows)):
            raise release_store_errors.damage_error(self._file)
        return [row[:-1] for row in rows]
