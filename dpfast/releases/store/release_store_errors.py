"""Errors of a store say what to do where it is in use, damaged, or cannot be opened or written."""

from __future__ import annotations

import functools
import os
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


def damage_error(file: Path) -> ReleaseError:
    """Return the error for a file that is not what was written."""
    return ReleaseError(
        f"{file} is damaged, or no store of dpfast: nothing may be published from it. Only a copy that is as new as "
        "its witness can take its place; without one begin a new store, with data that were never published"
    )


def unopenable_error(path: str | os.PathLike[str], cause: Exception) -> ReleaseError:
    """Return the error for a store that cannot be made or opened, as on a full disk."""
    return ReleaseError(f"cannot open the store {path}: {cause}")


def unwritten_error(path: Path, cause: Exception) -> ReleaseError:
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
