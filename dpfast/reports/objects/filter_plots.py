"""Pictures of targets: the gain of a filter, and an impulse response."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpfast.filters.filter import Filter
from dpfast.filters.toeplitz import Toeplitz
from dpfast.reports.matplotlib_helpers import label_axes
from dpfast.reports.mechanism_styles import GREY
from dpfast.reports.objects.frequency_axis import AxisUnit, choose_frequencies, decibels, limit_decibels

COLOUR = "#0072B2"
_SETTLED = 0.01  # of the largest value: where a response is over
_FEW, _MOST = 16, 400  # samples that are shown
_STEMS = 60  # samples, beyond which a response is a line


def draw_gain(x: Filter, ax: Any, period: str | None = None) -> None:
    """Draw the gain in dB over frequency."""
    clock, omega = AxisUnit.of(period), choose_frequencies([x])
    gain = decibels(np.abs(x.response(omega)))
    ax.plot(clock.frequencies(omega), gain, color=COLOUR, linewidth=1.4)
    limit_decibels(ax, [gain])
    clock.label_frequency(ax)
    label_axes(ax, "gain", y="gain (dB)")


def draw_impulse(x: Filter | Toeplitz, ax: Any, period: str | None = None) -> None:
    """Draw the impulse response until it has decayed, or all coefficients of a target over a horizon."""
    n = _MOST if x.horizon is not None else int(np.clip(len(x.b) + x.settling_time(_SETTLED), _FEW, _MOST))
    response, clock = x.impulse(n), AxisUnit.of(period)
    times = clock.times(len(response))
    ax.axhline(0, color=GREY, linewidth=0.6)
    if len(response) <= _STEMS:
        ax.vlines(times, 0, response, color=COLOUR, linewidth=1)
        ax.plot(times, response, color=COLOUR, linestyle="", marker="o", markersize=2.5)
    else:
        ax.plot(times, response, color=COLOUR, linewidth=1.2)
    clock.label_time(ax)
    label_axes(ax, "impulse response", y="response")
