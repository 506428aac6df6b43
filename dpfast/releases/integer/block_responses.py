"""How the receiver of block sums errs: its responses to single inputs and to the noise of single sums."""

from __future__ import annotations

import math

import numpy as np

from dpfast._support.validation import Array
from dpfast.design.adaptive.sum_errors import ErrorResponses
from dpfast.filters.filter import Filter
from dpfast.filters.toeplitz import Toeplitz
from dpfast.mechanisms.receivers.periodic_kalman import PeriodicKalman
from dpfast.releases.integer.block_schedule import BlockSchedule
from dpfast.releases.integer.last_block import LastBlock
from dpfast.releases.integer.live_blocks import LiveBlocks

_FORGOTTEN = 1e-4  # what is left of a response when it counts as over
_MOST_NUMBERS = 2**25  # in the responses of a cycle
TOO_LARGE = (
    "No error is estimated from what was published: the receiver remembers too long for its responses to be computed."
)


def find_responses(
    receiver: PeriodicKalman,
    target: Filter | Toeplitz,
    schedule: BlockSchedule,
    last: LastBlock | None,
    noise_variances: tuple[float, ...],
    rounding: float,
    decay: float,
) -> ErrorResponses | str:
    """Find how estimates err, for ever, or over a horizon at all of its steps; or say why that is not computed.

    Parameters
    ----------
    receiver, target, schedule, last
        As of a release.
    noise_variances : tuple of float
        Of the noise on the sums of each level.
    rounding : float
        The variance of what rounding adds to each input.
    decay : float
        The factor by which the receiver forgets in one step.
    """
    horizon, lag = target.horizon, receiver.lag
    cycle = horizon or max(schedule.lengths)
    slowest = min(decay, 1 - 1e-9)
    settle = 0 if horizon else math.ceil(math.log(_FORGOTTEN) / math.log(slowest)) if slowest > 0 else 0
    stationary = target.as_filter()
    settle += 0 if stationary is None else stationary.settling_time(_FORGOTTEN)
    # estimates of outputs before an input take it in too, so that it comes when there have been some
    before = 0 if horizon else -(-lag // cycle) * cycle
    time = before + cycle + lag + settle + (0 if horizon else 2 * cycle)
    if cycle * time > _MOST_NUMBERS:
        return TOO_LARGE
    if horizon is None:
        schedule, last = BlockSchedule(schedule.lengths, schedule.lates, schedule.phase, schedule.weights), None
    impulses = np.eye(cycle, time, before, dtype=np.int64)
    inputs = schedule.sums(np.zeros((cycle, 0), np.int64), impulses, 0, horizon)
    steps, levels = np.nonzero(schedule.due(before, cycle, horizon).T)
    noise = np.zeros((len(steps), *inputs.shape[1:]), np.int64)
    noise[range(len(steps)), levels, before + steps] = 1
    both = np.concatenate([np.zeros((1, *inputs.shape[1:]), np.int64), inputs, noise])
    estimates = LiveBlocks(receiver, target, schedule, 1.0, 0.0, len(both), last).push(both, horizon)
    estimates = estimates[1:] - estimates[0]
    of_inputs, of_noise = estimates[:cycle], estimates[cycle:]
    wanted = np.zeros(time)
    wanted[lag:] = target.impulse(time - lag)
    lost = _by_horizon(wanted, of_inputs, lag) if horizon else _by_step(wanted, of_inputs[:, before:])
    mse = float(np.array(noise_variances)[levels] @ (of_noise**2).sum(axis=1)) + rounding * float((of_inputs**2).sum())
    return ErrorResponses(lost, mse / cycle)


def _by_step(wanted: Array, of_inputs: Array) -> Array:
    """Arrange responses by the step of the cycle when there is an error, and the steps since the input."""
    cycle, time = of_inputs.shape
    since = np.arange(time - cycle)
    lost = np.empty((cycle, len(since)))
    for begin, response in enumerate(of_inputs):
        lost[(begin + since) % cycle, since] = wanted[since] - response[begin + since]
    return lost


def _by_horizon(wanted: Array, of_inputs: Array, lag: int) -> Array:
    """Arrange responses by the step of the output, and the steps since the input; estimates come `lag` later."""
    steps, time = of_inputs.shape
    lost = np.zeros((steps, time))
    for begin, response in enumerate(of_inputs):
        since = np.arange(time - begin)
        step = begin + since - lag
        here = step >= 0
        lost[step[here], since[here]] = wanted[since[here]] - response[begin + since[here]]
    return lost
