"""The fastest that this CPU multiplies and adds: 12 registers, each step a fused multiply-add on all of them.

And two that stages of few of them meet first: where each waits for the one before, and where rows go through the cache.
"""

import functools

import numpy as np
from numba import njit

from dpfast._kernels.chain_parts import CHUNK
from dpfast._kernels.simd import fma, lanes, load, store, traced
from dpfast._kernels.tiles import copy_row

ROWS, STEPS = 6, 8
REPEATS = 400_000  # 5 ms


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


@njit(nogil=True)
def _loop(x, n):
    tile = _begin(x)
    for _ in range(n):
        tile = _advance(tile)
    _end(x, tile)


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
