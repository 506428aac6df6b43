"""FIR decision-feedback equaliser (Voois 1996)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpfast._kernels._jit import kernel

Array = NDArray[np.float64]


class Equalizer(NamedTuple):
    """û_t = decision(Σ forward[i] v[t - i] + Σ feedback[j] û[t - 1 - j]), an estimate of u[t - lag].

    Hard decisions take levels[j] where `thresholds` (between neighbours) say so; soft ones the mean of the levels
    with weights exp(offsets + slopes · ũ).
    """

    forward: Array
    feedback: Array
    levels: Array
    thresholds: Array
    slopes: Array
    offsets: Array
    soft: bool
    lag: int


@kernel
def nearest(levels: Array, thresholds: Array, value: float) -> float:
    """The level in whose interval the value lies."""
    return float(levels[np.searchsorted(thresholds, value)])


@kernel
def posterior_mean(levels: Array, slopes: Array, offsets: Array, value: float) -> float:
    """Mean of the levels with weights exp(offsets + slopes · value)."""
    largest = -math.inf
    for j in range(len(levels)):
        largest = max(largest, offsets[j] + slopes[j] * value)
    total = weighted = 0.0
    for j in range(len(levels)):
        weight = math.exp(offsets[j] + slopes[j] * value - largest)
        total += weight
        weighted += weight * levels[j]
    return weighted / total


@kernel
def decide(equalizer: Equalizer, past: Array, start: int, x: Array) -> None:
    """Decisions in place of the forward filter's output x (streams, time).

    past : (streams, len(feedback)) the last decisions, newest first; updated.
    start : time of the first sample; before `lag` there is nothing to decide on, and the decision is zero.
    """
    n = len(equalizer.feedback)
    for i in range(x.shape[0]):
        extended = np.concatenate((past[i, ::-1], x[i]))
        for t in range(n, len(extended)):
            if start + t - n < equalizer.lag:
                extended[t] = 0.0
                continue
            value = extended[t]
            for j in range(n - 1, -1, -1):
                value += equalizer.feedback[j] * extended[t - 1 - j]
            if equalizer.soft:
                extended[t] = posterior_mean(equalizer.levels, equalizer.slopes, equalizer.offsets, value)
            else:
                extended[t] = nearest(equalizer.levels, equalizer.thresholds, value)
        x[i] = extended[n:]
        past[i] = extended[len(extended) - n :][::-1]
