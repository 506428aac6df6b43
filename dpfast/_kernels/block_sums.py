"""Block sums with integer noise, and the periodic Kalman filter behind them.

    u ──► Σ over a block, in units ──►(+)──► v ──► x⁺ = T x + K (v - acc) ──► ŷ = W x + lagged innovations
                                       noise │

A released value comes every so many samples; what is computed at a release costs a product of a matrix and a vector,
what is computed at every sample one product of two vectors, whose weights repeat after a period. An estimate that is
late also weighs the innovations that came in the meantime.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpfast._kernels._jit import kernel, part
from dpfast._kernels.integer_draws import Draws, draw_integer
from dpfast._kernels.shared_draws import SharedDraws, draw_shared
from dpfast._kernels.simd import Row, fma, load, repeat, store, traced
from dpfast._kernels.simulated_noise import Words
from dpfast._kernels.tiles import ROWS, Rows, Tile, fill, set_row
from dpfast._kernels.tree_draws import TreeDraws, draw_from_tree

Array = NDArray[Any]


class BlockSums(NamedTuple):
    """Numbers of block sums: unit · (Σ w (u - offset)/unit + noise) + shift is released every `length` samples."""

    length: int
    phase: int  # samples that the first block is shorter
    offset: float
    unit: float
    shift: float
    before: float  # where the first sum begins
    rounds: bool  # the terms of sums
    weights: tuple[float, ...] = ()  # w of the samples of a block; none for ones


class PeriodicFilter(NamedTuple):
    """A Kalman filter behind levels of block sums, each length a multiple of the one before.

    weights : of the estimate at each sample of a cycle, the first one at a release: of the states behind the last
    release before the sample that is estimated, then of the `n_later` innovations of each level that come later.
    """

    advance: Array  # (states, states), over the shortest block; or (slots, states, states), over each slot
    gains: Array  # (releases of a cycle, levels, states)
    weights: Array  # (samples of a cycle, states + levels · n_later)
    lengths: tuple[int, ...]
    phase: int
    lag: int
    offsets: tuple[int, ...] = ()  # samples after the end of a block at which each level releases; none for its end

    @property
    def slot(self) -> int:
        """The samples between two times at which anything may be released."""
        return math.gcd(*self.lengths, *self.offsets)

    @property
    def n_later(self) -> int:
        """Count the releases that may come while an estimate waits."""
        return -(-self.lag // self.slot)


class Blocks(NamedTuple):
    """A block sum: where its rows and numbers are, and how long it is.

    What is released is unit · (Σ w (u - offset)/unit + noise) + shift, each term of the sum rounded if it is asked for.
    """

    sum: int  # row of the sum of the block so far
    length: int
    offset: float
    per_unit: float  # 1/unit
    unit: float
    shift: float
    n_rounded: int  # 0 or 1 times
    weights: int  # where w of the samples of a block begin
    n_weights: int  # 0 for ones


class Kalman(NamedTuple):
    """A periodic Kalman filter: its sizes, and where its numbers and rows are.

    Of the last `n_kept` releases, at least two, it has the states behind each; and, of each level, the innovations,
    twice in a row, so that those behind any release lie side by side.
    """

    n_states: int
    n_levels: int  # of block sums; the last states are what it predicts of their sums so far
    n_kept: int
    n_later: int  # releases that may come while an estimate waits
    advance: int  # where T begins: (slots, states, states), over the shortest block or slot
    n_advances: int  # slots
    gains: int  # where K begins: (releases of a period, levels, states)
    weights: int  # where W begins: (samples of a period, states, then later innovations of each level)
    lengths: int  # where the lengths of the levels begin, and behind them their offsets
    states: int  # row
    innovations: int  # row


class Schedule(NamedTuple):
    """The times of releases, and how late an estimate comes."""

    length: int  # of the shortest block or slot
    phase: int  # samples that the first block is shorter
    period: int
    lag: int


def count_steps(blocks: Blocks, x: Rows, row: Any) -> Row:
    """Give a row of inputs in units."""

    def round_steps(_: Any, steps: Row) -> tuple[Row]:
        return (np.rint(steps),)

    return repeat(blocks.n_rounded, round_steps, (load(x, row) - blocks.offset) * blocks.per_unit)[0]


@traced
def add_to_block(blocks: Blocks, x: Rows, row: int, n: int) -> None:
    """Add n rows to the sum of a block, one after the other, in units."""
    total = load(x, blocks.sum)
    for r in range(n):
        total = total + count_steps(blocks, x, row + r)
    store(x, blocks.sum, total)


@traced
def add_weighed_to_block(c: Array, blocks: Blocks, x: Rows, row: int, place: int, n: int) -> None:
    """Add n rows with the weights from a place on to the sum of a block, in units."""
    total = load(x, blocks.sum)
    for r in range(n):
        total = total + count_steps(blocks, x, row + r) * c[place + r]
    store(x, blocks.sum, total)


@traced
def release_block(blocks: Blocks, x: Rows, out: int) -> None:
    """Turn noise in the row `out` into a released value, and begin another block."""
    total = load(x, blocks.sum) + load(x, out)
    store(x, out, fma(total, blocks.unit, np.full_like(total, blocks.shift)))
    store(x, blocks.sum, np.full_like(total, 0))


@part
def add_rows(blocks: Blocks, x: Rows, row: int, n: int) -> None:
    """Add n rows to the sum of a block."""
    t = 0
    while t + ROWS <= n:
        add_to_block(blocks, x, row + t, ROWS)
        t += ROWS
    while t < n:
        add_to_block(blocks, x, row + t, 1)
        t += 1


@part
def add_weighed_rows(c: Array, blocks: Blocks, x: Rows, row: int, place: int, n: int) -> None:
    """Add n rows to the sum of a block, with the weights from a place on."""
    t = 0
    while t + ROWS <= n:
        add_weighed_to_block(c, blocks, x, row + t, place + t, ROWS)
        t += ROWS
    while t < n:
        add_weighed_to_block(c, blocks, x, row + t, place + t, 1)
        t += 1


@part
def add_inputs(c: Array, blocks: Blocks, x: Rows, row: int, position: int, n: int) -> None:
    """Add n rows to the sum of a block, from a position in it on."""
    if blocks.n_weights > 0:
        add_weighed_rows(c, blocks, x, row, blocks.weights + position, n)
    else:
        add_rows(blocks, x, row, n)


@part
def sum_to_end(c: Array, blocks: Blocks, x: Rows, row: int, past: int, t: int, n: int) -> int:
    """Add what comes from t on, and before n, to the sum of its block; return where the block ends."""
    position = (past + t) % blocks.length
    end = t + blocks.length - position
    add_inputs(c, blocks, x, row + t, position, min(n, end) - t)
    return end


# One for each kind of noise, so that none is compiled that a chain does not draw. They sum n rows in blocks, `past`
# rows behind the beginning of one, and write what is released where a block ends.


@part
def release_blocks(
    words: Words, draws: Draws, table: Words, c: Array, blocks: Blocks, x: Rows, row: int, out: int, past: int, n: int
) -> None:
    """Release sums of blocks, each with noise of its own."""
    fill(x, out, n, 0.0)
    t = 0
    while t < n:
        end = sum_to_end(c, blocks, x, row, past, t, n)
        if end <= n:
            draw_integer(words, draws, table, x, out + end - 1)
            release_block(blocks, x, out + end - 1)
        t = end


@part
def release_shared_blocks(
    words: Words, shared: SharedDraws, c: Array, blocks: Blocks, x: Rows, row: int, out: int, past: int, n: int
) -> None:
    """Release sums of blocks with noise that those of a group share."""
    fill(x, out, n, 0.0)
    t = 0
    while t < n:
        end = sum_to_end(c, blocks, x, row, past, t, n)
        if end <= n:
            draw_shared(words, shared, c, x, out + end - 1, ((past + t) // blocks.length) % shared.group)
            release_block(blocks, x, out + end - 1)
        t = end


@part
def release_tree_blocks(
    words: Words,
    tree: TreeDraws,
    n_leaves: int,
    table: Words,
    c: Array,
    blocks: Blocks,
    x: Rows,
    row: int,
    out: int,
    past: int,
    n: int,
) -> None:
    """Release sums of blocks with noise that groups of groups share, so many blocks in all."""
    fill(x, out, n, 0.0)
    t = 0
    while t < n:
        end = sum_to_end(c, blocks, x, row, past, t, n)
        if end <= n:
            draw_from_tree(words, table, tree, c, x, out + end - 1, ((past + t) // blocks.length) % n_leaves)
            release_block(blocks, x, out + end - 1)
        t = end


# --- the receiver ---------------------------------------------------------------------------------


@traced
def predict_state(
    c: Array,
    kalman: Kalman,
    x: Rows,
    before: int,
    after: int,
    i: int,
    advance: int,
    gains: int,
    innovation: int,
    n_levels: int,
) -> None:
    """Predict a state over a block, and correct it by the innovations of so many levels."""

    def add_state(j: Any, value: Row) -> tuple[Row]:
        return (fma(load(x, before + j), c[advance + i * kalman.n_states + j], value),)

    def add_innovation(level: Any, value: Row) -> tuple[Row]:
        row, gain = innovation + level * (2 * kalman.n_kept), gains + level * kalman.n_states + i
        return (fma(load(x, row), c[gain], value),)

    zero = np.full_like(load(x, before), 0)
    store(x, after + i, repeat(n_levels, add_innovation, *repeat(kalman.n_states, add_state, zero))[0])


@traced
def store_innovation(x: Rows, released: int, predicted: int, out: int, n_kept: int) -> None:
    """Keep what a released value has beyond what was predicted, in both places."""
    value = load(x, released) - load(x, predicted)
    store(x, out, value)
    store(x, out + n_kept, value)


@traced
def estimate_tile(c: Array, kalman: Kalman, x: Rows, kept: int, out: int, weights: int, width: int, n: int) -> None:
    """Weigh the states behind a release, and the innovations that came later, for n samples."""
    states = kalman.states + kept * kalman.n_states
    n_later = kalman.n_later

    def add_state(i: Any, *tile: Row) -> Tile:
        value = load(x, states + i)
        return tuple(fma(value, c[weights + r * width + i], total) for r, total in enumerate(tile))

    def add_level(level: Any, *tile: Row) -> Tile:
        first = kalman.innovations + level * (2 * kalman.n_kept) + kept + 1
        place = weights + kalman.n_states + level * n_later

        def add_innovation(k: Any, *tile: Row) -> Tile:
            value = load(x, first + k)
            return tuple(fma(value, c[place + r * width + k], total) for r, total in enumerate(tile))

        return repeat(n_later, add_innovation, *tile)

    zeros = (np.full_like(load(x, states), 0),) * n
    for r, value in enumerate(repeat(kalman.n_levels, add_level, *repeat(kalman.n_states, add_state, *zeros))):
        store(x, out + r, value)


@part
def is_due(c: Array, kalman: Kalman, level: int, passed: int) -> bool:
    """Tell whether a level releases after so many samples."""
    length, late = int(c[kalman.lengths + level]), int(c[kalman.lengths + kalman.n_levels + level])
    return (passed - late) % length == 0


@part
def take_release(
    c: Array, kalman: Kalman, x: Rows, released: int, stride: int, kept: int, passed: int, in_period: int
) -> None:
    """Take in what is released after so many samples, from the row `released` and every `stride` on, level by level.

    The sums that are released begin anew.
    """
    advance = kalman.advance + in_period % kalman.n_advances * kalman.n_states * kalman.n_states
    n, gains = kalman.n_states, kalman.gains + in_period * kalman.n_levels * kalman.n_states
    before = kalman.states + (kept - 1 if kept > 0 else kalman.n_kept - 1) * n
    after, first, sums = kalman.states + kept * n, kalman.innovations + kept, n - kalman.n_levels
    for level in range(kalman.n_levels):
        innovation = first + level * 2 * kalman.n_kept
        if is_due(c, kalman, level, passed):  # what is known of its sum, from the levels before it too
            predict_state(c, kalman, x, before, after, sums + level, advance, gains, first, level)
            store_innovation(x, released + level * stride, after + sums + level, innovation, kalman.n_kept)
        else:
            set_row(x, innovation, 0.0)
            set_row(x, innovation + kalman.n_kept, 0.0)
    for i in range(n):
        if i >= sums and is_due(c, kalman, i - sums, passed):
            set_row(x, after + i, 0.0)
        else:
            predict_state(c, kalman, x, before, after, i, advance, gains, first, kalman.n_levels)


@part
def estimate_rows(c: Array, kalman: Kalman, x: Rows, out: int, kept: int, place: int, n: int) -> None:
    """Estimate n samples between two releases, from a place in the period on."""
    width = kalman.n_states + kalman.n_levels * kalman.n_later
    weights = kalman.weights + place * width
    t = 0
    while t + ROWS <= n:
        estimate_tile(c, kalman, x, kept, out + t, weights + t * width, width, ROWS)
        t += ROWS
    while t < n:
        estimate_tile(c, kalman, x, kept, out + t, weights + t * width, width, 1)
        t += 1


@kernel
def estimate_between_releases(
    c: Array, kalman: Kalman, schedule: Schedule, x: Rows, released: int, stride: int, out: int, time: int, n: int
) -> None:
    """Estimate n samples from `time` on, each `lag` late, taking in what is released meanwhile; none before time 0."""
    length, n_kept = schedule.length, kalman.n_kept
    t = early = min(n, max(0, schedule.lag - time))
    fill(x, out, early, 0.0)
    # where the present sample is in its block, and where the next one to be estimated is: divided once, then counted
    now = time + 1 + schedule.phase
    left, kept = length - now % length, now // length % n_kept
    in_period, n_in_period = (now // length - 1) % (schedule.period // length), schedule.period // length
    wanted = now + early - schedule.lag
    wanted_left, wanted_kept, wanted_place = (
        length - wanted % length,
        wanted // length % n_kept,
        wanted % schedule.period,
    )
    done = 0
    while done < n:
        if left == length:
            take_release(c, kalman, x, released + done, stride, kept, now + done, in_period)
        until = min(n, done + left)
        while t < until:
            count = min(until - t, wanted_left)
            estimate_rows(c, kalman, x, out + t, wanted_kept, wanted_place, count)
            t += count
            wanted_left -= count
            wanted_place += count
            if wanted_left == 0:
                wanted_left, wanted_kept = length, wanted_kept + 1 if wanted_kept + 1 < n_kept else 0
                wanted_place = wanted_place if wanted_place < schedule.period else 0
        left -= until - done
        if left == 0:
            left, kept = length, kept + 1 if kept + 1 < n_kept else 0
            in_period = in_period + 1 if in_period + 1 < n_in_period else 0
        done = until
