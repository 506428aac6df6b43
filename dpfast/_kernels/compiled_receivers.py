"""Compile receivers to stages of a chain, which make estimates for paths or sum squared errors."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpfast._kernels.block_sums import PeriodicFilter
from dpfast._kernels.chain_builder import Chain, Term
from dpfast._kernels.chain_execute import execute
from dpfast._kernels.equalizer import Equalizer
from dpfast._kernels.factors import UNITY, Factors
from dpfast._kernels.partition import Partition
from dpfast._kernels.posterior import PosteriorFilter

Array = NDArray[np.float64]

STAGE_COST = 4  # multiply-adds that a pass over a signal costs beside its own
_BOTH_WAYS = 3  # times as long take those of a smoother, which puts samples aside and begins far behind each block
_SCALAR = 4  # those of a lane alone, in multiply-adds of all lanes together


def count_multiply_adds(*filters: Factors | Equalizer) -> int:
    """Count the multiply-adds of filters for a sample: their coefficients, and what their passes take."""
    return sum(STAGE_COST + sum(x.size for x in part if isinstance(x, np.ndarray)) for part in filters)


class CompiledLinearReceiver(NamedTuple):
    """A receiver ŷ = H v + offset(t), the offset being `level` through the target, `lag` samples late."""

    factors: Factors
    target: Factors
    level: float
    lag: int

    @property
    def cost(self) -> float:
        """The multiply-adds that it takes for a sample, about."""
        return count_multiply_adds(self.factors, self.target)

    @property
    def equalizer(self) -> None:
        """None, as nothing is decided."""

    def estimate(self, chain: Chain, v: int) -> tuple[int, ...]:
        """Add the estimates to a chain."""
        if self.level == 0.0:
            return (chain.filter(self.factors, v),)
        offset = chain.filter(self.target, chain.step(self.level, self.lag))
        return (chain.filter(self.factors, v, plus=Term(1.0, offset)),)

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
    def cost(self) -> float:
        """The multiply-adds that it takes for a sample, about."""
        return _BOTH_WAYS * count_multiply_adds(self.forward, self.backward, self.target)

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

    @property
    def cost(self) -> float:
        """The multiply-adds that it takes for a sample, about."""
        return count_multiply_adds(self.equalizer, self.target)

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


class CompiledPeriodicKalman(NamedTuple):
    """A receiver of what block sums release: estimates of F u of a centred u, plus `level` through F, `lag` late."""

    advance: Array
    gains: Array
    weights: Array
    lengths: tuple[int, ...]
    phase: int
    target: Factors
    level: float
    lag: int
    offsets: tuple[int, ...] = ()

    @property
    def cost(self) -> float:
        """The multiply-adds that it takes for a sample, about."""
        n_states = int(self.advance.shape[-1])
        return (
            count_multiply_adds(self.target)
            + STAGE_COST
            + n_states
            + n_states * (n_states + len(self.lengths)) / self.filter().slot
        )

    @property
    def equalizer(self) -> None:
        """None, as nothing is decided."""

    def filter(self) -> PeriodicFilter:
        """Return the filter of a centred u, without what the level adds."""
        return PeriodicFilter(self.advance, self.gains, self.weights, self.lengths, self.phase, self.lag, self.offsets)

    def estimate(self, chain: Chain, released: tuple[int, ...]) -> tuple[int, ...]:
        """Add the estimates to a chain."""
        estimates = chain.estimate(self.filter(), released)
        if self.level == 0.0:
            return (estimates,)
        offset = chain.filter(self.target, chain.step(self.level, self.lag))
        return (chain.add(estimates, Term(1.0, offset)),)

    def complete(self, estimates: Array, n_threads: int) -> None:
        """Leave the estimates as they are, which are whole."""

    def square_errors(self, chain: Chain, released: tuple[int, ...], x: int, window: range) -> int:
        """Sum the squared errors, as a linear receiver does."""
        y, estimates = chain.filter_once(self.target, x), chain.estimate(self.filter(), released)
        late = range(window.start + self.lag, window.stop + self.lag)
        chain.filter(UNITY, estimates, plus=Term(-1.0, y, self.lag), square=late)
        return late.stop


class CompiledPosterior(NamedTuple):
    """A posterior mean of F u of a centred u, plus `level` through F, behind what block sums or responses release.

    Beside it is the linear receiver of the same, whose error is known: they are compared.
    """

    posterior: PosteriorFilter
    linear: Any  # a CompiledPeriodicKalman behind blocks, a CompiledLinearReceiver behind responses

    @property
    def target(self) -> Factors:
        """The target F that it estimates the output of."""
        target: Factors = self.linear.target
        return target

    @property
    def lag(self) -> int:
        """The samples by which the estimate is late."""
        return self.posterior.lag

    @property
    def phase(self) -> int:
        """The samples that the first block is shorter."""
        return self.posterior.phase

    @property
    def cost(self) -> float:
        """The multiply-adds that it takes for a sample, about."""
        p = self.posterior
        n, table = len(p.start), p.table
        late = max(0, p.lag + 1 - p.length)
        at_release = n * n * (1 + 2 * len(table.reach) + late) + n * table.reach.size
        return count_multiply_adds(self.target) + STAGE_COST + n + p.n_states + at_release / p.length

    @property
    def equalizer(self) -> None:
        """None, as nothing is decided."""

    def _centred(self, chain: Chain, released: tuple[int, ...] | int, *, states: bool = False) -> int:
        """Add the estimates about the mean to a chain, once."""
        v = released[0] if isinstance(released, tuple) else released
        return chain.estimate_posterior(self.posterior, v, states=states)

    def estimate(self, chain: Chain, released: tuple[int, ...] | int, *, states: bool = False) -> tuple[int, ...]:
        """Add the estimates to a chain; `states` as of a filter, those of the mean last."""
        estimates = self._centred(chain, released, states=states)
        if self.linear.level == 0.0:
            return (estimates,)
        offset = chain.filter(self.target, chain.step(self.linear.level, self.lag), states=states)
        return (chain.add(estimates, Term(1.0, offset)),)

    def ending_after(self, n_steps: int) -> CompiledPosterior:
        """Return the same behind what releases nothing beyond so many steps."""
        return self._replace(posterior=self.posterior._replace(n_steps=n_steps))

    def complete(self, estimates: Array, n_threads: int) -> None:
        """Leave the estimates as they are, which are whole."""

    def square_errors(self, chain: Chain, released: tuple[int, ...] | int, x: int, window: range) -> int:
        """Sum the squared errors, as a linear receiver does."""
        y, estimates = chain.filter_once(self.target, x), self._centred(chain, released)
        late = range(window.start + self.lag, window.stop + self.lag)
        chain.filter(UNITY, estimates, plus=Term(-1.0, y, self.lag), square=late)
        return late.stop

    def square_differences(self, chain: Chain, released: Any, window: range) -> None:
        """Sum the squared differences from the estimates of the linear receiver."""
        mean_free = self.linear._replace(level=0.0)
        linear, estimates = mean_free.estimate(chain, released)[0], self._centred(chain, released)
        late = range(window.start + self.lag, window.stop + self.lag)
        chain.filter(UNITY, estimates, plus=Term(-1.0, linear), square=late)


class CompiledFollower(NamedTuple):
    """A posterior mean of F u of a centred u, plus `level` through F, behind blocks that react to v."""

    partition: Partition
    target: Factors
    level: float

    @property
    def lag(self) -> int:
        """The samples by which the estimate is late."""
        return self.partition.lag

    @property
    def cost(self) -> float:
        """The multiply-adds that it takes for a sample, at most about."""
        p = self.partition
        n, per_sample = len(p.start), len(p.start) + p.n_states
        at_release = n * n * (1 + 2 * p.n_means + p.lag) + n * p.tables[0].reach.size
        return count_multiply_adds(self.target) + STAGE_COST + per_sample + _SCALAR * at_release

    @property
    def equalizer(self) -> None:
        """None, as nothing is decided."""

    def estimate(self, chain: Chain, released: int) -> tuple[int, ...]:
        """Add the estimates to a chain."""
        estimates = chain.follow(self.partition, released)
        if self.level == 0.0:
            return (estimates,)
        offset = chain.filter(self.target, chain.step(self.level, self.lag))
        return (chain.add(estimates, Term(1.0, offset)),)

    def complete(self, estimates: Array, n_threads: int) -> None:
        """Leave the estimates as they are, which are whole."""

    def square_errors(self, chain: Chain, released: int, x: int, window: range) -> int:
        """Sum the squared errors, as a linear receiver does."""
        y, estimates = chain.filter_once(self.target, x), chain.follow(self.partition, released)
        late = range(window.start + self.lag, window.stop + self.lag)
        chain.filter(UNITY, estimates, plus=Term(-1.0, y, self.lag), square=late)
        return late.stop


CompiledReceiver = CompiledLinearReceiver | CompiledSmoother | CompiledDecisionFeedback | CompiledPosterior
CompiledBlockReceiver = CompiledPeriodicKalman | CompiledPosterior
AnyCompiledReceiver = CompiledReceiver | CompiledPeriodicKalman | CompiledFollower
