"""Decisions of exact probability from random words, in integers alone: what exact noise is made of.

Nothing is rounded. A uniform number on which a decision depends is an unending row of limbs, of which as many are
looked at as the decision needs: mostly one. So a kernel may find too few words. It then stops before that attempt and
says so (WORDS); its caller must try again from the same word, with more behind it: to leave the attempt out would bias
what is drawn.

Each decision takes the place of the next word and gives it back behind its result, which is negative if something is
missing. `law` says how a word is cut: into `bits`, those that decide, and `spare` others, so that all products of a
limb fit into 63 bits.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dpfast._kernels._jit import kernel

Words = NDArray[np.uint32]

WORD_BITS = 32
NO, YES = 0, 1
NOTHING, WORDS, DIGITS = 0, -1, -2  # what is missing


class Cut(Protocol):
    """A law says how words are cut."""

    @property
    def bits(self) -> int:
        """Count the bits of a word that decide."""

    @property
    def spare(self) -> int:
        """Count its other bits."""


@kernel
def limb(words: Words, at: int, spare: int) -> tuple[int, int]:
    """Take the leading bits of a word."""
    if at == len(words):
        return WORDS, at
    word: Any = np.int64(words[at])
    return word >> spare, at + 1


@kernel
def bernoulli(words: Words, at: int, numerator: int, denominator: int, law: Cut) -> tuple[int, int]:
    """Draw YES with probability numerator / denominator: whether U denominator < numerator, U uniform."""
    while True:
        w, at = limb(words, at, law.spare)
        if w < 0:
            return WORDS, at
        least, target = w * denominator, numerator << law.bits
        if least >= target:
            return NO, at
        if least + denominator <= target:
            return YES, at
        numerator = target - least  # for the rest of U


@kernel
def uniform(words: Words, at: int, n: int, law: Cut) -> tuple[int, int]:
    """Draw one of 0 ... n - 1, n <= 2^bits: the integer part of U n."""
    w, at = limb(words, at, law.spare)
    if w < 0:
        return WORDS, at
    least, one = w * n, 1 << law.bits
    whole, part = least >> law.bits, least & (one - 1)
    if part + n <= one:
        return whole, at
    below, at = bernoulli(words, at, one - part, n, law)
    if below < 0:
        return WORDS, at
    return whole + 1 - below, at


@kernel
def few_bits(words: Words, at: int, n_bits: int, law: Cut) -> tuple[int, int]:
    """Take so many random bits, at most 62."""
    word_bits, value = law.bits + law.spare, 0
    while n_bits > 0:
        n = min(n_bits, word_bits)
        w, at = limb(words, at, word_bits - n)
        if w < 0:
            return WORDS, at
        value, n_bits = (value << n) + w, n_bits - n
    return value, at


@kernel
def negative_exponential(words: Words, at: int, p: int, a: int, q: int, b: int, law: Cut) -> tuple[int, int]:
    """Draw YES with probability exp(-x), x = (p / a) (q / b), both factors at most 1.

    Von Neumann: with x / 1, x / 2, x / 3 ... for probabilities of YES, the first NO comes at an odd place.
    """
    n, hit = 0, YES
    while hit == YES:
        n += 1
        if n > 1:
            hit, at = bernoulli(words, at, 1, n, law)
        if hit == YES and p < a:
            hit, at = bernoulli(words, at, p, a, law)
        if hit == YES and q < b:
            hit, at = bernoulli(words, at, q, b, law)
    if hit < 0:
        return WORDS, at
    return n & 1, at
