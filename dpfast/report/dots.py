"""Dot plots of simulated errors."""

from __future__ import annotations

import math
from typing import Any

from dpfast.montecarlo import Study
from dpfast.report.figures import COLUMN, explain, figure, legend, logarithmic, rings, words
from dpfast.report.styles import styles

_ROW, _FRAME = 0.2, 0.45  # inches
_MUCH = 5  # ratio of the largest to the least error, from which on the axis is logarithmic
_ROOM = 0.06  # at both ends


def draw_study(study: Study) -> Any:
    """The RMSE of each mechanism with its interval, and what was predicted of it; from the first one down."""
    drawn, axes = figure(1, height=_ROW * len(study) + _FRAME, width=COLUMN)
    ax = axes[0, 0]
    looks = styles([x.name for x in study])
    places = range(len(study))
    for y, x in zip(places, study, strict=True):
        look, (low, high) = looks[x.name], x.interval
        ax.plot([low, high], [y, y], color=look.colour, linewidth=2.2, alpha=0.5, solid_capstyle="butt")
        ax.plot([x.rmse], [y], color=look.colour, marker=look.marker, markersize=3.5)
        if x.predicted_rmse is not None:
            rings(ax, [x.predicted_rmse], [y], look)
    every = [y for x in study for y in (*x.interval, x.rmse, x.predicted_rmse) if y is not None]
    _limits(ax, min(every), max(every))
    ax.set_ylim(len(study) - 0.5, -0.5)
    ax.set_yticks(places, [x.name for x in study], parse_math=False)
    ax.grid(visible=False, axis="x")
    words(ax, x="RMSE")
    explain(ax, study.confidence, with_rings=any(x.predicted_rmse is not None for x in study))
    legend(drawn, ax, columns=2)
    return drawn


def _limits(ax: Any, low: float, high: float) -> None:
    """Room at both ends; logarithmic where errors are far apart."""
    is_wide = low > 0 and high / low >= _MUCH
    room = _ROOM * (math.log(high / low) if is_wide else high - low or 1.0)
    if is_wide:
        ax.set_xlim(low * math.exp(-room), high * math.exp(room))
        logarithmic(ax, "x")
    else:
        ax.set_xlim(low - room, high + room)
