"""The set of all shards at a place is declared once, before the first of them begins; what differs is refused.

Each store knows its own groups alone. Cut in another number of shards, or of other groups, a stream would be in a
second store, which has published nothing so far: its steps would be published again, with other noise.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dpfast._support.atomic_files import replace_file
from dpfast._support.canonical_json import canonical, digest
from dpfast._support.errors import DataError, ReleaseError
from dpfast.releases.arbiters import private_files
from dpfast.releases.arbiters.opened_arbiter import ERRORS
from dpfast.releases.arbiters.place import Place, Postgres
from dpfast.releases.arbiters.postgres_session import PostgresSession
from dpfast.releases.arbiters.store_errors import unopenable_error
from dpfast.releases.stream_opening import differing_fields

NAME = "shards.json"
_PIECES = "pieces.json"
_TABLE = "CREATE TABLE shards (number INTEGER PRIMARY KEY, content TEXT NOT NULL)"


def hold_declaration(place: Place, published: Path, declared: Mapping[str, Any]) -> None:
    """Declare the shards of a place, or refuse a declaration that is not the one they were begun with.

    It is in the folder of the stores (``shards.json``), or in a table of the place in PostgreSQL; and, as it is public,
    in the folder of what is public, which so cannot serve shards of two places.

    Parameters
    ----------
    place : Path or Postgres
    published : Path
    declared : mapping
        All that decides what is published, as JSON holds it.

    Raises
    ------
    ReleaseError
        Where another one is there, where it is missing beside stores of shards, or damaged.
    """
    wanted = json.loads(canonical(declared))
    new = _write({"id": uuid.uuid4().hex, "declared": wanted})
    try:
        there = _find_in_database(place, new) if isinstance(place, Postgres) else _find_in_folder(place, new)
        found = _read(place, there)
        if fields := differing_fields(wanted, found["declared"]):
            raise ReleaseError(
                f"the shards at {place} must be declared as they were begun, got other {', '.join(fields)}: declare "
                "them so; or begin shards of your own at another place, with data that were never published"
            )
        _show(place, published / NAME, there)
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


def _find_in_folder(place: Path, new: str) -> str:
    folder = private_files.make_folder(place)
    file = folder / NAME
    if file.exists():
        private_files.check_private(file)
        return file.read_bytes().decode(errors="replace")
    if any(folder.glob("shard-[0-9]*")):
        raise _missing_error(place)
    return private_files.write_once(file, new.encode()).decode(errors="replace")


def _find_in_database(place: Postgres, new: str) -> str:
    with PostgresSession(place, "the shards") as session:
        if not session.has_table("shards"):
            begun = session.execute(
                "SELECT 1 FROM pg_namespace WHERE starts_with(nspname, ?::text) AND "
                "substr(nspname, length(?::text) + 1) ~ '^[0-9]{4}$'",
                (f"{place.schema}-",) * 2,
            )
            if begun.fetchone() is not None and not session.has_table("shards"):
                raise _missing_error(place)
            session.create(lambda: _begin_table(session, new), "shards")
        rows = session.execute("SELECT content FROM shards").fetchall()
    return "".join(text for (text,) in rows)


def _begin_table(session: PostgresSession, new: str) -> None:
    session.execute(_TABLE)
    session.execute("INSERT INTO shards VALUES (?, ?)", (1, new))


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
