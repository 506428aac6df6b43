"""Strategies to start a descent from: blocks, blocks within blocks, windows that overlap, the target, and chance."""

from __future__ import annotations

import math

import numpy as np

from dpfast._support.validation import Array

_LENGTHS = (
    (9, 36),
    (10, 40),
    (6, 24),
    (12, 96),
)  # of the first two levels of blocks; the others follow
_MANY = 512  # steps from which on only the first two are tried
_FEW = 128  # steps up to which there are more starts
_SPACINGS = ((5, 20), (6, 24), (4, 16), (4, 20), (8, 64))  # of windows, likewise, of their own ratios
_SHORT_LENGTHS = (3, 5, 8)  # of blocks within short horizons
_BLOCK = 0.8  # of an entry of a block, beside the 1 of a step alone
_TAIL = 0.05  # of an entry that may grow
_REACH = 5.0  # spacings of a window up to which entries may grow
_SHORTEST = 3  # steps, up to which blocks are no part of a horizon
_FEWEST = 3  # nodes of the highest level
_CHANCE = 0.1  # the standard deviation of an entry that chance makes
_CLOSE = 24  # up to here blocks of all lengths are tried, beyond it each so many times the one before
_RATIO, _WIDE_RATIO = 1.08, 1.4  # over short and long horizons
_BRANCHES = (2, 3, 4, 5, 6, 7, 8)  # of trees; over long horizons the third of them


def block_lengths(n: int) -> list[int]:
    """Return the lengths of blocks that are tried over a horizon: all, and beyond some in close steps, and n."""
    close, ratio = (_CLOSE, _RATIO) if n < _MANY else (1, _WIDE_RATIO)
    found = list(range(1, min(n, close) + 1))
    while found[-1] < n:
        found.append(min(n, math.ceil(found[-1] * ratio)))
    return found


def blocks(n: int, length: int) -> Array:
    """Return the sums of so many steps each, in the rows of their last steps."""
    steps, rows = np.arange(n), np.zeros((n, n))
    rows[np.minimum(steps // length * length + length, n) - 1, steps] = 1.0
    return rows


def signed_blocks(a: Array) -> list[Array]:
    """Return sums of blocks of several lengths, and with the signs of the frequency that a target passes most."""
    several = [blocks(len(a), length) for length in block_lengths(len(a))]
    return several + [x * s for s in _signs(a) for x in several]


def trees(n: int) -> list[Array]:
    """Return trees of two to eight branches: the single steps, and one or more levels of sums."""
    found: list[Array] = []
    for k in _BRANCHES if n < _MANY else _BRANCHES[2:3]:
        rows: list[Array] = [np.eye(n)]
        width = k
        while width < n:
            rows.append(np.repeat(np.eye(-(-n // width)), width, axis=1)[:, :n])
            found.append(np.vstack(rows))
            width *= k
    return found


def nested_blocks(n: int) -> list[Array]:
    """Return lower-triangular strategies of zeros and ones: single steps, and instead sums where blocks end."""
    lengths = block_lengths(n // 2)[1:] if n > _SHORTEST else []
    several = [np.where(_nested_blocks(n, (length,)) >= _BLOCK, 1.0, 0.0) for length in lengths]
    return [np.eye(n), *several]


def lower_triangular_starts(a: Array) -> list[Array]:
    """Return starts for lower-triangular strategies of a target A, which has no zero on its diagonal."""
    n = len(a)
    lengths = dict.fromkeys(_levels(n, first, second / first) for first, second in _tried(_LENGTHS, n))
    found = [_beside_target(a), *(_nested_blocks(n, x) for x in lengths if x)]
    if n <= _FEW:
        short = [_nested_blocks(n, (x,)) for x in _SHORT_LENGTHS if _FEWEST * x <= n]
        found += [with_tails(x, lower=True) for x in short]
        found += [np.tril(_by_chance(n, n, seed)) for seed in range(2)]
    signs = _signs(a)
    return found + [x * s for s in signs[:1] for x in found[1:]]


def dense_starts(a: Array) -> list[Array]:
    """Return starts for strategies of any rows."""
    n = len(a)
    spacings = dict.fromkeys(_levels(n, first, second / first) for first, second in _tried(_SPACINGS, n))
    several = [[_windows(n, spacing) for spacing in x] for x in spacings if x]
    found = [_beside_target(a), *(np.vstack([np.eye(n), *x]) for x in several)]
    if n <= _FEW:
        found += [with_tails(_nested_blocks(n, (x,)), lower=False) for x in _SHORT_LENGTHS if _FEWEST * x <= n]
        found += [_by_chance(n, n + n // 2, seed) for seed in range(3)]
    signs = _signs(a)
    if signs:
        found += [np.vstack([np.eye(n), *(w * s for w in x for s in signs)]) for x in several]
    return found


def with_tails(start: Array, *, lower: bool) -> Array:
    """Return a strategy with small entries where it has none, which may grow."""
    filled = np.where(start == 0, _TAIL, start)
    return np.tril(filled) if lower else filled


def _tried(levels: tuple[tuple[int, int], ...], n: int) -> tuple[tuple[int, int], ...]:
    return levels if n < _MANY else levels[:2]


def _levels(n: int, first: int, ratio: float) -> tuple[int, ...]:
    """Return the lengths first · ratioⁱ of which the horizon has a few."""
    found, length = [], float(first)
    while n >= _FEWEST * length:
        found.append(round(length))
        length *= ratio
    return tuple(found)


def _beside_target(a: Array) -> Array:
    """Return the identity, with small entries where the target has some."""
    start: Array = _TAIL * a / np.abs(a).max()
    np.fill_diagonal(start, 1.0)
    return start


def _by_chance(n: int, n_rows: int, seed: int) -> Array:
    """Return the identity, with small entries of both signs that are drawn from a fixed seed."""
    start = _CHANCE * np.random.default_rng(seed).normal(size=(n_rows, n))
    start[n:] *= 2.0
    start[:n] += np.eye(n)
    return start


def _signs(a: Array) -> list[Array]:
    """Return the signs of a cosine and a sine of the frequency that a target passes most; none where that is zero."""
    n = len(a)
    peak = int(np.argmax(np.abs(np.fft.rfft(a[:, 0], 8 * n))))
    if peak < 8:  # less than a cycle over the horizon
        return []
    phase = 2 * np.pi * peak / (8 * n) * np.arange(n)
    return [np.where(x >= 0, 1.0, -1.0) for x in (np.cos(phase), np.sin(phase + 1e-9))]


def _nested_blocks(n: int, lengths: tuple[int, ...]) -> Array:
    """Return rows of single steps; where blocks end, that of the longest; and small entries in columns of such ends.

    A column of an end has no row of its own, and what is left of its norm goes to later rows.
    """
    longest = np.ones(n, int)
    for length in lengths:
        longest[length - 1 : n - 1 : length] = length
    ends = longest > 1
    start = np.where(np.tri(n, dtype=bool) & ends & ~ends[:, None], _TAIL, 0.0)
    np.fill_diagonal(start, 1.0)
    for t in np.flatnonzero(ends):
        start[t, t + 1 - longest[t] : t + 1] = _BLOCK
    return start


def _windows(n: int, spacing: int) -> Array:
    """Return windows that add up to one, each a triangle over its neighbours, with small entries further away."""
    count = max(1, round(n / spacing))
    centres = (np.arange(count) + 0.5) * (n / count)
    away = np.abs(np.arange(n) + 0.5 - centres[:, None]) * count / n
    near, far = (np.maximum(0.0, 1 - away / reach) for reach in (1.0, _REACH))
    return np.asarray(near / near.sum(axis=0) + _TAIL * far / far.sum(axis=0))
