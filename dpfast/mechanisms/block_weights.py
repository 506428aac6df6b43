"""Weights of inputs in the sums of a block: 0, 1 or -1, and each input in at most one sum."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dpfast._support import validation
from dpfast._support.validation import Array

MOST_SUMS = 16
LONGEST_PATTERN = 2**12


def check_weights(weights: ArrayLike, lengths: tuple[int, ...] | None = None) -> Array:
    """Return the weights (block, sums) as numbers; refuse those by which an event would cost more than one draw.

    Parameters
    ----------
    weights : array_like
        0, 1 or -1, and in each row at most one that is not 0.
    lengths : tuple of int, optional
        That the blocks must have, one for each sum.

    Examples
    --------
    >>> check_weights([[1, 0], [0, -1]]).shape
    (2, 2)
    """
    given = validation.array("weights", weights, ndim=2)
    if not np.isin(given, (-1, 0, 1)).all():
        raise validation.fail("weights", "numbers 0, 1 or -1, a row for each input of a block, a column a sum", weights)
    touched = np.count_nonzero(given, axis=1)
    if (touched > 1).any():
        step = int(np.argmax(touched > 1))
        row = given[step].astype(int).tolist()
        raise ValueError(
            f"weights must have at most one number other than 0 in a row, got {row} in row {step}: an event there "
            f"would change {touched[step]} published values, and cost {touched[step]} epsilon"
        )
    if not given.any(axis=0).all():
        raise ValueError("weights must have a number that is not 0 in each column: a sum of nothing tells nothing")
    if len(given) > LONGEST_PATTERN or given.shape[1] > MOST_SUMS:
        raise ValueError(
            f"weights must be of at most {MOST_SUMS} sums of blocks of at most {LONGEST_PATTERN:,} inputs, got a shape "
            f"{given.shape}: take fewer"
        )
    if lengths is not None and (len(given),) * given.shape[1] != lengths:
        raise ValueError(
            f"weights must be of blocks and sums of the lengths {list(lengths)}, got a shape {given.shape}"
        )
    return validation.freeze(given)


def weights_of_sums(weights: Array | None, lates: tuple[int, ...]) -> list[tuple[float, ...]]:
    """List the weights of inputs in each sum, from its own beginning on; none for ones.

    Examples
    --------
    >>> weights_of_sums(np.array([[1.0, 0.0], [0.0, -1.0]]), (0, 1)), weights_of_sums(None, (0,))
    ([(1.0, 0.0), (-1.0, 0.0)], [()])
    """
    if weights is None:
        return [() for _ in lates]
    return [tuple(np.roll(x, -late).tolist()) for x, late in zip(weights.T, lates, strict=True)]


def sums_text(
    lengths: tuple[int, ...], weights: Array | None, offsets: tuple[int, ...] = (), groups: tuple[int, ...] = ()
) -> str:
    """Say what is published of each block, at which of its steps where that is not its last one, and what is shared.

    Examples
    --------
    >>> sums_text((2,), np.array([[1], [-1]])), sums_text((2, 2), np.array([[1, 0], [0, -1]]), (0, 1))
    ('a signed sum of 2 steps', '2 signed sums of 2 steps, after 2 and 1')
    >>> sums_text((3, 6), None), sums_text((15,), None, groups=(6,))
    ('sums of 3 and 6 steps', 'sums of 15 steps, with noise shared by 6 of them')
    >>> sums_text((14,), None, groups=(3, 4))
    'sums of 14 steps, with noise shared by 3 × 4 of them'
    """
    if weights is None:
        sharing = f", with noise shared by {' × '.join(map(str, groups))} of them" if groups else ""
        return f"sums of {' and '.join(str(x) for x in lengths)} steps{sharing}"
    length, n = weights.shape
    times = f", after {' and '.join(str(x or length) for x in offsets)}" if any(offsets) else ""
    return f"{'a signed sum' if n == 1 else f'{n} signed sums'} of {length} steps{times}"
