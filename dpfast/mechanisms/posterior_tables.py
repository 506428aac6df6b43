r"""Make the tables of a posterior mean: what a block of a chain of levels tells, for every value that may be released.

Hidden at a step are the memory m of the chain, the sum σ of the block so far, and the states g of the target; of these
P(m, σ) and E[g; m, σ], from every memory before the block, follow step by step:

    P⁺(m', σ + l) = Σ_m P(m → l) P(m, σ),    E⁺[g; m', σ + l] = Σ_m P(m → l) (A E[g; m, σ] + b ũ_l P(m, σ)),

with m' the memory of the level l. A released v weighs them by P(N = v - σ), and the sum over σ is a row of the table.
"""

from __future__ import annotations

import collections
from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from dpfast._kernels.factors import Factors
from dpfast._kernels.posterior import BlockTable, PosteriorFilter
from dpfast._support.validation import Array
from dpfast.mechanisms.block_dynamics import small_state_space
from dpfast.mechanisms.chain_law import ChainLaw

MOST_NUMBERS = 2**22  # of a table
MOST_OPERATIONS = 2**30  # multiply-adds that make it
MOST_FOR_A_SAMPLE = 10**5
_AT_ONCE = 2**22  # numbers
FAR = 2.0**40  # sums beyond it, of noise without an end, count as that far


class _Moments(NamedTuple):
    """They are chance and means of a block, by memory before and behind, and by sum: (..., before, behind, sums)."""

    mass: Array
    states: Array  # (states, before, behind, sums)
    outputs: Array  # (steps, before, behind, sums)


class SumNoise(Protocol):
    """Noise on sums, as far as a posterior mean asks for it: an IntegerNoise is one."""

    @property
    def largest(self) -> int | None:
        """Return the largest |n| that can be drawn; None where there is none."""

    @property
    def period(self) -> int:
        """Return the integers after which its tails are the same but for a factor, where they have no end."""

    def log_probability(self, n: NDArray[np.int64]) -> Array:
        """Return ln P(N = n) of integers, minus infinity outside of the support."""


class TableMaker(NamedTuple):
    """It makes tables, and has what all those of a mechanism have in common."""

    law: ChainLaw
    mean: float
    offset: float
    unit: float
    target: Factors

    @property
    def steps(self) -> NDArray[np.int64]:
        """The levels in steps above the lowest one."""
        return np.rint((self.law.levels - self.offset) / self.unit).astype(np.int64)

    def operations_for_a_sample(self, length: int, lag: int) -> float:
        """Count the multiply-adds that a sample costs, of blocks of a length."""
        n, n_states = len(self.law.start), len(small_state_space(self.target)[0])
        means = 1 + n_states + min(length, lag + 1)
        return n * n * (2 * means + lag + n_states**2) / length

    def check_cost(self, length: int, lag: int, beyond: int) -> None:
        """Refuse a posterior that would take too much memory, or too long to make or to run."""
        n, n_states, n_levels = len(self.law.start), len(small_state_space(self.target)[0]), len(self.law.levels)
        means, sums = 1 + n_states + min(length, lag + 1), length * int(self.steps.max()) + 1
        numbers = (sums + 2 * beyond + 1) * n * n * means
        operations = sums * (numbers + length * n_levels * n * n * (means + n_states**2))
        for what, found, most in (
            ("numbers in its tables", numbers, MOST_NUMBERS),
            ("multiply-adds to make them", operations, MOST_OPERATIONS),
            ("multiply-adds for a sample", self.operations_for_a_sample(length, lag), MOST_FOR_A_SAMPLE),
        ):
            if found > most:
                raise ValueError(
                    f'receiver must be "linear" here: "bayes" would take {found:.2g} {what}, more than {most:.2g}, for '
                    f"{n_levels} levels over {self.steps.max() + 1} units, blocks of {length}, a target "
                    f"of {n_states} states and a lag of {lag}: take shorter blocks, a coarser alphabet, a shorter "
                    "target or a smaller lag"
                )

    def walk(self, length: int, lag: int) -> _Moments:
        """Go through a block, from each memory; keep the outputs that a lag still asks for behind it."""
        return collections.deque(self.walks(length, lag), maxlen=1).pop()

    def walks(self, longest: int, lag: int) -> Iterator[_Moments]:
        """Go through a block, from each memory: what is known of it behind 1, 2, ... steps."""
        transition, memory, _, levels = self.law
        a, b, c, d = small_state_space(self.target)
        n, reach = len(transition), int(self.steps.max())
        size = longest * reach + 1
        now = _Moments(np.zeros((n, n, size)), np.zeros((len(a), n, n, size)), np.zeros((0, n, n, size)))
        now.mass[range(n), range(n), 0] = 1.0
        for i in range(longest):
            output = np.tensordot(c, now.states, 1)
            outputs = np.concatenate([now.outputs[int(i > lag) :], output])
            before = _Moments(now.mass, np.tensordot(a, now.states, 1), outputs)
            now = _Moments(*map(np.zeros_like, before))
            for level, (m, step) in enumerate(zip(memory, self.steps, strict=True)):
                u, stop = levels[level] - self.mean, size - step
                mass, states, recent = (_arrive(x[..., :stop], transition[:, level]) for x in before)
                now.mass[:, m, step:] += mass
                now.states[:, :, m, step:] += states + b[:, :, None] * (u * mass)
                now.outputs[:, :, m, step:] += recent
                now.outputs[-1, :, m, step:] += d[0, 0] * u * mass
            yield _Moments(*(x[..., : (i + 1) * reach + 1] for x in now))

    def table(self, moments: _Moments, likelihoods: Iterable[Array], length: int, shift: float) -> BlockTable:
        """Weigh a block by the likelihoods (observations, sums) of what may be observed, and by nothing."""
        n, top = len(self.law.start), moments.mass.shape[-1] - 1
        parts = np.concatenate([moments.mass[None], moments.states, moments.outputs]).reshape(-1, top + 1)
        rows = np.vstack([*(x @ parts.T for x in likelihoods), parts.sum(axis=1)])
        largest = rows[:, : n * n].max(axis=1, keepdims=True)
        rows = np.divide(rows, largest, out=np.zeros_like(rows), where=largest > 0)
        a, _, c, _ = small_state_space(self.target)
        recent, power = [], np.eye(len(a))
        for i in range(length):
            if i >= length - len(moments.outputs):
                recent.append(c @ power)
            power = power @ a
        return BlockTable(rows, np.vstack([power, *recent]), length, top, shift)

    def predictions(self, n: int) -> Array:
        """Return the weights of memories and states in the outputs of the n steps behind a release."""
        transition, memory, _, levels = self.law
        a, b, c, d = small_state_space(self.target)
        behind = np.zeros((len(transition), len(transition)))  # of memories
        np.add.at(behind.T, memory, transition.T)
        mean = transition @ (levels - self.mean)  # of the next input
        inputs, found, power = np.empty((n, len(transition))), [], np.eye(len(a))
        ahead = mean
        for i in range(n):
            inputs[i], ahead = ahead, behind @ ahead
        response = np.array([d[0, 0], *_impulse(a, b, c, n - 1)])[:n]
        for i in range(n):
            found.append(np.append(response[: i + 1][::-1] @ inputs[: i + 1], c[0] @ power))
            power = power @ a
        return np.array(found).reshape(n, len(transition) + len(a))


def _arrive(x: Array, chance: Array) -> Array:
    """Go from each memory to a level with its chance: (..., before, behind, sums) to (..., before, sums)."""
    return np.asarray(np.einsum("...jk,j->...k", x, chance))


def _impulse(a: Array, b: Array, c: Array, n: int) -> list[float]:
    """Return the first responses of a state space behind the direct one."""
    found, state = [], b[:, 0]
    for _ in range(n):
        found.append(float(c[0] @ state))
        state = a @ state
    return found


# --- behind sums ------------------------------------------------------------------------------------


def weighted_period(noise: SumNoise) -> int:
    """Count the sums beyond the least and the largest one that have weights of their own, and one.

    Those farther away have the weights of one of these: period after period, or none where the noise has an end.
    """
    return noise.period if noise.largest is None else noise.largest + 2


def sum_weights(noise: SumNoise, top: int) -> Iterator[Array]:
    """Yield P(N = v - σ), up to a factor of each v, of all v with weights of their own and all σ up to the top."""
    beyond = weighted_period(noise) - 1
    seen, at_once = np.arange(-beyond, top + beyond + 1), max(1, _AT_ONCE // (top + 1))
    for first in range(0, len(seen), at_once):
        logs = noise.log_probability(seen[first : first + at_once, None] - np.arange(top + 1))
        largest = logs.max(axis=1, keepdims=True)
        yield np.exp(logs - np.where(np.isfinite(largest), largest, 0.0))


def block_posterior(
    maker: TableMaker, noise: SumNoise, length: int, phase: int, lag: int, n_steps: int | None = None
) -> PosteriorFilter:
    """Make the posterior mean behind sums of blocks, of which those of a horizon may leave a rest unpublished."""
    period, off_mean = weighted_period(noise), maker.offset - maker.mean
    maker.check_cost(length, lag, period - 1)

    def table(n: int) -> BlockTable:
        moments = maker.walk(n, lag)
        return maker.table(moments, sum_weights(noise, moments.mass.shape[-1] - 1), n, n * off_mean)

    whole = table(length)
    return PosteriorFilter(
        first=table(length - phase) if phase else whole,
        table=whole,
        predictions=maker.predictions(max(0, length - 1 - lag) if n_steps is None else length),
        start=maker.law.start,
        n_states=len(small_state_space(maker.target)[0]),
        length=length,
        phase=phase,
        lag=lag,
        unit=maker.unit,
        period=period,
        farthest=FAR if noise.largest is None else period - 1.0,
        boundaries=np.empty(0),
        n_steps=n_steps,
    )


def response_posterior(
    maker: TableMaker, outcomes: Array, boundaries: Array, lag: int, n_steps: int | None = None
) -> PosteriorFilter:
    """Make the posterior mean behind responses to two levels, with their probabilities (outcomes, levels).

    The outcomes, and the boundaries between them, grow. Beyond so many steps responses tell nothing.
    """
    maker.check_cost(1, lag, len(outcomes))
    table = maker.table(maker.walk(1, lag), [outcomes], 1, 0.0)
    return PosteriorFilter(
        first=table,
        table=table,
        predictions=maker.predictions(0 if n_steps is None else 1),
        start=maker.law.start,
        n_states=len(small_state_space(maker.target)[0]),
        length=1,
        phase=0,
        lag=lag,
        unit=1.0,
        period=1,
        farthest=0.0,
        boundaries=boundaries,
        n_steps=n_steps,
    )
