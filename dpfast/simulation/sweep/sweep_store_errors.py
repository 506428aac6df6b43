"""Errors of a store of sweeps say what to do when SQLite refuses, or a file is damaged."""

from __future__ import annotations

from pathlib import Path

from dpfast._support.errors import DataError
from dpfast._support.sqlite import Cause


def explain_refusal(path: Path | None, patience: float, cause: Cause, error: Exception) -> DataError | None:
    """Return the error for what SQLite refused after so many seconds; None for a mistake of the caller."""
    if cause is Cause.MISUSE:
        return None  # a mistake of the caller: a store that is closed, or of another thread
    if cause is Cause.BUSY:
        return DataError(
            f"the store {path} is busy: another process has been writing to it for {patience:g} s. What was "
            "finished is kept: end that process, and start again"
        )
    if cause is Cause.NO_ROOM:
        return DataError(
            f"the store {path} cannot be written: {error}. What was finished is kept: make room on the disk, and "
            "start again"
        )
    if cause is Cause.UNWRITABLE:
        return DataError(
            f"the store {path} cannot be used: {error}. Give the path of a file in a folder that is there and that "
            "you may write to"
        )
    return damage_error(path)


def damage_error(path: Path | None, what: str = "it") -> DataError:
    """Return the error for a file that does not hold what was written."""
    return DataError(
        f"the store {path} is damaged, or no store of sweeps: {what} is not as it was written. Take a copy of it that "
        "is whole, or give another path: the same seed gives the same results"
    )
