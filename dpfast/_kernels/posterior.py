"""The posterior mean of a target's output behind observed blocks of a chain of finitely many levels.

    v ──► row of a table ──► weights of (memory before, memory behind) ──► P(memory | v), E[state; memory | v] ──► ŷ

Between two releases a stream remembers only the memory of the chain: what its past tells of its future, mostly the last
level. A table has a row for every observation with different weights, which sums over all paths through a block: for
each pair of memories, before and behind, the probability of the block and of the observation, and with it the mean of
what the inputs add to the states of the target, and to its last outputs. So a release costs memories² multiply-adds for
each of these, and no sample costs more than a sum over memories.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpfast._kernels._jit import kernel, part
from dpfast._kernels.simd import Row, fma, gather, load, repeat, store, traced
from dpfast._kernels.simulated_noise import Words
from dpfast._kernels.tiles import Rows, fill

Array = NDArray[Any]

_LEAST = {4: 1e-30, 8: 1e-290}  # of a sum of weights of which the largest is one: below it nothing is left of them
N_WORDS, N_NUMBERS = 4, 3  # of a header
N_COMMON = 4  # numbers before the boundaries
_NO_END = 2.0**62


class BlockTable(NamedTuple):
    """A table of what a block of so many steps tells, a row for each observation and one at the end for none.

    A row has the weights (memories before, memories behind) and then, for each of the states and the last outputs, what
    inputs add to it, weighed alike. Only their ratios count.
    """

    rows: Array  # (observations + 1, (1 + states + recent) memories²)
    reach: Array  # (states + recent, states): what the states before the block add
    n_steps: int
    top: int  # the largest sum of the block
    shift: float  # of what is released


class PosteriorFilter(NamedTuple):
    """A posterior mean behind blocks, or behind responses to every input.

    predictions : at each step behind a release, of the memories and the states at the release; the last is kept.
    boundaries : between the observations, for responses; none for sums.
    """

    first: BlockTable  # of the first block, which may be shorter
    table: BlockTable
    predictions: Array  # (steps, memories + states)
    start: Array  # (memories,)
    n_states: int
    length: int
    phase: int
    lag: int
    unit: float
    period: int  # of the weights of sums beyond the least and the largest one
    farthest: float  # beyond these by so much weights are the same
    boundaries: Array
    n_steps: int | None = None  # of a horizon, behind which nothing is released

    def numbers(self) -> list[float]:
        """Return the numbers before those of the tables."""
        end = _NO_END if self.n_steps is None else float(self.n_steps)
        return [1 / self.unit, self.farthest, float(self.period), end, *self.boundaries]


class Sizes(NamedTuple):
    """The sizes of a posterior, and where its rows and numbers are."""

    n_memories: int
    n_states: int
    n_slots: int  # outputs that are remembered
    lag: int
    levels: int  # row: P(memory | v), and behind these rows the means of the states
    states: int  # row: E[state; memory | v], states of one memory side by side
    slots: int  # row: E[output; memory | v]
    scratch: int  # row: place, scale, weights, next levels, what is carried
    predictions: int  # where they begin
    numbers: int  # where 1/unit, the farthest, the period, the end, and the boundaries begin
    n_boundaries: int


class TableAt(NamedTuple):
    """The places of a table among other numbers."""

    rows: int
    reach: int
    n_recent: int
    n_steps: int
    none: float  # the row for no observation
    top: float
    shift: float


# --- which row --------------------------------------------------------------------------------------


@traced
def find_sum(c: Array, sizes: Sizes, table: TableAt, x: Rows, released: int) -> None:
    """Find the row of what was released: sums beyond those of the block stand for others with the same weights."""
    farthest, period = c[sizes.numbers + 1], c[sizes.numbers + 2]
    steps = np.rint((load(x, released) - table.shift) * c[sizes.numbers])
    inside = np.fmin(np.fmax(steps, 0.0), np.full_like(steps, table.top))
    half = np.full_like(steps, period - 1.0) * 0.5

    def reduce(beyond: Row) -> Row:
        beyond = np.fmin(beyond, farthest)
        return beyond - np.rint((beyond - half) / period) * period

    over, under = np.fmax(steps - inside, 0.0), np.fmax(inside - steps, 0.0)
    store(x, sizes.scratch, inside + (reduce(over) - reduce(under)) + (period - 1.0))


@traced
def find_response(c: Array, sizes: Sizes, x: Rows, released: int) -> None:
    """Find the row of a response: how many boundaries it is above."""
    v = load(x, released)

    def pass_boundary(i: Any, row: Row) -> tuple[Row]:
        return (np.where(v > c[sizes.numbers + N_COMMON + i], row + 1.0, row),)

    store(x, sizes.scratch, repeat(sizes.n_boundaries, pass_boundary, np.full_like(v, 0))[0])


@traced
def take_weights(c: Array, x: Rows, place: int, start: int, width: int, n: int, out: int) -> None:
    """Copy n numbers of a row of the table, of another row in each lane."""
    row = load(x, place).astype(np.int32) * width

    def copy(i: Any) -> tuple[()]:
        store(x, out + i, gather(c, row, start + i))
        return ()

    repeat(n, copy)


@traced
def mix(x: Rows, values: int, weights: int, n: int, out: int) -> None:
    """Go from the memories before to one behind."""

    def add(i: Any, total: Row) -> tuple[Row]:
        return (fma(load(x, values + i), load(x, weights + i * n), total),)

    store(x, out, repeat(n, add, np.full_like(load(x, values), 0))[0])


@traced
def normalize(x: Rows, values: int, n: int, place: int, none: int) -> Any:
    """Invert the sum of n rows; where nothing is left, take the row for no observation, and tell that."""

    def add(i: Any, total: Row) -> tuple[Row]:
        return (total + load(x, values + i),)

    total = repeat(n, add, np.full_like(load(x, values), 0))[0]
    least, here = _LEAST[total.dtype.itemsize], load(x, place)
    lost = total <= least
    store(x, place, np.where(lost, np.full_like(here, none), here))
    store(x, place + 1, 1.0 / np.fmax(total, least))
    return np.any(lost)


@traced
def multiply(x: Rows, row: int, n: int, factor: int) -> None:
    """Multiply n rows by another one."""
    scale = load(x, factor)

    def scaled(i: Any) -> tuple[()]:
        store(x, row + i, load(x, row + i) * scale)
        return ()

    repeat(n, scaled)


@traced
def copy_rows(x: Rows, source: int, target: int, stride: int, n: int) -> None:
    """Copy n rows, to every so many rows."""

    def copy(i: Any) -> tuple[()]:
        store(x, target + i * stride, load(x, source + i))
        return ()

    repeat(n, copy)


@traced
def carry(c: Array, x: Rows, values: int, n: int, weights: int, out: int) -> None:
    """Weigh n rows by numbers."""

    def add(i: Any, total: Row) -> tuple[Row]:
        return (fma(load(x, values + i), c[weights + i], total),)

    store(x, out, repeat(n, add, np.full_like(load(x, out), 0))[0])


@traced
def add_inputs(c: Array, x: Rows, sizes: Sizes, start: int, width: int, values: int, behind: int, out: int) -> None:
    """Go to one memory behind with what is carried over a block, and add what its inputs bring."""
    n, weights = sizes.n_memories, sizes.scratch + 2
    row = load(x, sizes.scratch).astype(np.int32) * width

    def add(i: Any, total: Row) -> tuple[Row]:
        total = fma(load(x, values + i), load(x, weights + i * n + behind), total)
        return (fma(load(x, sizes.levels + i), gather(c, row, start + i * n + behind), total),)

    store(x, out, repeat(n, add, np.full_like(load(x, values), 0))[0])


@traced
def add_up(x: Rows, row: int, stride: int, n: int, out: int) -> None:
    """Add up n rows, every so many rows."""

    def add(i: Any, total: Row) -> tuple[Row]:
        return (total + load(x, row + i * stride),)

    store(x, out, repeat(n, add, np.full_like(load(x, row), 0))[0])


# --- a release --------------------------------------------------------------------------------------


@part
def weigh_levels(c: Array, sizes: Sizes, table: TableAt, x: Rows, width: int) -> bool:
    """Find the weights of a row of the table, and what they sum to; tell whether some lane is to take another row."""
    n, weights = sizes.n_memories, sizes.scratch + 2
    behind = weights + n * n
    take_weights(c, x, sizes.scratch, table.rows, width, n * n, weights)
    for m in range(n):
        mix(x, sizes.levels, weights + m, n, behind + m)
    return bool(normalize(x, behind, n, sizes.scratch, table.none))


@part
def take_release(c: Array, sizes: Sizes, table: TableAt, x: Rows, released: int, time: int) -> None:
    """Take in what is released at a time: what is known of memory, states and outputs becomes what is known then."""
    n, n_states, n_slots = sizes.n_memories, sizes.n_states, sizes.n_slots
    n_means = n_states + table.n_recent
    width = (1 + n_means) * n * n
    if sizes.n_boundaries > 0:
        find_response(c, sizes, x, released)
    else:
        find_sum(c, sizes, table, x, released)
    if weigh_levels(c, sizes, table, x, width):
        weigh_levels(c, sizes, table, x, width)
    weights = sizes.scratch + 2
    behind = weights + n * n
    carried = behind + n
    multiply(x, weights, n * n + n, sizes.scratch + 1)
    multiply(x, sizes.levels, n, sizes.scratch + 1)
    for i in range(n_means):
        for m in range(n):
            carry(c, x, sizes.states + m * n_states, n_states, table.reach + i * n_states, carried + i * n + m)
    for i in range(n_means):
        start = table.rows + (1 + i) * n * n
        recent = time - table.n_recent + 1 + i - n_states
        for m in range(n):
            out = sizes.states + m * n_states + i if i < n_states else sizes.slots + recent % n_slots * n + m
            add_inputs(c, x, sizes, start, width, carried + i * n, m, out)
    for late in range(max(0, time - sizes.lag), time - table.n_steps + 1):
        slot = sizes.slots + late % n_slots * n
        for m in range(n):
            mix(x, slot, weights + m, n, carried + m)
        copy_rows(x, carried, slot, 1, n)
    copy_rows(x, behind, sizes.levels, 1, n)
    for i in range(n_states):
        add_up(x, sizes.states + i, n_states, n, sizes.levels + n + i)


# --- every sample -----------------------------------------------------------------------------------


@part
def table_at(c: Array, words: Words, header: int, numbers: int) -> TableAt:
    """Read where a table is."""
    return TableAt(
        int(np.int64(words[header])),
        int(np.int64(words[header + 1])),
        int(np.int64(words[header + 2])),
        int(np.int64(words[header + 3])),
        c[numbers],
        c[numbers + 1],
        c[numbers + 2],
    )


@kernel
def estimate_posterior(
    c: Array,
    sizes: Sizes,
    first: TableAt,
    table: TableAt,
    length: int,
    phase: int,
    x: Rows,
    released: int,
    out: int,
    time: int,
    n: int,
) -> None:
    """Estimate n samples from `time` on, each `lag` late, taking in what is released meanwhile; none before time 0."""
    known, end = sizes.n_memories + sizes.n_states, int(c[sizes.numbers + 3])
    for t in range(n):
        passed = time + t + 1 + phase
        if passed % length == 0 and time + t < end:
            take_release(c, sizes, first if passed == length else table, x, released + t, time + t)
        wanted = time + t - sizes.lag
        passed = min(passed, end + phase)
        last = passed // length * length - phase - 1 if passed >= length else -1
        if wanted < 0:
            fill(x, out + t, 1, 0.0)
        elif wanted <= last:
            add_up(x, sizes.slots + wanted % sizes.n_slots * sizes.n_memories, 1, sizes.n_memories, out + t)
        else:
            ahead = min(wanted - last, length) - 1  # farther ones are behind the end
            carry(c, x, sizes.levels, known, sizes.predictions + ahead * known, out + t)
