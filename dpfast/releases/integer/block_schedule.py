"""The steps at which sums of blocks are released, and which inputs are in each: public, and fixed before any data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpfast.releases.integer.inputs import Integers


@dataclass(frozen=True)
class BlockSchedule:
    """Say when the sums of each level end, and how their inputs are weighed.

    Attributes
    ----------
    lengths : tuple of int
    lates : tuple of int
        Steps after the end of a block at which each sum is released.
    phase : int
        Steps that the first blocks are shorter.
    weights : tuple of tuple of int
        Of the inputs of each sum, from its own beginning on: 0, 1 or -1; empty for ones.

    Examples
    --------
    >>> schedule = BlockSchedule((2, 4), (0, 0), 0, ((), ()))
    >>> schedule.due(0, 4).tolist(), schedule.needed(3)
    ([[False, True, False, True], [False, False, False, True]], 3)
    >>> schedule.sums(np.zeros((1, 0), int), np.array([[1, 2, 3, 4]]), 0).tolist()
    [[[0, 3, 0, 7], [0, 0, 0, 10]]]
    """

    lengths: tuple[int, ...]
    lates: tuple[int, ...]
    phase: int
    weights: tuple[tuple[int, ...], ...]

    def due(self, first: int, n: int, end: int | None = None) -> NDArray[np.bool_]:
        """Tell which sums are released at n steps (levels, n); none from `end` on: an unfinished block is dropped."""
        steps = first + np.arange(n)
        passed = steps + 1 + self.phase
        ends = np.array([(passed - x) % n == 0 for n, x in zip(self.lengths, self.lates, strict=True)])
        return ends if end is None else ends & (steps < end)

    def needed(self, position: int) -> int:
        """Return how many inputs before a step are in sums that are not released yet."""
        begun = ((position + self.phase - x) % n for n, x in zip(self.lengths, self.lates, strict=True))
        return min(position, max(begun))

    def weighed(self, first: int, n: int) -> NDArray[np.int64]:
        """Return what a constant of one comes to in sums that end at n steps (levels, n); the first may be shorter."""
        return np.array([self._weigh_ones(level, first, n) for level in range(len(self.lengths))])

    def _weigh_ones(self, level: int, first: int, n: int) -> NDArray[np.int64]:
        length = self.lengths[level]
        taken = np.minimum(first + 1 + np.arange(n), length)
        if not self.weights[level]:
            return taken
        total = np.concatenate([[0], np.cumsum(self.weights[level])])
        return np.asarray(total[length] - total[length - taken])

    def sums(self, history: Integers, x: Integers, position: int, end: int | None = None) -> Integers:
        """Return the sums (streams, levels, n) of inputs x behind their history; 0 where none is released.

        Sums run on without an end, modulo 2^64: their differences are right, as each of them fits.
        """
        n = x.shape[1]
        start, both = position - history.shape[1], np.concatenate([history, x], axis=1)
        due, found = self.due(position, n, end), np.zeros((len(x), len(self.lengths), n), np.int64)
        for level, length in enumerate(self.lengths):
            terms = both
            if self.weights[level]:
                place = (start + np.arange(both.shape[1]) + self.phase - self.lates[level]) % length
                terms = both * np.array(self.weights[level], np.int64)[place]
            total = np.concatenate([np.zeros((len(x), 1), np.int64), np.cumsum(terms, axis=1)], axis=1)
            at = np.flatnonzero(due[level])
            until = position + at + 1 - start
            found[:, level, at] = total[:, until] - total[:, np.maximum(until - length, 0)]
        return found
