"""Block sums whose partition reacts to what was published, and the posterior mean behind them.

    u ──► Σ, until its variance given v is large enough, (+) ──► v ──► P(memory | v), E[state; memory | v] ──► ŷ
                  ▲                                  noise │     │
                  └──────────────── P(memory | v) ◄──────────────┘

Inside a block nothing is published, so that P(memory | v) at its beginning tells how long it will be. Who publishes
follows it, and so does who estimates, from v alone: the times of releases are known to both. Streams of a bundle have
blocks of their own, so that lanes are gone through one by one. Noise is drawn at every step, and used at releases.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpfast._kernels._jit import kernel, part
from dpfast._kernels.integer_draws import Draws, draw_integer
from dpfast._kernels.posterior import BlockTable
from dpfast._kernels.simulated_noise import Words
from dpfast._kernels.tiles import Rows

Array = NDArray[Any]

_N_WORDS, _N_NUMBERS = 4, 9  # of a layout, before what has other lengths
_NO_END = 2.0**62
_LEAST = 1e-30  # of a sum of weights of which the largest is one: below it nothing is left of them


class Partition(NamedTuple):
    """Blocks that end when the variance of their sum, given all that was published before, reaches a threshold.

    tables : what blocks of 1, 2, ... steps tell.
    moments : of the sum of so many steps, from each memory: its mean and its mean square, in units.
    predictions : of the steps behind a release, of the memories and the states at the release.
    """

    tables: tuple[BlockTable, ...]
    moments: Array  # (longest, 2 memories)
    predictions: Array  # (longest, memories + states)
    start: Array  # (memories,)
    n_states: int
    lag: int
    unit: float
    offset: float  # of inputs from multiples of the unit
    range: int  # of an input, in steps
    period: int  # of the weights of sums beyond the least and the largest one
    farthest: float  # beyond these by so much weights are the same
    threshold: float  # in squared steps
    n_steps: int | None  # of a horizon

    @property
    def n_means(self) -> int:
        """Count the states, and the outputs of a block that are still asked for behind it."""
        return max(len(table.reach) for table in self.tables)

    def numbers(self) -> Array:
        """Return all its numbers but those of the tables, as :func:`layout_at` reads them."""
        end = _NO_END if self.n_steps is None else float(self.n_steps)
        off_mean = self.tables[0].shift
        lattice = [1 / self.unit, self.unit, self.offset, float(self.range)]
        first = [*lattice, float(self.period), self.farthest, self.threshold, off_mean, end]
        return np.concatenate([first, self.moments.ravel(), self.predictions.ravel()])

    def words(self, places: list[int]) -> Array:
        """Return its sizes and the places of its tables, rows and reach in turn, as :func:`layout_at` reads them."""
        return np.array([len(self.start), self.n_states, self.lag + 1, len(self.tables), *places])


class PartitionLayout(NamedTuple):
    """The sizes of a partition, and where its numbers are."""

    n_memories: int
    n_states: int
    n_slots: int  # outputs that are remembered: the lag, and one
    longest: int
    moments: int
    predictions: int
    tables: int  # in words: where rows and reach of each table begin
    per_unit: float
    unit: float
    offset: float
    range: float
    period: float
    farthest: float
    threshold: float
    off_mean: float  # of a step in what is released
    end: float  # of the horizon


class Follower(NamedTuple):
    """The rows of who follows a partition: the steps left of a block, its length, and P(memory | v)."""

    left: int
    length: int
    levels: int
    behind: int  # P(memory | v) once a release is taken in


class Estimates(NamedTuple):
    """The rows of who estimates, too."""

    since: int  # steps behind the last release
    known: int  # the means of the states
    states: int  # E[state; memory | v], states of one memory side by side
    slots: int  # E[output; memory | v]
    carried: int


class Publisher(NamedTuple):
    """The row of the sum so far, and the noise."""

    sum: int
    draws: Draws


@kernel
def layout_at(c: Array, words: Words, header: int, numbers: int) -> PartitionLayout:
    """Read the sizes of a partition."""
    n_memories, longest = int(np.int64(words[header])), int(np.int64(words[header + 3]))
    moments = numbers + _N_NUMBERS
    return PartitionLayout(
        n_memories,
        int(np.int64(words[header + 1])),
        int(np.int64(words[header + 2])),
        longest,
        moments,
        moments + longest * 2 * n_memories,
        header + _N_WORDS,
        c[numbers],
        c[numbers + 1],
        c[numbers + 2],
        c[numbers + 3],
        c[numbers + 4],
        c[numbers + 5],
        c[numbers + 6],
        c[numbers + 7],
        c[numbers + 8],
    )


@part
def follower_at(layout: PartitionLayout, place: int) -> Follower:
    """Return the rows of who follows a partition."""
    return Follower(place, place + 1, place + 2, place + 2 + layout.n_memories)


@part
def estimates_at(layout: PartitionLayout, place: int) -> Estimates:
    """Return the rows of who estimates, too."""
    known, states = place + 1, place + 1 + layout.n_states
    slots = states + layout.n_memories * layout.n_states
    return Estimates(place, known, states, slots, slots + layout.n_memories * layout.n_slots)


# --- the partition ----------------------------------------------------------------------------------


@kernel
def choose_length(c: Array, layout: PartitionLayout, x: Rows, levels: int, lane: int) -> int:
    """Choose the length of the next block: the least of which the sum has the variance that is asked for."""
    n, length = layout.n_memories, 1
    while length < layout.longest:
        mean = square = x[levels, lane] * 0
        place = layout.moments + (length - 1) * 2 * n
        for m in range(n):
            mean += x[levels + m, lane] * c[place + m]
            square += x[levels + m, lane] * c[place + n + m]
        if square - mean * mean >= layout.threshold:
            break
        length += 1
    return length


@part
def count_down(c: Array, layout: PartitionLayout, follower: Follower, x: Rows, lane: int, time: int) -> Any:
    """Go one step on, into a new block where one has ended; tell whether something is released."""
    if x[follower.left, lane] == 0:
        x[follower.length, lane] = choose_length(c, layout, x, follower.levels, lane)
        x[follower.left, lane] = x[follower.length, lane]
    x[follower.left, lane] -= 1
    return x[follower.left, lane] == 0 and time < layout.end


@part
def find_row(layout: PartitionLayout, length: int, v: float) -> int:
    """Find the row of a released value: sums beyond those of the block stand for others with the same weights."""
    steps = np.rint((v - length * layout.off_mean) * layout.per_unit)
    inside = min(max(steps, steps * 0), length * layout.range)
    beyond = min(abs(steps - inside), layout.farthest)
    beyond -= np.rint((beyond - (layout.period - 1) / 2) / layout.period) * layout.period
    return int(inside + (beyond if steps > inside else -beyond) + layout.period - 1)


@part
def mix_levels(c: Array, layout: PartitionLayout, follower: Follower, x: Rows, lane: int, place: int) -> Any:
    """Go through a block with the weights from a place on; return what the weights of memories behind it sum to."""
    n, total = layout.n_memories, x[follower.levels, lane] * 0
    for behind in range(n):
        mass = x[follower.levels, lane] * 0
        for m in range(n):
            mass += x[follower.levels + m, lane] * c[place + m * n + behind]
        x[follower.behind + behind, lane] = mass
        total += mass
    return total


@kernel
def weigh(
    c: Array, words: Words, layout: PartitionLayout, follower: Follower, x: Rows, lane: int, v: float
) -> tuple[int, float]:
    """Find P(memory | v) behind a release; return where its weights begin, and what they are multiplied by.

    Where nothing is left, as a published value had probability zero, the weights of the block alone are taken.
    """
    n, length = layout.n_memories, int(x[follower.length, lane])
    width = (1 + layout.n_states + min(length, layout.n_slots)) * n * n
    first = int(np.int64(words[layout.tables + 2 * length - 2]))
    place = first + find_row(layout, length, v) * width
    total = mix_levels(c, layout, follower, x, lane, place)
    if total <= _LEAST:
        place = first + int(length * layout.range + 2 * layout.period - 1) * width
        total = mix_levels(c, layout, follower, x, lane, place)
    for behind in range(n):
        x[follower.behind + behind, lane] /= total
    return place, 1 / total


@part
def accept(layout: PartitionLayout, follower: Follower, x: Rows, lane: int) -> None:
    """Make what is known behind a release what is known."""
    for m in range(layout.n_memories):
        x[follower.levels + m, lane] = x[follower.behind + m, lane]


# --- who publishes ----------------------------------------------------------------------------------


@kernel
def publish(
    words: Words,
    table: Words,
    c: Array,
    layout: PartitionLayout,
    follower: Follower,
    publisher: Publisher,
    x: Rows,
    row: int,
    out: int,
    time: int,
    n: int,
) -> None:
    """Sum n rows in blocks; write what is released where a block ends, and else NaN."""
    for t in range(n):
        draw_integer(words, publisher.draws, table, x, out + t)
        for lane in range(x.shape[1]):
            x[publisher.sum, lane] += (x[row + t, lane] - layout.offset) * layout.per_unit
            if count_down(c, layout, follower, x, lane, time + t):
                noisy = x[publisher.sum, lane] + x[out + t, lane]
                x[out + t, lane] = noisy * layout.unit + x[follower.length, lane] * layout.off_mean
                weigh(c, table, layout, follower, x, lane, x[out + t, lane])
                accept(layout, follower, x, lane)
                x[publisher.sum, lane] = 0
            else:
                x[out + t, lane] = np.nan


# --- who estimates ----------------------------------------------------------------------------------


@part
def carry_means(
    c: Array, words: Words, layout: PartitionLayout, follower: Follower, rows: Estimates, x: Rows, lane: int
) -> int:
    """Carry the means of the states over a block without its inputs, to states and last outputs; count these."""
    length = int(x[follower.length, lane])
    n_means = layout.n_states + min(length, layout.n_slots)
    reach = int(np.int64(words[layout.tables + 2 * length - 1]))
    for i in range(n_means):
        for m in range(layout.n_memories):
            total = x[follower.levels, lane] * 0
            for j in range(layout.n_states):
                total += x[rows.states + m * layout.n_states + j, lane] * c[reach + i * layout.n_states + j]
            x[rows.carried + i * layout.n_memories + m, lane] = total
    return n_means


@part
def mix_outputs(
    c: Array,
    layout: PartitionLayout,
    follower: Follower,
    rows: Estimates,
    x: Rows,
    lane: int,
    weights: int,
    scale: float,
    time: int,
) -> None:
    """Take a release in for the outputs before its block that a lag still asks for; rows of `carried` are used."""
    n, length = layout.n_memories, int(x[follower.length, lane])
    for late in range(max(0, time - layout.n_slots + 1), time - length + 1):
        slot = rows.slots + late % layout.n_slots * n
        for behind in range(n):
            total = x[follower.levels, lane] * 0
            for m in range(n):
                total += x[slot + m, lane] * c[weights + m * n + behind]
            x[rows.carried + behind, lane] = total * scale
        for m in range(n):
            x[slot + m, lane] = x[rows.carried + m, lane]


@kernel
def take_release(
    c: Array,
    words: Words,
    layout: PartitionLayout,
    follower: Follower,
    rows: Estimates,
    x: Rows,
    lane: int,
    v: float,
    time: int,
) -> None:
    """Take in what is released at a time: what is known of memory, states and outputs becomes what is known then."""
    n, n_states = layout.n_memories, layout.n_states
    weights, scale = weigh(c, words, layout, follower, x, lane, v)
    mix_outputs(c, layout, follower, rows, x, lane, weights, scale, time)
    n_means = carry_means(c, words, layout, follower, rows, x, lane)
    for i in range(n_means):
        inputs = weights + (1 + i) * n * n
        recent = time - n_means + 1 + i
        for behind in range(n):
            total = x[follower.levels, lane] * 0
            for m in range(n):
                total += x[rows.carried + i * n + m, lane] * c[weights + m * n + behind]
                total += x[follower.levels + m, lane] * c[inputs + m * n + behind]
            if i < n_states:
                x[rows.states + behind * n_states + i, lane] = total * scale
            else:
                x[rows.slots + recent % layout.n_slots * n + behind, lane] = total * scale
    accept(layout, follower, x, lane)
    for i in range(n_states):
        total = x[follower.levels, lane] * 0
        for m in range(n):
            total += x[rows.states + m * n_states + i, lane]
        x[rows.known + i, lane] = total


@kernel
def estimate_step(
    c: Array, layout: PartitionLayout, follower: Follower, rows: Estimates, x: Rows, lane: int, wanted: int
) -> Any:
    """Estimate the output of a step: one up to the last release, or a later one."""
    n, total = layout.n_memories, x[follower.levels, lane] * 0
    if x[rows.since, lane] < layout.n_slots:
        for m in range(n):
            total += x[rows.slots + wanted % layout.n_slots * n + m, lane]
    else:
        ahead = int(min(x[rows.since, lane] - layout.n_slots, layout.longest - 1))
        place = layout.predictions + ahead * (n + layout.n_states)
        for m in range(n):
            total += x[follower.levels + m, lane] * c[place + m]
        for i in range(layout.n_states):
            total += x[rows.known + i, lane] * c[place + n + i]
    return total


@kernel
def estimate_adaptive(
    words: Words,
    c: Array,
    layout: PartitionLayout,
    follower: Follower,
    rows: Estimates,
    x: Rows,
    released: int,
    out: int,
    time: int,
    n: int,
) -> None:
    """Estimate n samples from `time` on, each `lag` late, taking in what is released meanwhile; zero before time 0."""
    for t in range(n):
        for lane in range(x.shape[1]):
            x[rows.since, lane] += 1
            if count_down(c, layout, follower, x, lane, time + t):
                take_release(c, words, layout, follower, rows, x, lane, x[released + t, lane], time + t)
                x[rows.since, lane] = 0
            x[out + t, lane] = estimate_step(c, layout, follower, rows, x, lane, time + t - layout.n_slots + 1)
