"""Pictures of how the estimates of a sweep converge with the number of streams."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpfast.reports.matplotlib_helpers import (
    add_legend,
    add_note,
    explain_marks,
    label_axes,
    leftmost_panels,
    lowest_panels,
    make_panels,
    set_logarithmic,
)
from dpfast.reports.mechanism_styles import GREY, TRUTH, Style
from dpfast.reports.sweep import lines_and_panels as panels
from dpfast.simulation.intervals import mean_interval
from dpfast.simulation.sweep.result import Sweep
from dpfast.simulation.sweep.rows import Row
from dpfast.simulation.sweep.stream_blocks import BATCHES, STREAMS

_POINTS = 60  # of a line of convergence
_PREDICTED: dict[str, Any] = {"color": TRUTH, "linestyle": (0, (1, 1)), "linewidth": 0.9}


def draw_convergence(sweep: Sweep) -> Any:
    """Draw estimates with their intervals over the number of streams, beside the last one, and what was predicted.

    Of cases with several blocks, whose errors are not rare. Intervals are those of a fixed number of streams.
    """
    found = [x for x in sweep.rows if converges(x)]
    if not found:
        raise ValueError("a sweep must have a case with several blocks of streams, got one block of each: ask for more")
    shown = panels.thin_out(found)
    titles = [panels.row_name(x, panels.ordered_axes(sweep)) for x in shown]
    drawn, grid = make_panels(titles, height=1.5, sharex=True, sharey=True)
    every = panels.row_styles(sweep, panels.variant_axes(sweep))
    widest = 0.0
    for (ax,), row in zip(grid, shown, strict=True):
        widest = max(widest, _draw_convergence(ax, row, every[panels.row_name(row, panels.variant_axes(sweep))]))
    first = grid[0][0]
    first.set_ylim(-widest, widest)
    set_logarithmic(first, "x", (1, 3))
    for (ax,) in lowest_panels(grid):
        label_axes(ax, x="streams")
    for (ax,) in leftmost_panels(grid):
        label_axes(ax, y="RMSE, % from the last")
    explain_marks(first, sweep.confidence, with_rings=False)
    if any(x.predicted_rmse is not None for x in shown):
        first.plot([], [], **_PREDICTED, label="predicted")
    add_legend(drawn, first)
    several = "cases that ran on several blocks of streams, and err often enough for intervals,"
    add_note(drawn, panels.note_left_out(len(found), len(shown), several))
    return drawn


def converges(row: Row) -> bool:
    """Tell whether a row has several blocks, and an interval."""
    return len(row.batch_means) > BATCHES and not row.is_rare


def _draw_convergence(ax: Any, row: Row, look: Style) -> float:
    """Draw percent from the last estimate, and return half the height that is worth seeing."""
    n = np.unique(np.geomspace(2, len(row.batch_means), _POINTS).round().astype(int))
    ends = [mean_interval(row.batch_means[:k], 1 - row.confidence) for k in n.tolist()]
    mse, bottom, top = np.array(ends).T
    low, middle, high = (100 * (np.sqrt(np.maximum(x, 0)) / row.rmse - 1) for x in (bottom, mse, top))
    streams = n * (STREAMS // BATCHES)
    ax.axhline(0, color=GREY, linewidth=0.6)
    ax.fill_between(streams, low, high, color=look.colour, alpha=0.25, linewidth=0)
    ax.plot(streams, middle, color=look.colour, linestyle=look.line, linewidth=look.width)
    if row.predicted_rmse is not None:
        ax.axhline(100 * (row.predicted_rmse / row.rmse - 1), **_PREDICTED)
    return float((high - low)[n >= BATCHES].max())
