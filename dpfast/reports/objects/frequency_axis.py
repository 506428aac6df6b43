"""Axes of frequency and of time: in samples, or in units of the clock where the period of a sample is known."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from dpfast._support.validation import Array
from dpfast.filters.filter import Filter
from dpfast.reports.matplotlib_helpers import label_axes, set_logarithmic
from dpfast.signals.events.periods import parse_period

_SECOND = 1_000_000  # microseconds
# From periods of so many seconds on, frequencies are per hour, and so on
_UNITS = (
    (1800, "day", 86400),
    (30, "hour", 3600),
    (0.5, "minute", 60),
    (0.0, "second", 1),
)
_LOWEST = 1e-5, 0.03  # radians per sample
_N = 600
DECIBEL_RANGE = 100.0  # below the largest gain: what is drawn


class AxisUnit(NamedTuple):
    """The unit of an axis, and how many samples it has."""

    unit: str
    samples: float

    @classmethod
    def of(cls, period: str | None) -> AxisUnit:
        """Choose the unit for a period such as "5min", in which the highest frequency is a handy number.

        Examples
        --------
        >>> AxisUnit.of("5min"), AxisUnit.of(None)
        (AxisUnit(unit='hour', samples=12.0), AxisUnit(unit='sample', samples=1.0))
        """
        if period is None:
            return cls("sample", 1.0)
        seconds = int(parse_period(period).astype("timedelta64[us]").astype(np.int64)) / _SECOND
        unit, length = next((unit, length) for least, unit, length in _UNITS if seconds >= least)
        return cls(unit, length / seconds)

    def frequencies(self, omega: Array) -> Array:
        """Return angles per sample as cycles per unit."""
        return omega / (2 * np.pi) * self.samples

    def times(self, n: int) -> Array:
        """Return the times of n samples, in the unit."""
        return np.arange(n) / self.samples

    def label_frequency(self, ax: Any) -> None:
        """Make the axis logarithmic, and name it."""
        set_logarithmic(ax, "x")
        label_axes(ax, x=f"frequency (cycles per {self.unit})")

    def label_time(self, ax: Any) -> None:
        """Name the axis of time, with its unit."""
        label_axes(ax, x=f"time ({self.unit}s)")


def choose_frequencies(filters: Iterable[Filter]) -> Array:
    """Choose angles from a tenth of the finest detail of all filters to π, equally spaced on a logarithmic axis."""
    every = list(filters)
    poles = np.concatenate([np.zeros(0), *(x.poles for x in every)])
    return choose_angles(poles, max((len(x.b) for x in every), default=1))


def choose_angles(poles: Any, n_taps: int) -> Array:
    """Choose angles from a tenth of the finest detail of poles, and of so many taps, to π."""
    detail = min((1 - np.abs(poles)).min(initial=1.0), 1 / n_taps)
    return np.geomspace(np.clip(detail / 10, *_LOWEST), np.pi, _N)


def decibels(gain: Array) -> Array:
    """Return a gain in dB; a gain of zero is far below whatever is drawn."""
    return np.asarray(20 * np.log10(np.maximum(gain, np.finfo(float).tiny)))


def limit_decibels(ax: Any, curves: Iterable[Array]) -> None:
    """Limit the axis to what is within a range of the largest gain."""
    every = np.concatenate(list(curves))
    top = float(every.max())
    bottom = max(float(every.min()), top - DECIBEL_RANGE)
    room = max(0.05 * (top - bottom), 1.0)
    ax.set_ylim(bottom - room, top + room)
