"""Pictures of models: the spectrum, and a sample path."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpfast.reports.matplotlib_helpers import label_axes, set_logarithmic
from dpfast.reports.mechanism_styles import GREY
from dpfast.reports.objects.frequency_axis import AxisUnit, choose_frequencies
from dpfast.signals.model import Model

COLOUR = "#009E73"
SEED = 0  # of sample paths: the same picture every time
N_SAMPLES = 200
_RANGE = 1e-10  # of the largest value: what is drawn of a spectrum with zeros
_FLAT = 2.0  # ratio of the ends of an axis, from which on it is logarithmic


def draw_spectrum(x: Model, ax: Any, period: str | None = None) -> None:
    """Draw the power spectral density over frequency; its mean over all frequencies is the variance."""
    clock, omega = AxisUnit.of(period), choose_frequencies([x.shaping])
    density = np.maximum(x.psd(omega), _RANGE * x.psd(omega).max())
    ax.plot(clock.frequencies(omega), density, color=COLOUR, linewidth=1.4)
    ax.axhline(x.variance, color=GREY, linewidth=0.8, linestyle="--")
    ax.annotate(
        "variance", (1, x.variance), xycoords=("axes fraction", "data"), ha="right", va="bottom", fontsize=7, color=GREY
    )
    low, high = min(density.min(), x.variance), max(density.max(), x.variance)
    if high / low >= _FLAT:
        ax.set_ylim(low / 1.3, high * 1.3)
        set_logarithmic(ax, "y")
    else:
        ax.set_ylim(0, 1.3 * high)
    clock.label_frequency(ax)
    label_axes(ax, "spectrum", y="power density")


def draw_path(x: Model, ax: Any, period: str | None = None) -> None:
    """Draw one simulated stream of the model, and its mean."""
    clock, path = AxisUnit.of(period), x.sample(1, N_SAMPLES, seed=SEED)[0]
    is_stepped = x.levels is not None
    ax.plot(clock.times(len(path)), path, color=COLOUR, linewidth=0.9, drawstyle="steps-mid" if is_stepped else None)
    ax.axhline(x.mean, color=GREY, linewidth=0.8, linestyle="--")
    clock.label_time(ax)
    label_axes(ax, "a simulated stream; dashed: the mean", y="value")
