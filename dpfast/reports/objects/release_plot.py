"""The picture of a release: published estimates with their band."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpfast._support import validation
from dpfast._support.dataframes import axis_labels
from dpfast.releases.batch import Release
from dpfast.releases.model_check.verdict import BAND
from dpfast.reports.matplotlib_helpers import SMALL, label_axes
from dpfast.reports.release.published_sections import half_widths, plain_estimates

COLOUR = "#0072B2"
_ROOM = 0.3  # of the height, for the legend above the estimates


def draw_estimate(x: Release, ax: Any, stream: int = 0) -> None:
    """Draw the estimates of one stream, and the band in which the true output lies in 95 % of the steps."""
    estimates = plain_estimates(x)
    stream = validation.integer("stream", stream, 0, len(estimates) - 1)
    y, half = estimates[stream], half_widths(x, len(estimates))[stream]
    of_data, names = axis_labels(x.estimate)
    times = of_data if x.times is None else np.asarray(x.times)
    unit = "step" if times is None else "time"
    if times is None:
        times = np.arange(x.first, x.first + len(y))
    if half is not None and len(y):
        source = "estimated" if x.model_check.band is not None else "predicted"
        words = f"±{half:.3g}, {BAND:.3g} × the {source} error"
        ax.fill_between(times, y - half, y + half, color=COLOUR, alpha=0.2, linewidth=0, step="mid", label=words)
    ax.plot(times, y, color=COLOUR, linewidth=1.0, drawstyle="steps-mid", label="published estimate")
    names = names if x.outputs is None else list(x.outputs)
    label_axes(ax, f"stream {stream + 1}" if names is None else names[stream], unit, "estimate")
    if times.dtype.kind == "M":
        ax.tick_params(axis="x", rotation=20)
    bottom, top = ax.get_ylim()
    ax.set_ylim(bottom, top + _ROOM * (top - bottom))
    ax.legend(fontsize=SMALL, frameon=False, loc="upper left")
