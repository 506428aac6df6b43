"""Random numbers: one xoshiro128++ generator for each (seed, stream, purpose).

Blackman and Vigna, *Scrambled linear pseudorandom number generators* (2021). The state is a row of four 32-bit words,
found by hashing, so that a stream can be drawn on its own. Simulation only: nothing here is fit for a release.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dpfast._kernels._jit import kernel

Array = NDArray[np.float64]
Words = NDArray[np.uint32]

INPUT, NOISE = 0, 1  # purposes
_MASK = 0xFFFFFFFF


def generators(seed: int, first: int, count: int, purpose: int) -> Words:
    """States (count, 4) of the generators of the streams first, first + 1, ... ."""
    key = np.random.SeedSequence(seed).generate_state(2, np.uint64)
    stream = np.arange(first, first + count, dtype=np.uint64)
    mixed = _mix(_mix(stream ^ key[0]) + np.uint64(purpose) ^ key[1])
    golden = np.uint64(0x9E3779B97F4A7C15)
    halves = [_mix(mixed + golden), _mix(mixed + golden + golden)]
    states = np.column_stack([part for x in halves for part in (x & np.uint64(_MASK), x >> np.uint64(32))])
    states[~states.any(axis=1), 0] = 1  # the one state that a xoshiro generator must not have
    return states.astype(np.uint32)


def _mix(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Finaliser of splitmix64 (Steele, Lea and Flood 2014): a bijection of 64 bits."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@kernel
def word(s: Words) -> np.int64:
    """The next 32 random bits of a generator."""
    s0, s1, s2, s3 = np.int64(s[0]), np.int64(s[1]), np.int64(s[2]), np.int64(s[3])
    x = (s0 + s3) & _MASK
    bits = (((x << 7) | (x >> 25)) + s0) & _MASK
    t = (s1 << 9) & _MASK
    s2 ^= s0
    s3 ^= s1
    s1 ^= s2
    s0 ^= s3
    s2 ^= t
    s3 = ((s3 << 11) | (s3 >> 21)) & _MASK
    s[0], s[1], s[2], s[3] = s0, s1, s2, s3
    return bits


@kernel
def uniform(s: Words) -> float:
    """A number strictly between 0 and 1, a multiple of 2⁻³³."""
    return float((word(s) + 0.5) * 2.0**-32)


@kernel
def draw_normals(generator: Words, out: Array) -> None:
    """Fill `out` with independent standard normals (Box-Muller), two words for two samples."""
    for i in range(out.shape[0]):
        for t in range(0, out.shape[1], 2):
            radius = math.sqrt(-2.0 * math.log(uniform(generator[i])))
            angle = 2.0 * math.pi * uniform(generator[i])
            out[i, t] = radius * math.cos(angle)
            if t + 1 < out.shape[1]:
                out[i, t + 1] = radius * math.sin(angle)


@kernel
def draw_levels(
    initial: Array, transition: Array, levels: Array, state: NDArray[np.int64], generator: Words, out: Array
) -> None:
    """Fill `out` with levels[j], j a Markov chain.

    initial, transition : cumulative probabilities (k,) and (k, k), or (1, k) where levels are independent.
    state : (streams,) the last j, -1 before the first sample.
    """
    for i in range(out.shape[0]):
        j = state[i]
        for t in range(out.shape[1]):
            row = initial if j < 0 else transition[j % transition.shape[0]]
            above = np.searchsorted(row, uniform(generator[i]), side="right")
            j = above if above < len(levels) else np.int64(len(levels) - 1)
            out[i, t] = levels[j]
        state[i] = j
