"""FFTs of real rows, with nodes in the order in which butterflies leave them, real and imaginary parts apart.

A design takes thousands of them, forth and back, and what it does at a node does not ask for the nodes beside it. So
nothing is put in order but, once, what is fixed (:func:`node_order`). A transform of N steps is one of n = N/2 complex
numbers z, whose parts are even and odd taps. It is cut in fours down to blocks of eight, of which eight at a time are a
square, with blocks in lanes. z_k and z_{n-k} make the nodes k and n - k; where they lie, the places from 2ʲ to 2ʲ⁺¹ are
mirrored (Cooley and Tukey, Math. Comp. 19, 1965; Sorensen, Jones, Heideman and Burrus, IEEE Trans. ASSP 35, 1987).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpfast._kernels._jit import kernel, part
from dpfast._kernels.matrix_tiles import Array, Complex, Places, aligned
from dpfast._kernels.simd import Row, choose, fma, load_run, permute, repeat, store_run, traced, transpose

Parts = tuple[Row, Row]  # the real parts of a row of complex numbers, and the imaginary ones

SIDE = 8  # of a square, and the lanes of rows here
FEWEST_STEPS = 2 * SIDE**2  # of a circle
_ROOT = float(np.sqrt(0.5))
_BACKWARDS = [7, 6, 5, 4, 3, 2, 1, 0]
_MIRRORED = [0, 1, 3, 2, 7, 6, 5, 4]  # where -k is, of eight numbers in the order of reversed bits


def node_order(size: int) -> Places:
    """Return which node of a circle of so many steps is at each place; the last one is behind all others."""
    order = np.zeros(1, np.intp)
    while len(order) < size // 2:
        order = np.concatenate([2 * order, 2 * order + 1])
    squares = order.reshape(-1, SIDE, SIDE)
    return np.append(np.swapaxes(squares, 1, 2).ravel(), size // 2)


class Turns:
    """The roots of unity that a transform multiplies by.

    Parameters
    ----------
    size : int
        Steps of the circle, a power of two from `FEWEST_STEPS` on.

    Attributes
    ----------
    cuts : array of int, (passes, 2)
        How far apart the places are that a pass combines, and where its roots begin. The first pass combines two or
        four places, others four.
    of_cuts : array, (2, roots)
        Real and imaginary parts of the roots of all passes.
    forth, back : array, (2, n)
        Those by which pairs of numbers make nodes, and nodes make numbers; scaled, so that no other factor is left.
    """

    def __init__(self, size: int) -> None:
        self.cuts, angles = _plan(size // 2)
        self.of_cuts = _parts(np.exp(-1j * angles))
        turns = 0.5j * np.exp(2j * np.pi * node_order(size)[:-1] / size)
        self.forth, self.back = _parts(turns.conj()), _parts(2 * turns / size)


def _plan(n: int) -> tuple[Places, Array]:
    """Return the cuts, and the angles that they turn by."""
    by = 2 if (n // SIDE).bit_length() % 2 == 0 else 4
    cuts: list[tuple[int, int]] = []
    angles, length = np.zeros(0), n
    while length > SIDE:
        step = length // by
        cuts.append((step, len(angles)))
        angles = np.append(angles, 2 * np.pi / length * np.outer(np.arange(1, by), np.arange(step)))
        length, by = step, 4
    return np.array(cuts, np.intp), angles


def _parts(x: Complex) -> Array:
    """Return real parts, and imaginary ones."""
    parts = aligned((2, len(x)))
    parts[0], parts[1] = x.real, x.imag
    return parts


def _add(a: Parts, b: Parts) -> Parts:
    return a[0] + b[0], a[1] + b[1]


def _subtract(a: Parts, b: Parts) -> Parts:
    return a[0] - b[0], a[1] - b[1]


def _conjugate(a: Parts) -> Parts:
    return a[0], -a[1]


def _turn_right(a: Parts) -> Parts:
    """Multiply by -i."""
    return a[1], -a[0]


def _multiply(a: Parts, b: Parts) -> Parts:
    return fma(a[0], b[0], -(a[1] * b[1])), fma(a[0], b[1], a[1] * b[0])


def _turn_back(a: Parts, b: Parts) -> Parts:
    """Multiply by the conjugate."""
    return fma(a[0], b[0], a[1] * b[1]), fma(a[1], b[0], -(a[0] * b[1]))


def _turn_by_eighths(a: Parts, k: int) -> Parts:
    """Multiply by exp(-i pi k/4), k below 4."""
    if k % 2 == 1:
        a = _ROOT * (a[0] + a[1]), _ROOT * (a[1] - a[0])
    return _turn_right(a) if k >= 2 else a


def _sums(a: Parts, b: Parts, c: Parts, d: Parts) -> tuple[Parts, Parts, Parts, Parts]:
    """Return what four numbers have at frequencies 0, 2, 1 and 3."""
    even, odd = _add(a, c), _add(b, d)
    one, other = _subtract(a, c), _turn_right(_subtract(b, d))
    return _add(even, odd), _subtract(even, odd), _add(one, other), _subtract(one, other)


def _four_times(a: Parts, b: Parts, c: Parts, d: Parts) -> tuple[Parts, Parts, Parts, Parts]:
    """Return four times the numbers that have these at 0, 2, 1 and 3."""
    even, odd = _add(a, b), _subtract(a, b)
    one, other = _add(c, d), _turn_right(_subtract(d, c))
    return _add(even, one), _add(odd, other), _subtract(even, one), _subtract(odd, other)


def _read(x: Array, row: Row, at: Row) -> Parts:
    return load_run(x, (row, 0, at), 2, SIDE), load_run(x, (row, 1, at), 2, SIDE)


def _write(x: Array, row: Row, at: Row, value: Parts) -> None:
    for part_of in range(2):
        store_run(x, (row, part_of, at), 2, value[part_of])


def _read_turns(turns: Array, at: Row) -> Parts:
    return load_run(turns, (0, at), 1, SIDE), load_run(turns, (1, at), 1, SIDE)


def _read_square(x: Array, row: Row, at: Row) -> list[Parts]:
    return [_read(x, row, at + SIDE * k) for k in range(SIDE)]


def _write_square(x: Array, row: Row, at: Row, square: Sequence[Parts]) -> None:
    for k, value in enumerate(square):
        _write(x, row, at + SIDE * k, value)


def _transpose(square: Sequence[Parts]) -> list[Parts]:
    return list(zip(*(transpose([x[part_of] for x in square]) for part_of in range(2)), strict=True))


@traced
def halve(x: Array, row: int, at: int, half: int, turns: Array) -> None:
    """Cut the whole in two blocks."""
    a, b = _read(x, row, at), _read(x, row, at + half)
    _write(x, row, at, _add(a, b))
    _write(x, row, at + half, _multiply(_subtract(a, b), _read_turns(turns, at)))


@traced
def double(x: Array, row: int, at: int, half: int, turns: Array) -> None:
    """Undo `halve`, but for a factor of 2."""
    a, b = _read(x, row, at), _turn_back(_read(x, row, at + half), _read_turns(turns, at))
    _write(x, row, at, _add(a, b))
    _write(x, row, at + half, _subtract(a, b))


@traced
def quarter(x: Array, row: int, at: int, step: int, blocks: int, turns: Array, first: int) -> None:
    """Cut each of some blocks in four, a row of each quarter; at is in the first one."""
    factors = [_read_turns(turns, first + k * step) for k in range(3)]

    def cut(block: Row) -> tuple[()]:
        places = [at + (4 * block + k) * step for k in range(4)]
        zeroth, second, one, third = _sums(*(_read(x, row, place) for place in places))
        turned = _multiply(second, factors[1]), _multiply(one, factors[0]), _multiply(third, factors[2])
        for place, value in zip(places, (zeroth, *turned), strict=True):
            _write(x, row, place, value)
        return ()

    repeat(blocks, cut)


@traced
def quadruple(x: Array, row: int, at: int, step: int, blocks: int, turns: Array, first: int) -> None:
    """Undo `quarter`, but for a factor of 4."""
    factors = [_read_turns(turns, first + k * step) for k in range(3)]

    def join(block: Row) -> tuple[()]:
        places = [at + (4 * block + k) * step for k in range(4)]
        zeroth, second, one, third = (_read(x, row, place) for place in places)
        turned = _turn_back(second, factors[1]), _turn_back(one, factors[0]), _turn_back(third, factors[2])
        for place, value in zip(places, _four_times(zeroth, *turned), strict=True):
            _write(x, row, place, value)
        return ()

    repeat(blocks, join)


@traced
def finish_square(x: Array, row: int, at: int) -> None:
    """Transform eight blocks of eight, and leave them with blocks in lanes."""
    square = _transpose(_read_square(x, row, at))
    low = [_add(square[k], square[k + 4]) for k in range(4)]
    high = [_turn_by_eighths(_subtract(square[k], square[k + 4]), k) for k in range(4)]
    _write_square(x, row, at, (*_sums(*low), *_sums(*high)))


@traced
def begin_square(x: Array, row: int, at: int) -> None:
    """Undo `finish_square`, but for a factor of 8."""
    square = _read_square(x, row, at)
    low, turned = _four_times(*square[:4]), _four_times(*square[4:])
    high = [_conjugate(_turn_by_eighths(_conjugate(a), k)) for k, a in enumerate(turned)]
    first, second = ([combine(*pair) for pair in zip(low, high, strict=True)] for combine in (_add, _subtract))
    _write_square(x, row, at, _transpose(first + second))


def _combine(x: Parts, y: Parts, turns: Parts, half: float) -> tuple[Parts, Parts]:
    """Return the node of z_k, with y conjugate to z_{n-k}, and the conjugate of that of the other; or back."""
    even, odd = _add(x, y), _multiply(_subtract(x, y), turns)
    even = half * even[0], half * even[1]
    return _add(even, odd), _subtract(even, odd)


def _mirror(a: Parts) -> Parts:
    """Return conjugates, the last one first."""
    return permute(a[0], _BACKWARDS), -permute(a[1], _BACKWARDS)


@traced
def combine_pairs(x: Array, row: int, at: int, other: int, turns: Array, half: float) -> None:
    """Combine two rows that mirror one another."""
    one, mirrored = _combine(_read(x, row, at), _mirror(_read(x, row, other)), _read_turns(turns, at), half)
    _write(x, row, at, one)
    _write(x, row, other, _mirror(mirrored))


@traced
def combine_square(x: Array, row: int, turns: Array, half: float) -> None:
    """Combine what mirrors one another in the first square: blocks do, but the first one in itself."""
    square, found = _read_square(x, row, 0), []
    for k in range(SIDE):
        block, alone = square[SIDE - 1 - k], square[_MIRRORED[k]]
        y = tuple(choose(block[i], alone[i], [SIDE, *_MIRRORED[1:]]) for i in range(2))
        found.append(_combine(square[k], _conjugate(y), _read_turns(turns, SIDE * k), half)[0])
    _write_square(x, row, 0, found)


@part
def _combine_all(x: Array, row: int, n: int, turns: Array, half: float) -> None:
    """Make nodes of numbers, or numbers of nodes, but for the first and the last."""
    combine_square(x, row, turns, half)
    run = SIDE * SIDE
    while run < n:
        for start in range(0, run // 2, SIDE):
            combine_pairs(x, row, run + start, 2 * run - SIDE - start, turns, half)
        run *= 2


@part
def _cut(x: Array, row: int, start: int, length: int, step: int, turns: Array, first: int) -> None:
    """Cut the blocks in a range."""
    for at in range(0, step, SIDE):
        if 2 * step == length:
            halve(x, row, at, step, turns)
        else:
            quarter(x, row, start + at, step, length // (4 * step), turns, first + at)


@part
def _join(x: Array, row: int, start: int, length: int, step: int, turns: Array, first: int) -> None:
    """Undo `_cut`, but for a factor."""
    for at in range(0, step, SIDE):
        if 2 * step == length:
            double(x, row, at, step, turns)
        else:
            quadruple(x, row, start + at, step, length // (4 * step), turns, first + at)


@kernel
def to_nodes(taps: Array, cuts: Places, of_cuts: Array, turns: Array, first: int, count: int, nodes: Array) -> None:
    """Transform rows of even and odd taps (rows, 2, n or fewer) to nodes (rows, 2, more than n).

    What the first cut leaves is finished block by block, which fits into the cache.
    """
    n, apart = turns.shape[1], max(cuts[0, 0], SIDE * SIDE)
    for row in range(first, first + count):
        for i in range(2):
            for at in range(taps.shape[2]):
                nodes[row, i, at] = taps[row, i, at]
            for at in range(taps.shape[2], nodes.shape[2]):
                nodes[row, i, at] = 0.0
        _cut(nodes, row, 0, n, cuts[0, 0], of_cuts, cuts[0, 1])
        for start in range(0, n, apart):
            for i in range(1, len(cuts)):
                _cut(nodes, row, start, apart, cuts[i, 0], of_cuts, cuts[i, 1])
            for at in range(start, start + apart, SIDE * SIDE):
                finish_square(nodes, row, at)
        last = nodes[row, 0, 0] - nodes[row, 1, 0]
        _combine_all(nodes, row, n, turns, 0.5)
        nodes[row, 0, n] = last


@kernel
def to_taps(nodes: Array, cuts: Places, of_cuts: Array, turns: Array, first: int, count: int) -> None:
    """Undo `to_nodes` in place; turns are those back."""
    n, apart = turns.shape[1], max(cuts[0, 0], SIDE * SIDE)
    for row in range(first, first + count):
        one, last = nodes[row, 0, 0] / (2 * n), nodes[row, 0, n] / (2 * n)
        _combine_all(nodes, row, n, turns, 0.5 / n)
        nodes[row, 0, 0], nodes[row, 1, 0] = one + last, one - last
        for start in range(0, n, apart):
            for at in range(start, start + apart, SIDE * SIDE):
                begin_square(nodes, row, at)
            for i in range(len(cuts) - 1, 0, -1):
                _join(nodes, row, start, apart, cuts[i, 0], of_cuts, cuts[i, 1])
        _join(nodes, row, 0, n, cuts[0, 0], of_cuts, cuts[0, 1])
