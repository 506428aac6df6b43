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
    n_steps : int, optional
        The steps of a stream that publishes its unfinished blocks at the last of them; None where they are dropped.

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
    n_steps: int | None = None

    def due(self, first: int, n: int, end: int | None = None) -> NDArray[np.bool_]:
        """Tell which sums are released at n steps (levels, n); none from `end` on.

        Unfinished blocks are released at the last step that was declared for it, and never before.
        """
        last = np.zeros(n, np.bool_) if self.n_steps is None else first + np.arange(n) == self.n_steps - 1
        return self.finished(first, n, end) | (last & self._is_before(first, n, end))

    def finished(self, first: int, n: int, end: int | None = None) -> NDArray[np.bool_]:
        """Tell which blocks end as long as they all are at n steps (levels, n); none from `end` on."""
        passed = first + np.arange(n) + 1 + self.phase
        ends = np.array([(passed - x) % n == 0 for n, x in zip(self.lengths, self.lates, strict=True)])
        return ends & self._is_before(first, n, end)

    def _is_before(self, first: int, n: int, end: int | None) -> NDArray[np.bool_]:
        """Tell which of n steps have inputs of the stream."""
        ends = [x for x in (end, self.n_steps) if x is not None]
        return first + np.arange(n) < min(ends) if ends else np.ones(n, np.bool_)

    def _begun(self, level: int, first: int, n: int) -> NDArray[np.int64]:
        """Return after how many steps of its block a sum of a level is, behind each of n steps, from 1 on."""
        return (first + np.arange(n) + self.phase - self.lates[level]) % self.lengths[level] + 1

    def needed(self, position: int) -> int:
        """Return how many inputs before a step are in sums that are not released yet."""
        if self.n_steps is not None and position >= self.n_steps:
            return 0
        begun = ((position + self.phase - x) % n for n, x in zip(self.lengths, self.lates, strict=True))
        return min(position, max(begun))

    def weighed(self, first: int, n: int) -> NDArray[np.int64]:
        """Return what a constant of one comes to in sums that end at n steps (levels, n); the first may be shorter."""
        return np.array([self._weigh_ones(level, first, n) for level in range(len(self.lengths))])

    def _weigh_ones(self, level: int, first: int, n: int) -> NDArray[np.int64]:
        begun = self._begun(level, first, n)
        taken = np.minimum(first + 1 + np.arange(n), begun)
        if not self.weights[level]:
            return taken
        total = np.concatenate([[0], np.cumsum(self.weights[level])])
        return np.asarray(total[begun] - total[begun - taken])

    def sums(self, history: Integers, x: Integers, position: int, end: int | None = None) -> Integers:
        """Return the sums (streams, levels, n) of inputs x behind their history; 0 where none is released.

        A sum reaches back to the beginning of its own block, so that no input is in two sums of a level. Sums run on
        without an end, modulo 2^64: their differences are right, as each of them fits.
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
            begun = self._begun(level, position, n)[at]
            found[:, level, at] = total[:, until] - total[:, np.maximum(until - begun, 0)]
        return found
