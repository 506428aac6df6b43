"""Strategies to start a descent from: blocks within blocks, windows that overlap, and the target itself."""

from __future__ import annotations

import numpy as np

from dpfast._support.validation import Array

_LENGTHS = (
    (9, 36),
    (10, 40),
    (6, 24),
    (12, 96),
)  # of the first two levels of blocks; the others follow
_MANY = 512  # steps from which on only the first two are tried
_SPACINGS = ((5, 20), (6, 24), (4, 16), (4, 20), (8, 64))  # of windows, likewise, of their own ratios
_BLOCK = 0.8  # of an entry of a block, beside the 1 of a step alone
_TAIL = 0.05  # of an entry that may grow
_REACH = 5.0  # spacings of a window up to which entries may grow
_FEWEST = 3  # nodes of the highest level


def lower_triangular_starts(a: Array) -> list[Array]:
    """Return starts for lower-triangular strategies of a target A, which has no zero on its diagonal."""
    n = len(a)
    lengths = dict.fromkeys(_levels(n, first, second / first) for first, second in _tried(_LENGTHS, n))
    return [_beside_target(a), *(_nested_blocks(n, x) for x in lengths if x)]


def dense_starts(a: Array) -> list[Array]:
    """Return starts for strategies of any rows."""
    n = len(a)
    spacings = dict.fromkeys(_levels(n, first, second / first) for first, second in _tried(_SPACINGS, n))
    windows = [np.vstack([np.eye(n), *(_windows(n, spacing) for spacing in x)]) for x in spacings if x]
    return [_beside_target(a), *windows]


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
