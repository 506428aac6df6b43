"""Symmetric noise on the integers, from 32 random bits each: a sign, and a size that tables of tails tell.

The first bit is the sign. The others are the size: as many steps as there are tails P(N >= k) that they lie below.
Where few tails are enough they are counted one after the other, until no lane lies below the next; else by halves.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpfast._kernels._jit import kernel
from dpfast._kernels.simd import Row, gather, load, repeat, store, traced
from dpfast._kernels.simulated_noise import Words, load_generator, store_generator, xoshiro
from dpfast._kernels.tiles import Rows

Array = NDArray[Any]

_AT_ONCE = 4  # tails that are counted before it is asked whether that is all
_COUNTED = 1024  # tails up to which counting is quicker than halving


class IntegerTable(NamedTuple):
    """A table of symmetric noise: of the 2^32 words, those that draw k steps or more, k = 1, 2, ..., above zero."""

    thresholds: Array
    step: float
    n_halves: int  # log2 of the length and one; zero where tails are counted

    @classmethod
    def from_tails(cls, tails: Array, step: float) -> IntegerTable:
        """Make the table of P(N ≥ step), P(N ≥ 2 step), ...; what no word shows is never drawn."""
        thresholds = np.rint(tails * 2.0**32)
        thresholds = thresholds[thresholds > 0]
        n = len(thresholds)
        n_halves = n.bit_length() if n > _COUNTED else 0
        length = (1 << n_halves) - 1 if n_halves else -(-n // _AT_ONCE) * _AT_ONCE
        return cls(np.append(thresholds, np.zeros(length - n)), step, n_halves)


class Draws(NamedTuple):
    """The place of a table among other numbers, and of the words that it needs."""

    generator: int  # row of words
    thresholds: int
    n_thresholds: int
    n_halves: int
    half: np.uint32  # of the length and one
    step: float


@traced
def draw_bits(words: Words, generator: int, x: Rows, row: int) -> Row:
    """Draw 32 bits in every lane of a row."""
    bits, s = xoshiro(load_generator(words, generator, load(x, row)))
    store_generator(words, generator, s)
    return bits


@traced
def size_of(bits: Row) -> Row:
    """Take the bits behind the first one, which inverts them."""
    return bits ^ (0 - (bits >> 31))


@traced
def no_steps(bits: Row) -> Row:
    """Return a count of no steps, for as many lanes as there are bits."""
    return np.full_like(bits, 0)


@traced
def any_below(size: Row, table: Words, place: int) -> Any:
    """Tell whether there is anything to count from a place on."""
    return np.any(size < table[place])


@traced
def count_below(size: Row, table: Words, place: int, count: Row) -> Row:
    """Count the next thresholds that a size lies below."""
    for i in range(_AT_ONCE):
        count = np.where(size < table[place + i], count + 1, count)
    return count


@traced
def search_below(size: Row, draws: Draws, table: Words) -> Row:
    """Count all thresholds that a size lies below, by halves."""

    def halve(_: Any, place: Row, half: Row) -> tuple[Row, Row]:
        passed = size < gather(table, place + (half - 1), draws.thresholds)
        return np.where(passed, place + half, place), half >> 1

    return repeat(draws.n_halves, halve, np.full_like(size, 0), np.full_like(size, draws.half))[0]


@traced
def store_steps(bits: Row, count: Row, step: float, x: Rows, row: int) -> None:
    """Write as many steps as were counted, with the sign."""
    value = count.view(np.int32).astype(load(x, row).dtype) * step
    store(x, row, np.where(bits >= 1 << 31, -value, value))


@kernel
def draw_integer(words: Words, draws: Draws, table: Words, x: Rows, row: int) -> None:
    """Draw a row of noise."""
    bits = draw_bits(words, draws.generator, x, row)
    size, count = size_of(bits), no_steps(bits)
    if draws.n_halves > 0:
        count = search_below(size, draws, table)
    else:
        place, stop = draws.thresholds, draws.thresholds + draws.n_thresholds
        while place < stop and any_below(size, table, place):
            count = count_below(size, table, place, count)
            place += _AT_ONCE
    store_steps(bits, count, draws.step, x, row)
