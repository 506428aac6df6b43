"""Taps run along time here: for arrays (streams, time), of one stream or many, without a transposition.

A register holds consecutive outputs of one stream. Each sample is broadcast to it and meets a row of a table, which has
the taps shifted by one from lane to lane and zeros beyond their ends::

    lane        0    1    2    3            sums run from the oldest sample to the newest,
    row 0      b2    0    0    0            so the bits are those of ``fir_and_sections``
    row 1      b1   b2    0    0            (but for the sign of a sum of nothing but
    row 2      b0   b1   b2    0            numbers below 1e-308)
    row 3       0   b0   b1   b2
    ...

No load crosses a cache line, and a row of the table serves all registers of a tile. Samples are looked at and copied
behind their past first, a chunk at a time, so that outputs may take the place of inputs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpfast._kernels._jit import kernel
from dpfast._kernels.denormals import flush, restore
from dpfast._kernels.simd import REGISTERS_PER_ROW, Row, fma, lanes, load_run, register_bytes, repeat, store_run, traced

Array = NDArray[Any]

_CHUNK = 1024  # samples at least; with twice that many taps, as many as these
_REST = 4  # registers of a tile at the end of a chunk


class TapsPlan(NamedTuple):
    """Taps laid out for :func:`convolve_streams`."""

    table: Array
    n_past: int
    chunk: int
    tile: int  # samples

    def room(self) -> Array:
        """Return memory for past samples, a chunk, what is read beyond it, and the last outputs."""
        rest = _REST * self.table.shape[1]
        return np.zeros(self.n_past + self.chunk + 3 * rest, self.table.dtype)


def plan_taps(taps: Array, dtype: np.dtype[Any]) -> TapsPlan:
    """Make the table of shifted taps."""
    n, n_taps = register_lanes(dtype), len(taps)
    table = np.zeros((n_taps + n - 1, n), dtype)
    for lane in range(n):
        table[lane : lane + n_taps, lane] = taps[::-1]
    tile = n * n_sums()
    return TapsPlan(table, n_taps - 1, -(-max(_CHUNK, 2 * n_taps) // tile) * tile, tile)


def register_lanes(dtype: Any) -> int:
    """Count the numbers in a register."""
    return lanes(dtype) // REGISTERS_PER_ROW


def n_sums() -> int:
    """Count the registers of a tile: of 32 registers where they are of 64 bytes, else of 16."""
    return 20 if register_bytes() == 64 else 12


@traced
def convolve_tile(room: Array, at: int, table: Array, n_rows: int, y: Array, to: int, n: int) -> None:
    """Write n registers of outputs, the first of which looks back to room[at]; 0: as many as a tile has."""
    width = register_lanes(table.dtype)

    def step(i: Any, *sums: Row) -> tuple[Row, ...]:
        taps = load_run(table, (i, 0), 1, width)
        return tuple(fma(taps, room[at + i + r * width], value) for r, value in enumerate(sums))

    zero = np.full_like(load_run(table, (0, 0), 1, width), 0)
    for r, value in enumerate(repeat(n_rows, step, *(zero,) * (n or n_sums()))):
        store_run(y, (to + r * width,), 0, value)


@traced
def copy_checked(x: Array, at: int, room: Array, to: int, count: int, limit: float) -> Any:
    """Copy as many registers; tell whether a number is beyond the limits, or none."""
    width = register_lanes(x.dtype)

    def move(i: Any, found: Row) -> tuple[Row]:
        value = load_run(x, (at + i * width,), 0, width)
        store_run(room, (to + i * width,), 0, value)
        return (np.where((value <= limit) & (value >= -limit), found, 1),)

    return np.any(repeat(count, move, np.full_like(load_run(room, (to,), 0, width), 0))[0] > 0)


@kernel
def take_chunk(x: Array, at: int, room: Array, to: int, n: int, limit: float, width: int) -> bool:
    """Copy n samples; tell whether one is beyond the limits."""
    found: bool = copy_checked(x, at, room, to, n // width, limit)
    for k in range(n - n % width, n):
        value = x[at + k]
        found |= not (-limit <= value <= limit)
        room[to + k] = value
    return found


@kernel
def convolve_chunk(room: Array, table: Array, y: Array, at: int, n: int, tile: int) -> None:
    """Write n outputs to y[at ...]; those that fill no tile by way of the end of the room."""
    rest, n_rows = _REST * table.shape[1], len(table)
    spare, t = len(room) - rest, n - n % tile
    for i in range(0, t, tile):
        convolve_tile(room, i, table, n_rows, y, at + i, 0)
    while t < n:
        convolve_tile(room, t, table, n_rows, room, spare, _REST)
        for k in range(min(rest, n - t)):
            y[at + t + k] = room[spare + k]
        t += rest


@kernel
def convolve_streams(
    table: Array, room: Array, chunk: int, tile: int, limit: float, states: Array, x: Array, y: Array
) -> bool:
    """Convolve flat streams of equal length with taps, from past inputs in the first states, the newest first.

    Tell whether a sample is beyond the limits; nobody may want the outputs then. Those may take the place of inputs.
    """
    before, found = flush(), False
    n_past, n_streams = len(table) - table.shape[1], len(states)
    n_samples = len(x) // n_streams
    for stream in range(n_streams):
        for k in range(n_past):
            room[k] = states[stream, n_past - 1 - k]
        for t in range(0, n_samples, chunk):
            n, at = min(chunk, n_samples - t), stream * n_samples + t
            found |= take_chunk(x, at, room, n_past, n, limit, table.shape[1])
            convolve_chunk(room, table, y, at, n, tile)
            for k in range(n_past):
                room[k] = room[n + k]
        for k in range(n_past):
            states[stream, k] = room[n_past - 1 - k]
    restore(before)
    return found
