"""The exact two-sided geometric: integers y with probability proportional to exp(-|y| r), r = s / 2^j.

Canonne, Kamath and Steinke, *The discrete Gaussian for differential privacy* (2020), algorithm 2, in integers alone:

1. a sign, and u uniform in 0 ... 2^j - 1, kept with probability exp(-u / 2^j);
2. v successes of probability exp(-1) before the first failure: x = u + 2^j v has P(x) ∝ exp(-x / 2^j);
3. |y| = floor(x / s), rejected where it is zero with the negative sign.

Nothing is rounded: see ``exact_decisions``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpfast._kernels._jit import kernel
from dpfast._kernels.exact_decisions import (
    DIGITS,
    NO,
    NOTHING,
    WORD_BITS,
    WORDS,
    YES,
    Words,
    few_bits,
    negative_exponential,
)

MOST = 512  # values of v; more has a probability below 2^-738, so that the words are not random
LARGEST_J = 40


class GeometricLaw(NamedTuple):
    """A law of rate r = s / 2^j, and how words are cut so that all products fit into 63 bits."""

    s: int
    j: int
    bits: int  # of a word, those that decide
    spare: int  # the others

    @classmethod
    def from_rate(cls, s: int, j: int, word_bits: int = WORD_BITS) -> GeometricLaw:
        """Cut words of so many random bits."""
        bits = min(word_bits, 62 - j)
        return cls(s, j, bits, word_bits - bits)


@kernel
def attempt_geometric(words: Words, at: int, law: GeometricLaw) -> tuple[int, int, int]:
    """Return whether an integer is accepted, the integer, and the next word."""
    drawn, at = few_bits(words, at, law.j + 1, law)
    if drawn < 0:
        return WORDS, 0, at
    u, negative = drawn >> 1, drawn & 1
    hit, at = negative_exponential(words, at, u, 1 << law.j, 1, 1, law)
    if hit != YES:
        return hit, 0, at
    v = -1
    while hit == YES:
        v += 1
        if v == MOST:
            return DIGITS, 0, at
        hit, at = negative_exponential(words, at, 1, 1, 1, 1, law)
    if hit < 0:
        return WORDS, 0, at
    y = (u + (v << law.j)) // law.s
    if negative and y == 0:
        return NO, 0, at
    return YES, -y if negative else y, at


@kernel
def draw_geometric(words: Words, law: GeometricLaw, out: NDArray[np.int64]) -> tuple[int, int, int]:
    """Fill `out` with samples; return how many, the words that they took, and what is missing for the next.

    The rest of `out` is untouched.
    """
    n, at = 0, 0
    while n < len(out):
        outcome, y, after = attempt_geometric(words, at, law)
        if outcome < 0:
            return n, at, outcome
        at = after
        if outcome == YES:
            out[n] = y
            n += 1
    return n, at, NOTHING
