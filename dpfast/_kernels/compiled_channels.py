"""Compile mechanisms of several streams together to stages of a chain: what is published, and estimates of outputs.

    sources ──► prefilters ──► + noises ──► receivers ──► errors against the delayed outputs of the target

Every channel has generators of its own; the first ones are those of one stream alone, which gives the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dpfast._kernels.chain_builder import Chain, Term
from dpfast._kernels.compiled_mechanisms import CompiledBlockMechanism
from dpfast._kernels.compiled_receivers import CompiledPeriodicKalman, count_multiply_adds
from dpfast._kernels.factors import UNITY, FilterRow
from dpfast._kernels.simulated_noise import NOISE, of_channel
from dpfast._kernels.state_space_pass import StateSpace

CompiledSystem = tuple[FilterRow, ...] | StateSpace  # a matrix of filters: its entries, or the state that they share


class CompiledChannels(NamedTuple):
    """A mechanism of filters: v = G (u - centres) + noise_std · n, estimates H v + F centres, `lag` samples late."""

    centres: tuple[float, ...]
    prefilter: CompiledSystem
    noise_std: float
    receiver: CompiledSystem
    target: CompiledSystem
    lag: int

    @property
    def n_noises(self) -> int:
        """The number of signals of unit noise that it takes."""
        return count_outputs(self.prefilter)

    @property
    def cost(self) -> float:
        """The multiply-adds for a sample of all channels, about."""
        return sum(_count_of_system(x) for x in (self.prefilter, self.receiver, self.target))

    def privatize(self, chain: Chain, u: tuple[int, ...], noise: tuple[int, ...] | None) -> tuple[int, ...]:
        """Add v to a chain, by the only stages that see u; `noise` are signals of unit noise, None for its own."""
        x = tuple(chain.shift(signal, -centre) for signal, centre in zip(u, self.centres, strict=True))
        terms = [
            Term(self.noise_std, None if noise is None else noise[i], purpose=of_channel(NOISE, i))
            for i in range(self.n_noises)
        ]
        return run_system(chain, self.prefilter, x, terms)

    def estimate(self, chain: Chain, v: tuple[int | None, ...]) -> tuple[int, ...]:
        """Add the estimates to a chain."""
        signals, offsets = (
            tuple(x for x in v if x is not None),
            mean_outputs(chain, self.target, self.centres, self.lag),
        )
        return run_system(chain, self.receiver, signals, [None if x is None else Term(1.0, x) for x in offsets])

    def square_errors(self, chain: Chain, v: tuple[int | None, ...], x: tuple[int, ...], window: range) -> int:
        """Sum the squared errors of each estimate of F x for centred x; return the samples that this takes.

        Known means go out of both: F (x + centres) - (H v + F centres) = F x - H v.
        """
        signals, late = tuple(x for x in v if x is not None), range(window.start + self.lag, window.stop + self.lag)
        y = run_system(chain, self.target, x)
        run_system(chain, self.receiver, signals, [Term(-1.0, signal, self.lag) for signal in y], square=late)
        return late.stop


class CompiledBlockChannels(NamedTuple):
    """Block sums of each input, and for each output a receiver of those of every input; None where there is none."""

    centres: tuple[float, ...]
    columns: tuple[CompiledBlockMechanism | None, ...]
    receivers: tuple[tuple[CompiledPeriodicKalman | None, ...], ...]
    target: CompiledSystem
    lag: int

    @property
    def n_noises(self) -> int:
        """None, as its noise is its own."""
        return 0

    @property
    def cost(self) -> float:
        """The multiply-adds for a sample of all channels, about."""
        receivers = (x.cost for row in self.receivers for x in row if x is not None)
        return sum(receivers) + _count_of_system(self.target)

    def privatize(self, chain: Chain, u: tuple[int, ...], noise: tuple[int, ...] | None) -> tuple[int | None, ...]:
        """Add what is released of each input to a chain, by the only stages that see u; its noise is its own."""
        inputs = enumerate(zip(self.columns, u, strict=True))
        return tuple(None if x is None else x.privatize(chain, signal, None, i)[0] for i, (x, signal) in inputs)

    def estimate(self, chain: Chain, v: tuple[int | None, ...]) -> tuple[int, ...]:
        """Add the estimates to a chain: what the sums say, and what the means come to."""
        offsets, found = mean_outputs(chain, self.target, self.centres, self.lag), []
        for row, offset in zip(self.receivers, offsets, strict=True):
            estimates = self._add_up(chain, row, v)
            found.append(estimates if offset is None else chain.add(estimates, Term(1.0, offset)))
        return tuple(found)

    def _add_up(self, chain: Chain, row: tuple[CompiledPeriodicKalman | None, ...], v: tuple[int | None, ...]) -> int:
        """Add what the sums of every input say of a centred output."""
        pairs = zip(row, v, strict=True)
        parts = [chain.estimate(x.filter(), (signal,)) for x, signal in pairs if x is not None and signal is not None]
        total, *others = parts or [chain.step(0.0, 0)]
        for part in others:
            total = chain.add(total, Term(1.0, part))
        return total

    def square_errors(self, chain: Chain, v: tuple[int | None, ...], x: tuple[int, ...], window: range) -> int:
        """Sum the squared errors of each estimate, as filters do."""
        late = range(window.start + self.lag, window.stop + self.lag)
        for row, y in zip(self.receivers, run_system(chain, self.target, x), strict=True):
            chain.filter(UNITY, self._add_up(chain, row, v), plus=Term(-1.0, y, self.lag), square=late)
        return late.stop


AnyCompiledChannels = CompiledChannels | CompiledBlockChannels


def count_outputs(system: CompiledSystem) -> int:
    """Count the outputs of a system."""
    return len(system.d) if isinstance(system, StateSpace) else len(system)


def _count_of_system(system: CompiledSystem) -> int:
    """Count the multiply-adds for a sample by all entries of a matrix, or by the matrices of a state space."""
    if isinstance(system, StateSpace):
        return sum(int(np.count_nonzero(x)) for x in system)
    return sum(count_multiply_adds(x) for row in system for x in row if x is not None)


def run_system(
    chain: Chain,
    system: CompiledSystem,
    signals: tuple[int, ...],
    plus: Sequence[Term | None] | None = None,
    *,
    square: range | None = None,
) -> tuple[int, ...]:
    """Add the outputs of a system, with a term added to each; `square` as of a filter. Bare outputs are made once."""
    terms = [None] * count_outputs(system) if plus is None else plus
    if not isinstance(system, StateSpace):
        if plus is None and square is None:
            return tuple(chain.filter_sum_once(row, signals) for row in system)
        rows = zip(system, terms, strict=True)
        return tuple(chain.filter_sum(row, signals, plus=term, square=square) for row, term in rows)
    outputs = chain.run_system(system, tuple(chain.filter(UNITY, x) for x in signals))  # copies: side by side
    if plus is None and square is None:
        return outputs
    pairs = zip(outputs, terms, strict=True)
    return tuple(chain.filter(UNITY, x, plus=term, square=square) for x, term in pairs)


def mean_outputs(chain: Chain, target: CompiledSystem, means: tuple[float, ...], lag: int) -> tuple[int | None, ...]:
    """Add what a target makes of means that begin when the first estimate is due; None where all are zero."""
    if not any(means):
        return (None,) * count_outputs(target)
    return run_system(chain, target, tuple(chain.step(x, lag) for x in means))
