"""The batch means of a case, as its blocks come in."""

from __future__ import annotations

import numpy as np

from dpfast._support.validation import Array
from dpfast.simulation.sweep.blocks import BATCHES


class Means:
    """Batch means by blocks: the first ones in one array, those behind a gap by their numbers."""

    def __init__(self) -> None:
        self._first = np.empty(0)
        self._rest: dict[int, Array] = {}

    @property
    def _n(self) -> int:
        return len(self._first) // BATCHES

    def put(self, number: int, means: Array) -> None:
        """The batch means of a block that was lacking."""
        self._rest[number] = means

    def lacking(self, n: int) -> list[int]:
        """Which of the first n blocks there are not."""
        return [x for x in range(self._n, n) if x not in self._rest]

    def first(self, n: int) -> Array:
        """Batch means of the first n blocks, side by side."""
        if n > self._n:
            self._first = np.concatenate([self._first, *(self._rest.pop(x) for x in range(self._n, n))])
        return self._first[: n * BATCHES]
