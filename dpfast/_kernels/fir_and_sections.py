"""Linear filters run here: FIR and second-order sections, a tile at a time.

Taps come in groups of eight, 8 taps x 6 rows x 2 vectors: 96 multiply-adds for 34 loads; what is left comes one by one.
Sums run from the oldest sample to the newest, so that no result depends on the shape of a tile, the number of lanes or
the length of a chunk.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpfast._kernels._jit import part
from dpfast._kernels.factors import Factors
from dpfast._kernels.simd import Row, fma, load, repeat, store, traced
from dpfast._kernels.simulated_noise import Words, normal_tile
from dpfast._kernels.tiles import ROWS, Rows, Tile

Array = NDArray[Any]

TAPS = 8
SECTION = 5


def fold_factors(factors: Factors) -> tuple[Array, Array]:
    """Return taps, if more than one, and sections b0 c1 c2 a1 a2; a mere gain goes into the first section."""
    taps, sections = factors.taps, factors.sections[:, [0, 1, 2, 4, 5]]
    if len(taps) == 1 and len(sections):
        sections[0, :3] *= taps[0]
        taps = np.empty(0)
    sections[:, 1:3] -= sections[:, 3:] * sections[:, :1]
    return (np.empty(0) if len(taps) == 1 and taps[0] == 1.0 else taps), sections


class Taps(NamedTuple):
    """The place of taps among coefficients."""

    at: int  # where they begin
    n_groups: int  # of eight, the newest
    n_left: int  # behind them


class Part(NamedTuple):
    """The place of taps and sections among coefficients; without taps the input itself."""

    taps: Taps
    sections: int  # where they begin, b0 c1 c2 a1 a2 each
    n_sections: int
    state: int  # row
    n_poles: int = 0  # 1: behind them is a section of one pole, b0 c1 0 a1 0


class Added(NamedTuple):
    """The term that is added behind the sections: scale times a signal, or fresh noise; each n = 0 or 1 times."""

    plus: int  # row
    n_plus: int
    generator: int  # of noise, row of words
    n_noise: int
    scale: float


class Terms(NamedTuple):
    """Say what a pass does beside filtering: it subtracts before the sections, adds behind them, and squares.

    Squares go into a row of totals, and nothing else is kept then.
    """

    minus: int  # row
    n_minus: int
    added: Added
    total: int  # row
    n_squares: int


@part
def taps_at(at: int, n: int) -> Taps:
    """Split so many taps into groups."""
    return Taps(at, n // TAPS, n % TAPS)


def add_taps(tile: Tile, c: Array, at: Any, x: Rows, row: Any, n: int) -> Tile:
    """Add the sum of c[at + j] x[row + r - j] over n taps j to tile[r]."""
    past = {r: load(x, row + r) for r in range(1 - n, len(tile))}
    for j in reversed(range(n)):
        tap = c[at + j]
        tile = tuple(fma(tap, past[r - j], value) for r, value in enumerate(tile))
    return tile


def convolve(tile: Tile, c: Array, taps: Taps, x: Rows, row: Any) -> Tile:
    """Add what taps give, the oldest samples first."""
    n_grouped = taps.n_groups * TAPS

    def single(i: Any, *tile: Row) -> Tile:
        k = n_grouped + taps.n_left - 1 - i
        return add_taps(tile, c, taps.at + k, x, row - k, 1)

    def group(i: Any, *tile: Row) -> Tile:
        k = n_grouped - (i + 1) * TAPS
        return add_taps(tile, c, taps.at + k, x, row - k, TAPS)

    return repeat(taps.n_groups, group, *repeat(taps.n_left, single, *tile))


def run_section(tile: Tile, c: Array, section: Any, x: Rows, state: Any) -> Tile:
    """Run a section; its two rows of state, of transposed direct form II, stay in memory between tiles.

    y = b0 x + s,  s = b1 x + z - a1 y,  z = b2 x - a2 y, written with c1 = b1 - a1 b0 and c2 = b2 - a2 b0 as
    s = c1 x + z - a1 s,  z = c2 x - a2 s: only one operation from one s to the next.
    """
    b0, c1, c2, a1, a2 = (c[section + j] for j in range(SECTION))
    s, z = load(x, state), load(x, state + 1)
    out = []
    for value in tile:
        out.append(fma(b0, value, s))
        s, z = fma(-a1, s, fma(c1, value, z)), fma(-a2, s, c2 * value)
    store(x, state, s)
    store(x, state + 1, z)
    return tuple(out)


def run_pole(tile: Tile, c: Array, section: Any, x: Rows, state: Any) -> Tile:
    """Run a section of one pole: what `run_section` gives, of which z is zero, but for the sign of zeros."""
    b0, c1, pole = c[section], c[section + 1], -c[section + 3]
    s = load(x, state)
    out = []
    for value in tile:
        out.append(fma(b0, value, s))
        s = fma(pole, s, c1 * value)
    store(x, state, s)
    return tuple(out)


def input_tile(c: Array, taps: Taps, x: Rows, row: Any, n: int) -> Tile:
    """Return n rows of a FIR filter's output; without taps, of x."""

    def plain(_: Any, *tile: Row) -> Tile:
        return tuple(load(x, row + r) for r in range(len(tile)))

    zeros = (np.full_like(load(x, row), 0),) * n
    return convolve(repeat(taps.n_groups + taps.n_left < 1, plain, *zeros), c, taps, x, row)


@traced
def filter_tile(
    c: Array,
    filter: Part,
    terms: Terms,
    words: Words,
    totals: Array,
    x: Rows,
    row: int,
    out: int,
    t: int,
    n: int,
) -> None:
    """Run taps and sections on n rows, from memory to memory."""

    def subtract(_: Any, *tile: Row) -> Tile:
        return tuple(value - load(x, terms.minus + t + r) for r, value in enumerate(tile))

    def section(i: Any, *tile: Row) -> Tile:
        return run_section(tile, c, filter.sections + i * SECTION, x, filter.state + i * 2)

    def pole(_: Any, *tile: Row) -> Tile:
        i = filter.n_sections
        return run_pole(tile, c, filter.sections + i * SECTION, x, filter.state + i * 2)

    def add(_: Any, *tile: Row) -> Tile:
        return tuple(fma(load(x, terms.added.plus + t + r), terms.added.scale, value) for r, value in enumerate(tile))

    def add_noise(_: Any, *tile: Row) -> Tile:
        noise = normal_tile(words, terms.added.generator, tile[0])
        return tuple(fma(a, terms.added.scale, value) for a, value in zip(noise, tile, strict=False))

    def keep(_: Any, *tile: Row) -> Tile:
        for r, value in enumerate(tile):
            store(x, out + t + r, value)
        return tile

    def square(_: Any, *tile: Row) -> Tile:
        add_squares(tile, totals, terms.total)
        return tile

    tile = input_tile(c, filter.taps, x, row + t, n)
    tile = repeat(filter.n_sections, section, *repeat(terms.n_minus, subtract, *tile))
    tile = repeat(filter.n_poles, pole, *tile)
    tile = repeat(terms.added.n_noise, add_noise, *repeat(terms.added.n_plus, add, *tile))
    repeat(terms.n_squares, square, *repeat(terms.n_squares < 1, keep, *tile))


def add_squares(tile: Tile, totals: Array, row: int) -> None:
    """Add the sum of squares of a tile to a row of float64."""
    value = tile[0] * tile[0]
    for x in tile[1:]:
        value = fma(x, x, value)
    store(totals, row, load(totals, row, value) + value.astype(np.float64))


@part
def filter_rows(
    c: Array,
    filter: Part,
    terms: Terms,
    words: Words,
    totals: Array,
    x: Rows,
    row: int,
    out: int,
    start: int,
    stop: int,
) -> None:
    """Filter the rows start ... stop - 1, counted from `row` and `out`; plain FIR filters up to five more."""
    whole = stop
    if filter.n_sections + filter.n_poles > 0 or terms.n_squares > 0:
        whole -= (stop - start) % ROWS
    for t in range(start, whole, ROWS):
        filter_tile(c, filter, terms, words, totals, x, row, out, t, ROWS)
    for t in range(whole, stop):
        filter_tile(c, filter, terms, words, totals, x, row, out, t, 1)
