"""Dot plots of simulated errors."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dpfast.reports.matplotlib_helpers import (
    PAGE,
    SMALL,
    add_legend,
    explain_marks,
    label_axes,
    make_figure,
    plot_rings,
    set_logarithmic,
)
from dpfast.reports.mechanism_styles import GREY, Style, choose_styles
from dpfast.simulation.study import Result, Study

_ROW, _FRAME = 0.2, 0.45  # inches
_MUCH = 5  # ratio of the largest to the least error, from which on the axis is logarithmic
_ROOM = 0.06  # at both ends
_NOWHERE = math.nan


def draw_study(study: Study) -> Any:
    """Draw the RMSE of each mechanism, and what was predicted of it; beside it, how far it is from that, in percent.

    With intervals; in the order of the study, from the top down.
    """
    results, looks = study.rows, choose_styles([x.name for x in study.rows])
    known = any(x.predicted_rmse for x in results)
    drawn, axes = make_figure(1, 1 + known, height=_ROW * len(results) + _FRAME, width=PAGE, sharey=True)
    _draw_errors(axes[0, 0], results, looks)
    if known:
        _draw_distance(axes[0, 1], results, looks)
    explain_marks(axes[0, 0], study.confidence, with_rings=known)
    add_legend(drawn, axes[0, 0])
    return drawn


def study_kinds(study: Study) -> dict[str, Callable[..., None]]:
    """Return the pictures of a study that fit into one pair of axes."""
    known = any(x.predicted_rmse for x in study)
    return {"rmse": _draw_errors_alone} | ({"distance": _draw_distance_alone} if known else {})


def _draw_errors_alone(study: Study, ax: Any) -> None:
    results = study.rows
    _draw_errors(ax, results, choose_styles([x.name for x in study.rows]))
    explain_marks(ax, study.confidence, with_rings=any(x.predicted_rmse for x in results))
    ax.legend(fontsize=SMALL, frameon=False, loc="best")


def _draw_distance_alone(study: Study, ax: Any) -> None:
    results = study.rows
    _draw_distance(ax, results, choose_styles([x.name for x in study.rows]))
    _name_rows(ax, results)


def _draw_errors(ax: Any, results: Sequence[Result], looks: Mapping[str, Style]) -> None:
    for y, x in enumerate(results):
        _draw_dot(ax, y, (x.rmse, *x.drawn_interval), looks[x.name])
        plot_rings(ax, [_NOWHERE if x.predicted_rmse is None else x.predicted_rmse], [y], looks[x.name])
    _set_limits(ax, results)
    label_axes(ax, x="RMSE")
    _name_rows(ax, results)


def _name_rows(ax: Any, results: Sequence[Result]) -> None:
    ax.set_ylim(len(results) - 0.5, -0.5)
    ax.set_yticks(range(len(results)), [x.name for x in results], parse_math=False)


def _draw_distance(ax: Any, results: Sequence[Result], looks: Mapping[str, Style]) -> None:
    ax.axvline(0, color=GREY, linewidth=0.6)
    for y, x in enumerate(results):
        if x.predicted_rmse:
            _draw_dot(
                ax, y, [100 * (rmse / x.predicted_rmse - 1) for rmse in (x.rmse, *x.drawn_interval)], looks[x.name]
            )
    label_axes(ax, x="% above what was predicted")


def _draw_dot(ax: Any, y: float, estimate: Sequence[float], look: Style) -> None:
    """Draw an estimate on its interval."""
    middle, low, high = estimate
    ax.plot([low, high], [y, y], color=look.colour, linewidth=3, alpha=0.4, solid_capstyle="butt")
    ax.plot([middle], [y], color=look.colour, marker=look.marker, markersize=3)


def _set_limits(ax: Any, results: Sequence[Result]) -> None:
    """Set limits with room at both ends; logarithmic where errors are far apart."""
    found = [y for x in results for y in (*x.drawn_interval, x.rmse, x.predicted_rmse)]
    every = [y for y in found if y is not None and not math.isnan(y)]
    low, high = min(every), max(every)
    is_wide = low > 0 and high / low >= _MUCH
    room = _ROOM * (math.log(high / low) if is_wide else high - low or 1.0)
    if is_wide:
        ax.set_xlim(low * math.exp(-room), high * math.exp(room))
        set_logarithmic(ax, "x")
    else:
        ax.set_xlim(low - room, high + room)
