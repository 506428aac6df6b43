"""The Kalman filter behind block sums: its gains, in steady state by doubling, and the errors that it has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dpfast._support.validation import Array
from dpfast.filters.riccati import RiccatiMap
from dpfast.mechanisms.block_dynamics import (
    BlockSystem,
    Innovation,
    LateErrors,
    ReleaseSchedule,
    ReleaseTime,
    Stretch,
    errors_of_block,
)

_UNSEEN = 1e-13  # of the variance of the sum of a block: less noise drowns in rounding, where levels repeat one another


class KalmanCycle(NamedTuple):
    """A periodic Kalman filter, release by release of a cycle.

    Attributes
    ----------
    releases : tuple of ReleaseTime
        Of its error x - x̂.
    covariances : tuple of array
        Of its error behind each release.
    n_levels : int
    """

    releases: tuple[ReleaseTime, ...]
    covariances: tuple[Array, ...]
    n_levels: int

    @property
    def gains(self) -> Array:
        """The gains (releases, levels, states) of the state; zero where a level releases nothing."""
        found = np.zeros((len(self.releases), self.n_levels, len(self.covariances[0])))
        for release, gains in zip(self.releases, found, strict=True):
            for shown in release.innovations:
                gains[shown.level] = -shown.gain
        return found

    def errors(self, system: BlockSystem, stretches: Sequence[Stretch], lag: int) -> LateErrors:
        """Find errors and weights of estimates of all steps of the cycle, from its beginning on."""
        n_releases, slot = len(self.releases), stretches[0].length
        n_later = -(-lag // slot)
        wanted = np.broadcast_to(system.output, (slot, system.size))
        parts = []
        for i in range(n_releases):  # behind release i - 1
            later = [self.releases[(i + k) % n_releases] for k in range(n_later)]
            there = following(stretches, i, n_later)
            parts.append(errors_of_block(there, self.covariances[i - 1], wanted, later, lag, system.n_levels))
        return LateErrors(*(np.concatenate(x) for x in zip(*parts, strict=True)))


def following(stretches: Sequence[Stretch], i: int, n: int) -> list[Stretch]:
    """List n stretches from the i-th on, and one at least; they repeat."""
    return [stretches[(i + k) % len(stretches)] for k in range(max(1, n))]


class Due(NamedTuple):
    """The releases that come at a time: the levels that are released, and how many levels of groups of blocks end."""

    levels: tuple[int, ...]
    n_ended: int

    @classmethod
    def after(cls, schedule: ReleaseSchedule, passed: int) -> Due:
        """Tell what comes after so many samples."""
        return cls(tuple(schedule.due(passed)), schedule.n_ended(passed))


def take_release(
    system: BlockSystem, before: Array, due: Due, variances: tuple[float, ...]
) -> tuple[ReleaseTime, Array]:
    """Update the covariance of the error by what the levels release; return the release, and the covariance behind."""
    after, innovations, stays = before.copy(), [], np.ones(system.size)
    for level in due.levels:
        state = system.sum_state(level)
        covariance = after[:, state].copy()
        variance = covariance[state] + variances[level]
        gain = covariance / variance
        after -= np.outer(gain, covariance)
        shows = np.eye(1, system.size, state)[0]
        innovations.append(Innovation(level, shows, covariance, float(variance), -gain))
        stays[state] = 0.0
    enters = system.begin_groups(stays, due.n_ended)
    release = ReleaseTime(tuple(innovations), stays, enters)
    return release, release.leave(after)


def find_cycle(
    system: BlockSystem, stretches: Sequence[Stretch], schedule: ReleaseSchedule, variances: tuple[float, ...]
) -> KalmanCycle:
    """Find the periodic Kalman filter that all starts lead to.

    Parameters
    ----------
    system : BlockSystem
    stretches : sequence of Stretch
        Over each slot of the schedule, or one for all.
    schedule : ReleaseSchedule
    variances : tuple of float
        Of the noise of each level.
    """
    n_releases, variances = schedule.n_slots, _seen(system, stretches, variances)
    due = [Due.after(schedule, (i + 1) * schedule.slot) for i in range(n_releases)]
    behind = following(stretches, 1, n_releases)
    # the covariance before the first release is what a cycle makes of itself
    cycle, *others = _maps_behind(system, behind, due, variances)
    for other in others:
        cycle = cycle.then(other)
    before, releases, covariances = cycle.limit(), [], []
    for x, stretch in zip(due, behind, strict=True):
        release, after = take_release(system, before, x, variances)
        releases.append(release)
        covariances.append(after)
        before = stretch.carry(after, stretch.length)
    return KalmanCycle(tuple(releases), tuple(covariances), system.n_levels)


class KalmanRun(NamedTuple):
    """A Kalman filter from a start on, over so many steps.

    Attributes
    ----------
    gains : array, (releases + 1, levels, states)
        Zero behind the last step.
    errors : LateErrors
        Of the estimates of all steps; the weights begin with those of the start, where nothing is estimated.
    """

    gains: Array
    errors: LateErrors


def run_over_horizon(
    system: BlockSystem,
    stretches: Sequence[Stretch],
    schedule: ReleaseSchedule,
    variances: tuple[float, ...],
    n: int,
    lag: int,
) -> KalmanRun:
    """Find the Kalman filter of the first n steps, and its errors; values are released up to the last step.

    `system`, `stretches`, `schedule` and `variances` are as of :func:`find_cycle`.
    """
    block, n_levels, variances = schedule.slot, system.n_levels, _seen(system, stretches, variances)
    n_later, gains = -(-lag // block), np.zeros((n // block + 1, n_levels, system.size))
    releases, covariances = [], [system.start]
    taken = dict[tuple[int, Due, bytes], tuple[ReleaseTime, Array]]()
    for i in range(n // block):
        turn, due = i % len(stretches), Due.after(schedule, (i + 1) * block)
        key = turn, due, covariances[-1].tobytes()
        if key not in taken:
            taken[key] = take_release(system, stretches[turn].carry(covariances[-1], block), due, variances)
        release, after = taken[key]  # once it has settled to the last bit, what was
        for shown in release.innovations:
            gains[i, shown.level] = -shown.gain
        releases.append(release)
        covariances.append(after)
    wanted = np.broadcast_to(system.output, (block, system.size))
    mse, weights = [], np.zeros((len(covariances), block, n_levels, n_later))
    found = dict[tuple[int, ...], LateErrors]()
    for i, behind in enumerate(covariances):
        later = releases[i : i + n_later]
        place = i % len(stretches), id(behind), *map(id, later)  # equal ones are the same one
        if place not in found:
            found[place] = errors_of_block(following(stretches, i, n_later), behind, wanted, later, lag, n_levels)
        errors = found[place]
        mse.append(errors.mse)
        weights[i, :, :, : len(later)] = errors.weights
    steps = slice(1, n + 1)  # behind the start comes the first step
    return KalmanRun(gains, LateErrors(np.concatenate(mse)[steps], np.concatenate(weights)))


def least_mse(
    system: BlockSystem,
    stretches: Sequence[Stretch],
    schedule: ReleaseSchedule,
    variances: tuple[float, ...],
    lag: int,
    horizon: int | None = None,
) -> float:
    """Return the mean MSE of the best filter, over a cycle or the steps of a horizon."""
    if horizon is None:
        return float(find_cycle(system, stretches, schedule, variances).errors(system, stretches, lag).mse.mean())
    return float(run_over_horizon(system, stretches, schedule, variances, horizon, lag).errors.mse.mean())


def _seen(system: BlockSystem, stretches: Sequence[Stretch], variances: tuple[float, ...]) -> tuple[float, ...]:
    """Raise variances of noise to what is seen beside that of a block's sum."""
    sums = [system.sum_state(level) for level in range(len(variances))]
    largest = [max(x.noises[-1][i, i] for x in stretches) for i in sums]
    return tuple(max(v, _UNSEEN * x) for v, x in zip(variances, largest, strict=True))


def _maps_behind(
    system: BlockSystem, stretches: Sequence[Stretch], due: list[Due], variances: tuple[float, ...]
) -> list[RiccatiMap]:
    """Return the map of each release and the slot behind it; made once where both are the same."""
    made, found = dict[tuple[int, Due], RiccatiMap](), []
    for stretch, x in zip(stretches, due, strict=True):
        key = (id(stretch), x)
        if key not in made:
            made[key] = _map_behind(system, stretch, x, variances)
        found.append(made[key])
    return found


def _map_behind(system: BlockSystem, stretch: Stretch, due: Due, variances: tuple[float, ...]) -> RiccatiMap:
    """Return the map of a release and the block behind it."""
    g, stays = np.zeros((system.size, system.size)), np.ones(system.size)
    for level in due.levels:
        state = system.sum_state(level)
        g[state, state], stays[state] = 1 / variances[level], 0.0
    enters = system.begin_groups(stays, due.n_ended)
    there = stretch.arrival @ stretch.steps[-1]
    return RiccatiMap((there * stays).T, g, stretch.carry(enters, stretch.length))
