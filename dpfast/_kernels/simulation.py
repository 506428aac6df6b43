"""Mechanisms are simulated as chains here: a source, the one stage that sees u, a receiver; for errors, or for paths.

    source ──► prefilter ──► + noise ──► receiver ──► error against the delayed target output

Every mechanism sees the same input and the same unit noise (common random numbers).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from dpfast._kernels.chain_builder import Chain, Term
from dpfast._kernels.chain_execute import execute
from dpfast._kernels.equalizer import Equalizer
from dpfast._kernels.fir_and_sections import UNITY, Factors
from dpfast._kernels.simulated_noise import INPUT, NOISE, START, LevelTable, Words, seed_generators

Array = NDArray[np.float64]


def build_filter_chain(factors: Factors, dtype: DTypeLike) -> Chain:
    """Build a filter from given states, which also sums the squares of its input."""
    chain = Chain(dtype)
    x = chain.read()
    chain.filter(UNITY, x, square=range(sys.maxsize))
    chain.write(chain.filter(factors, x, states=True))
    return chain


def filter_array(chain: Chain, x: Array, states: Array, out: Array, n_threads: int) -> tuple[Array, Array]:
    """Filter (streams, time) from states (streams, states) into `out`.

    Return the states at the end, and the sums of squares (streams,) of the input.
    """
    if x.size == 0:
        return states, np.zeros(len(x))
    result = execute(chain, *x.shape, x=x, states=states, out=out[None], n_threads=n_threads)
    return result.states, result.totals[:, 0]


# --- sources --------------------------------------------------------------------------------------


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

        def draw_first_words(seed: int, first: int, count: int) -> Words:
            uniform = (seed_generators(seed, first, count, START)[0] + 0.5) * 2.0**-32
            states = np.searchsorted(self.stationary, uniform, side="right")
            return table.find_rows(np.minimum(states, len(self.levels) - 1))

        return chain.levels(table, INPUT, draw_first_words)


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
            for normal, row in zip(draw_start_normals(seed, first, count, len(self.root)).T, self.root, strict=True):
                states += row[:, None] * normal
            return states

        x = chain.filter(self.shaping, chain.normals(INPUT), begin=draw_states)
        x = chain.shift(x, self.mean)
        return x if self.levels is None else chain.round(x, self.levels)


SignalSource = LevelSource | GaussianSource


def draw_start_normals(seed: int, first: int, count: int, n: int) -> Array:
    """Draw standard normals (count, n) for the states before time zero."""
    return _draw_normals(seed, first, count, n, START)


def draw_unit_noise(seed: int, first: int, count: int, n: int) -> Array:
    """Draw the unit noise (count, n) that mechanisms of a study share."""
    return _draw_normals(seed, first, count, n, NOISE)


def _draw_normals(seed: int, first: int, count: int, n: int, purpose: int) -> Array:
    chain, out = Chain(), np.empty((1, count, n))
    chain.write(chain.normals(purpose))
    execute(chain, count, n, seed=seed, first=first, out=out, n_threads=1)
    return np.asarray(out[0])


def sample(source: SignalSource, seed: int, out: Array, n_threads: int, first: int = 0) -> None:
    """Fill `out` (streams, time) with the streams first, first + 1, ... of a source."""
    chain = Chain()
    chain.write(source.add_to(chain))
    execute(chain, *out.shape, seed=seed, first=first, out=out[None], n_threads=n_threads)


# --- receivers ------------------------------------------------------------------------------------


class CompiledLinearReceiver(NamedTuple):
    """A receiver ŷ = H v + offset(t), the offset being `level` through the target, `lag` samples late."""

    factors: Factors
    target: Factors
    level: float
    lag: int

    @property
    def equalizer(self) -> None:
        """None, as nothing is decided."""

    def estimate(self, chain: Chain, v: int, *, states: bool = False) -> tuple[int, ...]:
        """Add the estimates to a chain; `states` as of a filter."""
        if self.level == 0.0:
            return (chain.filter(self.factors, v, states=states),)
        offset = chain.filter(self.target, chain.step(self.level, self.lag), states=states)
        return (chain.filter(self.factors, v, plus=Term(1.0, offset), states=states),)

    def complete(self, estimates: Array, n_threads: int) -> None:
        """Leave the estimates as they are, which are whole."""

    def square_errors(self, chain: Chain, v: int, x: int, window: range) -> int:
        """Sum the squared errors of the estimates of F x for a centred x; return the samples that this takes.

        Known means go out of both: F (x + level) - (H v + F level) = F x - H v.
        """
        y = chain.filter_once(self.target, x)
        late = range(window.start + self.lag, window.stop + self.lag)
        chain.filter(self.factors, v, plus=Term(-1.0, y, self.lag), square=late)
        return late.stop


class CompiledSmoother(NamedTuple):
    """A receiver ŷ = B(1/z) A(z) v + offset: forward through A, then backward through B.

    B has decayed after `lookahead` samples.
    """

    forward: Factors
    backward: Factors
    target: Factors
    level: float
    lookahead: int

    @property
    def equalizer(self) -> None:
        """None, as nothing is decided."""

    def estimate(self, chain: Chain, v: int) -> tuple[int, ...]:
        """Add A v to a chain; the rest can begin when all of it is there."""
        return (chain.filter(self.forward, v),)

    def complete(self, estimates: Array, n_threads: int) -> None:
        """Run the rest backward in time, in place."""
        backward, ahead = Chain(), estimates[:, ::-1]
        backward.write(backward.filter(self.backward, backward.read()))
        execute(backward, *ahead.shape, x=ahead, out=ahead[None], n_threads=n_threads)
        if self.level != 0.0:
            chain, offset = Chain(), np.empty((1, 1, estimates.shape[1]))
            chain.write(chain.filter(self.target, chain.step(self.level, 0)))
            execute(chain, *offset.shape[1:], out=offset, n_threads=1)
            estimates += offset[0]

    def square_errors(self, chain: Chain, v: int, x: int, window: range) -> int:
        """Sum the squared errors, as a linear receiver does."""
        y, forward = chain.filter_once(self.target, x), chain.filter(self.forward, v)
        block = chain.smooth(self.backward, self.lookahead, y, forward, window)
        return -(-(window.stop + self.lookahead) // block) * block


class CompiledDecisionFeedback(NamedTuple):
    """A receiver ŷ = F û, û the equaliser's decision plus `level`."""

    equalizer: Equalizer
    target: Factors
    level: float

    def estimate(self, chain: Chain, v: int, *, states: bool = False) -> tuple[int, ...]:
        """Add estimates and decisions to a chain; `states` as of a filter."""
        decisions = chain.decide(self.equalizer, v, states=states)
        if self.level != 0.0:
            decisions = chain.add(decisions, Term(1.0, chain.step(self.level, self.equalizer.lag)))
        return chain.filter(self.target, decisions, states=states), decisions

    def complete(self, estimates: Array, n_threads: int) -> None:
        """Leave the estimates as they are, which are whole."""

    def square_errors(self, chain: Chain, v: int, x: int, window: range) -> int:
        """Sum the squared errors: those of the decisions, as the target passes them."""
        lag = self.equalizer.lag
        late = range(window.start + lag, window.stop + lag)
        chain.filter(self.target, x, lag=lag, minus=chain.decide(self.equalizer, v), square=late)
        return late.stop


CompiledReceiver = CompiledLinearReceiver | CompiledSmoother | CompiledDecisionFeedback


def estimate(receiver: CompiledReceiver, v: Array, n_threads: int) -> Array:
    """Estimate from v (streams, time); return estimates, and decisions if any, (1 or 2, streams, time)."""
    chain = Chain()
    return _run_paths(chain, receiver, receiver.estimate(chain, chain.read()), v, 0, n_threads)


def _run_paths(
    chain: Chain, receiver: CompiledReceiver, signals: tuple[int, ...], x: Array, seed: int, n_threads: int
) -> Array:
    """Run a chain that ends with the signals of a receiver."""
    for signal in signals:
        chain.write(signal)
    out = np.empty((len(signals), *x.shape))
    execute(chain, *x.shape, seed=seed, x=x, out=out, n_threads=n_threads)
    receiver.complete(out[-1], n_threads)
    return out


def build_live_chain(receiver: CompiledLinearReceiver | CompiledDecisionFeedback) -> Chain:
    """Build the chain of a receiver that goes on from given states."""
    chain = Chain()
    for signal in receiver.estimate(chain, chain.read(), states=True):
        chain.write(signal)
    return chain


def continue_chain(chain: Chain, v: Array, states: Array, past: int, n_threads: int) -> tuple[Array, Array]:
    """Run a live chain on v (streams, time) behind `past` samples; return what it gives, and the states at the end."""
    out = np.empty((chain.n_outputs, *v.shape))
    if v.size == 0:
        return out, states
    return out, execute(chain, *v.shape, x=v, states=states, past=past, out=out, n_threads=n_threads).states


# --- mechanisms -----------------------------------------------------------------------------------


class CompiledMechanism(NamedTuple):
    """A mechanism to be simulated: v = G (u - centre) + noise_std · n, and the receiver of v."""

    centre: float
    prefilter: Factors
    noise_std: float
    receiver: CompiledReceiver

    @property
    def horizon(self) -> None:
        """None, as it runs without an end."""

    def as_chain(self) -> CompiledMechanism:
        """Return the mechanism itself, as it is a chain of filters."""
        return self

    def as_matrices(self) -> None:
        """None, as it is no mechanism of matrices."""


def privatize(chain: Chain, mechanism: CompiledMechanism, u: int, noise: int | None) -> int:
    """Add v to a chain, by the only stages that see u; `noise` is a signal of unit noise, None for noise of its own."""
    return chain.filter(mechanism.prefilter, chain.shift(u, -mechanism.centre), plus=Term(mechanism.noise_std, noise))


def simulate(mechanism: CompiledMechanism, u: Array, seed: int, n_threads: int) -> Array:
    """Return v, estimates, and decisions if any, (2 or 3, streams, time) for an input (streams, time)."""
    chain = Chain()
    v = privatize(chain, mechanism, chain.read(), None)
    return _run_paths(chain, mechanism.receiver, (v, *mechanism.receiver.estimate(chain, v)), u, seed, n_threads)


class CompiledStudy(NamedTuple):
    """A source, mechanisms, and the window of y in which errors count, to be simulated together."""

    source: SignalSource
    mechanisms: tuple[CompiledMechanism, ...]
    burn_in: int
    n_samples: int
    dtype: DTypeLike = np.float64

    @property
    def length(self) -> int:
        """The samples of a stream that are simulated."""
        return self.build_chain()[1]

    def build_chain(self) -> tuple[Chain, int]:
        """Build all mechanisms on one input, and count the samples that they need."""
        chain, window = Chain(self.dtype), range(self.burn_in, self.burn_in + self.n_samples)
        u = self.source.add_to(chain)
        noise = chain.normals(NOISE) if len(self.mechanisms) > 1 else None
        length = 0
        for mechanism in self.mechanisms:
            v, x = privatize(chain, mechanism, u, noise), chain.shift(u, -mechanism.centre)
            length = max(length, mechanism.receiver.square_errors(chain, v, x, window))
        return chain, length


def squared_errors(
    study: CompiledStudy,
    n_streams: int,
    seed: int,
    n_threads: int,
    advance: Callable[[int], None] | None = None,
    first: int = 0,
) -> Array:
    """Simulate the streams first, first + 1, ...; return their mean squared errors (streams, mechanisms).

    `advance` hears of the samples that are done.
    """
    chain, length = study.build_chain()
    result = execute(chain, n_streams, length, seed=seed, first=first, n_threads=n_threads, advance=advance)
    return result.totals / study.n_samples
