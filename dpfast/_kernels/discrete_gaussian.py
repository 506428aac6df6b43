"""The exact discrete Gaussian: integers z with probability proportional to exp(-z² / (2 σ²)), σ = a / 2^j.

Karney, *Sampling exactly from the normal distribution* (2016), algorithm D for mean zero, in integers alone:

1. k >= 0 with probability proportional to exp(-k² / 2), by inversion of a table;
2. a sign, and i uniform in 0 ... ceil(σ) - 1: z = ceil(k σ) + i, x = z / σ - k = p / a with p = z 2^j - k a;
3. rejected where x >= 1, and where z = 0 has the negative sign;
4. accepted with probability exp(-x (2 k + x) / 2), for exp(-k² / 2 - x (2 k + x) / 2) = exp(-(k + x)² / 2).

Nothing is rounded: see ``exact_decisions``. A kernel may also find too few digits in the table, and says DIGITS then.
"""

from __future__ import annotations

import functools
import math
from decimal import ROUND_HALF_EVEN, Context, Decimal, localcontext
from fractions import Fraction
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
    limb,
    negative_exponential,
    uniform,
)

MOST = 30  # values of k in a table: what is drawn is below MOST σ in magnitude


class Law(NamedTuple):
    """A law σ = a / 2^j, and how words are cut so that all products fit into 63 bits."""

    a: int
    j: int
    bits: int  # of a word, those that decide
    spare: int  # the others
    cells: int  # twice those that cover 0 ... ceil(σ) - 1, one for each sign
    low: int  # a cell has 2^low integers
    spare_low: int

    @classmethod
    def from_fraction(cls, a: int, j: int, word_bits: int = WORD_BITS) -> Law:
        """Cut words of so many random bits; a <= 2^40 and σ >= 1/16 fit into 32."""
        bits = min(word_bits, 63 - (2 * MOST * a).bit_length())
        steps = -(-a >> j)
        low = max(0, (2 * steps).bit_length() - bits)  # cells <= 2^bits
        return cls(a, j, bits, word_bits - bits, 2 * -(-steps >> low), low, word_bits - low)


# --- the table ------------------------------------------------------------------------------------


@functools.cache
def make_table(n_limbs: int, word_bits: int = WORD_BITS, most: int = MOST) -> Words:
    """Tabulate P(K <= k) for k < most, rounded down to limbs of a word: (limb, k), the first limb first."""
    n_bits = n_limbs * word_bits
    # rounded up what is above k: in relative terms it is known as well where it is tiny
    numbers = [(1 << n_bits) - _above(k, n_bits) for k in range(most)]
    mask = (1 << word_bits) - 1
    limbs = [[number >> n_bits - word_bits * (i + 1) & mask for number in numbers] for i in range(n_limbs)]
    result = np.array(limbs, np.uint32)
    result.setflags(write=False)  # one for all
    return result


def _above(k: int, n_bits: int) -> int:
    """Compute P(K > k) 2^n_bits, rounded up, whatever digits that takes."""
    n_digits = 10
    while True:
        low, high = (math.ceil(bound * (1 << n_bits)) for bound in _enclose(k, n_digits))
        if low == high:
            return low
        n_digits *= 2


def _enclose(k: int, n_digits: int) -> tuple[Fraction, Fraction]:
    """Enclose P(K > k) by decimal arithmetic, which rounds exp as correctly as the rest."""
    end = k + 2 + math.isqrt(5 * n_digits)  # from there on terms are below 10^-n_digits of the first above k
    with localcontext(Context(prec=n_digits, rounding=ROUND_HALF_EVEN, traps=[])):
        terms = [(Decimal(-i * i) / 2).exp() for i in range(end)]
        above = Fraction(sum(terms[:k:-1], Decimal(0)) / sum(terms, Decimal(0)))
    # 2 end + 3 roundings by at most 5 in 10^n_digits each, and the terms left out
    error = Fraction(20 * end, 10**n_digits)
    return above * (1 - error), above * (1 + error)


# --- decisions ------------------------------------------------------------------------------------


@kernel
def band(words: Words, at: int, thresholds: Words) -> tuple[int, int]:
    """Count the thresholds that are below U."""
    n_limbs, most = thresholds.shape
    first, end = 0, most  # of those that begin as U does
    for i in range(n_limbs):
        w, at = limb(words, at, 0)
        if w < 0:
            return WORDS, at
        while first < end and thresholds[i, first] < w:
            first += 1
        same = first
        while same < end and thresholds[i, same] == w:
            same += 1
        end = same
        if first == end < most:
            return first, at
    return DIGITS, at


@kernel
def exponential(words: Words, at: int, k: int, p: int, law: Law) -> tuple[int, int]:
    """Draw YES with probability exp(-x (2 k + x) / (2 k + 2)), x = p / a < 1."""
    return negative_exponential(words, at, p, law.a, 2 * k * law.a + p, law.a * (2 * k + 2), law)


@kernel
def attempt(words: Words, at: int, thresholds: Words, law: Law) -> tuple[int, int, int]:
    """Return whether an integer is accepted, the integer, and the next word."""
    k, at = band(words, at, thresholds)
    if k < 0:
        return k, 0, at
    cell, at = uniform(words, at, law.cells, law)
    if cell < 0:
        return WORDS, 0, at
    i, negative = cell >> 1, cell & 1
    if law.low > 0:
        w, at = limb(words, at, law.spare_low)
        if w < 0:
            return WORDS, 0, at
        i = (i << law.low) + w
    start = k * law.a
    z = ((start + (1 << law.j) - 1) >> law.j) + i
    p = (z << law.j) - start
    if p >= law.a or (negative and z == 0):
        return NO, 0, at
    for _ in range(k + 1):
        hit, at = exponential(words, at, k, p, law)
        if hit != YES:
            return hit, 0, at
    return YES, -z if negative else z, at


@kernel
def draw(words: Words, thresholds: Words, law: Law, out: NDArray[np.int64]) -> tuple[int, int, int]:
    """Fill `out` with samples; return how many, the words that they took, and what is missing for the next.

    The rest of `out` is untouched.
    """
    n, at = 0, 0
    while n < len(out):
        outcome, z, after = attempt(words, at, thresholds, law)
        if outcome < 0:
            return n, at, outcome
        at = after
        if outcome == YES:
            out[n] = z
            n += 1
    return n, at, NOTHING
