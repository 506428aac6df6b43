"""Take the law of a chain of levels, which a posterior mean needs, not only second moments."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from dpfast._kernels.signal_sources import LevelSource
from dpfast._support.errors import DesignError
from dpfast._support.validation import Array
from dpfast.signals.independent_levels import IndependentLevels
from dpfast.signals.markov_chain import MarkovChain

_SAME = 1e-12  # of probabilities: what follows on two levels is the same but for rounding


class ChainLaw(NamedTuple):
    """The law of a chain of levels, by what its past tells of its future: its memory.

    Levels that are followed alike are one memory, so that independent levels leave none.
    """

    transition: Array  # (memories, levels)
    memory: NDArray[np.int64]  # (levels,), which each leaves
    start: Array  # (memories,), stationary
    levels: Array

    @classmethod
    def of(cls, source: LevelSource) -> Self:
        """Take the law of a source."""
        rows = np.diff(source.transition, axis=1, prepend=0.0)
        stationary = np.diff(source.stationary, prepend=0.0)
        if len(rows) == 1:
            rows = np.repeat(rows, len(stationary), axis=0)
        first = [int(np.argmax((np.abs(rows - row) <= _SAME).all(axis=1))) for row in rows]
        kept, memory = np.unique(first, return_inverse=True)
        start = np.bincount(memory, stationary)
        return cls(rows[kept], memory.astype(np.int64), start / start.sum(), source.levels)


TAKE_LINEAR, TAKE_BLOCK_SUMS = 'receiver="linear"', "block_sums, whose receiver is linear"


def chain_of(model: Any, instead: str = TAKE_LINEAR) -> LevelSource:
    """Return the source of a model that is a chain of levels; refuse one of which only second moments are known.

    The error says what to take instead.
    """
    source = model.compiled() if isinstance(model, MarkovChain | IndependentLevels) else None
    if not isinstance(source, LevelSource):
        raise DesignError(
            "model must be a MarkovChain or IndependentLevels for a posterior mean, which takes the whole law of the "
            f"input, got {type(model).__name__}, of which mean and spectrum are known: take {instead}, or a "
            "MarkovChain with the levels of the input"
        )
    return source


def is_same_law(first: Any, second: Any) -> bool:
    """Tell whether streams of two models are drawn alike."""
    a, b = first.compiled(), second.compiled()
    return type(a) is type(b) is LevelSource and all(map(np.array_equal, a, b))
