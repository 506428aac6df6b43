"""Chains are data here: signals, and the stages that turn one into another, chunk by chunk.

All signals of a bundle of streams lie in one array of rows::

    signal     history         what stages look back at: taps, lags, decisions
               chunk           480 rows of time at once
               (chunk ...)     more where the history is long, so that it is moved up rarely
               5 rows          for the end of a last tile
    next one   history ...
    states     two rows for each section

``chain_builder`` makes a program, ``chain_loop`` runs it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpfast._kernels.tiles import Rows

Array = NDArray[Any]
Words = NDArray[np.uint32]
Records = Any

(
    READ,
    WRITE,
    TWO_LEVELS,
    MANY_LEVELS,
    NORMALS,
    STEP,
    FILTER,
    FEEDBACK,
    SOFT_FEEDBACK,
    REVERSE,
    CLEAR,
    RELEASE,
    RELEASE_SHARED,
    RELEASE_TREE,
    ESTIMATE,
    RESPOND,
    LAPLACE,
    POSTERIOR,
    PUBLISH,
    FOLLOW,
    ADVANCE,
    MIX,
    FIRST_PASS,  # levels and a filter in one, as `chain_fusion` finds them
) = range(23)

SIGNAL = np.dtype(
    [(name, np.int64) for name in ("row", "history", "length")], align=True
)  # length 0: time stands still
STAGE = np.dtype(
    [
        ("kind", np.int64),
        ("x", np.int64),  # signal that is read, so many samples late
        ("lag", np.int64),
        ("out", np.int64),  # signal that is written
        ("minus", np.int64),  # signal that is subtracted before a filter, if any
        ("n_minus", np.int64),
        ("plus", np.int64),  # signal that is added behind it, if any: scaled, so many samples late
        ("n_plus", np.int64),
        ("late", np.int64),
        ("generator", np.int64),  # of noise that is added behind it, if any: row of words
        ("n_noise", np.int64),
        ("drawn", np.int64),  # row of the words of levels that are drawn in the same pass
        ("scale", np.float64),
        ("period", np.int64),  # chunks from one pass to the next
        ("n", np.int64),  # rows of a pass, 0: its chunks
        ("place", np.int64),  # row of states or words; number of an array
        ("a", np.int64),  # where coefficients begin, and how many there are
        ("n_a", np.int64),
        ("b", np.int64),
        ("n_b", np.int64),
        ("rounds", np.int64),  # sums of blocks: 1 if their inputs are rounded to units
        ("levels", np.int64),  # where they begin
        ("n_levels", np.int64),
        ("total", np.int64),  # row of totals for squares, if any, and the times that count
        ("n_squares", np.int64),
        ("start", np.int64),
        ("stop", np.int64),
        ("block", np.int64),  # length of the shortest block of sums that are released
        ("phase", np.int64),  # samples that the first one is shorter
        ("cycle", np.int64),  # samples after which the weights of estimates repeat
        ("kept", np.int64),  # releases that are remembered
        ("weights", np.int64),  # where they begin: of estimates, or of inputs in a sum and how many, 0 for ones
        ("n_weights", np.int64),
    ],
    align=True,
)


class ChainProgram(NamedTuple):
    """A chain, ready to run on signals of one length."""

    signals: Records
    stages: Records
    coefficients: Array
    table: Words
    begin: NDArray[np.int64]  # rows of the states that are given
    end: NDArray[np.int64]  # rows of the states that are asked for
    first_state: int  # row
    n_rows: int
    chunk: int
    n_samples: int
    work: int  # multiply-adds on a row in a chunk, about

    @property
    def n_chunks(self) -> int:
        """The number of chunks that cover all samples."""
        return -(-self.n_samples // self.chunk)


class BundleMemory(NamedTuple):
    """The state of a bundle of streams under way."""

    now: NDArray[np.int64]  # row of each signal where the present chunk begins
    rows: Rows
    words: Words
    totals: Array  # float64; the last row is for squares that do not count


class Streams(NamedTuple):
    """The arrays that go into a program and come out."""

    x: Array  # (arrays, streams, time, 2), the last axis of stride zero: of one type for every memory order
    out: Array  # (arrays, streams, time, 2)
    begin: Array  # (streams, states, 2)
    end: Array  # (1, streams, states, 2)
    words: Words  # (streams, words, 2)
    totals: Array  # (1, streams, totals, 2), float64
    past: int  # samples before time zero, for steps and the lag of decisions


class Work(NamedTuple):
    """The rows, words and streams that one pass of a stage works on."""

    x: int  # row where the signal begins that is read
    out: int
    minus: int
    plus: int
    states: int
    stream: int  # the first of the bundle
    time: int  # of the first row
    past: int  # samples before time zero
    n: int  # rows
    c: Array  # numbers of the program
    table: Words
    rows: Rows  # memory of the bundle
    words: Words
    totals: Array
    given: Array  # arrays that go into the program and come out
    made: Array
