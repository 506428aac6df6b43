"""The set of all shards at a place is declared once, before the first of them begins; what differs is refused.

Each store knows its own groups alone. Cut in another number of shards, or of other groups, a stream would be in a
second store, which has published nothing so far: its steps would be published again, with other noise.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from dpfast._support.atomic_files import replace_file, sync_folder
from dpfast._support.canonical_json import canonical, digest
from dpfast._support.errors import DataError, ReleaseError
from dpfast.releases.arbiters import private_files
from dpfast.releases.arbiters.opened_arbiter import ERRORS
from dpfast.releases.arbiters.place import Place, Postgres
from dpfast.releases.arbiters.postgres_session import PostgresSession
from dpfast.releases.arbiters.sqlite_arbiter import NAME as DATABASE
from dpfast.releases.arbiters.store_errors import unopenable_error
from dpfast.releases.stream_opening import differing_fields

NAME = "shards.json"
_PIECES = "pieces.json"
_TABLE = "CREATE TABLE shards (number INTEGER PRIMARY KEY, content TEXT NOT NULL)"


def hold_declaration(
    place: Place, published: Path, declared: Mapping[str, Any], shard: int, store: Place, *, adopt: bool
) -> bool:
    """Declare the shards of a place, or refuse a declaration that is not the one they were begun with.

    It is in the folder of the stores (``shards.json``), or in a table of the place in PostgreSQL; and, as it is public,
    in the folder of what is public, which so cannot serve shards of two places.

    Parameters
    ----------
    place : Path or Postgres
    published : Path
    declared : mapping
        All that decides what is published, as JSON holds it.
    shard : int
        The one that is to be opened.
    store : Path or Postgres
        Where its store is, which must be there if it has begun.
    adopt : bool
        Go on with a place that was copied or moved, after the original is gone for good.

    Returns
    -------
    bool
        Whether the shard has begun.

    Raises
    ------
    ReleaseError
        Where another one is there, where it is missing beside stores of shards, or damaged; where the place is a copy;
        where the store of a shard that has begun is missing.
    """
    wanted = json.loads(canonical(declared))
    try:
        with _open_declaration(place) as there:
            found = _read(place, there.begin({"id": uuid.uuid4().hex, "at": there.here, "declared": wanted}))
            if fields := differing_fields(wanted, found["declared"]):
                raise ReleaseError(
                    f"the shards at {place} must be declared as they were begun, got other {', '.join(fields)}: "
                    "declare them so; or begin shards of your own at another place, with data that were never published"
                )
            if found.get("at") != there.here:  # the public copy, put back, does not say where it was
                if not adopt:
                    raise _copied_error(place)
                there.replace(_write({**found, "at": there.here}))
            has_begun = there.has_begun(shard)
            if has_begun and not there.has_store(store):
                raise _lost_error(store, shard)
        _show(place, published / NAME, _write({"id": found["id"], "declared": found["declared"]}))
    except ERRORS as error:
        raise unopenable_error(place, error) from None
    return has_begun


def mark_begun(place: Place, shard: int) -> None:
    """Note that a shard has a store, before anything is published from it: should it be missing, none is begun anew."""
    try:
        with _open_declaration(place) as there:
            there.mark(shard)
    except ERRORS as error:
        raise unopenable_error(place, error) from None


def hold_pieces(folder: Path, cut: Mapping[str, Any]) -> None:
    """Say of a folder how its pieces are cut (``pieces.json``), or refuse one whose pieces are cut otherwise.

    Parameters
    ----------
    folder : Path
    cut : mapping
        All that decides which event is in which piece, and where, as JSON holds it.

    Raises
    ------
    DataError
        Where it has pieces of others: their inputs would be published as those of these shards.
    """
    wanted = json.loads(canonical(cut))
    file = private_files.make_folder(folder) / _PIECES
    there = file.read_bytes() if file.exists() else private_files.write_once(file, _write({"cut": wanted}).encode())
    found = _read(folder, there.decode(errors="replace"), _PIECES)
    if fields := differing_fields(wanted, found["cut"]):
        raise DataError(
            f"{folder} must have pieces of these shards, got others, of other {', '.join(fields)}: give the folder in "
            "which those of these shards are closed"
        )


class _InFolder:
    """The declaration in the folder of the stores."""

    def __init__(self, place: Path) -> None:
        self._place = private_files.make_folder(place)
        self._file = self._place / NAME
        self.here = [str(self._place.lstat().st_ino), str(self._place)]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def begin(self, content: dict[str, Any]) -> str:
        """Return what is there, or write this."""
        has_stores = any(self._place.glob("shard-[0-9]*"))  # looked for first: the declaration comes before them
        if self._file.exists():
            private_files.check_private(self._file)
            return self._file.read_bytes().decode(errors="replace")
        if has_stores:
            raise _missing_error(self._place)
        return private_files.write_once(self._file, _write(content).encode()).decode(errors="replace")

    def replace(self, text: str) -> None:
        """Put another declaration in its place: at every moment one of both is there."""
        new = self._place / f".{NAME}.{uuid.uuid4().hex}"
        private_files.write_once(new, text.encode())
        new.replace(self._file)
        sync_folder(self._place)

    def _mark_of(self, shard: int) -> Path:
        return self._place / f"begun-{shard:04}"

    def has_begun(self, shard: int) -> bool:
        """Tell whether a shard has ever had a store."""
        return self._mark_of(shard).exists()

    def mark(self, shard: int) -> None:
        """Note that it has one."""
        private_files.write_once(self._mark_of(shard), b"")

    def has_store(self, store: Any) -> bool:
        """Tell whether a store is there."""
        return bool((store / DATABASE).exists())


class _InDatabase:
    """The declaration in a table of PostgreSQL: row 0; and a row for each shard that has begun, from 1 on."""

    def __init__(self, place: Postgres) -> None:
        self._place, self._session = place, PostgresSession(place, "the shards")
        self.here = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._session.close()

    def begin(self, content: dict[str, Any]) -> str:
        """Return what is there, or write this."""
        has_stores = self._session.execute(
            "SELECT 1 FROM pg_namespace WHERE starts_with(nspname, ?::text) AND "
            "substr(nspname, length(?::text) + 1) ~ '^[0-9]{4}$'",
            (f"{self._place.schema}-",) * 2,
        ).fetchone()
        if not self._session.has_table("shards"):
            if has_stores is not None:
                raise _missing_error(self._place)
            self._session.create(lambda: self._begin_table(content), "shards")
        self.here = self._session.locate()[0]
        return "".join(text for (text,) in self._session.execute("SELECT content FROM shards WHERE number = 0"))

    def _begin_table(self, content: dict[str, Any]) -> None:
        self._session.execute(_TABLE)
        here = {**content, "at": self._session.locate()[0]}
        self._session.execute("INSERT INTO shards VALUES (?, ?)", (0, _write(here)))

    def replace(self, text: str) -> None:
        """Put another declaration in its place."""
        with self._session.transaction():
            self._session.put("shards", (0, text))

    def has_begun(self, shard: int) -> bool:
        """Tell whether a shard has ever had a store."""
        return self._session.execute("SELECT 1 FROM shards WHERE number = ?", (shard + 1,)).fetchone() is not None

    def mark(self, shard: int) -> None:
        """Note that it has one."""
        with self._session.transaction():
            self._session.put("shards", (shard + 1, ""))

    def has_store(self, store: Any) -> bool:
        """Tell whether a store is there."""
        found = self._session.execute("SELECT 1 FROM pg_namespace WHERE nspname = ?", (store.schema,))
        return found.fetchone() is not None


def _open_declaration(place: Place) -> _InFolder | _InDatabase:
    return _InDatabase(place) if isinstance(place, Postgres) else _InFolder(place)


def _show(place: Place, file: Path, text: str) -> None:
    """Write the declaration beside what is published; refuse a folder that has that of other shards."""
    private_files.make_folders(file.parent)
    with private_files.waiting_for_folder(file.parent):
        if not file.exists():
            replace_file(file, text)
        elif file.read_bytes() != text.encode():
            raise ReleaseError(
                f"published must be the folder of the shards at {place}, got {file.parent}, which has the {NAME} of "
                "others: choose another folder, or put back what was there"
            )


def _write(content: dict[str, Any]) -> str:
    return json.dumps({**content, "sha256": digest(canonical(content))}, indent=1) + "\n"


def _read(place: Place, text: str, name: str = NAME) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(text)
        if found.pop("sha256") == digest(canonical(found)):
            return found
    except (ValueError, KeyError, TypeError, AttributeError):
        pass
    raise ReleaseError(f"the declaration of the shards at {place} is damaged: put back {name} as it was written")


def _missing_error(place: Place) -> ReleaseError:
    return ReleaseError(
        f"the declaration of the shards at {place} is missing ({NAME}, or the table shards), while there are stores of "
        "them: nobody can tell which streams they have published. Put it back as it was; there is one in the folder of "
        "what is public too"
    )


def _copied_error(place: Place) -> ReleaseError:
    return ReleaseError(
        f"the shards at {place} were copied or moved, or are opened with another failover: those that have not begun "
        "would be published here and there. Go on where they were, and as they were; or, after the original is gone "
        "for good, with adopt=True"
    )


def _lost_error(store: Place, shard: int) -> ReleaseError:
    return ReleaseError(
        f"the store {store} of shard {shard} is missing, and the shard has begun: what it has published would be "
        "published again, with other noise. Put the store back"
    )
