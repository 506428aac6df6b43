"""Errors of a store say what to do where it is in use, damaged, or cannot be opened or written."""

from __future__ import annotations

import functools
from contextlib import AbstractContextManager
from pathlib import Path

from dpfast._support import sqlite
from dpfast._support.errors import ReleaseError
from dpfast._support.sqlite import Cause


def refusing_damage(file: Path) -> AbstractContextManager[None]:
    """Turn errors of SQLite into refusals, while a store is read."""
    return sqlite.explaining(functools.partial(_explain, file))


def _explain(file: Path, cause: Cause, error: Exception) -> ReleaseError:
    if cause is Cause.BUSY:
        return _in_use_error(file)
    if cause in (Cause.DAMAGE, Cause.MISUSE):
        return damage_error(file)
    return ReleaseError(
        f"cannot open the store {file.parent}: {error}; its disk must have room and let you write, also to read "
        "what was published"
    )


def _in_use_error(file: Path) -> ReleaseError:
    return ReleaseError(
        f"the store {file.parent} is in use, by another process or by an object of this one: "
        "one at a time may publish from it. End the other one (a stream: suspend it) and open it again"
    )


def damage_error(database: object) -> ReleaseError:
    """Return the error for a database that is not what was written."""
    return ReleaseError(
        f"{database} is damaged, or no store of dpfast: nothing may be published from it. Only a copy that is as new "
        "as its witness can take its place; without one begin a new store, with data that were never published"
    )


def unopenable_error(path: object, cause: Exception) -> ReleaseError:
    """Return the error for a store that cannot be made or opened, as on a full disk."""
    return ReleaseError(f"cannot open the store {path}: {cause}")


def unwritten_error(path: object, cause: Exception) -> ReleaseError:
    """Return the error for a publication that was not written whole, as on a full disk."""
    return ReleaseError(
        f"the store {path} could not be written ({cause}), and the call returned nothing: put that "
        "right and open it again, which tells how far it came"
    )


def unfolded_log_error(log: Path, cause: Exception) -> ReleaseError:
    """Return the error for a log with inputs that could not be emptied when a store was closed."""
    return ReleaseError(
        f"{log} holds inputs, and could not be folded into the store and overwritten ({cause}): is the disk "
        "full? Put that right, then open and close the store"
    )


def written_over_error(path: object) -> ReleaseError:
    """Return the error for an older copy that was written over the files of a store, and of its witness."""
    return ReleaseError(
        f"an older copy was written over the files of the store {path}, and over its witness: it has published "
        "since, and going on would publish steps again with other noise. Put the newest files back; only if these "
        "are the newest that there ever were, go on with adopt=True (--adopt)"
    )


def fenced_error(path: object, epoch: int | None, last: int) -> ReleaseError:
    """Return the error for a writer that another one has taken over from."""
    return ReleaseError(
        f"another writer (epoch {last}) has taken over the store {path} from this one (epoch {epoch}), which has "
        "published nothing since: end this one. What was published can be read"
    )


def old_epoch_error(path: object, epoch: int, last: int) -> ReleaseError:
    """Return the error for a writer that comes with an epoch that is over."""
    return ReleaseError(
        f"epoch must be higher than that of the last writer of the store {path}, {last}, got {epoch}: this writer was "
        "replaced by a later one. End it; or, where it is the one that is to go on, give it the next epoch"
    )


def missing_store_error(place: object, *, witnessed: bool) -> ReleaseError:
    """Return the error for tables that are not there, where they must be."""
    if not witnessed:
        return ReleaseError(f"there is no store {place} to read from: nothing was published there")
    return ReleaseError(
        f"the store {place} is missing, while its witness is there: nobody can tell what was published. Give the "
        "database that it was in, or begin another one, with data that were never published"
    )
