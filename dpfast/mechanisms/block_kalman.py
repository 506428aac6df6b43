"""The Kalman filter behind block sums: its gains, in steady state by doubling, and the errors that it has."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dpfast._support.validation import Array
from dpfast.mechanisms.block_dynamics import (
    BlockSystem,
    Innovation,
    LateErrors,
    ReleaseTime,
    Stretch,
    errors_of_block,
)

_MOST_DOUBLINGS = 60
_SAME = 1e-15
_UNSEEN = 1e-13  # of the variance of the sum of a block: less noise drowns in rounding, where levels repeat one another


class KalmanCycle(NamedTuple):
    """A periodic Kalman filter, release by release of a cycle; the last release is one of all levels.

    Attributes
    ----------
    releases : tuple of ReleaseTime
        Of its error x - x̂.
    covariances : tuple of array
        Of its error behind each release.
    """

    releases: tuple[ReleaseTime, ...]
    covariances: tuple[Array, ...]

    @property
    def gains(self) -> Array:
        """The gains (releases, levels, states) of the state; zero where a level releases nothing."""
        n_levels = len(self.releases[-1].innovations)
        found = np.zeros((len(self.releases), n_levels, len(self.covariances[0])))
        for release, gains in zip(self.releases, found, strict=True):
            for shown in release.innovations:
                gains[shown.level] = -shown.gain
        return found

    def errors(self, system: BlockSystem, stretch: Stretch, lag: int) -> LateErrors:
        """Find errors and weights of estimates of all steps of the cycle, from the release of all levels on."""
        n_releases, n_later = len(self.releases), -(-lag // stretch.length)
        wanted = np.broadcast_to(system.output, (stretch.length, system.size))
        parts = []
        for i in range(n_releases):  # behind release i - 1, that of all levels for i = 0
            later = [self.releases[(i + k) % n_releases] for k in range(n_later)]
            parts.append(errors_of_block(stretch, self.covariances[i - 1], wanted, later, lag, system.n_levels))
        return LateErrors(*(np.concatenate(x) for x in zip(*parts, strict=True)))


def due_levels(lengths: tuple[int, ...], passed: int) -> list[int]:
    """List the levels that release after so many samples."""
    return [level for level, length in enumerate(lengths) if passed % length == 0]


def take_release(
    system: BlockSystem, before: Array, due: list[int], variances: tuple[float, ...]
) -> tuple[ReleaseTime, Array]:
    """Update the covariance of the error by what the levels release; return the release, and the covariance behind."""
    after, innovations, stays = before.copy(), [], np.ones(system.size)
    for level in due:
        state = system.sum_state(level)
        covariance = after[:, state].copy()
        variance = covariance[state] + variances[level]
        gain = covariance / variance
        after -= np.outer(gain, covariance)
        shows = np.eye(1, system.size, state)[0]
        innovations.append(Innovation(level, shows, covariance, float(variance), -gain))
        stays[state] = 0.0
    return ReleaseTime(tuple(innovations), stays), after * np.outer(stays, stays)


def find_cycle(
    system: BlockSystem, stretch: Stretch, lengths: tuple[int, ...], variances: tuple[float, ...]
) -> KalmanCycle:
    """Find the periodic Kalman filter that all starts lead to.

    Parameters
    ----------
    system : BlockSystem
    stretch : Stretch
        Over the shortest block.
    lengths : tuple of int
        Of the levels, each a multiple of the one before.
    variances : tuple of float
        Of the noise of each level.
    """
    n_releases, variances = lengths[-1] // lengths[0], _seen(system, stretch, variances)
    due = [due_levels(lengths, (i + 1) * lengths[0]) for i in range(n_releases)]
    maps = {tuple(x): _map_behind(system, stretch, x, variances) for x in due}
    # the covariance before the first release is what a cycle makes of itself
    cycle = maps[tuple(due[0])]
    for x in due[1:]:
        cycle = cycle.then(maps[tuple(x)])
    before, releases, covariances = cycle.limit(), [], []
    for x in due:
        release, after = take_release(system, before, x, variances)
        releases.append(release)
        covariances.append(after)
        before = stretch.carry(after, stretch.length)
    return KalmanCycle(tuple(releases), tuple(covariances))


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
    system: BlockSystem, stretch: Stretch, lengths: tuple[int, ...], variances: tuple[float, ...], n: int, lag: int
) -> KalmanRun:
    """Find the Kalman filter of the first n steps, and its errors; values are released up to the last step.

    `system`, `stretch`, `lengths` and `variances` are as of :func:`find_cycle`.
    """
    block, n_later, variances = stretch.length, -(-lag // stretch.length), _seen(system, stretch, variances)
    gains = np.zeros((n // block + 1, len(lengths), system.size))
    releases, covariances = [], [system.start]
    for i in range(n // block):
        before = stretch.carry(covariances[-1], block)
        release, after = take_release(system, before, due_levels(lengths, (i + 1) * block), variances)
        for shown in release.innovations:
            gains[i, shown.level] = -shown.gain
        releases.append(release)
        covariances.append(after)
    wanted = np.broadcast_to(system.output, (block, system.size))
    mse, weights = [], np.zeros((len(covariances), block, len(lengths), n_later))
    for i, behind in enumerate(covariances):
        later = releases[i : i + n_later]
        errors = errors_of_block(stretch, behind, wanted, later, lag, len(lengths))
        mse.append(errors.mse)
        weights[i, :, :, : len(later)] = errors.weights
    steps = slice(1, n + 1)  # behind the start comes the first step
    return KalmanRun(gains, LateErrors(np.concatenate(mse)[steps], np.concatenate(weights)))


def least_mse(
    system: BlockSystem,
    stretch: Stretch,
    lengths: tuple[int, ...],
    variances: tuple[float, ...],
    lag: int,
    horizon: int | None = None,
) -> float:
    """Return the mean MSE of the best filter, over a cycle or the steps of a horizon."""
    if horizon is None:
        return float(find_cycle(system, stretch, lengths, variances).errors(system, stretch, lag).mse.mean())
    return float(run_over_horizon(system, stretch, lengths, variances, horizon, lag).errors.mse.mean())


def _seen(system: BlockSystem, stretch: Stretch, variances: tuple[float, ...]) -> tuple[float, ...]:
    """Raise variances of noise to what is seen beside that of a block's sum."""
    sums = [system.sum_state(level) for level in range(len(variances))]
    return tuple(max(v, _UNSEEN * stretch.noises[-1][i, i]) for v, i in zip(variances, sums, strict=True))


class _RiccatiMap(NamedTuple):
    """A map X ↦ H + Aᵀ X (I + G X)⁻¹ A, from a covariance before a release to one before a later release."""

    a: Array
    g: Array
    h: Array

    def then(self, second: _RiccatiMap) -> _RiccatiMap:
        """Return the map that is this one and then another."""
        both = np.linalg.solve(np.eye(len(self.a)) + second.g @ self.h, np.hstack([second.a, second.g]))
        a, g = both[:, : len(self.a)], both[:, len(self.a) :]
        return _RiccatiMap(
            self.a @ a, _symmetric(self.g + self.a @ g @ self.a.T), _symmetric(second.h + second.a.T @ self.h @ a)
        )

    def limit(self) -> Array:
        """Return what the map leads to, repeated for ever: by doubling (Anderson 1978)."""
        now = self
        for _ in range(_MOST_DOUBLINGS):
            before, now = now, now.then(now)
            if np.abs(now.h - before.h).max() <= _SAME * np.abs(now.h).max():
                break
        return now.h


def _map_behind(system: BlockSystem, stretch: Stretch, due: list[int], variances: tuple[float, ...]) -> _RiccatiMap:
    """Return the map of a release and the block behind it."""
    g, stays = np.zeros((system.size, system.size)), np.ones(system.size)
    for level in due:
        state = system.sum_state(level)
        g[state, state], stays[state] = 1 / variances[level], 0.0
    return _RiccatiMap((stretch.steps[-1] * stays).T, g, stretch.noises[-1])


def _symmetric(x: Array) -> Array:
    return np.asarray((x + x.T) / 2)
