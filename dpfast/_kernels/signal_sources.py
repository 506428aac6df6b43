"""Signals that are drawn: sources of one channel or several, as stages of a chain, and normals by themselves."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpfast._kernels.chain_builder import Chain
from dpfast._kernels.chain_execute import execute
from dpfast._kernels.factors import Factors
from dpfast._kernels.simulated_noise import INPUT, START, LevelTable, Words, of_channel
from dpfast._kernels.state_space_pass import StateSpace

Array = NDArray[np.float64]


class LevelSource(NamedTuple):
    """A source of levels: a Markov chain, or independent draws (a transition of one row).

    Probabilities are cumulative.
    """

    stationary: Array
    transition: Array
    levels: Array

    def add_to(self, chain: Chain, channel: int = 0) -> int:
        """Add the signal to a chain; the state before time zero is drawn from the stationary distribution."""
        table = LevelTable.from_cumulative(self.transition, self.levels)

        def draw_first_word(start: Words) -> Words:
            uniform = (start[0] + 0.5) * 2.0**-32
            states = np.searchsorted(self.stationary, uniform, side="right")
            return table.find_rows(np.minimum(states, len(self.levels) - 1))

        return chain.levels(table, of_channel(INPUT, channel), draw_first_word, of_channel(START, channel))


class GaussianSource(NamedTuple):
    """A source of white noise through a filter in its stationary state, plus a mean; rounded to levels if any.

    root : R with RᵀR the stationary covariance of the filter's state.
    """

    shaping: Factors
    root: Array
    mean: float
    levels: Array | None

    def add_to(self, chain: Chain, channel: int = 0) -> int:
        """Add the signal to a chain."""

        def draw_states(seed: int, first: int, count: int) -> Array:
            return draw_first_states(self.root, seed, first, count, of_channel(START, channel))

        x = chain.filter(self.shaping, chain.normals(of_channel(INPUT, channel)), begin=draw_states)
        x = chain.shift(x, self.mean)
        return x if self.levels is None else chain.round(x, self.levels)


SignalSource = LevelSource | GaussianSource


class IndependentSources(NamedTuple):
    """A source for each of several channels; a channel alone has the bits of its source."""

    sources: tuple[SignalSource, ...]

    def add_to(self, chain: Chain) -> tuple[int, ...]:
        """Add the signals to a chain."""
        return tuple(source.add_to(chain, channel) for channel, source in enumerate(self.sources))


class CorrelatedSource(NamedTuple):
    """A source of channels u = mean + C s + D e, s⁺ = A s + B e, of white noises e, in its stationary state.

    root : R with RᵀR the stationary covariance of the state.
    """

    system: StateSpace
    root: Array
    mean: tuple[float, ...]

    def add_to(self, chain: Chain) -> tuple[int, ...]:
        """Add the signals to a chain."""

        def draw_states(seed: int, first: int, count: int) -> Array:
            return draw_first_states(self.root, seed, first, count, START)

        noises = tuple(chain.normals(of_channel(INPUT, j)) for j in range(self.system.b.shape[1]))
        centred = chain.run_system(self.system, noises, begin=draw_states)
        return tuple(chain.shift(x, by) for x, by in zip(centred, self.mean, strict=True))


ChannelSources = IndependentSources | CorrelatedSource


def draw_first_states(root: Array, seed: int, first: int, count: int, purpose: int) -> Array:
    """Draw the states (states, count) of streams at time zero, of the covariance RᵀR."""
    # one state after the other: a matrix product may sum in an order that depends on its size
    states = np.zeros((len(root), count))
    for normal, row in zip(draw_normals(seed, first, count, len(root), purpose).T, root, strict=True):
        states += row[:, None] * normal
    return states


def draw_normals(seed: int, first: int, count: int, n: int, purpose: int) -> Array:
    """Draw independent standard normals (count, n) of a purpose."""
    chain, out = Chain(), np.empty((1, count, n))
    chain.write(chain.normals(purpose))
    execute(chain, count, n, seed=seed, first=first, out=out, n_threads=1)
    return np.asarray(out[0])
