"""Noise that the blocks of a group share, drawn one after the other: each given the ones before, by a table of weights.

The law of a group of noises x depends on how much is above zero, a = Σ max(x, 0), and how much below, b = Σ max(-x, 0).
The table has R_j(a, b), what the law adds up to over the noises that are still to come behind the first j. Behind them
noise x has the probability R_{j+1}(a + max(x, 0), b + max(-x, 0)) / R_j(a, b); it is drawn by 32 random bits.

A group is a tree of one level, which ``tree_draws`` draws as well, but by two draws more for each group, of the sums of
its root: block sums would take a tenth to a quarter longer.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from numpy.typing import NDArray

from dpfast._kernels._jit import kernel, part
from dpfast._kernels.simd import load, store, traced
from dpfast._kernels.simulated_noise import STATE_WORDS, Words, load_generator, store_generator, xoshiro
from dpfast._kernels.tiles import Rows

Array = NDArray[Any]


class SharedTable(NamedTuple):
    """R_1, R_2, ... of a group, side by side, relative to the R before: (noises of a group, sizes, sizes)."""

    remaining: Array

    @property
    def group(self) -> int:
        """Count the noises of a group."""
        return len(self.remaining)


class SharedDraws(NamedTuple):
    """The places of a table, of the bits and of what a group has drawn so far."""

    generator: int  # row of words, with one more behind them for the bits
    table: int  # where R_1 begins; behind it R_2, ...
    n_sizes: int
    group: int
    above: int  # row of what is above zero so far, with one more behind it for what is below


@traced
def store_bits(words: Words, generator: int, x: Rows, row: int, out: int) -> None:
    """Draw 32 bits in every lane and keep them in a row of words."""
    bits, s = xoshiro(load_generator(words, generator, load(x, row)))
    store_generator(words, generator, s)
    store(words, out, bits)


@part
def uniform_of(words: Words, bits: int, lane: int) -> float:
    """Return bits as a number between zero and one."""
    return (float(words[bits, lane]) + 0.5) / 2.0**32


@part
def draw_given(c: Array, draws: SharedDraws, drawn: int, above: int, below: int, uniform: float) -> int:
    """Draw one noise, given how many of its group were drawn before and what they add up to."""
    n, last = draws.n_sizes, draws.table + drawn * draws.n_sizes * draws.n_sizes
    before = c[last - n * n + above * n + below] if drawn > 0 else 1.0
    left = uniform * before - c[last + above * n + below]
    size = 0
    while left >= 0 and above + size + 1 < n and below + size + 1 < n:
        size += 1
        left -= c[last + (above + size) * n + below]
        if left < 0:
            return size
        left -= c[last + above * n + below + size]
    return -size


@kernel
def draw_shared(words: Words, draws: SharedDraws, c: Array, x: Rows, row: int, drawn: int) -> None:
    """Draw a row of noise, of which so many of its group were drawn before."""
    bits = draws.generator + STATE_WORDS
    store_bits(words, draws.generator, x, row, bits)
    for lane in range(x.shape[1]):
        above, below = 0, 0
        if drawn > 0:
            above, below = int(x[draws.above, lane]), int(x[draws.above + 1, lane])
        noise = draw_given(c, draws, drawn, above, below, uniform_of(words, bits, lane))
        x[row, lane] = noise
        x[draws.above, lane] = above + max(noise, 0)
        x[draws.above + 1, lane] = below + max(-noise, 0)
