"""Products with the curvature of the error of several streams at each frequency, and with its inverse.

Conjugate gradients take thousands of them for a design. E is as an FFT leaves it, what is fixed is in lanes
(see `matrix_tiles`).
"""

from __future__ import annotations

import numpy as np

from dpfast._kernels._jit import kernel
from dpfast._kernels.matrix_tiles import Array, Rows, read_entry, write_entry
from dpfast._kernels.simd import Row, fma, load, repeat, store, traced


def _along(columns: Rows, first: Row, e: Rows, p: Row, m: Row, i: Row) -> Row:
    """Return Re k_i*e_i of two columns."""

    def add(j: Row, total: Row) -> tuple[Row]:
        real, imaginary = 2 * (j * m + i), 2 * (j * m + i) + 1
        total = fma(load(columns, first + real), load(e, real), total)
        return (fma(load(columns, first + imaginary), load(e, imaginary), total),)

    return repeat(p, add, np.full_like(load(e, 0), 0.0))[0]


def _multiply(e: Rows, matrices: Rows, first: Row, m: Row, j: Row, i: Row) -> tuple[Row, Row]:
    """Return an entry of a product, its real part and the imaginary one."""

    def add(k: Row, x: Row, y: Row) -> tuple[Row, Row]:
        a, b = load(e, 2 * (j * m + k)), load(e, 2 * (j * m + k) + 1)
        c, d = load(matrices, first + 2 * (k * m + i)), load(matrices, first + 2 * (k * m + i) + 1)
        return fma(a, c, fma(-b, d, x)), fma(a, d, fma(b, c, y))

    nothing = np.full_like(load(e, 0), 0.0)
    x, y = repeat(m, add, nothing, nothing)
    return x, y


@traced
def put_along(columns: Rows, tile: int, e: Rows, p: int, m: int, i: int, out: Rows, row: int) -> None:
    """Write how much longer a column in its direction gets."""
    store(out, row, _along(columns, tile * 2 * p * m, e, p, m, i))


@traced
def curve_column(
    e: Rows,
    psd: Rows,
    directions: Rows,
    duals: Rows,
    stiffness: Rows,
    sizes: Rows,
    tile: int,
    p: int,
    m: int,
    i: int,
    length: float,
    damped: float,
    out: Rows,
) -> None:
    """Write a column of the product with the curvature."""
    s, first = load(stiffness, tile * m + i), tile * 2 * p * m
    of_direction = length * load(sizes, tile) - s * _along(duals, first, e, p, m, i) / 2
    of_dual = s * _along(directions, first, e, p, m, i) / 2

    def put(j: Row) -> tuple[()]:
        row = 2 * (j * m + i)
        for part, straight in enumerate(_multiply(e, psd, tile * 2 * m * m, m, j, i)):
            straight = fma(s, load(e, row + part), straight)
            turned = fma(load(directions, first + row + part), of_direction, load(duals, first + row + part) * -of_dual)
            store(out, row + part, fma(straight, damped, turned))
        return ()

    repeat(p, put)


@traced
def multiply_column(e: Rows, matrices: Rows, tile: int, p: int, m: int, i: int, out: Rows) -> None:
    """Write a column of the product with a matrix."""

    def put(j: Row) -> tuple[()]:
        for part, value in enumerate(_multiply(e, matrices, tile * 2 * m * m, m, j, i)):
            store(out, 2 * (j * m + i) + part, value)
        return ()

    repeat(p, put)


@traced
def add_missing(directions: Rows, rest: Rows, along: Rows, tile: int, p: int, m: int, i: int, e: Rows) -> None:
    """Add to a column, in its direction, what those before it in Woodbury's formula have left out."""

    def add(k: Row, total: Row) -> tuple[Row]:
        return (fma(load(rest, tile * m * m + i * m + k), load(along, k), total),)

    (missing,) = repeat(m, add, np.full_like(load(e, 0), 0.0))

    def put(j: Row) -> tuple[()]:
        for part in range(2):
            row = 2 * (j * m + i) + part
            store(e, row, fma(load(directions, tile * 2 * p * m + row), missing, load(e, row)))
        return ()

    repeat(p, put)


@kernel
def curve_alone(
    e: Array,
    psd: Rows,
    directions: Rows,
    duals: Rows,
    stiffness: Rows,
    sizes: Rows,
    lengths: Array,
    damped: float,
    first: int,
    count: int,
    tile_of_e: Rows,
    tile_of_out: Rows,
) -> None:
    """Make e δ(e P + s_i e_i) - s_i (k_i Re u_i*e_i + u_i Re k_i*e_i)/2 + a c_i k_i.

    Directions k, duals u, stiffness s (nodes, m), sizes a (nodes, 1), lengths c (m,) of all nodes; tiles are scratch.
    """
    m = lengths.shape[0]
    p = e.shape[0] // m
    for tile in range(first, first + count):
        for entry in range(e.shape[0]):
            read_entry(e, entry, tile, tile_of_e)
        for i in range(m):
            curve_column(
                tile_of_e,
                psd,
                directions,
                duals,
                stiffness,
                sizes,
                tile,
                p,
                m,
                i,
                lengths[i],
                damped,
                tile_of_out,
            )
        for entry in range(e.shape[0]):
            write_entry(tile_of_out, entry, tile, e)


@kernel
def divide_alone(
    e: Array,
    inverse: Rows,
    directions: Rows,
    rest: Rows,
    p: int,
    m: int,
    first: int,
    count: int,
    tile_of_e: Rows,
    tile_of_out: Rows,
    along: Rows,
) -> None:
    """Make e what it is the `curve_alone` of, without lengths; tiles and along (m, lanes) are scratch."""
    for tile in range(first, first + count):
        for entry in range(e.shape[0]):
            read_entry(e, entry, tile, tile_of_e)
        for i in range(m):
            multiply_column(tile_of_e, inverse, tile, p, m, i, tile_of_out)
            put_along(directions, tile, tile_of_out, p, m, i, along, i)
        for i in range(m):
            add_missing(directions, rest, along, tile, p, m, i, tile_of_e)
        for i in range(m):
            multiply_column(tile_of_e, inverse, tile, p, m, i, tile_of_out)
        for entry in range(e.shape[0]):
            write_entry(tile_of_out, entry, tile, e)
