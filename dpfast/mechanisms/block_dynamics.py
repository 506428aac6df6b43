r"""Signal, target and block sums as one linear system, and the exact errors of what estimates from the sums.

State x_t = (s_t; g_t; y_t; the sums of the input since each level's block began), x_t = M x_{t-1} + w_t, with s and g
the states of the signal's shaping filter and of the target, and y_t = h x_t the output that is wanted. Where sums are
weighed, M and w depend on the step of the block: what the input adds to a sum is multiplied by the weight of the step.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dpfast._kernels.factors import Factors
from dpfast._support.validation import Array
from dpfast.filters.conversion import StateSpace, make_state_space
from dpfast.filters.state_space import gramian_root


class ReleaseSchedule(NamedTuple):
    """The times when sums are released.

    Attributes
    ----------
    lengths : tuple of int
        Of the blocks of each level, each a multiple of the one before; the same for several sums of a block.
    offsets : tuple of int
        Steps after the end of a block at which each sum is released; none where all are at its end.
    groups : tuple of int
        How many blocks, one after the other, share noise; and how many of these groups, and so on. None for noise of
        their own.
    """

    lengths: tuple[int, ...]
    offsets: tuple[int, ...] = ()
    groups: tuple[int, ...] = ()

    @property
    def slot(self) -> int:
        """The steps between two times at which anything may be released."""
        return math.gcd(*self.lengths, *self.offsets)

    @property
    def n_slots(self) -> int:
        """Count the slots after which all repeats."""
        return self.cycle // self.slot

    @property
    def cycle(self) -> int:
        """The steps after which all repeats."""
        return self.lengths[-1] * math.prod(self.groups)

    def n_ended(self, passed: int) -> int:
        """Count the levels of groups, from the least ones on, that end with so many samples."""
        sizes = itertools.accumulate(self.groups, operator.mul, initial=self.lengths[-1])
        return sum(passed % n == 0 for n in itertools.islice(sizes, 1, None))

    def due(self, passed: int) -> list[int]:
        """List the levels that are released after so many samples."""
        offsets = self.offsets or (0,) * len(self.lengths)
        return [k for k, (n, late) in enumerate(zip(self.lengths, offsets, strict=True)) if (passed - late) % n == 0]


class BlockSystem(NamedTuple):
    """A linear system whose last states are the sums of the input since each level's block began.

    Attributes
    ----------
    step : array, (n, n)
        M.
    noise : array, (n, n)
        Cov w.
    output : array, (n,)
        h.
    start : array, (n, n)
        The covariance before the first step: that of the signal alone.
    entry : array, (n,)
        What a constant added to the input adds to the state in one step.
    n_levels : int
    weights : array, (block, n_levels), optional
        Of the inputs of a block in each sum; all one by default. The matrices above are those for ones.
    common : tuple of float
        Where blocks share noise, what the noises of a group of each level have in common: the covariance of two of its
        blocks, less that of two of a group of the next level. There is then one more state before the sums for each
        level, of that variance, which may be below zero: what is computed from it is none the less right, as the
        covariances of all that is released are those of a law.
    """

    step: Array
    noise: Array
    output: Array
    start: Array
    entry: Array
    n_levels: int
    weights: Array | None = None
    common: tuple[float, ...] = ()

    @property
    def size(self) -> int:
        """Count the states."""
        return len(self.step)

    def sum_state(self, level: int) -> int:
        """Give the number of the state that is the sum of a level's block so far."""
        return self.size - self.n_levels + level

    @property
    def arrival(self) -> Array:
        """The step where a release comes, before it is looked at: what noises have in common enters the sum."""
        found = np.eye(self.size)
        found[-self.n_levels :, self.common_states(len(self.common))] = 1.0
        return found

    def common_states(self, n: int) -> slice:
        """Give the states of what the noises of a group have in common, for the n least levels of groups."""
        first = self.size - self.n_levels - len(self.common)
        return slice(first, first + n)

    def begin_groups(self, stays: Array, n: int) -> Array:
        """Return the covariance of what begins where the n least levels of groups end, whose own does not stay."""
        begins, here = np.zeros(self.size), self.common_states(n)
        stays[here], begins[here] = 0.0, self.common[:n]
        return np.diag(begins)

    def matrices(self, length: int) -> tuple[Array, Array, Array]:
        """Return M (length, n, n), Cov w and what a constant adds to the input (length, n) of each step of a block."""
        n = self.size
        if self.weights is None:
            over = ((length, n, n), (length, n, n), (length, n))
            step, noise, entry = map(np.broadcast_to, (self.step, self.noise, self.entry), over)
            return step, noise, entry
        scale, kept = np.ones((length, n)), np.zeros((n, n))
        scale[:, n - self.n_levels :] = self.weights
        sums = range(n - self.n_levels, n)
        kept[sums, sums] = 1.0  # the sum so far, which is not weighed again
        step = kept + scale[:, :, None] * (self.step - kept)
        return step, self.noise * scale[:, :, None] * scale[:, None, :], self.entry * scale

    def part(self, start: int, length: int) -> BlockSystem:
        """Return the system of so many steps of a block from a start on."""
        return self if self.weights is None else self._replace(weights=self.weights[start : start + length])


def build_system(
    shaping: Factors,
    target: Factors,
    n_levels: int,
    rounding: float = 0.0,
    weights: Array | None = None,
    common: tuple[float, ...] = (),
) -> BlockSystem:
    """Put signal, target and block sums together.

    Parameters
    ----------
    shaping, target : Factors
        Of the centred signal; of the target, which need not be stable over a horizon.
    n_levels : int
    rounding : float
        The variance of what rounding to multiples of the unit adds to an input before it is summed.
    weights : array, (block, n_levels), optional
        Of the inputs of a block in each sum.
    common : tuple of float
        What the noises of a group of each level have in common, where blocks share noise.
    """
    check_stretch(1, _most_states(shaping) + _most_states(target))  # before any of these matrices is made
    (a, drive, c, d), (a_f, b_f, c_f, d_f) = small_state_space(shaping), small_state_space(target)
    u = np.concatenate([c[0], d[0]])  # the input, of the signal's state before and of its drive
    n_signal, n_target = len(a), len(a_f)
    wanted = n_signal + n_target
    n = wanted + 1 + len(common) + n_levels
    both = np.zeros((n, n + 1))  # of the state before, and of the drive
    both[:n_signal, :n_signal], both[:n_signal, -1] = a, drive[:, 0]
    entry = np.zeros(n)
    entry[n_signal:wanted], entry[wanted], entry[n - n_levels :] = b_f[:, 0], d_f[0, 0], 1.0
    both[:, [*range(n_signal), -1]] += np.outer(entry, u)
    both[n_signal:wanted, n_signal:wanted] += a_f
    both[wanted, n_signal:wanted] += c_f[0]
    kept = range(wanted + 1, n)
    both[kept, kept] += 1.0
    noise = np.outer(both[:, -1], both[:, -1])
    noise[n - n_levels :, n - n_levels :] += rounding  # the output that is wanted is that of the input itself
    start = np.zeros((n, n))
    if n_signal:
        root = gramian_root(a, drive)
        start[:n_signal, :n_signal] = root.T @ root
    system = BlockSystem(both[:, :-1], noise, np.eye(1, n, wanted)[0], start, entry, n_levels, weights, common)
    return system._replace(start=start + system.begin_groups(np.ones(n), len(common)))


def _most_states(factors: Factors) -> int:
    return len(factors.taps) + 2 * len(factors.sections) + len(factors.recursion)


def small_state_space(factors: Factors) -> StateSpace:
    """Return the state space of a filter without the states that are always zero."""
    a, b, c, d = make_state_space(factors)
    while len(a) and not (used := np.hstack([a, b]).any(axis=1)).all():
        a, b, c = a[np.ix_(used, used)], b[used], c[:, used]
    return a, b, c, d


_MOST_NUMBERS = 2**27  # in the powers of a system over the steps of a block: a gigabyte


class Stretch(NamedTuple):
    """A system between two releases: x_i = steps[i] x_0 + noise and x_block = tails[i] x_i + noise, i = 0 ... block."""

    steps: Array  # (block + 1, size, size)
    noises: Array  # (block + 1, size, size), covariances
    tails: Array  # (block + 1, size, size)
    arrival: Array  # (size, size), what happens besides where the next release comes, before it is looked at

    @property
    def length(self) -> int:
        """Count the steps of the block."""
        return len(self.steps) - 1

    def first(self, length: int) -> Stretch:
        """Return the first steps alone, of a shorter block without weights."""
        steps = self.steps[: length + 1]
        return Stretch(steps, self.noises[: length + 1], steps[::-1], self.arrival)

    def carry(self, moments: Array, n: int) -> Array:
        """Carry second moments over n steps before a release, and to it; over all of them where inputs are weighed."""
        there = self.arrival @ self.steps[n]
        return np.asarray(there @ moments @ there.T + self.arrival @ self.noises[n] @ self.arrival.T)

    @classmethod
    def of(cls, system: BlockSystem, length: int) -> Stretch:
        """Compute products of the M of its steps, and the covariances of what is added, step by step."""
        check_stretch(length, system.size)
        step, noise, _ = system.matrices(length)
        steps = np.empty((length + 1, system.size, system.size))
        noises = np.empty_like(steps)
        steps[0], noises[0] = np.eye(system.size), 0.0
        for i in range(length):
            steps[i + 1] = step[i] @ steps[i]
            noises[i + 1] = step[i] @ noises[i] @ step[i].T + noise[i]
        if system.weights is None:
            return cls(steps, noises, steps[::-1], system.arrival)
        tails = np.empty_like(steps)
        tails[length] = np.eye(system.size)
        for i in range(length - 1, -1, -1):
            tails[i] = tails[i + 1] @ step[i]
        return cls(steps, noises, tails, system.arrival)


def find_stretches(system: BlockSystem, schedule: ReleaseSchedule) -> tuple[Stretch, ...]:
    """Find how the system goes on in each slot: one for all slots of inputs without weights."""
    slot = schedule.slot
    if system.weights is None:
        return (Stretch.of(system, slot),)
    check_stretch(len(system.weights), system.size)
    return tuple(Stretch.of(system.part(i * slot, slot), slot) for i in range(schedule.n_slots))


def find_drift(system: BlockSystem, of_signal: Stretch) -> Array:
    """Find what a constant of one at the input has added to the state after each step of a block: (block + 1, n)."""
    found = np.zeros((of_signal.length + 1, system.size))
    if system.weights is None:
        found[1:] = np.cumsum(of_signal.steps[:-1] @ system.entry, axis=0)
        return found
    step, _, entry = system.matrices(of_signal.length)
    for i in range(of_signal.length):
        found[i + 1] = step[i] @ found[i] + entry[i]
    return found


def check_stretch(length: int, n_states: int, n_beside: int = 0) -> None:
    """Refuse blocks so long, of systems so large, that memory would not do; with so many states of a filter beside."""
    most = math.isqrt(_MOST_NUMBERS // 2)
    if n_states > most:
        raise ValueError(
            f"target and model must have at most {most:,} states together for block sums, got {n_states:,}: take "
            "shorter filters"
        )
    longest = max(1, _MOST_NUMBERS // (n_states + n_beside) ** 2 - 1)
    if length > longest:
        raise ValueError(
            f"length must be at most {longest:,} for a model and a target of {n_states} states together, got "
            f"{length:,}: take shorter blocks, or a shorter target"
        )


# --- what is known at releases --------------------------------------------------------------------


class Innovation(NamedTuple):
    """The innovation of a released value, what it says that was not known: ν = ℓ z + noise, by which z becomes z + k ν.

    z is any state that the errors in question depend on; its covariance before is S.
    """

    level: int
    shows: Array  # ℓ
    covariance: Array  # S ℓ, with z before
    variance: float  # of ν
    gain: Array  # k


class ReleaseTime(NamedTuple):
    """The innovations of one release, level by level, and the states that stay behind it: not the finished sums."""

    innovations: tuple[Innovation, ...]
    stays: Array  # (size of z,), one or zero
    enters: Array  # (size of z, size of z), the covariance of what begins behind it

    def leave(self, moments: Array) -> Array:
        """Return second moments behind it, from those behind its innovations."""
        return moments * np.outer(self.stays, self.stays) + self.enters


class LateErrors(NamedTuple):
    """Mean squared errors of estimates of each step of a block, and the weights of what is released later."""

    mse: Array  # (block,)
    weights: Array  # (block, levels, n_later)


def errors_of_block(
    stretches: Sequence[Stretch],
    moments: Array,
    wanted: Array,
    later: list[ReleaseTime],
    lag: int,
    n_levels: int,
    weights: Array | None = None,
) -> LateErrors:
    """Find the errors e_i = d_i z_i at the steps of a block, less the weighed innovations of the releases that follow.

    Parameters
    ----------
    stretches : sequence of Stretch
        How z goes on to each of the releases in `later`, and to the next one at least.
    moments : array, (size, size)
        E[z zᵀ] behind the release that the block begins with.
    wanted : array, (block, size)
        d_i; the last one is a step before the first release.
    later : list of ReleaseTime
        Those that follow, as many as are waited for at all; the first one ends the block.
    lag : int
        The steps that each estimate waits.
    n_levels : int
    weights : array, (block, levels, n_later), optional
        Of the innovations; by default the best ones, where `moments` are those of a Kalman filter's error.
    """
    n, here = len(wanted), stretches[0]
    until_first = n - np.arange(n)  # steps from each to the first of these releases
    ahead = np.einsum("ikj,ik->ij", here.steps[:n], wanted) @ moments
    cross = np.einsum("ijk,ik->ij", here.steps[:n], ahead) + np.einsum("ijk,ik->ij", here.noises[:n], wanted)
    mse = np.einsum("ij,ij->i", cross, wanted)
    used = np.zeros((n, n_levels, len(later)))
    until, last, over_it = until_first, here, (here.arrival @ here.steps[-1]).T
    for k, (stretch, release) in enumerate(zip(stretches, later, strict=False)):
        if k == 0:
            cross = np.einsum("ijk,ik->ij", here.tails[here.length - until_first], cross) @ here.arrival.T
        else:
            if stretch is not last:
                last, over_it = stretch, (stretch.arrival @ stretch.steps[-1]).T
            cross, until = cross @ over_it, until + stretch.length
        in_time = until <= lag
        for shown in release.innovations:
            found = cross @ shown.shows
            weight = found / shown.variance * in_time if weights is None else weights[:, shown.level, k]
            used[:, shown.level, k] = weight
            mse += weight * (weight * shown.variance - 2 * found)
            cross += (found - weight * shown.variance)[:, None] * shown.gain - weight[:, None] * shown.covariance
        cross *= release.stays
    return LateErrors(np.maximum(mse, 0.0), used)  # without noise, what is left is rounding
