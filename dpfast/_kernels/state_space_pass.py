"""Systems of several inputs and outputs run here, with one state for all: s⁺ = B x + A s, y = D x + C s.

The states of all times are signals too, behind the inputs; the next state and the outputs are weighted sums of these.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpfast._kernels._jit import part
from dpfast._kernels.simd import Row, fma, load, repeat, store, traced
from dpfast._kernels.tiles import ROWS, Rows, Tile, copy_row

Array = NDArray[Any]


class StateSpace(NamedTuple):
    """The matrices of a system: (n, n), (n, k), (p, n), (p, k)."""

    a: Array
    b: Array
    c: Array
    d: Array


class SignalGroup(NamedTuple):
    """Signals that lie equally far from one another: the row of the first, how far, and how many there are."""

    row: int
    stride: int
    n: int


@traced
def mix_tile(c: Array, weights: int, group: SignalGroup, t: int, x: Rows, out: int, n: int) -> None:
    """Weigh the signals of a group, for n rows."""

    def add(j: Any, *tile: Row) -> Tile:
        at = group.row + t + j * group.stride
        return tuple(fma(load(x, at + r), c[weights + j], value) for r, value in enumerate(tile))

    zeros = (np.full_like(load(x, out), 0),) * n
    for r, value in enumerate(repeat(group.n, add, *zeros)):
        store(x, out + r, value)


@part
def mix_signals(c: Array, weights: int, group: SignalGroup, x: Rows, out: int, n: int) -> None:
    """Weigh the signals of a group, for n rows and up to five beyond."""
    for t in range(0, n, ROWS):
        mix_tile(c, weights, group, t, x, out + t, ROWS)


@part
def advance_states(c: Array, matrix: int, group: SignalGroup, n_states: int, x: Rows, kept: int, n: int) -> None:
    """Compute the states of n times, the last signals of a group; the first were kept, and those behind will be."""
    first = group.row + (group.n - n_states) * group.stride
    for i in range(n_states):
        copy_row(x, kept + i, x, first + i * group.stride)
    for t in range(n):
        for i in range(n_states):
            to = first + i * group.stride + t + 1 if t + 1 < n else kept + i
            mix_tile(c, matrix + i * group.n, group, t, x, to, 1)
