"""What a store remembers of its ledger: which entries its releases are, and how far the ledger had come."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from dpfast._support import checksums
from dpfast.releases.arbiters.arbiter import Arbiter

_LEDGER = """CREATE TABLE IF NOT EXISTS ledger (
    id INTEGER PRIMARY KEY, ledger TEXT NOT NULL, path TEXT NOT NULL, entries INTEGER NOT NULL, chain TEXT NOT NULL,
    seal INTEGER NOT NULL
)"""
_SPENT = """CREATE TABLE IF NOT EXISTS spent (
    entry INTEGER PRIMARY KEY, release INTEGER NOT NULL, said TEXT NOT NULL, seal INTEGER NOT NULL
)"""


class Remembered(NamedTuple):
    """Hold the last word of a store about its ledger: its id, where it was, its entries and their chain."""

    ledger: str
    path: str
    entries: int
    chain: str


class SpentEntries:
    """Keep the rows of a store about its ledger; new ones are written with the next publication, or never.

    Parameters
    ----------
    arbiter : Arbiter
    """

    def __init__(self, arbiter: Arbiter) -> None:
        self._arbiter = arbiter
        self._new: tuple[Remembered, dict[int, tuple[int, str]]] | None = None

    def remembered(self) -> Remembered | None:
        """Return what is known of the ledger; None where no release was entered in one."""
        rows = self._fetch("ledger")
        if not rows:
            return None
        _, *remembered = rows[0]
        return Remembered(*remembered)

    def releases(self) -> dict[int, int]:
        """Return the release of each entry."""
        return {entry: release for entry, release, _ in self._fetch("spent")}

    def said(self, release: int) -> str | None:
        """Return what the ledger said when it entered a release; None where it was not entered, or was before this."""
        return next((said for _, number, said in reversed(self._fetch("spent")) if number == release), None)

    def remember(self, ledger: Remembered, releases: Mapping[int, int], said: str) -> None:
        """Keep, with the next publication, what is known of the ledger, and the releases of further entries.

        `said` is what the ledger says of all that was spent, for readers of these releases.
        """
        known = {} if self._new is None else self._new[1]
        self._new = ledger, known | {entry: (release, said) for entry, release in releases.items()}

    def write(self) -> None:
        """Write what is to be remembered, within a transaction."""
        if self._new is None:
            return
        for table in (_LEDGER, _SPENT):
            self._arbiter.execute(table)
        ledger, releases = self._new
        self._arbiter.put("ledger", checksums.seal_row(1, *ledger))
        for entry, (release, said) in releases.items():
            self._arbiter.add("spent", checksums.seal_row(entry, release, said))
        self._new = None

    def _fetch(self, table: str) -> list[tuple[Any, ...]]:
        """Return sealed rows without their seals; none where the store never had a ledger."""
        with self._arbiter.explaining():
            if not self._arbiter.has_table(table):
                return []
            rows = self._arbiter.execute(f"SELECT * FROM {table} ORDER BY 1").fetchall()
        if not all(map(checksums.is_sealed, rows)):
            raise self._arbiter.damage_error()
        return [row[:-1] for row in rows]
