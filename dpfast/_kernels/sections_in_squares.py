"""Second-order sections run on many streams of an array (streams, time) here, a square at a time.

As many samples of as many streams as a register has lanes are loaded, transposed between registers, sent through all
sections, transposed back and stored: nothing goes through memory but the states. The operations and their order are
those of ``fir_and_sections``, so the bits are, too.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpfast._kernels._jit import kernel
from dpfast._kernels.denormals import flush, restore
from dpfast._kernels.fir_and_sections import SECTION
from dpfast._kernels.simd import (
    Row,
    fma,
    load_each,
    load_run,
    register_bytes,
    repeat,
    store_each,
    store_run,
    traced,
    transpose,
)
from dpfast._kernels.taps_in_time import register_lanes

Array = NDArray[Any]

_SQUARE, _STEP = 0, 1  # samples of a tile: as many as lanes, or one


def bundle_registers(dtype: Any) -> int:
    """Count the squares side by side that half the registers hold, at most two: one waits while the other works."""
    n_rows = 16 if register_bytes() == 64 else 8
    return 2 if 2 * register_lanes(dtype) <= n_rows else 1


def bundle_streams(dtype: Any) -> int:
    """Count the streams that run side by side."""
    return bundle_registers(dtype) * register_lanes(dtype)


def load_square(x: Array, places: list[Any], n: int) -> tuple[list[Row], list[Row]]:
    """Load n samples from each place; return them by streams, to be looked at, and by samples."""
    if n == 1:
        row = load_each(x, [(place,) for place in places])
        return [row], [row]
    runs = [load_run(x, (place,), 0, n) for place in places]
    return runs, transpose(runs)


def store_square(y: Array, places: list[Any], rows: list[Row]) -> None:
    """Put the rows of samples back."""
    if len(rows) == 1:
        store_each(y, [(place,) for place in places], rows[0])
        return
    for place, run in zip(places, transpose(rows), strict=True):
        store_run(y, (place,), 0, run)


class SquaresPlan(NamedTuple):
    """Sections laid out for :func:`run_bundles`: b0 c1 c2 a1 a2 each, and the lanes of a register and of a bundle."""

    c: Array
    square: int
    side: int

    def memory(self) -> Array:
        """Return memory for the states of a bundle."""
        return np.zeros((2 * (len(self.c) // SECTION), self.side), self.c.dtype)


def plan_squares(sections: Array, dtype: np.dtype[Any]) -> SquaresPlan:
    """Lay folded sections out."""
    return SquaresPlan(sections.ravel().astype(dtype), register_lanes(dtype), bundle_streams(dtype))


@traced
def filter_squares(
    c: Array, n_sections: int, states: Array, x: Array, y: Array, at: int, stride: int, limit: float, kind: int
) -> Any:
    """Filter a tile of a bundle of streams from sample `at` of the first; tell whether one is beyond the limit."""
    width, n_registers = register_lanes(x.dtype), bundle_registers(x.dtype)
    n = 1 if kind else width
    places = [[at + stride * (register * width + i) for i in range(width)] for register in range(n_registers)]
    squares = [load_square(x, each, n) for each in places]
    found = np.full_like(squares[0][0][0], 0)
    for value in (value for runs, _ in squares for value in runs):
        found = np.where((value <= limit) & (value >= -limit), found, 1)

    def section(i: Any, *rows: Row) -> tuple[Row, ...]:
        b0, c1, c2, a1, a2 = (c[i * SECTION + j] for j in range(SECTION))
        result = []
        for register in range(n_registers):
            first, second = ((i * 2 + j, register * width) for j in range(2))
            s, z = load_run(states, first, 1, width), load_run(states, second, 1, width)
            for value in rows[register * n : (register + 1) * n]:
                result.append(fma(b0, value, s))
                s, z = fma(-a1, s, fma(c1, value, z)), fma(-a2, s, c2 * value)
            store_run(states, first, 1, s)
            store_run(states, second, 1, z)
        return tuple(result)

    rows = repeat(n_sections, section, *(row for _, by_samples in squares for row in by_samples))
    for register, each in enumerate(places):
        store_square(y, each, list(rows[register * n : (register + 1) * n]))
    return np.any(found > 0)


@kernel
def run_bundles(
    c: Array, memory: Array, square: int, limit: float, states: Array, column: int, x: Array, y: Array
) -> bool:
    """Run whole bundles of flat streams of equal length through sections, whose states begin at a column of `states`.

    Tell whether a sample is beyond the limits; nobody may want the outputs then. Those may take the place of inputs.
    """
    before, found, side = flush(), False, memory.shape[1]
    n_samples, n_sections = len(x) // len(states), len(c) // SECTION
    squared = n_samples - n_samples % square
    for first in range(0, len(states), side):
        for row in range(len(memory)):
            for lane in range(side):
                memory[row, lane] = states[first + lane, column + row]
        at = first * n_samples
        for t in range(0, squared, square):
            found |= filter_squares(c, n_sections, memory, x, y, at + t, n_samples, limit, _SQUARE)
        for t in range(squared, n_samples):
            found |= filter_squares(c, n_sections, memory, x, y, at + t, n_samples, limit, _STEP)
        for row in range(len(memory)):
            for lane in range(side):
                states[first + lane, column + row] = memory[row, lane]
    restore(before)
    return found
