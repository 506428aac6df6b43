"""Random numbers from the kernels, as arrays."""

import numba
import numpy as np

from dpfast._kernels import simulated_noise
from dpfast._kernels._jit import OPTIONS
from dpfast._kernels.simd import lanes, store, traced


@traced
def _next_word(states, out, row):
    s = simulated_noise.load_generator(states, 0, None)
    word, s = simulated_noise.xoshiro(s)
    store(out, row, word)
    simulated_noise.store_generator(states, 0, s)


@numba.njit(**OPTIONS)
def _words(states, out):
    for row in range(len(out)):
        _next_word(states, out, row)


def words(states, n):
    """The next n words of generators (4, lanes of words), which go on: (lanes, n)."""
    out = np.empty((n, states.shape[1]), np.uint32)
    _words(states, out)
    return out.T


def normals(states, n, dtype="f8"):
    """The next n normals of generators (4, lanes), which go on; whole tiles of six are drawn: (lanes, n)."""
    return _fill(simulated_noise.fill_normals, states, n, dtype)


def laplace(states, n, dtype="f8"):
    """The same of Laplace noise of scale one."""
    return _fill(simulated_noise.fill_laplace, states, n, dtype)


def _fill(draw, states, n, dtype):
    out = np.empty((n + simulated_noise.ROWS - 1, states.shape[1]), dtype)
    draw(states, 0, out, 0, n)
    return out[:n].T


def bundles(seed, first, n_streams, purpose, dtype="f8"):
    """States of the generators of streams, in bundles as wide as rows of a type."""
    width = lanes(dtype)
    return [simulated_noise.seed_generators(seed, i, width, purpose) for i in range(first, first + n_streams, width)]


def walk(table, start, n, dtype="f8"):
    """The next n levels of chains that go on: (lanes, n). `start`: generators, and below them places in the table."""
    x = np.full((n + simulated_noise.ROWS, start.shape[1]), np.nan, dtype)
    numbers = np.concatenate([[7, 7], table.thresholds, table.next_row]).astype(np.uint32)
    levels = np.concatenate([[7], table.levels]).astype(dtype)
    half = np.uint32(1 << max(0, (table.n_halves or 0) - 1))
    chain = simulated_noise.Levels(
        0, simulated_noise.STATE_WORDS, 2, 2 + table.thresholds.size, 1, table.n_halves or 0, half
    )
    if table.n_halves is None:
        simulated_noise.fill_two_levels(start, chain, numbers, levels, x, 0, n)
    else:
        simulated_noise.fill_many_levels(start, chain, numbers, levels, x, 0, n)
        assert np.isnan(x[n:]).all()
    return x[:n].T
