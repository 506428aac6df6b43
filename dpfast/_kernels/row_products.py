"""What conjugate gradients do to vectors of rows (rows, 2, places), as `node_fft` takes and leaves them.

Each is one pass over the rows. Products leave it lane by lane, (rows, lanes), and are added up by others. Places fill
n lanes.
"""

from __future__ import annotations

import numpy as np

from dpfast._kernels._jit import kernel
from dpfast._kernels.matrix_tiles import Array, Rows
from dpfast._kernels.simd import Row, fma, lanes, load, load_run, repeat, store, store_run, traced


def _load(x: Array, row: Row, part: int, at: Row) -> Row:
    n = lanes(np.float64)
    return load_run(x, (row, part, at * n), 2, n)


def _store(x: Array, row: Row, part: int, at: Row, value: Row) -> None:
    store_run(x, (row, part, at * lanes(np.float64)), 2, value)


@traced
def go_row(step: Array, direction: Array, left: Array, changed: Array, length: float, row: int, n: int) -> None:
    """Go a length along the direction, along which what is left changes."""

    def go(at: Row) -> tuple[()]:
        for part in range(2):
            further = fma(_load(direction, row, part, at), length, _load(step, row, part, at))
            _store(step, row, part, at, further)
            _store(left, row, part, at, fma(_load(changed, row, part, at), -length, _load(left, row, part, at)))
        return ()

    repeat(n, go)


@traced
def turn_row(direction: Array, changed: Array, kept: float, along: Array, longer: Rows, row: int, n: int) -> None:
    """Turn the direction to what is left, divided by the curvature, and keep some of what it was."""

    def turn(at: Row, total: Row, other: Row) -> tuple[Row, Row]:
        totals = []
        for part, before in enumerate((total, other)):
            turned = fma(_load(direction, row, part, at), kept, _load(changed, row, part, at))
            _store(direction, row, part, at, turned)
            totals.append(fma(turned, _load(along, row, part, at), before))
        return totals[0], totals[1]

    nothing = np.full_like(load(longer, 0), 0.0)
    total, other = repeat(n, turn, nothing, nothing)
    store(longer, row, total + other)


@traced
def multiply_row(a: Array, b: Array, products: Rows, row: int, n: int) -> None:
    """Multiply a row of one vector with that of the other."""

    def add(at: Row, total: Row, other: Row) -> tuple[Row, Row]:
        totals = (fma(_load(a, row, i, at), _load(b, row, i, at), x) for i, x in enumerate((total, other)))
        return next(totals), next(totals)

    nothing = np.full_like(load(products, 0), 0.0)
    total, other = repeat(n, add, nothing, nothing)
    store(products, row, total + other)


@kernel
def go(
    step: Array, direction: Array, left: Array, changed: Array, length: float, n: int, first: int, count: int
) -> None:
    """Add the direction times a length to the step, and take what it changes off what is left."""
    for row in range(first, first + count):
        go_row(step, direction, left, changed, length, row, n)


@kernel
def turn(
    direction: Array, changed: Array, kept: float, along: Array, longer: Rows, n: int, first: int, count: int
) -> None:
    """Make the direction what is kept of it and what was changed, and find its products with along."""
    for row in range(first, first + count):
        turn_row(direction, changed, kept, along, longer, row, n)


@kernel
def multiply(a: Array, b: Array, products: Rows, n: int, first: int, count: int) -> None:
    """Find the products of rows of two vectors."""
    for row in range(first, first + count):
        multiply_row(a, b, products, row, n)
