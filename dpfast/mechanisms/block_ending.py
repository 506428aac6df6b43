"""The end of a stream of block sums: what a block that it leaves unfinished tells of the last outputs, and the errors.

The last estimates wait for releases that never come. Where the sums of unfinished blocks are released at the last step,
what they say that was not known enters all these estimates, with the weights of least error.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dpfast._support.validation import Array
from dpfast.mechanisms.block_dynamics import ReleaseTime
from dpfast.mechanisms.block_errors import ClosedLoop


class Ending(NamedTuple):
    """Say what sums that are released at the last step tell, and how estimates that wait for it err.

    Attributes
    ----------
    predicted : array, (levels, states)
        What the receiver's state behind its last release predicts of each unfinished sum is this times the state.
    weights : array, (lag + 1, levels)
        By which each of the last estimates takes in the sums less what was predicted of them; zero before the stream.
    mse : array, (steps,)
        Of the last estimates without these sums; lag + 1 of them, or as many as there are.
    mse_with : array, (steps,)
        With them.
    """

    predicted: Array
    weights: Array
    mse: Array
    mse_with: Array


def unfinished_levels(loop: ClosedLoop, n: int) -> tuple[int, ...]:
    """List the levels whose blocks the last of n steps leaves unfinished."""
    due = loop.schedule.due(n + loop.filter.phase)
    return tuple(k for k in range(len(loop.schedule.lengths)) if k not in due)


def find_ending(loop: ClosedLoop, n: int) -> Ending:
    """Find how the last estimates of n steps take in the sums of unfinished blocks, and what they err by.

    Parameters
    ----------
    loop : ClosedLoop
        Of the signal and the receiver that was designed for it, from rest.
    n : int
        The steps of the stream, at least 1.
    """
    waiting, levels = _Waiting(loop, n), unfinished_levels(loop, n)
    moments = waiting.run()
    system, begin = loop.system, waiting.begin_of(waiting.end)
    # a receiver's states are what it knows of those of the system
    sums = [system.sum_state(k) for k in levels]
    until_end = loop.part(begin, waiting.end - begin).steps[-1]
    predicted = until_end[sums, : system.size]
    shows = loop.not_foreseen(sums, until_end, predicted)
    noise = np.diag([loop.variances[k] for k in levels])
    found = waiting.cross @ shows.T
    weights = np.linalg.solve(shows @ moments @ shows.T + noise, found.T).T
    before = np.zeros((loop.filter.lag + 1 - len(weights), len(levels)))
    mse_with = waiting.mse - (weights * found).sum(axis=1)
    return Ending(predicted, np.concatenate([before, weights]), np.maximum(waiting.mse, 0.0), np.maximum(mse_with, 0.0))


def step_errors(loop: ClosedLoop, n: int, *, publish: bool) -> Array:
    """Return the MSE of each of n steps, from rest, where nothing is released behind the last one."""
    ending, mse = find_ending(loop, n), loop.step_mse(n)
    last = ending.mse_with if publish else ending.mse
    return np.concatenate([mse[: n - len(last)], last])


class _Waiting:
    """The errors of the estimates that wait for the last step: their moments, and those with z of the loop."""

    def __init__(self, loop: ClosedLoop, n: int) -> None:
        self.loop, self.end = loop, n + loop.filter.phase
        self.first = max(0, n - 1 - loop.filter.lag) + 1 + loop.filter.phase
        self.cross, self.mse = np.zeros((0, loop.size)), np.zeros(0)

    def begin_of(self, passed: int) -> int:
        """Return the samples after which the slot of a sample begins."""
        return max(passed - passed % self.loop.block, self.loop.filter.phase)

    def run(self) -> Array:
        """Bring all of them to the last step, from release to release; return E[z zᵀ] there, before it is looked at."""
        loop, now = self.loop, self.begin_of(self.first)
        moments = loop.moments_behind(now)
        while (until := now - now % loop.block + loop.block) <= self.end:
            stretch, before = loop.within(now), moments
            self._go_on(before, now, until - 1, until - now)
            self.cross = self.cross @ stretch.arrival.T
            release, moments = loop.release(stretch.carry(before, until - now), until)
            self._take_in(release, until)
            now = until
        self._go_on(moments, now, self.end, self.end - now)
        here = loop.part(now, self.end - now)
        return np.asarray(here.steps[-1] @ moments @ here.steps[-1].T + here.noises[-1])

    def _go_on(self, moments: Array, now: int, last: int, length: int) -> None:
        """Let so many steps pass, from `now` samples on, and begin with the estimates up to the sample `last`."""
        loop, begin = self.loop, max(self.first, now)
        stretch = loop.part(now, length)
        self.cross = self.cross @ stretch.steps[-1].T
        if last < begin:
            return
        passed = np.arange(begin, last + 1)
        steps = stretch.steps[passed - now]
        wanted = loop.wanted(passed, steps)
        carried = np.einsum("ikj,ik->ij", steps, wanted) @ moments
        here = np.einsum("ijk,ik->ij", steps, carried)
        here += np.einsum("ijk,ik->ij", stretch.noises[passed - now], wanted)
        self.mse = np.concatenate([self.mse, np.einsum("ij,ij->i", here, wanted)])
        there = np.einsum("ijk,ik->ij", stretch.tails[passed - now], here)
        self.cross = np.concatenate([self.cross, there])

    def _take_in(self, release: ReleaseTime, now: int) -> None:
        """Take the innovations of a release into the estimates that wait for it."""
        loop, rows = self.loop, self.loop.filter.weights
        passed = self.first + np.arange(len(self.mse))
        behind = now // loop.block - passed // loop.block - 1  # releases between
        known = behind < loop.n_later
        for shown in release.innovations:
            column = loop.filter.advance.shape[-1] + shown.level * loop.n_later + behind[known]
            weight = np.zeros(len(passed))
            weight[known] = rows[passed[known] % len(rows), column]
            found = self.cross @ shown.shows
            self.mse += weight * (weight * shown.variance - 2 * found)
            self.cross += (found - weight * shown.variance)[:, None] * shown.gain - weight[:, None] * shown.covariance
        self.cross *= release.stays
