"""Exact draws from a table: values whose probabilities are multiples of 2^-bits, by comparing integers.

U, of so many random bits, is compared with the summed weights: the value is the one whose share of 0 ... 2^bits - 1 it
falls into. Every sample takes the same number of words, and of comparisons, whatever it is: thresholds are filled up to
2^steps - 1 of them with 2^bits, which no U reaches.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpfast._kernels._jit import kernel
from dpfast._kernels.exact_decisions import NOTHING, WORD_BITS, WORDS, Words, few_bits


class CutTable(NamedTuple):
    """Hold values and summed weights, and how words are cut: all bits are used, but for the last word's."""

    values: NDArray[np.int64]
    thresholds: NDArray[np.int64]
    steps: int  # of a search among the thresholds
    n_bits: int  # of U
    bits: int  # of a word
    spare: int

    @classmethod
    def from_weights(cls, values: Sequence[int], weights: Sequence[int], word_bits: int = WORD_BITS) -> CutTable:
        """Sum up weights, whose sum is a power of two, at most 2^62."""
        sums = list(itertools.accumulate(weights))
        steps = (len(sums) - 1).bit_length()
        thresholds = [*sums, *[sums[-1]] * ((1 << steps) - 1 - len(sums))][: (1 << steps) - 1]
        n_bits = sums[-1].bit_length() - 1
        return cls(np.array(values, np.int64), np.array(thresholds, np.int64), steps, n_bits, word_bits, 0)


@kernel
def place(u: int, thresholds: NDArray[np.int64], steps: int) -> int:
    """Count the thresholds that are not above u."""
    found, step = 0, 1 << steps >> 1
    for _ in range(steps):
        found += step * int(thresholds[found + step - 1] <= u)
        step >>= 1
    return found


@kernel
def draw_table(words: Words, table: CutTable, out: NDArray[np.int64]) -> tuple[int, int, int]:
    """Fill `out` with samples; return how many, the words that they took, and what is missing for the next.

    The rest of `out` is untouched.
    """
    at = 0
    for n in range(len(out)):
        u, after = few_bits(words, at, table.n_bits, table)
        if u < 0:
            return n, at, WORDS
        out[n] = table.values[place(u, table.thresholds, table.steps)]
        at = after
    return len(out), at, NOTHING
