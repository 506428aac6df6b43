"""Randomised response: each of two levels is published as it is, or as the other, by chance."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpfast._kernels._jit import kernel
from dpfast._kernels.simd import load, store, traced
from dpfast._kernels.simulated_noise import Words, load_generator, store_generator, xoshiro
from dpfast._kernels.tiles import ROWS, Rows

Array = NDArray[Any]


class TwoLevelResponse(NamedTuple):
    """shift ± a size: with probability `told` for certain, by `true` in all truly, else for the other level."""

    middle: float  # from it on an input counts as the upper level
    told: float
    true: float
    told_size: float
    true_size: float
    shift: float


class ResponseNumbers(NamedTuple):
    """The numbers of a response: with what is below one threshold of 32 bits it is told, below another it is true."""

    generator: int  # row of words
    thresholds: int  # where the two are, in the table
    middle: float  # from it on an input counts as the upper level
    told: float  # what is added to the shift for the upper level, and taken off for the lower
    true: float
    shift: float


@traced
def respond_tile(words: Words, response: ResponseNumbers, table: Words, x: Rows, row: int, out: int) -> None:
    """Respond to a tile of inputs."""
    like = load(x, row)
    s = load_generator(words, response.generator, like)
    told, true = np.full_like(like, response.told), np.full_like(like, response.true)
    for r in range(ROWS):
        bits, s = xoshiro(s)
        true_or_not = np.where(bits < table[response.thresholds + 1], true, -true)
        size = np.where(bits < table[response.thresholds], told, true_or_not)
        value = np.where(load(x, row + r) >= response.middle, size, -size)
        store(x, out + r, value + response.shift)
    store_generator(words, response.generator, s)


@kernel
def respond(words: Words, response: ResponseNumbers, table: Words, x: Rows, row: int, out: int, n: int) -> None:
    """Respond to n rows, and up to five beyond."""
    for t in range(0, n, ROWS):
        respond_tile(words, response, table, x, row + t, out + t)
