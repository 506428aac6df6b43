"""What a ledger says where it refuses, and what to do."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

from dpfast._support import sqlite
from dpfast._support.errors import ReleaseError
from dpfast._support.sqlite import Cause
from dpfast.releases.arbiters.place import Place, Postgres
from dpfast.releases.ledger.cap import Cap


def damage_error(place: Place) -> ReleaseError:
    """Return the error for a database that is not what was written."""
    return ReleaseError(
        f"the ledger {place} is damaged, or no ledger of dpfast: nothing may be released under it. Put the newest copy "
        "back; the stores that enter into it tell whether it is new enough"
    )


def missing_error(place: Place) -> ReleaseError:
    """Return the error for a ledger that is not there."""
    command = "" if isinstance(place, Postgres) else f"dpfast ledger {place} --create --population TEXT, or "
    return ReleaseError(
        f"the ledger {place} is not there. A new one is made by {command}dp.Ledger.create; if stores entered into one "
        "here, put it back"
    )


def copied_error(place: Place, before: str) -> ReleaseError:
    """Return the error for a ledger that is not where it was."""
    command = "" if isinstance(place, Postgres) else f"dpfast ledger {place} --adopt, or "
    return ReleaseError(
        f"the ledger {place} was copied or moved: it was at {before}, or in another file there. Two copies that go on "
        "would each know a part of what was spent. Use the original; only if that is gone for good, take this one "
        f"over: {command}adopt=True"
    )


def existing_error(place: Place) -> ReleaseError:
    """Return the error for a new ledger where one is already."""
    return ReleaseError(f"the ledger {place} is there already: open it, or choose another path for a new one")


@contextlib.contextmanager
def explaining(file: Path) -> Iterator[None]:
    """Turn errors of SQLite into refusals."""

    def explain(cause: Cause, error: Exception) -> ReleaseError:
        if cause is Cause.BUSY:
            return ReleaseError(f"the ledger {file} is in use by another release for too long: try again")
        if cause in (Cause.DAMAGE, Cause.MISUSE):
            return damage_error(file)
        return ReleaseError(f"the ledger {file} cannot be read or written ({error}): put that right and try again")

    with sqlite.explaining(explain):
        yield


def cap_error(
    place: Place, cap: Cap, spent: tuple[Fraction, Fraction], wanted: tuple[Fraction, Fraction]
) -> ReleaseError:
    """Return the error for a release beyond the cap."""
    name, (now, now_delta), (then, then_delta) = cap.name, spent, wanted
    return ReleaseError(
        f"the release would go beyond the cap of the ledger {place}: the sum of {name} may be {float(cap.limit):g}, is "
        f"{float(now):g} and would be {float(then):g}; that of delta may be {float(cap.delta):g}, is "
        f"{float(now_delta):g} and would be {float(then_delta):g}. Nothing more is published, and nothing was entered. "
        "Ask for a smaller epsilon or delta, or release no more of these people"
    )
