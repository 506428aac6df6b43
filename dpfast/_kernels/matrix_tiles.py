"""Matrices at the nodes of a circle, with nodes in the lanes of rows (see `simd`).

Of a tile, as many nodes as a row has lanes, the entries of a matrix follow one another, row by row, the real part of
each before the imaginary one. What is used often is kept so (:func:`nodes_in_lanes`). What an FFT takes and leaves is
(entries, 2, places), real and imaginary parts apart, with room for whole tiles (:func:`make_room`), and is read and
written tile by tile; nodes are in its order (`node_fft`).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast._kernels.simd import lanes, load, load_run, store, store_run, traced

Array = NDArray[np.float64]
Complex = NDArray[np.complex128]
Rows = NDArray[np.float64]  # (rows, lanes)
Places = NDArray[np.intp]

_LINE = 8  # numbers of a cache line


def aligned(shape: tuple[int, ...]) -> Array:
    """Return an array that begins with a cache line, as rows that lie in two take twice as long to read."""
    n = math.prod(shape)
    room = np.empty(n + _LINE)
    first = -room.__array_interface__["data"][0] // room.itemsize % _LINE
    return room[first : first + n].reshape(shape)


def nodes_in_lanes(x: NDArray[Any], order: Places) -> Rows:
    """Return real or complex arrays of nodes (nodes, ...) in an order as rows of tiles; behind the last that again."""
    width = lanes(np.float64)
    every = np.append(order, np.repeat(order[-1], -len(order) % width))
    parts = np.ascontiguousarray(x).view(np.float64).reshape(len(x), -1)[every]
    tiles = aligned((len(every) // width, parts.shape[1], width))
    tiles[...] = np.swapaxes(parts.reshape(-1, width, parts.shape[1]), 1, 2)
    return tiles.reshape(-1, width)


def make_room(p: int, m: int, nodes: int) -> Array:
    """Return zeros for matrices at nodes, (p m, 2, places), with places up to the end of the last tile."""
    room = aligned((p * m, 2, nodes + -nodes % lanes(np.float64)))
    room[...] = 0.0
    return room


@traced
def read_entry(e: Array, entry: int, tile: int, rows: Rows) -> None:
    """Read an entry of a tile."""
    n = lanes(np.float64)
    for part in range(2):
        store(rows, 2 * entry + part, load_run(e, (entry, part, tile * n), 2, n))


@traced
def write_entry(rows: Rows, entry: int, tile: int, e: Array) -> None:
    """Write an entry of a tile back to where it was read."""
    n = lanes(np.float64)
    for part in range(2):
        store_run(e, (entry, part, tile * n), 2, load(rows, 2 * entry + part))
