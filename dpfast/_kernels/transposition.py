"""Arrays (streams, time) become rows of lanes here, and back: by squares that fit into registers, or row by row."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast._kernels._jit import kernel
from dpfast._kernels.simd import (
    REGISTERS_PER_ROW,
    lanes,
    load,
    load_each,
    load_run,
    store,
    store_each,
    store_run,
    traced,
    transpose,
    width,
)
from dpfast._kernels.tiles import Rows

Array = NDArray[
    Any
]  # (arrays, streams, time, 2) in any memory order, of the type of the rows; the last axis does not count


@traced
def read_square(x: Array, k: int, stream: int, last: int, t: int, rows: Rows, row: int, register: int) -> None:
    """Read some samples of as many streams into one register of each row; beyond the last stream that stream again."""
    n = lanes(rows.dtype) // REGISTERS_PER_ROW
    streams = [stream + register * n + lane for lane in range(n)]
    runs = [load_run(x, (k, np.where(i < last, i, last), t), 2, n) for i in streams]
    for r, part in enumerate(transpose(runs)):
        store_run(rows, (row + r, register * n), 1, part)


@traced
def write_square(x: Array, k: int, stream: int, last: int, t: int, rows: Rows, row: int, register: int) -> None:
    """Write one register of each row back to as many streams."""
    n = lanes(rows.dtype) // REGISTERS_PER_ROW
    streams = [stream + register * n + lane for lane in range(n)]
    runs = transpose([load_run(rows, (row + r, register * n), 1, n) for r in range(n)])
    for i, run in reversed(list(zip(streams, runs, strict=True))):
        store_run(x, (k, np.where(i < last, i, last), t), 2, run)


@traced
def read_row(x: Array, k: int, stream: int, t: int, rows: Rows, row: int) -> None:
    """Read a sample of each stream of a whole bundle that lie side by side."""
    store(rows, row, load_run(x, (k, stream, t), 1, lanes(rows.dtype)))


@traced
def write_row(rows: Rows, row: int, x: Array, k: int, stream: int, t: int) -> None:
    """Write a row to streams that lie side by side."""
    store_run(x, (k, stream, t), 1, load(rows, row))


@traced
def take(x: Array, stream: int, i: int, rows: Rows, row: int, like: Rows) -> None:
    """Take number i of each stream of a bundle into a row, as wide as those of `like`."""
    last = x.shape[0] - 1
    streams = [stream + lane for lane in range(width(load(like, 0)))]
    store(rows, row, load_each(x, [(np.where(s < last, s, last), i) for s in streams]))


@traced
def give(rows: Rows, row: int, x: Array, k: int, stream: int, i: int, like: Rows) -> None:
    """Give a row to number i of each stream of a bundle."""
    last, value = x.shape[1] - 1, load(rows, row, load(like, 0))
    streams = [stream + lane for lane in range(width(value))]
    store_each(x, [(k, np.where(s < last, s, last), i) for s in streams], value)


@kernel
def read(x: Array, k: int, stream: int, t: int, rows: Rows, row: int, n: int) -> None:
    """Read the samples t ... t + n - 1 of a bundle of streams into n rows, from array k of several."""
    last, side, done = x.shape[1] - 1, rows.shape[1] // REGISTERS_PER_ROW, 0
    if x.strides[1] == x.itemsize and stream + rows.shape[1] <= x.shape[1]:
        for r in range(n):
            read_row(x, k, stream, t + r, rows, row + r)
        done = n
    elif x.strides[2] == x.itemsize:
        done = n - n % side
        for register in range(REGISTERS_PER_ROW):  # one after the other: few cache lines of the same set at a time
            for r in range(0, done, side):
                read_square(x, k, stream, last, t + r, rows, row + r, register)
    for r in range(done, n):
        take(x[k], stream, t + r, rows, row + r, rows)


@kernel
def write(rows: Rows, row: int, x: Array, k: int, stream: int, t: int, n: int) -> None:
    """Write n rows to the samples t ... t + n - 1 of a bundle of streams, in array k of several."""
    last, side, done = x.shape[1] - 1, rows.shape[1] // REGISTERS_PER_ROW, 0
    if x.strides[1] == x.itemsize and stream + rows.shape[1] <= x.shape[1]:
        for r in range(n):
            write_row(rows, row + r, x, k, stream, t + r)
        done = n
    elif x.strides[2] == x.itemsize:
        done = n - n % side
        for register in range(REGISTERS_PER_ROW - 1, -1, -1):
            for r in range(0, done, side):
                write_square(x, k, stream, last, t + r, rows, row + r, register)
    for r in range(done, n):
        give(rows, row + r, x, k, stream, t + r, rows)
