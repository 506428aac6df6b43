"""The first pass of a study: two levels are drawn, filtered by sections and get noise, and never wait in memory."""

from __future__ import annotations

from typing import Any, NamedTuple

from numpy.typing import NDArray

from dpfast._kernels._jit import part
from dpfast._kernels.fir_and_sections import SECTION, run_section
from dpfast._kernels.simd import Row, fma, load, repeat, store, traced
from dpfast._kernels.simulated_noise import Levels, Words, draw_two_levels, normal_tile
from dpfast._kernels.tiles import ROWS, Rows, Tile

Array = NDArray[Any]


class FirstPass(NamedTuple):
    """The places of what is drawn, of sections and of noise."""

    levels: Levels
    sections: int  # where they begin
    n_sections: int
    state: int  # row
    generator: int  # of noise, row of words
    noise_std: float


@traced
def first_tile(words: Words, run: FirstPass, table: Words, c: Array, x: Rows, row: int, out: int) -> None:
    """Draw a tile to the row `row`, and write what is released of it to `out`."""

    def section(i: Any, *tile: Row) -> Tile:
        return run_section(tile, c, run.sections + i * SECTION, x, run.state + i * 2)

    drawn = draw_two_levels(words, run.levels, table, c, load(x, row))
    for r, value in enumerate(drawn):
        store(x, row + r, value)
    tile = repeat(run.n_sections, section, *drawn)
    for r, (value, noise) in enumerate(zip(tile, normal_tile(words, run.generator, tile[0]), strict=True)):
        store(x, out + r, fma(noise, run.noise_std, value))


@part
def run_first_pass(words: Words, run: FirstPass, table: Words, c: Array, x: Rows, row: int, out: int, n: int) -> None:
    """Run the first pass on n rows, and up to five beyond."""
    for t in range(0, n, ROWS):
        first_tile(words, run, table, c, x, row + t, out + t)
