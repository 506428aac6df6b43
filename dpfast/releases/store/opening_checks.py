"""Checks of a store when it is opened: it must be whole, private, where it was, and as new as its witness."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dpfast._support.errors import ReleaseError
from dpfast.releases.arbiters import patience
from dpfast.releases.arbiters.place import Place
from dpfast.releases.store import release_schema
from dpfast.releases.store.release_rows import Records
from dpfast.releases.store.second_witness import AnyWitness
from dpfast.releases.store.witness import Attestation

_READABLE = range(1, release_schema.FORMAT + 1)


def check_place(path: Place, records: Records, here: tuple[str, str], *, adopt: bool) -> None:
    """Refuse another format, and a store that was copied or moved, unless it is adopted."""
    if records.version not in _READABLE:
        raise ReleaseError(
            f"the store {path} must have format {release_schema.FORMAT}, or one before, got {records.version!r}: "
            "use the version of dpfast that wrote it"
        )
    if records.place != here and not adopt:
        _check_failover(path, records.place[0], here[0])
        raise ReleaseError(
            f"the store {path} was copied or moved: it was at {records.place[1]}, or in another file there. If two "
            "copies went on, they would publish the same steps twice with different noise. Use the original; only if "
            "that is gone for good, go on here with adopt=True (--adopt)"
        )


def _check_failover(path: Place, before: str, here: str) -> None:
    """Name what differs where it is the word about standbys: a place has a timeline if none may take over, else not."""
    for failover, other, longer, shorter in (
        ("none", "synchronous", before, here),
        ("synchronous", "none", here, before),
    ):
        if longer.rpartition("/")[0] == shorter:
            raise ReleaseError(
                f"failover must be {failover!r} for the store {path}, as so far, got {other!r}: give that. Only "
                "where the standbys were changed for good, and no other server has published from it, go on with "
                "adopt=True (--adopt)"
            )


class Said(NamedTuple):
    """Hold what a witness said before the store was looked at.

    Attributes
    ----------
    place : object
        Where the witness is.
    attestation : Attestation or None
    needed : bool
        Whether it must have said something of a store with pushes, whatever others say.
    """

    place: object
    attestation: Attestation | None
    needed: bool


def attest_last_push(path: Place, records: Records, said: Sequence[Said]) -> Attestation:
    """Return what a witness says behind the last push, if the store is as new as what its witnesses say.

    The whole chain is followed, and held against them; a crash may have left them behind.
    """
    for place, seen, _ in said:
        if seen is not None and seen.store != records.store_id:
            raise ReleaseError(
                f"the witness {place} is of another store than {path} (ids {seen.store} and {records.store_id}): "
                "give the published folder that this one always had"
            )
    passed = set()
    for last in records.chain():
        passed |= {x.attestation for x in said if x.attestation == last}
    for place, seen, needed in said:
        _check_witness(path, place, seen, last, needed=needed or all(x.attestation is None for x in said))
        if seen is not None and seen not in passed:
            raise ReleaseError(
                f"the store {path} and its witness {place} disagree about what was published: one of them was "
                "changed, or two copies went on. Put back the store that published"
            )
    return last


def _check_witness(path: Place, place: object, seen: Attestation | None, last: Attestation, *, needed: bool) -> None:
    n = last.position
    if seen is None and needed and n > 0:
        raise ReleaseError(
            f"the witness {place} is missing, and the store {path} has {n} pushes: give the published folder "
            "that it always had, or put the file back"
        )
    if seen is not None and seen.position > n:
        raise ReleaseError(
            f"the store {path} is behind its witness ({n} < {seen.position} pushes): a backup was restored, or another "
            "copy went on; going on would publish steps again with other noise. Put the newest store back; if it is "
            "lost, begin a new one, with data that were never published"
        )


def wait_until_told(path: Place, last: Attestation, witnesses: Sequence[AnyWitness]) -> None:
    """Wait until a witness knows of the last push, before anybody sees it.

    A writer commits, and then tells its witnesses. If it ended in between and the database was set back, the next one
    would publish the same steps with other noise, and nobody would notice.
    """
    for _ in patience.tries():
        if last.position == 0 or any(_knows(witness.read(), last) for witness in witnesses):
            return
    raise ReleaseError(
        f"no witness of the store {path} knows of its last push, number {last.position}, after {patience.SECONDS:g} s, "
        "and what no witness knows is shown to nobody. Give the published folder that the writer has, and not a copy "
        "of it, or its second witness (--witness); if the writer has ended, go on with it, or open the store once with "
        "dp.open_stream"
    )


def _knows(said: Attestation | None, last: Attestation) -> bool:
    return said is not None and said.store == last.store and said.position >= last.position


def check_second_witness(path: Place, known: str | None, given: Place | None, *, reading: bool) -> None:
    """Refuse to go on without the second witness of a store that has one; who only reads may do without."""
    if known is not None and given is None and not reading:
        raise ReleaseError(
            f"witness must be given: the store {path} has a second witness, {known} (--witness of the command)"
        )
