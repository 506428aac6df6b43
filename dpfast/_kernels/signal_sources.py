"""Signals that are drawn: sources, as stages of a chain, and normals by themselves."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpfast._kernels.chain_builder import Chain
from dpfast._kernels.chain_execute import execute
from dpfast._kernels.factors import Factors
from dpfast._kernels.simulated_noise import INPUT, START, LevelTable, Words

Array = NDArray[np.float64]


class LevelSource(NamedTuple):
    """A source of levels: a Markov chain, or independent draws (a transition of one row).

    Probabilities are cumulative.
    """

    stationary: Array
    transition: Array
    levels: Array

    def add_to(self, chain: Chain) -> int:
        """Add the signal to a chain; the state before time zero is drawn from the stationary distribution."""
        table = LevelTable.from_cumulative(self.transition, self.levels)

        def draw_first_word(start: Words) -> Words:
            uniform = (start[0] + 0.5) * 2.0**-32
            states = np.searchsorted(self.stationary, uniform, side="right")
            return table.find_rows(np.minimum(states, len(self.levels) - 1))

        return chain.levels(table, INPUT, draw_first_word)


class GaussianSource(NamedTuple):
    """A source of white noise through a filter in its stationary state, plus a mean; rounded to levels if any.

    root : R with RᵀR the stationary covariance of the filter's state.
    """

    shaping: Factors
    root: Array
    mean: float
    levels: Array | None

    def add_to(self, chain: Chain) -> int:
        """Add the signal to a chain."""

        def draw_states(seed: int, first: int, count: int) -> Array:
            # one state after the other: a matrix product may sum in an order that depends on its size
            states = np.zeros((len(self.root), count))
            for normal, row in zip(draw_normals(seed, first, count, len(self.root), START).T, self.root, strict=True):
                states += row[:, None] * normal
            return states

        x = chain.filter(self.shaping, chain.normals(INPUT), begin=draw_states)
        x = chain.shift(x, self.mean)
        return x if self.levels is None else chain.round(x, self.levels)


SignalSource = LevelSource | GaussianSource


def draw_normals(seed: int, first: int, count: int, n: int, purpose: int) -> Array:
    """Draw independent standard normals (count, n) of a purpose."""
    chain, out = Chain(), np.empty((1, count, n))
    chain.write(chain.normals(purpose))
    execute(chain, count, n, seed=seed, first=first, out=out, n_threads=1)
    return np.asarray(out[0])
