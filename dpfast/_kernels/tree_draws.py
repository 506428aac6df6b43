"""Noise that blocks share in groups of groups, drawn from the root of the tree down, as the blocks come.

A node whose noises add up to s has φ = max(|s|, T - slack), T the sum of the φ of its children. When its first block
ends its s and φ are drawn, of the root by their law, of others given what is left of the s and T of the node above;
then T. A leaf has φ = |x|. Tables have weights by (|s|, φ) or (|s|, T). Every draw takes 32 random bits.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpfast._kernels._jit import kernel, part
from dpfast._kernels.shared_draws import store_bits, uniform_of
from dpfast._kernels.simulated_noise import STATE_WORDS, Words
from dpfast._kernels.tiles import Rows

Array = NDArray[Any]

_LEVEL = 5  # words of a level
_ROUNDING = 1e-14  # of the largest weight of a table: less is what Fourier transforms leave of none


class TreeTable(NamedTuple):
    """The law of a tree, level by level from the leaves up.

    Attributes
    ----------
    branches, slacks : tuple of int
    powers : tuple of array, (branches, sizes, sizes)
        Of each level, the weights of 1, 2, ... children together by (|s|, T).
    parts : tuple of array, (sizes, sizes)
        Of each level, the weights of T for each |s|, of nodes with φ = |s|.
    root : array, (sizes, sizes)
        The law of (|s|, φ) of the root.
    """

    branches: tuple[int, ...]
    slacks: tuple[int, ...]
    powers: tuple[Array, ...]
    parts: tuple[Array, ...]
    root: Array

    def numbers(self) -> list[Array]:
        """List its tables, one after the other: powers and parts of each level, and the root."""
        tables = [x for pair in zip(self.powers, self.parts, strict=True) for x in pair] + [self.root]
        return [np.where(x > _ROUNDING * x.max(), x, 0.0).ravel() for x in tables]

    def words(self, places: list[int]) -> Array:
        """List sizes and places of all tables."""
        found: list[int] = []
        for i, (k, slack, parts) in enumerate(zip(self.branches, self.slacks, self.parts, strict=True)):
            found += [k, slack, len(parts), *places[2 * i : 2 * i + 2]]
        return np.array([*found, len(self.root), places[-1]])


class TreeDraws(NamedTuple):
    """The places of the bits, of a tree, and of what is left of its nodes."""

    generator: int  # row of words, with one more behind them for the bits
    tree: int  # in a table of words
    n_levels: int
    left: int  # row of the s that is left of the node of the first level, behind it of its T; then of the next level


@part
def draw_root(c: Array, root: int, n: int, uniform: float) -> tuple[int, int]:
    """Draw s and φ of the root."""
    sign = -1 if uniform < 0.5 else 1
    left = 2 * uniform - (0 if uniform < 0.5 else 1)
    last, last_phi = 0, 0
    for s in range(n):
        for phi in range(s, n):
            weight = c[root + s * n + phi]
            if weight > 0:
                last, last_phi = s, phi
                left -= weight
                if left < 0:
                    return sign * s, phi
    return sign * last, last_phi


@part
def draw_child(c: Array, powers: int, n: int, n_left: int, s: int, t: int, uniform: float) -> tuple[int, int]:
    """Draw s and φ of the next child of a node, which has so many left with the sums s and T."""
    if n_left == 1:
        return s, t
    others = powers + (n_left - 2) * n * n
    left = uniform * c[others + n * n + abs(s) * n + t]
    last, last_phi = 0, 0
    for phi in range(t + 1):
        rest = t - phi
        for own in range(max(-phi, s - rest), min(phi, s + rest) + 1):
            weight = c[powers + abs(own) * n + phi] * c[others + abs(s - own) * n + rest]
            if weight > 0:
                last, last_phi = own, phi
                left -= weight
                if left < 0:
                    return own, phi
    return last, last_phi


@part
def draw_leaf(c: Array, powers: int, n: int, n_left: int, s: int, t: int, uniform: float) -> int:
    """Draw the next noise of a node of the first level."""
    if n_left == 1:
        return s
    others = powers + (n_left - 2) * n * n
    left = uniform * c[others + n * n + abs(s) * n + t]
    last = 0
    for size in range(t + 1):
        own = c[powers + size * n + size]
        for x in range(-size, size + 1, max(1, 2 * size)):
            weight = own * c[others + abs(s - x) * n + t - size] if abs(s - x) <= t - size else 0.0
            if weight > 0:
                last = x
                left -= weight
                if left < 0:
                    return x
    return last


@part
def draw_total(c: Array, parts: int, n: int, slack: int, s: int, phi: int, uniform: float) -> int:
    """Draw T of a node, given its s and φ."""
    size, largest = abs(s), min(phi + slack, n - 1)
    if phi > size:
        return largest
    left = 0.0
    for t in range(phi, largest + 1):
        left += c[parts + size * n + t]
    left *= uniform
    t = phi
    while t < largest:
        left -= c[parts + size * n + t]
        if left < 0:
            return t
        t += 1
    return largest


@kernel
def begin_node(
    words: Words, table: Words, draws: TreeDraws, c: Array, x: Rows, row: int, level: int, n_left: int
) -> None:
    """Draw s and T of a node, in every lane; `n_left` children of the node above have not come yet, with this one."""
    bits, mine = draws.generator + STATE_WORDS, draws.left + 2 * level
    here, above = draws.tree + level * _LEVEL, draws.tree + (level + 1) * _LEVEL
    store_bits(words, draws.generator, x, row, bits)
    for lane in range(x.shape[1]):
        uniform = uniform_of(words, bits, lane)
        if level == draws.n_levels - 1:
            s, phi = draw_root(c, int(table[above + 1]), int(table[above]), uniform)
        else:
            s, t = int(x[mine + 2, lane]), int(x[mine + 3, lane])
            s, phi = draw_child(c, int(table[above + 3]), int(table[above + 2]), n_left, s, t, uniform)
            x[mine + 2, lane] -= s
            x[mine + 3, lane] -= phi
        x[mine, lane], x[mine + 1, lane] = s, phi
    store_bits(words, draws.generator, x, row, bits)
    for lane in range(x.shape[1]):
        s, phi, uniform = int(x[mine, lane]), int(x[mine + 1, lane]), uniform_of(words, bits, lane)
        x[mine + 1, lane] = draw_total(
            c, int(table[here + 4]), int(table[here + 2]), int(table[here + 1]), s, phi, uniform
        )


@kernel
def draw_from_tree(words: Words, table: Words, draws: TreeDraws, c: Array, x: Rows, row: int, drawn: int) -> None:
    """Draw a row of noise, before which so many of all were drawn."""
    size = 1
    for level in range(draws.n_levels):
        size *= int(table[draws.tree + level * _LEVEL])
    for level in range(draws.n_levels - 1, -1, -1):
        if drawn % size == 0:
            n_left = 1
            if level < draws.n_levels - 1:
                branches = int(table[draws.tree + (level + 1) * _LEVEL])
                n_left = branches - drawn // size % branches
            begin_node(words, table, draws, c, x, row, level, n_left)
        size //= int(table[draws.tree + level * _LEVEL])
    bits, branches = draws.generator + STATE_WORDS, int(table[draws.tree])
    n_left = branches - drawn % branches
    store_bits(words, draws.generator, x, row, bits)
    for lane in range(x.shape[1]):
        s, t = int(x[draws.left, lane]), int(x[draws.left + 1, lane])
        noise = draw_leaf(
            c, int(table[draws.tree + 3]), int(table[draws.tree + 2]), n_left, s, t, uniform_of(words, bits, lane)
        )
        x[draws.left, lane], x[draws.left + 1, lane] = s - noise, t - abs(noise)
        x[row, lane] = noise
