"""A whole signal goes through a mechanism at once, or in pieces that go on where the last one ended."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dpfast._support.validation import Array
from dpfast.releases.integer.exact_base import ExactBase
from dpfast.releases.integer.inputs import Integers
from dpfast.releases.integer.receiver_parts import ReceiverParts
from dpfast.releases.noise import NoiseOfLaws

_SAMPLES = 2**23  # of a piece: noise and filters take a few times as many numbers


def run_mechanism(plan: ExactBase, x: Integers) -> tuple[Integers, Array]:
    """Return v and the estimates of integers, with noise that is drawn before each piece is looked at.

    Parameters
    ----------
    plan : ExactBase
    x : array of int64, (streams, n)

    Returns
    -------
    v : array of int64, (rows, n + lag), or (rows, per_step, n + lag)
        Of each stream or, where streams are published together, of each channel. Behind the inputs there are declared
        zeros, which flush the receiver.
    estimate : array, (rows, n)
        Of each stream or output.
    """
    n, streams = x.shape[1], plan.published_rows(len(x))
    lag, at_once = plan.lag or 0, max(1, _SAMPLES // (streams * plan.per_step))
    if n + lag <= at_once:
        ((_, v),) = _privatized(plan, x, at_once)
        return v, plan.estimate(v, end=n)[:, lag:]
    whole = np.empty((streams, n + lag) if plan.per_step == 1 else (streams, plan.per_step, n + lag), np.int64)
    estimate = np.empty((plan.estimated_rows(len(x)), n))
    receiver = None if plan.lag is None else ReceiverParts(plan)
    for first, v in _privatized(plan, x, at_once):
        end = first + v.shape[-1]
        whole[..., first:end] = v
        if receiver is not None:
            found = receiver.push(v, end=n)
            estimate[:, max(0, first - lag) : max(0, end - lag)] = found[:, max(0, lag - first) :]
    if receiver is None:
        rows = max(1, _SAMPLES // n)
        for i in range(0, streams, rows):
            estimate[i : i + rows] = plan.estimate(whole[i : i + rows], end=n)
    return whole, estimate


def _privatized(plan: ExactBase, x: Integers, at_once: int) -> Iterator[tuple[int, Integers]]:
    """Yield the first step of each piece, and v of it."""
    (streams, n), noise = x.shape, NoiseOfLaws.of(plan.drawn_laws)
    rows = plan.noise_rows(streams)
    total = n + (plan.lag or 0)
    for first in range(0, max(1, total), at_once):
        count = min(at_once, total - first)
        n_draws = plan.n_draws(first, count, end=n)
        noise.ready(rows, n_draws)
        piece = x[:, first : first + count]
        flushed = np.concatenate([piece, np.zeros((streams, count - piece.shape[1]), np.int64)], axis=1)
        drawn = noise.take(rows, n_draws)
        yield first, plan.privatize(_before(plan, x, first), flushed, drawn, first, end=n)


def _before(plan: ExactBase, x: Integers, first: int) -> Integers:
    """Return the inputs before a step that what follows depends on; declared zeros are among them behind the end."""
    needed, (streams, n) = plan.needed(first), x.shape
    zeros = np.zeros((streams, max(0, min(first - n, needed))), np.int64)
    return np.concatenate([x[:, first - needed : first], zeros], axis=1)
