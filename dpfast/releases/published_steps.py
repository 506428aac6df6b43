"""What a stream has published, as far as its store keeps it."""

from __future__ import annotations

from typing import NamedTuple

from dpfast._support.errors import ReleaseError
from dpfast._support.validation import Array
from dpfast.releases.integer.exact_base import ExactBase
from dpfast.releases.integer.inputs import Integers
from dpfast.releases.store.earlier_releases import Earlier
from dpfast.releases.store.release_store import ReleaseStore


class Published(NamedTuple):
    """Take the published values and estimates of some steps, as a push or a read returns them.

    Attributes
    ----------
    first : int
        Number of the first step.
    privatized : array of int64, (streams, n), or (streams, sums, n)
        v, exact integers; of block sums 0 where no block ends.
    estimate : array, (streams, n)
        ``estimate[:, i]`` is of the target's output at step first + i - lag.
    lag : int
    """

    first: int
    privatized: Integers
    estimate: Array
    lag: int


class PublishedSteps:
    """Read what a stream has published from its store, which may have pruned the oldest steps.

    Parameters
    ----------
    store : ReleaseStore
    release : int
        The stream's.
    plan : ExactBase
    """

    def __init__(self, store: ReleaseStore, release: int, plan: ExactBase) -> None:
        self._store, self._release, self._plan = store, release, plan

    @property
    def first(self) -> int:
        """Return the first step that is kept."""
        return self._store.first_kept(self._release)

    def read(self, first: int, count: int) -> Published:
        """Return what was published of some steps.

        Raises
        ------
        ReleaseError
            For steps that were pruned.
        """
        self.check_kept(first)
        v, estimate = self._store.read(self._release, first, count)
        return Published(first, self._plan.shaped(v), estimate, self._plan.lag or 0)

    def read_v(self, first: int, count: int) -> Integers:
        """Return v of some steps, as :meth:`read` does."""
        self.check_kept(first)
        return self._plan.shaped(self._store.read(self._release, first, count, estimates=False)[0])

    def read_needed(self, first: int, count: int) -> Integers:
        """Return v of steps that are kept as long as a receiver may need them."""
        if first < self.first:
            raise self._store.damage_error()
        return self.read_v(first, count)

    def check_kept(self, first: int) -> None:
        """Refuse steps from one that was pruned on."""
        if first < (kept := self.first):
            raise ReleaseError(
                f"first must be at least {kept}, as what was published before is not kept any more (keep_steps), got "
                f"{first}"
            )


def live_release(store: ReleaseStore) -> Earlier | None:
    """Return the stream that a store has, open or over; None where it has none."""
    return next((entry for entry in store.releases() if entry.kind == "live"), None)


def declared_length(store: ReleaseStore) -> int | None:
    """Return how many steps a store declares for its stream; None where that has no declared end."""
    last = None if store.declaration is None else store.declaration.fields.get("last_step")
    return None if last is None else int(last) + 1


def sharing_steps(entry: Earlier | None, others: list[Earlier]) -> list[Earlier]:
    """Return those releases that have steps of a stream; none where it is about to begin."""
    return [] if entry is None else [x for x in others if entry.overlaps(x.first, x.count)]
