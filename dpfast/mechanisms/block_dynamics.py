r"""Signal, target and block sums as one linear system, and the exact errors of what estimates from the sums.

State x_t = (s_t; g_t; y_t; the sums of the input since each level's block began), x_t = M x_{t-1} + w_t, with s and g
the states of the signal's shaping filter and of the target, and y_t = h x_t the output that is wanted.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dpfast._kernels.fir_and_sections import Factors
from dpfast._support.validation import Array
from dpfast.filters.conversion import StateSpace, make_state_space
from dpfast.filters.state_space import gramian_root


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
    """

    step: Array
    noise: Array
    output: Array
    start: Array
    entry: Array
    n_levels: int

    @property
    def size(self) -> int:
        """Count the states."""
        return len(self.step)

    def sum_state(self, level: int) -> int:
        """Give the number of the state that is the sum of a level's block so far."""
        return self.size - self.n_levels + level


def build_system(shaping: Factors, target: Factors, n_levels: int, rounding: float = 0.0) -> BlockSystem:
    """Put signal, target and block sums together.

    Parameters
    ----------
    shaping, target : Factors
        Of the centred signal; of the target, which need not be stable over a horizon.
    n_levels : int
    rounding : float
        The variance of what rounding to the lattice adds to an input before it is summed.
    """
    check_stretch(1, _most_states(shaping) + _most_states(target))  # before any of these matrices is made
    (a, drive, c, d), (a_f, b_f, c_f, d_f) = _small_state_space(shaping), _small_state_space(target)
    u = np.concatenate([c[0], d[0]])  # the input, of the signal's state before and of its drive
    n_signal, n_target = len(a), len(a_f)
    wanted, n = n_signal + n_target, n_signal + n_target + 1 + n_levels
    both = np.zeros((n, n + 1))  # of the state before, and of the drive
    both[:n_signal, :n_signal], both[:n_signal, -1] = a, drive[:, 0]
    entry = np.zeros(n)
    entry[n_signal:wanted], entry[wanted], entry[wanted + 1 :] = b_f[:, 0], d_f[0, 0], 1.0
    both[:, [*range(n_signal), -1]] += np.outer(entry, u)
    both[n_signal:wanted, n_signal:wanted] += a_f
    both[wanted, n_signal:wanted] += c_f[0]
    sums = range(wanted + 1, n)
    both[sums, sums] += 1.0
    noise = np.outer(both[:, -1], both[:, -1])
    noise[wanted + 1 :, wanted + 1 :] += rounding  # the output that is wanted is that of the input itself
    start = np.zeros((n, n))
    if n_signal:
        root = gramian_root(a, drive)
        start[:n_signal, :n_signal] = root.T @ root
    return BlockSystem(both[:, :-1], noise, np.eye(1, n, wanted)[0], start, entry, n_levels)


def _most_states(factors: Factors) -> int:
    return len(factors.taps) + 2 * len(factors.sections) + len(factors.recursion)


def _small_state_space(factors: Factors) -> StateSpace:
    """Return the state space of a filter without the states that are always zero."""
    a, b, c, d = make_state_space(factors)
    while len(a) and not (used := np.hstack([a, b]).any(axis=1)).all():
        a, b, c = a[np.ix_(used, used)], b[used], c[:, used]
    return a, b, c, d


_MOST_NUMBERS = 2**27  # in the powers of a system over the steps of a block: a gigabyte


class Stretch(NamedTuple):
    """The powers of a system between two releases, up to a whole block: x_i = steps[i] x_0 + noise."""

    steps: Array  # (block + 1, size, size)
    noises: Array  # (block + 1, size, size), covariances
    arrival: Array  # (size, size), what happens besides where the next release comes, before it is looked at

    @property
    def length(self) -> int:
        """Count the steps of the block."""
        return len(self.steps) - 1

    def first(self, length: int) -> Stretch:
        """Return the first steps alone, of a shorter block."""
        return Stretch(self.steps[: length + 1], self.noises[: length + 1], self.arrival)

    def carry(self, moments: Array, n: int) -> Array:
        """Carry second moments over the last n steps before a release, and to it."""
        there = self.arrival @ self.steps[n]
        return np.asarray(there @ moments @ there.T + self.arrival @ self.noises[n] @ self.arrival.T)

    @classmethod
    def of(cls, system: BlockSystem, length: int) -> Stretch:
        """Compute the powers of M and the covariances of what is added, step by step."""
        check_stretch(length, system.size)
        steps = np.empty((length + 1, system.size, system.size))
        noises = np.empty_like(steps)
        steps[0], noises[0] = np.eye(system.size), 0.0
        for i in range(length):
            steps[i + 1] = system.step @ steps[i]
            noises[i + 1] = system.step @ noises[i] @ system.step.T + system.noise
        return cls(steps, noises, np.eye(system.size))


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


class LateErrors(NamedTuple):
    """Mean squared errors of estimates of each step of a block, and the weights of what is released later."""

    mse: Array  # (block,)
    weights: Array  # (block, levels, n_later)


def errors_of_block(
    stretch: Stretch,
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
    stretch : Stretch
        How z goes on inside the block.
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
    n = len(wanted)
    until_first = n - np.arange(n)  # steps from each to the first of these releases
    ahead = np.einsum("ikj,ik->ij", stretch.steps[:n], wanted) @ moments
    cross = np.einsum("ijk,ik->ij", stretch.steps[:n], ahead) + np.einsum("ijk,ik->ij", stretch.noises[:n], wanted)
    mse = np.einsum("ij,ij->i", cross, wanted)
    used = np.zeros((n, n_levels, len(later)))
    over_a_block = (stretch.arrival @ stretch.steps[-1]).T
    for k, release in enumerate(later):
        in_time = until_first + k * stretch.length <= lag
        if k == 0:
            cross = np.einsum("ijk,ik->ij", stretch.steps[until_first], cross) @ stretch.arrival.T
        else:
            cross = cross @ over_a_block
        for shown in release.innovations:
            found = cross @ shown.shows
            weight = found / shown.variance * in_time if weights is None else weights[:, shown.level, k]
            used[:, shown.level, k] = weight
            mse += weight * (weight * shown.variance - 2 * found)
            cross += (found - weight * shown.variance)[:, None] * shown.gain - weight[:, None] * shown.covariance
        cross *= release.stays
    return LateErrors(np.maximum(mse, 0.0), used)  # without noise, what is left is rounding
