"""The exact errors of a periodic Kalman filter behind block sums, on any model, step by step and for ever.

The signal and the filter are one linear system z = (x - x̃, x̂, 1): x as of ``block_dynamics``, x̂ the states of the
filter behind the last release, x̃ what has become of them without anything new, and one for what a wrong mean adds. So
of a filter that is made for the signal nothing is the difference of what is as large as the signal. One of other states
is no guess of x, and x̃ is zero.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from dpfast._support.validation import Array
from dpfast.filters.filter import Filter
from dpfast.filters.toeplitz import Toeplitz
from dpfast.mechanisms.block_dynamics import (
    BlockSystem,
    Innovation,
    ReleaseSchedule,
    ReleaseTime,
    Stretch,
    check_stretch,
    errors_of_block,
    find_drift,
)
from dpfast.mechanisms.block_kalman import following
from dpfast.signals.model import Model
from dpfast.signals.output_variance import output_variance

_MOST_DOUBLINGS = 60
_SAME = 1e-15
_SETTLED = 1e-12  # of the largest error
_FEW_CYCLES = 8  # that are computed one by one
_HIDDEN = 1e-13  # of the variance of the output: an MSE below it is a difference of numbers that are as good as equal


def unless_hidden(mse: float, target: Filter | Toeplitz, model: Model) -> float | None:
    """Return an MSE, or None where it is too far below the variance of the output to tell it from rounding."""
    return mse if mse >= _HIDDEN * output_variance(target, model) else None


class HasGains(Protocol):
    """A periodic filter, as far as its errors ask for it."""

    @property
    def advance(self) -> Array:
        """T, over the shortest block, or over each slot of the schedule."""

    @property
    def gains(self) -> Array:
        """K of each release of a cycle, level by level."""

    @property
    def weights(self) -> Array:
        """W of each sample of a cycle, and the weights of later innovations."""

    @property
    def schedule(self) -> ReleaseSchedule:
        """The times of releases."""

    @property
    def phase(self) -> int:
        """The samples that the first blocks are shorter."""

    @property
    def lag(self) -> int:
        """The samples by which the estimate is late."""


class ClosedLoop:
    """A signal with what is released of it, and a filter behind that may be made for another signal.

    Parameters
    ----------
    system : BlockSystem
        Of the signal that there is.
    bias : float
        Its mean less that which the filter assumes.
    variances : tuple of float
        Of the noise of each level.
    filter : PeriodicKalman
    """

    def __init__(self, system: BlockSystem, bias: float, variances: tuple[float, ...], filter: HasGains) -> None:
        self.system, self.bias, self.variances, self.filter = system, bias, variances, filter
        known = filter.advance.shape[-1]
        self.n, self.size = system.size, system.size + known + 1
        self._guess: Array = np.eye(self.n, known) if known == self.n else np.zeros((self.n, known))
        self.schedule, self.block = filter.schedule, filter.schedule.slot
        self.n_later = -(-filter.lag // self.block)
        check_stretch(self.block if system.weights is None else len(system.weights), self.n, self.size - self.n)
        starts = [0] if system.weights is None else range(0, len(system.weights), self.block)
        self.stretches = [self._stretch(system.part(start, self.block), start, self.block, bias) for start in starts]
        start, rest = filter.phase, -filter.phase % self.block
        whole = system.weights is None or not rest
        self.first = self.stretches[0] if whole else self._stretch(system.part(start, rest), start, rest, bias)

    def _stretch(self, system: BlockSystem, start: int, length: int, bias: float) -> Stretch:
        """Let the filter wait for the release, and a wrong mean be added at every step; from a start in a block on."""
        advances = self.filter.advance.reshape(-1, *self.filter.advance.shape[-2:])
        advance = advances[start // self.block % len(advances)]
        of_signal = Stretch.of(system, length)
        steps = np.tile(np.eye(self.size), (length + 1, 1, 1))
        noises = np.zeros_like(steps)
        steps[:, : self.n, : self.n], noises[:, : self.n, : self.n] = of_signal.steps, of_signal.noises
        drift = find_drift(system, of_signal) * bias
        steps[:, : self.n, -1] = drift
        arrival = linalg.block_diag(of_signal.arrival, advance, np.eye(1))
        arrives = of_signal.arrival @ of_signal.steps[-1] @ self._guess
        arrival[: self.n, self.n : -1] = arrives - self._guess @ advance
        if system.weights is None:
            return Stretch(steps, noises, steps[::-1], arrival)
        tails = np.tile(np.eye(self.size), (length + 1, 1, 1))
        tails[:, : self.n, : self.n] = of_signal.tails
        tails[:, : self.n, -1] = drift[-1] - np.einsum("ijk,ik->ij", of_signal.tails, drift)
        return Stretch(steps, noises, tails, arrival)

    def part(self, passed: int, length: int) -> Stretch:
        """Return how z goes on for so many steps of a slot, from so many samples on."""
        start = 0 if self.system.weights is None else passed % len(self.system.weights)
        return self._stretch(self.system.part(start, length), passed, length, self.bias)

    def within(self, passed: int) -> Stretch:
        """Return how z goes on from so many samples on, up to the end of their slot."""
        return self.first if passed % self.block else self.stretches[passed // self.block % len(self.stretches)]

    def wanted(self, passed: NDArray[np.intp], steps: Array) -> Array:
        """Return d of samples of a slot: y - W x̂, before what is released later; with the steps since it began."""
        rows = self.filter.weights[passed % len(self.filter.weights), : self.filter.advance.shape[-1]]
        found = np.zeros((len(passed), self.size))
        found[:, : self.n] = self.system.output
        found[:, self.n : -1] = self.system.output @ steps[:, : self.n, : self.n] @ self._guess - rows
        return found

    def not_foreseen(self, states: Sequence[int], steps: Array, predicted: Array) -> Array:
        """Return rows that tell of z what states of the signal have beyond what x̂ times `predicted` is."""
        found = np.eye(self.size)[list(states)]
        found[:, self.n : -1] = steps[list(states), : self.n] @ self._guess - predicted
        return found

    def _later_weights(self, passed: int, n: int) -> Array:
        """Return the weights (n, levels, n_later) of innovations."""
        rows = self.filter.weights[(passed + np.arange(n)) % len(self.filter.weights), self.filter.advance.shape[-1] :]
        return rows.reshape(n, len(self.schedule.lengths), self.n_later)

    def _gain(self, passed: int, level: int) -> Array:
        gain = self.filter.gains[(passed // self.block - 1) % len(self.filter.gains), level]
        return np.concatenate([-self._guess @ gain, gain, [0.0]])

    def release(self, moments: Array, passed: int) -> tuple[ReleaseTime, Array]:
        """Return the release that comes after so many samples, and the moments behind it, from those before."""
        innovations, stays = [], np.ones(self.size)
        after = moments.copy()
        for level in self.schedule.due(passed):
            own, assumed = self.system.sum_state(level), self.size - 1 - len(self.schedule.lengths) + level
            shows = self.not_foreseen([own], np.eye(self.n), np.eye(self.size)[[assumed], self.n : -1])[0]
            covariance = after @ shows
            variance = float(covariance @ shows) + self.variances[level]
            gain = self._gain(passed, level)
            innovations.append(Innovation(level, shows, covariance, variance, gain))
            both = np.outer(gain, covariance)
            after = after + both + both.T + variance * np.outer(gain, gain)
            stays[[own, assumed]] = 0.0
        enters = self._begin_groups(stays, self.schedule.n_ended(passed))
        release = ReleaseTime(tuple(innovations), stays, enters)
        return release, release.leave(after)

    def _begin_groups(self, stays: Array, n: int) -> Array:
        """Return what begins where the n least levels of groups end, whose own does not stay, nor its estimate."""
        stays[self.n : -1][self.system.common_states(n)] = 0.0
        return linalg.block_diag(self.system.begin_groups(stays[: self.n], n), np.zeros((self.size - self.n,) * 2))

    # --- from rest ----------------------------------------------------------------------------------

    def step_mse(self, n: int) -> Array:
        """Return the MSE of each of the first n steps, from rest; an estimate waits for `lag` more samples.

        Where all errors of two cycles are those for ever, to 1e-12, so are those of the rest.
        """
        start, cycle = self.filter.phase, len(self.filter.weights)
        settled = np.tile(self.cycle_mse(), 2) if n > _FEW_CYCLES * cycle else None
        found, done = [np.empty(0)], 0
        for i, mse in enumerate(self._walk(self._moments_at_rest(), start, n + 1)):
            found.append(
                mse if i or start % self.block else mse[1:]
            )  # no step is behind the start, as one is behind a release
            done += len(found[-1])
            if settled is not None and (start + done + 1) % cycle == 0 and done >= 2 * cycle:
                recent = np.concatenate(found[-2 * cycle // self.block :])[-2 * cycle :]
                if (np.abs(recent - settled) <= _SETTLED * settled.max()).all():
                    found.append(np.resize(settled[:cycle], max(0, n - done)))
                    break
        return np.concatenate(found)[:n]

    def moments_behind(self, passed: int) -> Array:
        """Return E[z zᵀ] behind the release that comes after so many samples, from rest.

        Of a slot that has begun they are those behind the release that it began with, or those at rest. Of a filter
        that repeats all whole cycles are taken at once, by powers of one.
        """
        now, moments, cycle = self.filter.phase, self._moments_at_rest(), len(self.filter.weights)
        first = min(passed, -(-now // cycle) * cycle)
        now, moments = self._walk_on(moments, now, first)
        if whole := (passed - now) // cycle:
            moments = _repeat(*self._cycle_map(), moments, whole)
        return self._walk_on(moments, now + whole * cycle, passed)[1]

    def _walk_on(self, moments: Array, now: int, passed: int) -> tuple[int, Array]:
        """Go on over the releases up to so many samples; return where the last one is, and the moments behind it."""
        while (until := (now // self.block + 1) * self.block) <= passed:
            _, moments = self.release(self.within(now).carry(moments, until - now), until)
            now = until
        return now, moments

    def _moments_at_rest(self) -> Array:
        moments = np.zeros((self.size, self.size))
        moments[: self.n, : self.n], moments[-1, -1] = self.system.start, 1.0
        return moments

    def _walk(self, moments: Array, passed: int, n: int) -> Iterator[Array]:
        """Give the MSE of n steps behind `passed` samples, block by block; `moments` are those of then."""
        stop, waiting, releases = passed + n, deque[tuple[int, Array]](), deque[ReleaseTime]()
        while passed < stop or waiting:
            if passed < stop:
                waiting.append((passed, moments))
            until = (passed // self.block + 1) * self.block
            release, moments = self.release(self.within(passed).carry(moments, until - passed), until)
            releases.append(release)
            passed = until
            if len(releases) > self.n_later:
                begin, before = waiting.popleft()
                yield self._errors(begin, before, list(releases)[: self.n_later])[: stop - begin]
                releases.popleft()

    def _errors(self, passed: int, moments: Array, later: list[ReleaseTime]) -> Array:
        """Return the MSE of the steps of a block from `passed` samples on; a release's own step comes first."""
        begins, n = passed % self.block, self.block - passed % self.block
        n_levels, lag, weights = len(self.schedule.lengths), self.filter.lag, self._later_weights(passed, n)
        wanted = self.wanted(passed + np.arange(n), self.within(passed).steps[:n])
        there = [self.within(passed), *following(self.stretches, passed // self.block + 1, self.n_later)]
        mse = errors_of_block(there, moments, wanted, later, lag, n_levels, weights).mse
        return mse[1:] if begins else mse

    # --- for ever -----------------------------------------------------------------------------------

    def cycle_mse(self) -> Array:
        """Return the MSE of the estimates of each step of a cycle, the first one at a release of all levels."""
        length = self.schedule.cycle
        return np.concatenate(list(self._walk(self._steady_moments(), length, length)))

    def decay(self) -> float:
        """Return the factor by which a start is forgotten in one step, on average over a cycle."""
        step, _ = self._cycle_map()
        radius = float(np.abs(np.linalg.eigvals(step[:-1, :-1])).max())
        return float(radius ** (1 / self.schedule.cycle))

    def _cycle_map(self) -> tuple[Array, Array]:
        """Return matrix and covariance of what a cycle makes of z behind a release of all levels."""
        step, noise = np.eye(self.size), np.zeros((self.size, self.size))
        for passed in range(self.block, self.schedule.cycle + 1, self.block):
            here, added = self._release_map(passed)
            step, noise = here @ step, here @ noise @ here.T + added
        return step, noise

    def _steady_moments(self) -> Array:
        """Return E[z zᵀ] behind a release of all levels that many have come before."""
        step, noise = self._cycle_map()
        rest, bias = step[:-1, :-1], step[:-1, -1]
        mean = np.append(np.linalg.solve(np.eye(self.size - 1) - rest, bias), 1.0)
        covariance = noise[:-1, :-1]
        for _ in range(_MOST_DOUBLINGS):
            before, covariance = covariance, covariance + rest @ covariance @ rest.T
            rest = rest @ rest
            if np.abs(covariance - before).max() <= _SAME * np.abs(covariance).max():
                break
        moments = np.outer(mean, mean)
        moments[:-1, :-1] += covariance
        return moments

    def _release_map(self, passed: int) -> tuple[Array, Array]:
        """Return matrix and covariance of what a block and the release behind it make of z."""
        stretch = self.within(passed - self.block)
        step, noise = stretch.arrival @ stretch.steps[-1], stretch.carry(np.zeros_like(stretch.arrival), self.block)
        release, _ = self.release(np.zeros_like(step), passed)
        for shown in release.innovations:
            update = np.eye(self.size) + np.outer(shown.gain, shown.shows)
            step, noise = update @ step, update @ noise @ update.T
            noise += self.variances[shown.level] * np.outer(shown.gain, shown.gain)
        return release.stays[:, None] * step, release.leave(noise)


def _repeat(step: Array, noise: Array, moments: Array, times: int) -> Array:
    """Carry second moments so many times by a matrix and the covariance of what is added."""
    while times:
        if times % 2:
            moments = step @ moments @ step.T + noise
        step, noise, times = step @ step, step @ noise @ step.T + noise, times // 2
    return moments
