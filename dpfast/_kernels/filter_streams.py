"""Filters that keep their state run here, a step or a few at a time: streams lie side by side, in arrays of users.

Nothing is transposed. An array (time, streams) comes flat; lanes are neighbours in it, whole bundles of them and then
one stream at a time. The operations and their order are those of ``fir_and_sections`` and ``equalizer``, so the bits
are, too.

The memory is an array (rows, streams): inputs, if there are taps; two rows a section; outputs, if there is a recursion.
Inputs and outputs walk through a room of rows, their past above them, so that a step moves nothing; at the end of the
room what is still needed goes back to the top::

     past │ ──► now   room │
    ──────┼────────────────┤
"""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpfast._kernels._jit import kernel, part
from dpfast._kernels.denormals import flush, restore
from dpfast._kernels.equalizer import pad_feedback_taps
from dpfast._kernels.factors import Factors
from dpfast._kernels.fir_and_sections import SECTION, TAPS, fold_factors
from dpfast._kernels.simd import Row, fma, lanes, load_run, repeat, store_run, traced
from dpfast._kernels.tiles import ROWS, Tile

Array = NDArray[Any]

REFUSED = -1
_SINGLE, _BUNDLE = 1, 0  # how many streams side by side; 0: a whole bundle
_RECENT = ROWS - 1  # outputs that may fall into a tile
_ROOM = 4 * ROWS


class StreamLayout(NamedTuple):
    """The counts of coefficients (taps; sections b0 c1 c2 a1 a2; what feeds outputs back), and the rows of memory."""

    n_taps: int
    n_sections: int
    n_feedback: int
    width: int  # of a bundle
    room: int
    states: int  # row of the first section; before it past inputs and a room
    outputs: int  # row of the oldest output


class StreamPlan(NamedTuple):
    """A filter laid out: what a kernel takes, how large the memory is, and where in it the states are."""

    c: Array
    layout: Array  # a StreamLayout
    n_rows: int
    first_rows: NDArray[np.int64]  # of the states at the top of the room, the newest inputs and outputs first
    moves: NDArray[np.int64]  # one for those that walk through the room

    def memory_from(self, states: Array) -> Array:
        """Lay states (states, streams) out, in memory of their own."""
        if len(states) == self.n_rows:
            return states.copy()
        memory = np.zeros((self.n_rows, states.shape[1]), self.c.dtype)
        memory[self.first_rows] = states
        return memory

    def states_in(self, memory: Array, now: int) -> Array:
        """Return the states (states, streams), in the order of those of a filter; where memory has no more, itself."""
        return memory if len(self.first_rows) == self.n_rows else memory[self.first_rows + now * self.moves]


def plan_stream(factors: Factors, dtype: np.dtype[Any]) -> StreamPlan:
    """Lay a filter out; one without taps and recursion needs no room, and never comes to the end of it."""
    taps, sections = fold_factors(factors)
    n_past, n_poles = len(factors.taps) - 1, len(factors.recursion) - 1
    feedback = pad_feedback_taps(-factors.recursion[1:]) if n_poles else np.empty(0)
    n_longest = max(len(taps), len(feedback))
    room = max(_ROOM, n_longest + -n_longest % ROWS)
    states = n_past + room if len(taps) else 0
    outputs = states + 2 * len(sections)
    n_rows = outputs + (len(feedback) + room if n_poles else 0)
    counts = len(taps), len(sections), len(feedback), lanes(dtype)
    layout = StreamLayout(*counts, room if n_longest else sys.maxsize, states, outputs)
    c = np.concatenate([taps, sections.ravel(), feedback]).astype(dtype)
    newest = outputs + len(feedback) - 1
    rows = [*reversed(range(n_past)), *range(states, outputs), *range(newest, newest - n_poles, -1)]
    moves = np.repeat([1, 0, 1], [n_past, outputs - states, n_poles])
    return StreamPlan(c, np.array(layout, np.int64), n_rows, np.array(rows, np.int64), moves)


class Lanes(NamedTuple):
    """Neighbours among the streams of a memory, while a tile is traced."""

    memory: Array
    lane: Any
    width: int

    def load(self, row: Any) -> Row:
        """Load a row of the memory."""
        return load_run(self.memory, (row, self.lane), 1, self.width)

    def store(self, row: Any, value: Row) -> None:
        """Write a row of the memory."""
        store_run(self.memory, (row, self.lane), 1, value)


def lanes_at(memory: Array, lane: Any, n: int) -> Lanes:
    """Take so many streams from a lane on; 0 is a whole bundle."""
    return Lanes(memory, lane, n or lanes(memory.dtype))


def add_taps(tile: Tile, c: Array, at: Any, past: Lanes, row: Any, n: int) -> Tile:
    """Add the sum of c[at + j] past[row + r - j] over n taps j to tile[r]."""
    values = {r: past.load(row + r) for r in range(1 - n, len(tile))}
    for j in reversed(range(n)):
        tap = c[at + j]
        tile = tuple(fma(tap, values[r - j], value) for r, value in enumerate(tile))
    return tile


def convolve(tile: Tile, c: Array, at: Any, n_taps: Any, past: Lanes, row: Any) -> Tile:
    """Add what taps give, the oldest samples first: what is no group of eight, then the groups."""
    n_left = n_taps & (TAPS - 1)
    n_grouped = n_taps - n_left

    def single(i: Any, *tile: Row) -> Tile:
        k = n_taps - 1 - i
        return add_taps(tile, c, at + k, past, row - k, 1)

    def group(i: Any, *tile: Row) -> Tile:
        k = n_grouped - (i + 1) * TAPS
        return add_taps(tile, c, at + k, past, row - k, TAPS)

    return repeat(n_grouped >> (TAPS.bit_length() - 1), group, *repeat(n_left, single, *tile))


def run_section(tile: Tile, c: Array, section: Any, memory: Lanes, row: Any) -> Tile:
    """Run a section; its two rows of state stay in memory between tiles."""
    b0, c1, c2, a1, a2 = (c[section + j] for j in range(SECTION))
    s, z = memory.load(row), memory.load(row + 1)
    out = []
    for value in tile:
        out.append(fma(b0, value, s))
        s, z = fma(-a1, s, fma(c1, value, z)), fma(-a2, s, c2 * value)
    memory.store(row, s)
    memory.store(row + 1, z)
    return tuple(out)


def feed_back(tile: Tile, c: Array, at: Any, n_taps: Any, past: Lanes, row: Any) -> Tile:
    """Run a recursion on rows in turn: what is older than any tile first."""
    tile = convolve(tile, c, at + _RECENT, n_taps - _RECENT, past, row - ROWS)
    known = {r: past.load(row + r) for r in range(-_RECENT, 0)}
    for r, value in enumerate(tile):
        for j in reversed(range(1, ROWS)):
            value = fma(c[at + j - 1], known[r - j], value)
        known[r] = value
        past.store(row + r, value)
    return tuple(known[r] for r in range(len(tile)))


@traced
def filter_tile(
    c: Array, layout: StreamLayout, memory: Array, now: int, x: Array, y: Array, at: int, lane: int, n: int, n_rows: int
) -> None:
    """Filter n_rows steps of n streams, from x[at ...] to y[at ...], which may be the same."""
    here, n_streams = lanes_at(memory, lane, n), memory.shape[1]
    sections = layout.n_taps
    feedback = sections + layout.n_sections * SECTION

    def taps(_: Any, *tile: Row) -> Tile:
        row = layout.n_taps - 1 + now
        for r, value in enumerate(tile):
            here.store(row + r, value)
        zeros = (np.full_like(tile[0], 0),) * n_rows
        return convolve(zeros, c, 0, layout.n_taps, here, row)

    def section(i: Any, *tile: Row) -> Tile:
        return run_section(tile, c, sections + i * SECTION, here, layout.states + i * 2)

    def recursion(_: Any, *tile: Row) -> Tile:
        row = layout.outputs + layout.n_feedback + now
        return feed_back(tile, c, feedback, layout.n_feedback, here, row)

    places = [(at + r * n_streams + lane,) for r in range(n_rows)]
    tile = tuple(load_run(x, place, 0, here.width) for place in places)
    tile = repeat(layout.n_sections, section, *repeat(layout.n_taps > 0, taps, *tile))
    tile = repeat(layout.n_feedback > 0, recursion, *tile)
    for place, value in zip(places, tile, strict=True):
        store_run(y, place, 0, value)


@traced
def copy_row(memory: Array, source: int, target: int, lane: int, n: int) -> None:
    """Copy a row of n streams."""
    here = lanes_at(memory, lane, n)
    here.store(target, here.load(source))


@traced
def exceed(x: Array, at: int, count: int, limit: float, n: int) -> Any:
    """Tell whether any of `count` times n numbers from x[at] on is beyond the limits, or no number."""
    width = n or lanes(x.dtype)

    def look(i: Any, found: Row) -> tuple[Row]:
        value = load_run(x, (at + i * width,), 0, width)
        return (np.where((value <= limit) & (value >= -limit), found, 1),)

    return np.any(repeat(count, look, np.full_like(load_run(x, (at,), 0, width), 0))[0] > 0)


@part
def filter_lanes(
    c: Array, layout: StreamLayout, memory: Array, now: int, x: Array, y: Array, n_steps: int, lane: int, n: int
) -> int:
    """Filter all steps of n streams; return how far they are in the room."""
    n_streams, t = memory.shape[1], 0
    while t < n_steps:
        stop = min(n_steps, t + layout.room - now)
        whole = stop - (stop - t) % ROWS
        for i in range(t, whole, ROWS):
            filter_tile(c, layout, memory, now + i - t, x, y, i * n_streams, lane, n, ROWS)
        for i in range(whole, stop):
            filter_tile(c, layout, memory, now + i - t, x, y, i * n_streams, lane, n, 1)
        now += stop - t
        t = stop
        if now == layout.room:
            for row in range(layout.n_taps - 1):
                copy_row(memory, row + now, row, lane, n)
            for row in range(layout.outputs, layout.outputs + layout.n_feedback):
                copy_row(memory, row + now, row, lane, n)
            now = 0
    return now


@kernel
def any_beyond(x: Array, at: int, n: int, limit: float, width: int) -> bool:
    """Tell whether any of n numbers of a flat array is beyond the limits, or none; `width` is that of a bundle."""
    whole, found = n - n % width, False
    if whole > 0:
        found = exceed(x, at, whole // width, limit, _BUNDLE)
    if whole < n:
        found |= exceed(x, at + whole, n - whole, limit, _SINGLE)
    return found


@kernel
def push(c: Array, layout: Array, memory: Array, now: int, limit: float, state_limit: float, x: Array, y: Array) -> int:
    """Filter x, flat (time, streams), into y, which may be x; return how far time is in the room.

    REFUSED, and nothing is changed, where a number of x is beyond the limits, or one of the memory beyond its own;
    these are not looked at where they are infinite.
    """
    before = flush()
    places = StreamLayout(layout[0], layout[1], layout[2], layout[3], layout[4], layout[5], layout[6])
    refused, after = any_beyond(x, 0, len(x), limit, places.width), now
    if state_limit < np.inf:
        refused |= any_beyond(memory.reshape(-1), 0, memory.size, state_limit, places.width)
    if not refused:
        n_steps = len(x) // memory.shape[1]
        whole = memory.shape[1] - memory.shape[1] % places.width
        for lane in range(0, whole, places.width):
            after = filter_lanes(c, places, memory, now, x, y, n_steps, lane, _BUNDLE)
        for lane in range(whole, memory.shape[1]):
            after = filter_lanes(c, places, memory, now, x, y, n_steps, lane, _SINGLE)
    restore(before)
    return REFUSED if refused else after
