"""What must be taken off columns at each frequency so that none is longer than its limit, at the least cost.

Of ψ it takes E = MP, which costs tr MPM*; P may be singular. The limits are linearized: of what is left, l, with
M raised by l diag(x), x ≥ 0, they are Hx ≥ b, H_ik = Re l_i*l_k P_ki, b_i = |l_i|(|l_i| - limit_i), at the cost xᵀHx.
Each x_i is moved in turn (Hildreth, 1957), and limits are linearized anew where columns have turned.
"""

from __future__ import annotations

import math

import numpy as np

from dpfast._kernels._jit import kernel, part
from dpfast._kernels.matrix_tiles import Array, Complex, Rows, read_entry, write_entry
from dpfast._kernels.simd import Row, fma, load, repeat, store, traced

_ROUNDS, _SWEEPS = 8, 1000
_MOST_ROUNDS, _SHRINKS = 100, 0.95  # after the first few, only while each leaves less than this share of the excess
_TINY = 1e-300  # what is divided by is larger: streams may be as faint as numbers are
_LEFT = 1e-12  # of a limit: what columns may be longer by
_SETTLED = 1e-9  # of the largest b: what a sweep changes


@part
def _length(a: Complex, w: int, i: int) -> float:
    """Return how long a column is."""
    total = 0.0
    for j in range(a.shape[1]):
        x = a[w, j, i]
        total += x.real * x.real + x.imag * x.imag
    return math.sqrt(total)


@traced
def exceed_column(e: Rows, p: int, m: int, i: int, limit: float, sizes: Rows, tile: int) -> None:
    """Leave of a column, at each node, only what is beyond its limit times the size of the node."""
    nothing = np.full_like(load(e, 0), 0.0)

    def add(j: Row, total: Row) -> tuple[Row]:
        x, y = load(e, 2 * (j * m + i)), load(e, 2 * (j * m + i) + 1)
        return (fma(x, x, fma(y, y, total)),)

    (squared,) = repeat(p, add, nothing)
    highest = limit * load(sizes, tile)
    length = np.sqrt(squared)
    share = np.where(length > highest, 1 - highest / np.where(length > highest, length, 1.0), nothing)

    def put(j: Row) -> tuple[()]:
        for row in (2 * (j * m + i), 2 * (j * m + i) + 1):
            store(e, row, load(e, row) * share)
        return ()

    repeat(p, put)


@kernel
def exceed(e: Array, limits: Array, sizes: Rows, first: int, count: int, tile_of_e: Rows) -> None:
    """Leave of columns of e, as an FFT leaves it, only what is beyond their limits, in their direction.

    Limits (m,) are times the sizes of nodes (tiles, lanes). The tile is scratch.
    """
    m = limits.shape[0]
    for tile in range(first, first + count):
        for entry in range(e.shape[0]):
            read_entry(e, entry, tile, tile_of_e)
        for i in range(m):
            exceed_column(tile_of_e, e.shape[0] // m, m, i, limits[i], sizes, tile)
        for entry in range(e.shape[0]):
            write_entry(tile_of_e, entry, tile, e)


@part
def _linearize(left: Complex, psd: Complex, limits: Array, w: int, gram: Array, beyond: Array) -> None:
    """Set gram to H and beyond to b."""
    for i in range(left.shape[2]):
        length = _length(left, w, i)
        beyond[i] = length * (length - limits[i])
        for k in range(left.shape[2]):
            product = 0j
            for j in range(left.shape[1]):
                product += left[w, j, i].conjugate() * left[w, j, k]
            gram[i, k] = (product * psd[w, k, i]).real


@part
def _raise_in_turn(gram: Array, beyond: Array, x: Array) -> None:
    """Move each x_i to where its own limit holds, or to 0, until that hardly changes any."""
    x[:] = 0.0
    largest = 0.0
    for i in range(len(x)):
        largest = max(largest, beyond[i])
    for _ in range(_SWEEPS):
        moved = 0.0
        for i in range(len(x)):
            if gram[i, i] > _TINY:
                left = beyond[i]
                for k in range(len(x)):
                    left -= gram[i, k] * x[k]
                change = max(left / gram[i, i], -x[i])
                moved = max(moved, abs(change) * gram[i, i])
                x[i] += change
        if moved <= _SETTLED * largest:
            break


@part
def _take_off(psi: Complex, psd: Complex, multiple: Complex, w: int, left: Complex) -> None:
    """Set left to ψ - MP."""
    for j in range(psi.shape[1]):
        for i in range(psi.shape[2]):
            e = 0j
            for k in range(psi.shape[2]):
                e += multiple[j, k] * psd[w, k, i]
            left[w, j, i] = psi[w, j, i] - e


@part
def _excess(left: Complex, limits: Array, w: int) -> float:
    """Return by what share of its limit a column is longer, at the most; not above 0 if none is."""
    most = -1.0
    for i in range(left.shape[2]):
        most = max(most, _length(left, w, i) / limits[i] - 1)
    return most


@kernel
def cut_columns(
    psi: Complex,
    psd: Complex,
    limits: Array,
    left: Complex,
    multiples: Complex,
    gram: Array,
    beyond: Array,
    x: Array,
) -> None:
    """Make left, as yet psi (nodes, p, m), that without E, and multiples M; the last three are scratch.

    Limits are above 0. Where they contradict one another some of the columns are left longer, but none more than they
    were.
    """
    for w in range(psi.shape[0]):
        multiple = multiples[w]
        multiple[:] = 0.0
        first = _excess(left, limits, w)
        if first <= _LEFT:
            continue
        before = first
        for count in range(_MOST_ROUNDS):
            _linearize(left, psd, limits, w, gram, beyond)
            _raise_in_turn(gram, beyond, x)
            for j in range(psi.shape[1]):
                for i in range(psi.shape[2]):
                    multiple[j, i] += left[w, j, i] * x[i]
            _take_off(psi, psd, multiple, w, left)
            excess = _excess(left, limits, w)
            if excess <= _LEFT or (count + 1 >= _ROUNDS and excess > _SHRINKS * before):
                break
            before = excess
        if _excess(left, limits, w) > first:
            multiple[:] = 0.0
            _take_off(psi, psd, multiple, w, left)
