"""Mechanisms are simulated as chains here: a source, the one stage that sees u, a receiver; for errors, or for paths.

    source ──► prefilter ──► + noise ──► receiver ──► error against the delayed target output

Every mechanism sees the same input and the same unit noise (common random numbers).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from dpfast._kernels.block_sums import BlockSums
from dpfast._kernels.chain_builder import Chain
from dpfast._kernels.chain_execute import execute
from dpfast._kernels.compiled_channels import AnyCompiledChannels
from dpfast._kernels.compiled_mechanisms import CompiledBlock, CompiledChain
from dpfast._kernels.compiled_receivers import (
    AnyCompiledReceiver,
    CompiledDecisionFeedback,
    CompiledPosterior,
    CompiledReceiver,
)
from dpfast._kernels.factors import UNITY, Factors
from dpfast._kernels.signal_sources import ChannelSources, SignalSource, draw_normals
from dpfast._kernels.simulated_noise import NOISE, RELEASE, of_channel

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


# --- what is drawn --------------------------------------------------------------------------------


def draw_unit_noise(seed: int, first: int, count: int, n: int) -> Array:
    """Draw the unit noise (count, n) that mechanisms of a study share."""
    return draw_normals(seed, first, count, n, NOISE)


def draw_integers(noise: CompiledBlock, seed: int, first: int, count: int, n: int) -> Array:
    """Draw noise (count, n) on the integers, as block sums of length one have it."""
    chain, out = Chain(), np.empty((1, count, n))
    sums = BlockSums(1, 0, 0.0, 1.0, 0.0, 0.0, rounds=False)
    chain.write(chain.release(sums, noise.table(), RELEASE, chain.step(0.0, 0), noise.shared))
    execute(chain, count, n, seed=seed, first=first, out=out, n_threads=1)
    return np.asarray(out[0])


def sample(source: SignalSource, seed: int, out: Array, n_threads: int, first: int = 0) -> None:
    """Fill `out` (streams, time) with the streams first, first + 1, ... of a source."""
    chain = Chain()
    chain.write(source.add_to(chain))
    execute(chain, *out.shape, seed=seed, first=first, out=out[None], n_threads=n_threads)


# --- what is published and estimated --------------------------------------------------------------


def estimate(receiver: CompiledReceiver, v: Array, n_threads: int) -> Array:
    """Estimate from v (streams, time); return estimates, and decisions if any, (1 or 2, streams, time)."""
    chain = Chain()
    return _run_paths(chain, receiver, receiver.estimate(chain, chain.read()), v, 0, n_threads)


def _run_paths(
    chain: Chain, receiver: AnyCompiledReceiver, signals: tuple[int, ...], x: Array, seed: int, n_threads: int
) -> Array:
    """Run a chain that ends with the signals of a receiver."""
    for signal in signals:
        chain.write(signal)
    out = np.empty((len(signals), *x.shape))
    execute(chain, *x.shape, seed=seed, x=x, out=out, n_threads=n_threads)
    receiver.complete(out[-1], n_threads)
    return out


def build_live_chain(receiver: CompiledDecisionFeedback | CompiledPosterior) -> Chain:
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


def privatize(chain: Chain, mechanism: CompiledChain, u: int, noise: int | None) -> Any:
    """Add v to a chain, by the only stages that see u: a signal, or one for each level of blocks."""
    return mechanism.privatize(chain, u, noise)


def simulate(mechanism: CompiledChain, u: Array, seed: int, n_threads: int) -> Array:
    """Return v, estimates, and decisions if any, (signals, streams, time) for an input (streams, time)."""
    chain = Chain()
    v = privatize(chain, mechanism, chain.read(), None)
    signals = v if isinstance(v, tuple) else (v,)
    return _run_paths(chain, mechanism.receiver, (*signals, *mechanism.receiver.estimate(chain, v)), u, seed, n_threads)


def sample_channels(sources: ChannelSources, seed: int, out: Array, n_threads: int, first: int = 0) -> None:
    """Fill `out` (channels, streams, time) with the streams first, first + 1, ... of sources."""
    chain = Chain()
    for u in sources.add_to(chain):
        chain.write(u)
    execute(chain, *out.shape[1:], seed=seed, first=first, out=out, n_threads=n_threads)


def simulate_channels(mechanism: AnyCompiledChannels, u: Array, seed: int, n_threads: int) -> Array:
    """Return v and estimates (signals, streams, time) for inputs (channels, streams, time)."""
    chain = Chain()
    v = mechanism.privatize(chain, tuple(chain.read(i) for i in range(len(u))), None)
    signals = *(x for x in v if x is not None), *mechanism.estimate(chain, v)
    for signal in signals:
        chain.write(signal)
    out = np.empty((len(signals), *u.shape[1:]))
    execute(chain, *u.shape[1:], seed=seed, x=u, out=out, n_threads=n_threads)
    return out


class BuiltStudy(NamedTuple):
    """All mechanisms of a study as one chain, which many runs share, and the samples of a stream that they need."""

    chain: Chain
    length: int
    n_samples: int  # those that count

    def squared_errors(
        self, n_streams: int, seed: int, n_threads: int, advance: Callable[[int], None] | None = None, first: int = 0
    ) -> Array:
        """Simulate the streams first, first + 1, ...; return mean squared errors (streams, mechanisms + compared).

        Behind them are the mean squared differences of those that are compared. `advance` hears of samples that are
        done.
        """
        n, length = n_streams, self.length
        result = execute(self.chain, n, length, seed=seed, first=first, n_threads=n_threads, advance=advance)
        return result.totals / self.n_samples


class CompiledStudy(NamedTuple):
    """A source, mechanisms, and the window of y in which errors count, to be simulated together.

    compared : those of the mechanisms whose posterior mean is compared with their linear receiver, too.
    """

    source: SignalSource
    mechanisms: tuple[CompiledChain, ...]
    burn_in: int
    n_samples: int
    dtype: DTypeLike = np.float64
    compared: tuple[int, ...] = ()

    def build_chain(self) -> BuiltStudy:
        """Build all mechanisms on one input, and count the samples that they need."""
        chain, window = Chain(self.dtype), range(self.burn_in, self.burn_in + self.n_samples)
        u = self.source.add_to(chain)
        noise = chain.normals(NOISE) if len(self.mechanisms) > 1 else None
        length, released = 0, []
        for mechanism in self.mechanisms:
            released.append(privatize(chain, mechanism, u, noise))
            x = chain.shift(u, -mechanism.centre)
            length = max(length, mechanism.receiver.square_errors(chain, released[-1], x, window))
        for i in self.compared:
            receiver: Any = self.mechanisms[i].receiver
            receiver.square_differences(chain, released[i], window)
        return BuiltStudy(chain, length, self.n_samples)


class CompiledChannelsStudy(NamedTuple):
    """Sources of several channels, mechanisms of them, and the window in which errors count; all outputs of each."""

    sources: ChannelSources
    mechanisms: tuple[AnyCompiledChannels, ...]
    burn_in: int
    n_samples: int
    dtype: DTypeLike = np.float64

    def build_chain(self) -> BuiltStudy:
        """Build all mechanisms on the same inputs, and count the samples that they need."""
        chain, window = Chain(self.dtype), range(self.burn_in, self.burn_in + self.n_samples)
        u, length = self.sources.add_to(chain), 0
        n_noises = max(x.n_noises for x in self.mechanisms) if len(self.mechanisms) > 1 else 0
        noise = tuple(chain.normals(of_channel(NOISE, i)) for i in range(n_noises)) or None
        for mechanism in self.mechanisms:
            released = mechanism.privatize(chain, u, noise)
            x = tuple(chain.shift(signal, -centre) for signal, centre in zip(u, mechanism.centres, strict=True))
            length = max(length, mechanism.square_errors(chain, released, x, window))
        return BuiltStudy(chain, length, self.n_samples)


def squared_errors(
    study: CompiledStudy | CompiledChannelsStudy,
    n_streams: int,
    seed: int,
    n_threads: int,
    advance: Callable[[int], None] | None = None,
    first: int = 0,
) -> Array:
    """Simulate a study that runs but once: build its chain, and run it."""
    return study.build_chain().squared_errors(n_streams, seed, n_threads, advance, first)
