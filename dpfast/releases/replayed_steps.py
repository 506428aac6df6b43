"""Steps that are pushed again: compared while their inputs are stored, and read back without a look later."""

from __future__ import annotations

import numpy as np

from dpfast._support.errors import ReleaseError
from dpfast.releases.integer.inputs import Integers
from dpfast.releases.store.release_store import ReleaseStore


class ReplayedSteps:
    """Compare what is pushed again with the inputs that a store still holds.

    Parameters
    ----------
    store : ReleaseStore
    release : int
        The stream's.
    first : int
        The first step whose inputs are stored.

    Notes
    -----
    *Privacy.* Nothing of inputs outlives them, no digest either: from one small counts could be guessed. So older steps
    cannot be compared, and need not be, as nothing is published for them.
    """

    def __init__(self, store: ReleaseStore, release: int, first: int) -> None:
        self._store, self._release, self.first = store, release, first

    def compare(self, first: int, x: Integers) -> None:
        """Refuse steps that were published, unless they come with the inputs that they had.

        Raises
        ------
        ReleaseError
            Which tells that they differ, and not how.
        """
        n = x.shape[1]
        if n and not np.array_equal(self._store.inputs(self._release, first, n), x):
            last = first + n - 1
            raise ReleaseError(
                f"steps {first} to {last} are published, with other inputs than these: no step is published twice; "
                f"read({first}, {n}) gives what was published"
            )


def last_columns(x: Integers, n: int) -> Integers:
    """Return the last n columns, as an array of their own where others are left out."""
    return x if n == x.shape[1] else x[:, x.shape[1] - n :].copy()
