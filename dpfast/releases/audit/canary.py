"""Canaries: a person's events, as large as they may be, put into a signal that is otherwise known."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast._support.validation import Array
from dpfast.privacy.privacy import Privacy
from dpfast.releases.integer.exact_mechanism import ExactMechanism
from dpfast.releases.integer.inputs import Inputs, Integers
from dpfast.releases.noise import Noise

MOST_EVENTS = 16
_SPACINGS = 8  # beyond the smallest, that are tried
_SHARE = 0.95  # of the energy of a change, in the steps that are looked at
SAMPLES = 2**18  # that are drawn at a time


@dataclass(frozen=True, eq=False)
class Canary:
    """Two signals that differ by one person's events, and what they give before noise.

    Attributes
    ----------
    u : pair of arrays, (streams, time)
        Without and with the events, in units of the signal; the person is in all of the streams.
    x : pair of arrays of int64, (streams, memory + steps)
        The same as integers; the first event is at the first step behind the memory.
    expected : array of int64, (streams, steps)
        v without the events and without noise.
    change : array of int64, (streams, steps)
        What the events add.
    """

    u: tuple[NDArray[Any], NDArray[Any]]
    x: tuple[Integers, Integers]
    expected: Integers
    change: Integers

    @property
    def size(self) -> int:
        """The number of values that a run publishes."""
        return self.change.size

    @property
    def squared_change(self) -> float:
        """‖change‖², the squared norm of what the events change."""
        return float((self.change.astype(np.float64) ** 2).sum())

    @classmethod
    def place(cls, plan: ExactMechanism, rng: np.random.Generator, sign: int = 1) -> Canary:
        """Place events of the largest change at random, where it is largest; the rest is at or beyond the range's ends.

        sign : 1 where the first event increases its value, -1 where it decreases it.
        """
        inputs, privacy, memory = plan.inputs, plan.mechanism.privacy, plan.memory
        pattern = sign * _pattern(plan.taps, privacy)
        response = np.convolve(pattern, plan.taps)
        energy = np.cumsum(response.astype(np.float64) ** 2)
        steps = int(np.searchsorted(energy, _SHARE * energy[-1])) + 1
        shape = inputs.streams_per_person, memory + steps
        low, high = Fraction(inputs.low), Fraction(inputs.high)
        ends = np.array([float(x) for x in (low, high, low - (high - low), high + (high - low))])
        without = rng.choice(ends, shape)
        with_ = without.copy()
        for k in np.flatnonzero(pattern[:steps]):
            without[:, memory + k], with_[:, memory + k] = largest_change(inputs, privacy, int(pattern[k]))
        u = as_numbers(without), as_numbers(with_)
        accepting = inputs if u[0].dtype.kind == u[1].dtype.kind == "i" else with_floats(inputs)
        x = [replace(accepting, n_streams=shape[0]).integers(values) for values in u]
        start = int(rng.integers(memory + 1))  # what is before the first step of a stream is zero
        for values in x:
            values[:, :start] = 0
        expected, wanted = (_filter_exactly(values, plan.taps) for values in x)
        return cls(u, (x[0], x[1]), expected, wanted - expected)

    def statistic(self, plan: ExactMechanism, noise: Noise, n_runs: int, *, present: bool) -> Array:
        """Return Σ change · (v - expected) of independent runs: the matched filter, the best for Gaussian noise."""
        streams, memory = len(self.change), plan.memory
        x = np.tile(self.x[int(present)], (n_runs, 1))
        noise.ready(n_runs * self.size)
        fresh = noise.take(n_runs * self.size).reshape(n_runs * streams, -1)
        v = plan.privatize(x[:, :memory], x[:, memory:], fresh).reshape(n_runs, *self.change.shape)
        return np.asarray(
            np.einsum("rst,st->r", (v - self.expected).astype(np.float64), self.change.astype(np.float64))
        )


def statistics(
    plan: ExactMechanism,
    canaries: Sequence[Canary],
    n_runs: int,
    *,
    present: bool,
    apart: bool = False,
    advance: Callable[[int], object] = lambda n: None,
) -> Array:
    """Return the statistic of runs that publish all of the canaries, in standard deviations of the noise.

    apart : every canary in a release of its own, with noise of its own; else as pushes to one stream.
    advance : hears of the runs that are done.
    """
    size = sum(x.size for x in canaries)
    scale = plan.sigma.std * math.sqrt(sum(x.squared_change for x in canaries))
    at_once = max(1, SAMPLES // (size + sum(x.x[0].size for x in canaries)))
    result = np.zeros(n_runs)
    for first in range(0, n_runs, at_once):
        part = result[first : first + at_once]
        noise = Noise(plan.sigma)
        for i, canary in enumerate(canaries):
            source = Noise(plan.sigma) if apart and i else noise
            part += canary.statistic(plan, source, len(part), present=present)
        advance(len(part))
    return result / scale


def _pattern(taps: Integers, privacy: Privacy) -> Integers:
    """Return signs of a person's events by step, from the first on: of the patterns that are tried, the loudest."""
    events = min(privacy.max_events, MOST_EVENTS)
    if events == 1:
        return np.ones(1, np.int64)
    patterns = []
    for spacing in range(privacy.min_separation, privacy.min_separation + _SPACINGS):
        for ratio in (1, -1):
            pattern = np.zeros((events - 1) * spacing + 1, np.int64)
            pattern[::spacing] = ratio ** np.arange(events)
            patterns.append(pattern)
    return max(patterns, key=lambda x: float((np.convolve(x, taps).astype(np.float64) ** 2).sum()))


def largest_change(inputs: Inputs, privacy: Privacy, sign: int) -> tuple[float, float]:
    """Return values without and with an event that are farthest apart as integers; they may lie beyond the range."""
    size, unit = Fraction(str(privacy.max_change)), Fraction(inputs.unit)
    smallest = [Fraction(inputs.low)]
    if inputs.multiples:
        size = size // unit * unit
    else:  # from below to above thresholds of the rounding: one unit more than the change has, with integers or without
        step = (smallest[0] / unit + Fraction(1, 2) + size // unit) * unit
        smallest += [math.ceil(step) - size, step - size]
    pairs = [(float(x), float(x + size)) for x in smallest]
    best = max(pairs, key=lambda pair: float(np.ptp(with_floats(inputs, 1).integers(np.array([pair]))[0])))
    return best if sign > 0 else best[::-1]


def with_floats(inputs: Inputs, n_streams: int | None = None) -> Inputs:
    """Return the same inputs, for values that no array of integers holds."""
    missing = inputs.low if inputs.missing is None else inputs.missing
    streams = inputs.n_streams if n_streams is None else n_streams
    return replace(
        inputs, missing=missing, n_streams=streams, streams_per_person=min(inputs.streams_per_person, streams)
    )


def as_numbers(values: Array) -> NDArray[Any]:
    """Return values as integers where that is what they are: the usual way into a release."""
    whole = np.abs(values).max() < 2**53 and (values == np.rint(values)).all()
    return values.astype(np.int64) if whole else values


def _filter_exactly(x: Integers, taps: Integers) -> Integers:
    """Return what the taps give behind their memory, by another way than that of a release."""
    return np.stack([np.convolve(row, taps, "valid") for row in x])
