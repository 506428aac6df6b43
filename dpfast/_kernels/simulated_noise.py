"""Random numbers for simulations: one xoshiro128++ generator for each (seed, stream, purpose), a lane each.

Blackman and Vigna, *Scrambled linear pseudorandom number generators* (2021). The state, four 32-bit words, is found by
hashing, so that a stream can be drawn on its own. Normals come in pairs from two words (Box and Muller 1958), with
polynomials in float32: of 24 bits, within ±6.77. Simulation only: nothing here is fit for a release.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpfast._kernels._jit import kernel, part
from dpfast._kernels.simd import (
    Row,
    fma,
    gather,
    load,
    load_run,
    repeat,
    rotate_left,
    store,
    store_run,
    traced,
)
from dpfast._kernels.tiles import ROWS, Rows, Tile

Array = NDArray[Any]
Words = NDArray[np.uint32]

INPUT, NOISE, START, RELEASE = (
    0,
    1,
    2,
    3,
)  # purposes; START is for what came before time zero, RELEASE and on for levels
_CHANNELS = 32  # bits of a purpose below the number of a channel
STATE_WORDS = 4
_LARGEST = 2**32 - 1
_SKIPS = 0x9E3779B97F4A7C15, 0x3C6EF372FE94F82A  # the golden ratio once and twice, mod 2^64
_STREAMS = 16  # whose generators are seeded side by side

# Minimax polynomials in float32, lowest power first
# fmt: off
_LOG = (-1.999999948, 0.9999997597, -0.6666837134, 0.5000414479, -0.3991366125, 0.3312485787, -0.2990466516,
        0.2873324229, -0.1744380403)  # -2 log(1 + x) / x on sqrt(1/2) - 1 ... sqrt(2) - 1
# fmt: on
_SIN = (3.141592637, -5.167709685, 2.550069726, -0.5982421245, 0.07756038324)  # sin(pi y) / y in y^2, |y| <= 1/2
_COS = (0.9999999998, -4.934802137, 4.058709164, -1.335212057, 0.2349375585, -0.02439671581)
_SQRT_HALF_BITS = 0x3F3504F3


# --- the states of generators ---------------------------------------------------------------------


def of_channel(purpose: int, channel: int) -> int:
    """Return the same purpose of another channel of several streams; the first one has that of one stream alone."""
    return purpose + (channel << _CHANNELS)


def seed_generators(seed: int, first: int, count: int, purpose: int | tuple[int, ...]) -> Words:
    """Return the states (4, count) of the generators of the streams first, first + 1, ... .

    Of several purposes, hashed all at once, (purposes, 4, count).
    """
    purposes, several = np.array(purpose, np.uint64, ndmin=1), isinstance(purpose, tuple)
    streams = np.arange(first, first + count + -count % _STREAMS, dtype=np.uint64)
    states = np.empty((len(purposes), STATE_WORDS, len(streams)), np.uint32)
    hash_streams(_keys(seed), purposes, streams, states)
    return np.ascontiguousarray((states if several else states[0])[..., :count])


@functools.lru_cache(maxsize=64)
def _keys(seed: int) -> NDArray[np.uint64]:
    return np.random.SeedSequence(seed).generate_state(2, np.uint64).astype(np.uint64)


@kernel
def hash_streams(
    keys: NDArray[np.uint64], purposes: NDArray[np.uint64], streams: NDArray[np.uint64], states: Words
) -> None:
    """Hash numbers of streams to the states (purposes, 4, streams) of their generators."""
    for p in range(len(purposes)):
        for i in range(0, len(streams), _STREAMS):
            store_states(keys, purposes, streams, states, p, i)


@traced
def store_states(
    keys: NDArray[np.uint64], purposes: NDArray[np.uint64], streams: NDArray[np.uint64], states: Words, p: int, i: int
) -> None:
    """Hash a run of streams for one purpose; halves of a state differ, so that none is zero, which must not be."""
    stream = load_run(streams, (i,), 0, _STREAMS)
    mixed = mix(mix(stream ^ keys[0]) + purposes[p] ^ keys[1])
    halves = [mix(mixed + skip) for skip in _SKIPS]
    for j, word in enumerate(word for half in halves for word in (half & _LARGEST, half >> 32)):
        store_run(states, (p, j, i), 2, word.astype(np.uint32))


def mix(x: Row) -> Row:
    """Finish a hash as splitmix64 does (Steele, Lea and Flood 2014): a bijection of 64 bits."""
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB
    return x ^ (x >> 31)


# --- tables of chains -----------------------------------------------------------------------------


class LevelTable(NamedTuple):
    """A table by which 32 random bits choose the next level of a Markov chain.

    A row for each state: width - 1 sorted thresholds, of which the bits pass j; at place j, the level that is drawn
    then, and where the row of the next state begins. Two states need but the two thresholds of the second.
    """

    thresholds: Array
    next_row: Array
    levels: Array
    n_halves: int | None  # log2 of the width; None for two states

    @classmethod
    def from_cumulative(cls, transition: Array, levels: Array) -> LevelTable:
        """Make the table of cumulative probabilities (k, k), or (1, k) without memory; what has none is never drawn."""
        following = [np.flatnonzero(p > 0) for p in np.diff(transition, axis=1, prepend=0.0)]
        if len(levels) == 2 and all(len(x) == 2 for x in following):
            return cls(np.broadcast_to(_bits(transition[:, 0]), 2), np.empty(0), levels, None)
        n_halves = max(len(x) - 1 for x in following).bit_length()
        shape = len(following), 1 << n_halves
        thresholds, states = np.full(shape, _LARGEST), np.empty(shape, dtype=np.int64)
        for i, chosen in enumerate(following):
            thresholds[i, : len(chosen) - 1] = _bits(transition[i, chosen[:-1]])
            states[i] = chosen[np.minimum(np.arange(shape[1]), len(chosen) - 1)]
        next_row = states * shape[1] if len(following) > 1 else np.zeros_like(states)
        return cls(thresholds.ravel(), next_row.ravel(), levels[states].ravel(), n_halves)

    def find_rows(self, states: NDArray[np.int64]) -> Words:
        """Find where the rows of states begin."""
        if self.n_halves is None:
            return states.astype(np.uint32)
        has_memory = len(self.thresholds) > 1 << self.n_halves
        return (states << self.n_halves if has_memory else np.zeros_like(states)).astype(np.uint32)


def _bits(probability: Array) -> Array:
    """Count the 2^32 words below a probability; neither none nor all."""
    return np.clip(np.rint(probability * 2.0**32), 1, _LARGEST)


# --- on rows --------------------------------------------------------------------------------------


def xoshiro(s: Tile) -> tuple[Row, Tile]:
    """Step xoshiro128++ in every lane: (32 random bits, next state)."""
    s0, s1, s2, s3 = s
    bits = rotate_left(s0 + s3, 7) + s0
    t = s1 << 9
    s2, s3 = s2 ^ s0, s3 ^ s1
    s1, s0 = s1 ^ s2, s0 ^ s3
    return bits, (s0, s1, s2 ^ t, rotate_left(s3, 11))


def horner(coefficients: tuple[float, ...], x: Row) -> Row:
    """Evaluate a polynomial, lowest power first."""
    value = coefficients[-1]
    for c in coefficients[-2::-1]:
        value = fma(value, x, c)
    return value


def minus_2_log(bits: Row) -> Row:
    """Turn a row of bits into -2 log u, u uniform: twice an exponential."""
    u = fma(bits.astype(np.float32), 2.0**-32, 2.0**-33)
    bits = u.view(np.int32)
    exponent = (bits - _SQRT_HALF_BITS) >> 23
    x = (bits - (exponent << 23)).view(np.float32) - 1
    return fma(horner(_LOG, x), x, exponent.astype(np.float32) * (-2 * math.log(2)))


def box_muller(a: Row, b: Row) -> tuple[Row, Row]:
    """Turn two rows of bits into two rows of standard normals."""
    radius = (np.sqrt(minus_2_log(a)).view(np.uint32) ^ (b << 31)).view(np.float32)  # and a random sign
    y = b.view(np.int32).astype(np.float32) * 2.0**-32
    z = y * y
    return radius * horner(_COS, z), radius * y * horner(_SIN, z)


def load_generator(words: Words, at: int, like: Row) -> Tile:
    """Load the state of a generator in every lane."""
    return tuple(load(words, at + i, like) for i in range(STATE_WORDS))


def store_generator(words: Words, at: int, s: Tile) -> None:
    """Keep the state of a generator."""
    for i, word in enumerate(s):
        store(words, at + i, word)


# --- normals --------------------------------------------------------------------------------------


def normal_tile(words: Words, generator: int, like: Row) -> Tile:
    """Draw a tile of standard normals, of the type and width of a row."""
    s = load_generator(words, generator, like)
    tile: list[Row] = []
    for _ in range(0, ROWS, 2):
        a, s = xoshiro(s)
        b, s = xoshiro(s)
        tile += [normal.astype(like.dtype) for normal in box_muller(a, b)]
    store_generator(words, generator, s)
    return tuple(tile)


@traced
def store_normals(words: Words, generator: int, x: Rows, row: int) -> None:
    """Draw a tile of standard normals, to memory."""
    for r, value in enumerate(normal_tile(words, generator, load(x, row))):
        store(x, row + r, value)


@part
def fill_normals(words: Words, generator: int, x: Rows, row: int, n: int) -> None:
    """Fill n rows of x, and up to five beyond, with independent standard normals: two words for two samples."""
    for t in range(0, n, ROWS):
        store_normals(words, generator, x, row + t)


@traced
def store_laplace(words: Words, generator: int, x: Rows, row: int) -> None:
    """Draw a tile of Laplace noise of scale one: exponentials with a random sign."""
    like = load(x, row)
    s = load_generator(words, generator, like)
    for r in range(ROWS):
        a, s = xoshiro(s)
        b, s = xoshiro(s)
        value = ((minus_2_log(a) * 0.5).view(np.uint32) ^ (b << 31)).view(np.float32)
        store(x, row + r, value.astype(like.dtype))
    store_generator(words, generator, s)


@part
def fill_laplace(words: Words, generator: int, x: Rows, row: int, n: int) -> None:
    """Fill n rows of x, and up to five beyond, with independent Laplace noise of scale one."""
    for t in range(0, n, ROWS):
        store_laplace(words, generator, x, row + t)


# --- levels ---------------------------------------------------------------------------------------


class Levels(NamedTuple):
    """The place of a chain's table among other numbers, and of the words that it needs."""

    generator: int  # row of words
    state: int
    thresholds: int
    next_row: int
    levels: int
    n_halves: int
    half: np.uint32  # of the width


def draw_two_levels(words: Words, chain: Levels, table: Words, c: Array, like: Row) -> Tile:
    """Draw a tile of a chain of two states; the second comes where the bits are not below a threshold."""
    s, state = load_generator(words, chain.generator, like), load(words, chain.state, like)
    low, high = np.full_like(like, c[chain.levels]), np.full_like(like, c[chain.levels + 1])
    up, tile = state > 0, []
    for _ in range(ROWS):
        bits, s = xoshiro(s)
        from_low, from_high = bits >= table[chain.thresholds], bits >= table[chain.thresholds + 1]
        up = from_low ^ (up & (from_low ^ from_high))  # a choice that waits for no comparison
        tile.append(np.where(up, high, low))
    store_generator(words, chain.generator, s)
    store(words, chain.state, np.where(up, np.full_like(state, 1), np.full_like(state, 0)))
    return tuple(tile)


@traced
def two_level_tile(words: Words, chain: Levels, table: Words, c: Array, x: Rows, row: int) -> None:
    """Draw a tile of a chain of two states, to memory."""
    for r, value in enumerate(draw_two_levels(words, chain, table, c, load(x, row))):
        store(x, row + r, value)


@traced
def level_row(words: Words, chain: Levels, table: Words, c: Array, x: Rows, row: int) -> None:
    """Draw a row of a chain of any number of states, by a search by halves."""
    like = load(x, row)
    s, place = load_generator(words, chain.generator, like), load(words, chain.state, like)
    bits, s = xoshiro(s)

    def halve(_: Any, place: Row, size: Row) -> tuple[Row, Row]:
        passed = bits >= gather(table, place + (size - 1), chain.thresholds)
        return np.where(passed, place + size, place), size >> 1

    place, _ = repeat(chain.n_halves, halve, place, np.full_like(place, chain.half))
    store(x, row, gather(c, place, chain.levels))
    store(words, chain.state, gather(table, place, chain.next_row))
    store_generator(words, chain.generator, s)


@part
def fill_two_levels(words: Words, chain: Levels, table: Words, c: Array, x: Rows, row: int, n: int) -> None:
    """Fill n rows of x, and up to five beyond, with a chain of two states."""
    for t in range(0, n, ROWS):
        two_level_tile(words, chain, table, c, x, row + t)


@part
def fill_many_levels(words: Words, chain: Levels, table: Words, c: Array, x: Rows, row: int, n: int) -> None:
    """Fill n rows of x with a chain of any number of states."""
    for t in range(n):
        level_row(words, chain, table, c, x, row + t)
