"""Matrices at the nodes of a circle, with nodes in the lanes of rows (see `simd`).

Of a tile, as many nodes as a row has lanes, the entries of a matrix follow one another, row by row, the real part of
each before the imaginary one. What is used often is kept so (:func:`nodes_in_lanes`); what an FFT takes and leaves is
(entries, nodes), with room for whole tiles (:func:`make_room`), and is read and written tile by tile.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast._kernels.simd import interleave, lanes, load, load_run, separate, store, store_run, traced

Array = NDArray[np.float64]
Complex = NDArray[np.complex128]
Rows = NDArray[np.float64]  # (rows, lanes)


def nodes_in_lanes(x: NDArray[Any]) -> Rows:
    """Return real or complex arrays of nodes (nodes, ...) as rows of tiles; beyond the last node that one again."""
    parts = np.ascontiguousarray(x).view(np.float64).reshape(len(x), -1)
    width = lanes(np.float64)
    last = np.repeat(parts[-1:], -len(parts) % width, axis=0)
    tiles = np.concatenate([parts, last]).reshape(-1, width, parts.shape[1])
    return np.ascontiguousarray(np.swapaxes(tiles, 1, 2)).reshape(-1, width)


def make_room(p: int, m: int, nodes: int) -> Complex:
    """Return zeros for matrices at nodes, (p, m, nodes), with nodes up to the end of the last tile."""
    return np.zeros((p, m, nodes + -nodes % lanes(np.float64)), np.complex128)


def entries(e: Complex) -> Array:
    """Return matrices (p, m, nodes) as the kernels take them."""
    return e.view(np.float64).reshape(e.shape[0] * e.shape[1], -1)


@traced
def read_entry(e: Array, entry: int, tile: int, rows: Rows) -> None:
    """Read an entry of a tile."""
    n = lanes(np.float64)
    parts = separate(*(load_run(e, (entry, tile * 2 * n + start), 1, n) for start in (0, n)))
    for part, value in enumerate(parts):
        store(rows, 2 * entry + part, value)


@traced
def write_entry(rows: Rows, entry: int, tile: int, e: Array) -> None:
    """Write an entry of a tile back to where it was read."""
    n = lanes(np.float64)
    runs = interleave(load(rows, 2 * entry), load(rows, 2 * entry + 1))
    for start, run in zip((0, n), runs, strict=True):
        store_run(e, (entry, tile * 2 * n + start), 1, run)
