"""The fastest that this CPU multiplies and adds: 12 registers, each step a fused multiply-add on all of them.

And others that may be met first: where each waits for the one before, where rows go through the cache, operations on
integers, the call of a compiled function that does nothing, and the random words of the operating system.
"""

import functools
import os

import numpy as np
from numba import njit

from dpfast._kernels.chain_parts import CHUNK
from dpfast._kernels.simd import fma, lanes, load, rotate_left, store, traced
from dpfast._kernels.tiles import copy_row

ROWS, STEPS = 6, 8
REPEATS = 400_000  # 5 ms
CALLS = 10_000
RANDOM_WORDS = 1 << 18  # of 32 bits


@traced
def _begin(x):
    return tuple(load(x, r) for r in range(ROWS))


@traced
def _advance(tile):
    for _ in range(STEPS):
        tile = [fma(0.999, value, 0.001) for value in tile]  # stays near one
    return tuple(tile)


@traced
def _end(x, tile):
    for r, value in enumerate(tile):
        store(x, r, value)


@traced
def _wait(x):
    value = load(x, 0)
    for _ in range(ROWS * STEPS):
        value = fma(0.999, value, 0.001)
    store(x, 0, value)


@traced
def _advance_integers(tile):
    for _ in range(STEPS // 2):
        tile = [rotate_left(value, 7) + 0x9E3779B9 for value in tile]  # two operations, which no compiler makes one
    return tuple(tile)


@njit(nogil=True)
def _loop(x, n):
    tile = _begin(x)
    for _ in range(n):
        tile = _advance(tile)
    _end(x, tile)


@njit(nogil=True)
def _integer_loop(x, n):
    tile = _begin(x)
    for _ in range(n):
        tile = _advance_integers(tile)
    _end(x, tile)


@njit(nogil=True)
def _do_nothing(x):
    pass


@njit(nogil=True)
def _waiting_loop(x, n):
    for _ in range(n):
        _wait(x)


@njit(nogil=True)
def _copying_loop(x, n):
    for _ in range(n):
        for row in range(CHUNK):
            copy_row(x, row, x, CHUNK + row)


def loop(dtype):
    """Something to call, and the multiply-adds that one call does."""
    x = np.ones((ROWS, lanes(dtype)), dtype)
    return functools.partial(_loop, x, REPEATS), REPEATS * STEPS * x.size


def waiting_loop(dtype):
    """The same of multiply-adds one after the other, each of a row."""
    x, n = np.ones((1, lanes(dtype)), dtype), REPEATS // 4
    return functools.partial(_waiting_loop, x, n), n * ROWS * STEPS * x.size


def copying_loop(dtype):
    """A chunk of rows copied again and again, as a stage reads and writes it; the samples that one call copies."""
    x, n = np.ones((2 * CHUNK, lanes(dtype)), dtype), REPEATS // CHUNK
    return functools.partial(_copying_loop, x, n), n * CHUNK * lanes(dtype)


def integer_loop(dtype):
    """Operations on integers of 32 bits in registers; `dtype` says nothing of them."""
    x = np.ones((ROWS, lanes(np.uint32)), np.uint32)
    return functools.partial(_integer_loop, x, REPEATS), REPEATS * STEPS * x.size


def calls(dtype):
    """Calls from Python of a compiled function of an array, which does nothing."""
    x = np.ones(1, dtype)

    def run():
        for _ in range(CALLS):
            _do_nothing(x)

    return run, CALLS


def random_words(dtype):
    """Random words of 32 bits, as the operating system makes them; `dtype` says nothing of them."""
    return functools.partial(os.urandom, 4 * RANDOM_WORDS), RANDOM_WORDS
