"""Tiles are what a kernel holds in registers, six rows of two vectors.

The processor starts two multiply-adds in a cycle and each takes four, so at least 8 sums must be in flight; 12 leave
slack for loads. A signal whose length is no multiple of six ends with tiles of one row.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast._kernels._jit import part
from dpfast._kernels.simd import Row, load, store, traced

Rows = NDArray[Any]  # (rows, lanes), C-contiguous
Tile = tuple[Row, ...]

ROWS = 6


@traced
def copy_row(source: Rows, row: int, target: Rows, to: int) -> None:
    """Copy one row, converted to the type of the target."""
    store(target, to, load(source, row))


@traced
def set_row(x: Rows, row: int, value: float) -> None:
    """Put one number into all lanes."""
    store(x, row, np.full_like(load(x, row), value))


@part
def copy(x: Rows, source: int, step: int, target: int, n: int) -> None:
    """Copy rows to another place; step -1: the rows up to `source`, the last one first."""
    for r in range(n):
        copy_row(x, source + step * r, x, target + r)


@part
def fill(x: Rows, row: int, n: int, value: float) -> None:
    """Put one number everywhere."""
    for r in range(n):
        set_row(x, row + r, value)
