"""Compile mechanisms of several streams together to stages of a chain: what is published, and estimates of outputs.

    sources ──► prefilters ──► + noises ──► receivers ──► errors against the delayed outputs of the target

Every channel has generators of its own; the first ones are those of one stream alone, which gives the same bits.
"""

from __future__ import annotations

from typing import NamedTuple

from dpfast._kernels.chain_builder import Chain, Term
from dpfast._kernels.compiled_mechanisms import CompiledBlockMechanism
from dpfast._kernels.compiled_receivers import CompiledPeriodicKalman
from dpfast._kernels.factors import UNITY, FilterRow
from dpfast._kernels.simulated_noise import NOISE, of_channel

Entries = tuple[FilterRow, ...]


class CompiledChannels(NamedTuple):
    """A mechanism of filters: v = G (u - centres) + noise_std · n, estimates H v + F centres, `lag` samples late."""

    centres: tuple[float, ...]
    prefilter: Entries
    noise_std: float
    receiver: Entries
    target: Entries
    lag: int

    @property
    def n_noises(self) -> int:
        """The number of signals of unit noise that it takes."""
        return len(self.prefilter)

    def privatize(self, chain: Chain, u: tuple[int, ...], noise: tuple[int, ...] | None) -> tuple[int, ...]:
        """Add v to a chain, by the only stages that see u; `noise` are signals of unit noise, None for its own."""
        x = tuple(chain.shift(signal, -centre) for signal, centre in zip(u, self.centres, strict=True))
        found = []
        for i, row in enumerate(self.prefilter):
            drawn = None if noise is None else noise[i]
            found.append(chain.filter_sum(row, x, plus=Term(self.noise_std, drawn, purpose=of_channel(NOISE, i))))
        return tuple(found)

    def estimate(self, chain: Chain, v: tuple[int | None, ...]) -> tuple[int, ...]:
        """Add the estimates to a chain."""
        signals, means = tuple(x for x in v if x is not None), mean_signals(chain, self.centres, self.lag)
        found = []
        for receiver, target in zip(self.receiver, self.target, strict=True):
            offset = None if means is None else Term(1.0, chain.filter_sum(target, means))
            found.append(chain.filter_sum(receiver, signals, plus=offset))
        return tuple(found)

    def square_errors(self, chain: Chain, v: tuple[int | None, ...], x: tuple[int, ...], window: range) -> int:
        """Sum the squared errors of each estimate of F x for centred x; return the samples that this takes.

        Known means go out of both: F (x + centres) - (H v + F centres) = F x - H v.
        """
        signals, late = tuple(x for x in v if x is not None), range(window.start + self.lag, window.stop + self.lag)
        for receiver, target in zip(self.receiver, self.target, strict=True):
            y = chain.filter_sum_once(target, x)
            chain.filter_sum(receiver, signals, plus=Term(-1.0, y, self.lag), square=late)
        return late.stop


class CompiledBlockChannels(NamedTuple):
    """Block sums of each input, and for each output a receiver of those of every input; None where there is none."""

    centres: tuple[float, ...]
    columns: tuple[CompiledBlockMechanism | None, ...]
    receivers: tuple[tuple[CompiledPeriodicKalman | None, ...], ...]
    target: Entries
    lag: int

    @property
    def n_noises(self) -> int:
        """None, as its noise is its own."""
        return 0

    def privatize(self, chain: Chain, u: tuple[int, ...], noise: tuple[int, ...] | None) -> tuple[int | None, ...]:
        """Add what is released of each input to a chain, by the only stages that see u; its noise is its own."""
        inputs = enumerate(zip(self.columns, u, strict=True))
        return tuple(None if x is None else x.privatize(chain, signal, None, i)[0] for i, (x, signal) in inputs)

    def estimate(self, chain: Chain, v: tuple[int | None, ...]) -> tuple[int, ...]:
        """Add the estimates to a chain: what the sums say, and what the means come to."""
        means, found = mean_signals(chain, self.centres, self.lag), []
        for row, target in zip(self.receivers, self.target, strict=True):
            estimates = self._add_up(chain, row, v)
            offset = None if means is None else Term(1.0, chain.filter_sum(target, means))
            found.append(estimates if offset is None else chain.add(estimates, offset))
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
        for row, target in zip(self.receivers, self.target, strict=True):
            y, estimates = chain.filter_sum_once(target, x), self._add_up(chain, row, v)
            chain.filter(UNITY, estimates, plus=Term(-1.0, y, self.lag), square=late)
        return late.stop


AnyCompiledChannels = CompiledChannels | CompiledBlockChannels


def mean_signals(chain: Chain, means: tuple[float, ...], lag: int) -> tuple[int, ...] | None:
    """Add means that begin when the first estimate is due; None where all are zero."""
    return tuple(chain.step(x, lag) for x in means) if any(means) else None
