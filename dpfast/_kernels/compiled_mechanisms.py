"""Compile mechanisms to stages of a chain, which publish and receive: one form for each kind of noise."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpfast._kernels.block_sums import BlockSums
from dpfast._kernels.chain_builder import Chain, Term
from dpfast._kernels.compiled_receivers import (
    STAGE_COST,
    CompiledBlockReceiver,
    CompiledFollower,
    CompiledReceiver,
    count_multiply_adds,
)
from dpfast._kernels.factors import Factors
from dpfast._kernels.integer_draws import IntegerTable
from dpfast._kernels.randomized_response import TwoLevelResponse
from dpfast._kernels.shared_draws import SharedTable
from dpfast._kernels.simulated_noise import RELEASE, of_channel
from dpfast._kernels.tree_draws import TreeTable

Array = NDArray[np.float64]

DRAW_COST = 8  # multiply-adds that noise of its own costs


class NoiseSteps(NamedTuple):
    """Noise of steps: how often it is not zero, and the least and the largest size that it has then, on an input."""

    chance: float
    least: float
    largest: float


class CompiledMechanism(NamedTuple):
    """A mechanism to be simulated: v = G (u - centre) + noise_std · n, and the receiver of v."""

    centre: float
    prefilter: Factors
    noise_std: float
    receiver: CompiledReceiver

    @property
    def cost(self) -> float:
        """The multiply-adds that it takes for a sample, about."""
        return count_multiply_adds(self.prefilter) + self.receiver.cost

    @property
    def horizon(self) -> None:
        """None, as it runs without an end."""

    @property
    def noise_steps(self) -> None:
        """None, as its noise is never zero."""

    def as_chain(self) -> CompiledMechanism:
        """Return the mechanism itself, as it is a chain of filters."""
        return self

    def as_matrices(self) -> None:
        """None, as it is no mechanism of matrices."""

    def privatize(self, chain: Chain, u: int, noise: int | None) -> int:
        """Add v to a chain, by the only stages that see u; `noise` is a signal of unit noise, None for its own."""
        return chain.filter(self.prefilter, chain.shift(u, -self.centre), plus=Term(self.noise_std, noise))


class CompiledBlock(NamedTuple):
    """A level of block sums: how long they are, and its noise, as P(N ≥ step), P(N ≥ 2 step), ... .

    The inputs of a block have weights in its sum, or none for ones; it begins and ends so many samples later than
    those of a receiver.
    """

    length: int
    tails: Array
    step: float
    weights: tuple[float, ...] = ()
    late: int = 0
    shared: SharedTable | TreeTable | None = None  # noise that the blocks of a group share, in place of the other

    def total_weight(self, n: int) -> float:
        """Sum the weights of the first n inputs of a block."""
        return sum(self.weights[:n]) if self.weights else n

    def table(self) -> IntegerTable:
        """Return the table that noise is drawn by."""
        return IntegerTable.from_tails(self.tails, self.step)

    def steps(self, unit: float) -> NoiseSteps:
        """Return how often its noise is not zero, and how large it is then with this unit."""
        return NoiseSteps(2 * float(self.tails[0]), unit * self.step, unit * self.step * len(self.tails))


class CompiledBlockMechanism(NamedTuple):
    """Block sums of u in units, with noise on each, and the receiver of them; `n_steps` of a horizon."""

    centre: float
    blocks: tuple[CompiledBlock, ...]
    offset: float
    unit: float
    rounds: bool
    receiver: CompiledBlockReceiver
    n_steps: int | None

    @property
    def cost(self) -> float:
        """The multiply-adds that it takes for a sample, about."""
        return STAGE_COST * len(self.blocks) + self.receiver.cost

    @property
    def horizon(self) -> int | None:
        """The steps that it is made for; None without an end."""
        return self.n_steps

    @property
    def noise_steps(self) -> NoiseSteps:
        """Tell how often a draw of the noise of its first level is not zero, and how large it is then."""
        return self.blocks[0].steps(self.unit)

    def as_chain(self) -> CompiledBlockMechanism:
        """Return the mechanism itself, as it is a chain of stages."""
        return self

    def as_matrices(self) -> None:
        """None, as it is no mechanism of matrices."""

    def privatize(self, chain: Chain, u: int, noise: int | None, channel: int = 0) -> tuple[int, ...]:
        """Add all that is released to a chain, by the only stages that see u; its noise is its own."""
        off_centre, released = self.offset - self.centre, []
        for level, block in enumerate(self.blocks):
            phase = (self.receiver.phase - block.late) % block.length
            shift = block.total_weight(block.length) * off_centre
            before = -block.total_weight(phase) * off_centre / self.unit
            sums = BlockSums(block.length, phase, self.offset, self.unit, shift, before, self.rounds, block.weights)
            purpose = of_channel(RELEASE + level, channel)
            released.append(chain.release(sums, block.table(), purpose, u, block.shared))
        return tuple(released)


class CompiledAdaptiveMechanism(NamedTuple):
    """Block sums whose partition reacts to what was published, and the posterior mean behind them; one law of noise."""

    centre: float
    noise: CompiledBlock
    receiver: CompiledFollower

    @property
    def cost(self) -> float:
        """The multiply-adds that it takes for a sample, about."""
        return DRAW_COST + 2 * self.receiver.cost

    @property
    def horizon(self) -> int | None:
        """The steps that it is made for; None without an end."""
        return self.receiver.partition.n_steps

    @property
    def noise_steps(self) -> NoiseSteps:
        """Tell how often a draw of its noise is not zero, and how large it is then."""
        return self.noise.steps(self.receiver.partition.unit)

    def as_chain(self) -> CompiledAdaptiveMechanism:
        """Return the mechanism itself, as it is a chain of stages."""
        return self

    def as_matrices(self) -> None:
        """None, as it is no mechanism of matrices."""

    def privatize(self, chain: Chain, u: int, noise: int | None) -> int:
        """Add all that is released to a chain, by the only stage that sees u; its noise is its own."""
        return chain.publish(self.receiver.partition, self.noise.table(), RELEASE, u)


class CompiledLatticeMechanism(NamedTuple):
    """Every input in units with integer noise, less a mean, and the receiver of it."""

    centre: float
    noise: CompiledBlock
    offset: float
    unit: float
    rounds: bool
    receiver: CompiledReceiver

    @property
    def cost(self) -> float:
        """The multiply-adds that it takes for a sample, about."""
        return DRAW_COST + self.receiver.cost

    @property
    def horizon(self) -> None:
        """None, as it runs without an end."""

    @property
    def noise_steps(self) -> NoiseSteps:
        """Tell how often a draw of its noise is not zero, and how large it is then."""
        return self.noise.steps(self.unit)

    def as_chain(self) -> CompiledLatticeMechanism:
        """Return the mechanism itself, as it is a chain of stages."""
        return self

    def as_matrices(self) -> None:
        """None, as it is no mechanism of matrices."""

    def privatize(self, chain: Chain, u: int, noise: int | None) -> int:
        """Add v to a chain, by the only stage that sees u; its noise is its own."""
        sums = BlockSums(1, 0, self.offset, self.unit, self.offset - self.centre, 0.0, self.rounds)
        return chain.release(sums, self.noise.table(), RELEASE, u)


class CompiledLaplaceMechanism(NamedTuple):
    """Every input with Laplace noise of a scale, less a mean, and the receiver of it."""

    centre: float
    scale: float
    receiver: CompiledReceiver

    @property
    def cost(self) -> float:
        """The multiply-adds that it takes for a sample, about."""
        return DRAW_COST + self.receiver.cost

    @property
    def horizon(self) -> None:
        """None, as it runs without an end."""

    @property
    def noise_steps(self) -> None:
        """None, as its noise is never zero."""

    def as_chain(self) -> CompiledLaplaceMechanism:
        """Return the mechanism itself, as it is a chain of stages."""
        return self

    def as_matrices(self) -> None:
        """None, as it is no mechanism of matrices."""

    def privatize(self, chain: Chain, u: int, noise: int | None) -> int:
        """Add v to a chain, by the only stage that sees u; its noise is its own."""
        return chain.add(chain.shift(u, -self.centre), Term(self.scale, chain.laplace(RELEASE)))


class CompiledResponseMechanism(NamedTuple):
    """Randomised response to every input of two levels, less a mean, and the receiver of it."""

    centre: float
    response: TwoLevelResponse
    receiver: CompiledReceiver

    @property
    def cost(self) -> float:
        """The multiply-adds that it takes for a sample, about."""
        return DRAW_COST + self.receiver.cost

    @property
    def horizon(self) -> None:
        """None, as it runs without an end."""

    @property
    def noise_steps(self) -> NoiseSteps:
        """Tell how often a draw of its noise is not zero, and how large it is then."""
        return NoiseSteps(1 - self.response.true, *[self.response.told_size + self.response.true_size] * 2)

    def as_chain(self) -> CompiledResponseMechanism:
        """Return the mechanism itself, as it is a chain of stages."""
        return self

    def as_matrices(self) -> None:
        """None, as it is no mechanism of matrices."""

    def privatize(self, chain: Chain, u: int, noise: int | None) -> int:
        """Add v to a chain, by the only stage that sees u; its chance is its own."""
        shifted = self.response._replace(shift=self.response.shift - self.centre)
        return chain.respond(shifted, RELEASE, u)


CompiledChain = (
    CompiledMechanism
    | CompiledBlockMechanism
    | CompiledAdaptiveMechanism
    | CompiledLatticeMechanism
    | CompiledLaplaceMechanism
    | CompiledResponseMechanism
)
