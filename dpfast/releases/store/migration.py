"""Stores of earlier versions: a file that was published, or the releases, say what they declared, or nobody does."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dpfast._support.errors import ReleaseError
from dpfast.releases.arbiters.place import Place
from dpfast.releases.composed_releases import compose_guarantee, declared_bounds, load_plans
from dpfast.releases.guarantee import Guarantee
from dpfast.releases.store.declaration import OF_STEPS, Declaration
from dpfast.releases.store.earlier_releases import Earlier
from dpfast.releases.store.release_rows import Records

DECLARED = "declared.json"
_KINDS = {"bins": str, "period_us": int, "clock": str, "start": str, "groups": list}
_OF_FILES = {"bins", "period_us", "clock"}


def take_over_declaration(published: Path, releases: Sequence[Earlier]) -> Declaration | None:
    """Return the declaration of such a store, from what its command left in the published folder; None without that.

    What that file does not hold comes from the configurations of the releases, where they agree.

    Raises
    ------
    ReleaseError
        For a file that is damaged, or says something else than the releases.
    """
    path = published / DECLARED
    try:
        content = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except (ValueError, RecursionError):
        content = None
    if not releases:  # a run that published nothing left it
        return None
    live = [entry for entry in releases if entry.kind == "live"]
    if not _is_sound(content, live=bool(live)) or any(len(content["groups"]) != entry.streams for entry in live):
        raise ReleaseError(
            f"{path} contradicts the releases of the store, or is damaged: put back what the first of them wrote. "
            "Without that move it away: the store can then be read, and adopted, if you know what they declared"
        )
    found = {
        "zone": "UTC" if content["clock"] == "UTC" else "local",
        "period_us": content["period_us"],
        "origin": content["start"] if live else str(np.datetime64(0, "us")),
    }
    if live:
        found["groups"] = content["groups"]
    else:
        found |= {"last_step": None, "grace_us": None}
    declared = [declared_bounds(plan) for plan in load_plans(releases).values()]
    found |= {name: value for name, value in declared[0].items() if all(x[name] == value for x in declared)}
    return Declaration(found, unknown=tuple(name for name in (*OF_STEPS, *declared[0]) if name not in found))


def _is_sound(content: Any, *, live: bool) -> bool:
    names = _KINDS.keys() if live else _OF_FILES
    if not isinstance(content, dict) or content.keys() != names:
        return False
    if any(type(content[name]) is not _KINDS[name] for name in names) or content["period_us"] < 1:
        return False
    if live and not (_is_moment(content["start"]) and all(isinstance(x, str) for x in content["groups"])):
        return False
    return content["bins"] == ("clock" if live else "file") and content["clock"] in ("UTC", "local")


def _is_moment(text: str) -> bool:
    try:
        return str(np.datetime64(text, "us")) == text
    except ValueError:
        return False


def upgrade(records: Records, published: Path) -> None:
    """Bring the database of such a store to the present format, within a transaction."""
    if records.version == 1:
        releases = records.releases()
        records.upgrade(take_over_declaration(published, releases), restate_guarantee(releases))
    else:
        records.upgrade(None, None)


def restate_guarantee(releases: Sequence[Earlier]) -> Guarantee | None:
    """Return what all releases of such a store promise together, where they declare different persons."""
    if not releases:
        return None
    *others, last = releases
    guarantee = compose_guarantee(load_plans([last])[last.id], others, [])
    return guarantee if guarantee.whole else None


def agree_declaration(
    path: Place, known: Declaration | None, releases: Sequence[Earlier], given: Mapping[str, Any], *, adopt: bool
) -> Declaration | None:
    """Return the declaration to enter, where a whole one is given; None where it is that of the store.

    Raises
    ------
    ReleaseError
        Where it differs from that of the store, naming the fields; and where nobody knows what releases that there are
        meant, unless the operator says it by `adopt`.
    """
    if known is None and not releases:
        return Declaration(dict(given))
    if known is not None and not known.unknown:
        known.hold(given, path, whole=True)
        return None
    declared = [declared_bounds(plan) for plan in load_plans(releases).values()]
    known = known or Declaration(declared[0], unknown=OF_STEPS)
    known.hold(given, path, whole=True)
    if not adopt:
        raise ReleaseError(
            f"the releases of the store {path} do not say what they meant by {', '.join(known.unknown)}: they were "
            "made in Python, or before stores held a declaration. They can be read. Where you know that they meant "
            "what you give now, say so by --adopt, and guarantees will name it as not checked; otherwise begin another "
            "store (--new-store)"
        )
    for fields in declared:
        Declaration(fields).hold({name: given.get(name) for name in fields}, path, whole=False)
    return known.complete_with(given)
