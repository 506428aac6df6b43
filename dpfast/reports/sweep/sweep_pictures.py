"""Pictures of a sweep: RMSE over its axes, which mechanism errs least, sample paths, convergence."""

from __future__ import annotations

from collections.abc import Sequence
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
from dpfast.reports.sample_paths import draw_paths, simulate_paths
from dpfast.reports.styles import GREY, TRUTH, Style
from dpfast.reports.sweep import lines_and_panels as panels
from dpfast.reports.sweep.rmse_curves import draw_over
from dpfast.reports.sweep.winner_map import contest_axes, draw_winners
from dpfast.simulation.intervals import mean_interval
from dpfast.simulation.monte_carlo import settling_time
from dpfast.simulation.sweep.design_task import build_model
from dpfast.simulation.sweep.result import Sweep
from dpfast.simulation.sweep.rows import Row
from dpfast.simulation.sweep.stream_blocks import BATCHES, STREAMS

MAX_PATHS = 8
_LONGEST = 100_000  # samples before those of a path, for filters that settle slowly
_POINTS = 60  # of a line of convergence
_PREDICTED: dict[str, Any] = {"color": TRUTH, "linestyle": (0, (1, 1)), "linewidth": 0.9}


def draw_all(sweep: Sweep) -> dict[str, Any]:
    """Draw the pictures that make sense for the axes of a sweep, by the names of their files; none without a design."""
    if not any(x.n_streams for x in sweep.rows):
        return {}
    numeric = [x for x in sweep.axes if panels.is_numeric(sweep, x)]
    found = {f"rmse-over-{x.replace('_', '-')}.png": draw_over(sweep, x) for x in numeric}
    if _has_contest(sweep):
        found["winners.png"] = draw_winners(sweep)
    found["paths.png"] = draw_sample_paths(sweep)
    if any(_converges(x) for x in sweep.rows):
        found["convergence.png"] = draw_convergence(sweep)
    return found


def _has_contest(sweep: Sweep) -> bool:
    """Tell whether there are mechanisms to be told apart, and tasks in which that may come out otherwise."""
    contest = contest_axes(sweep)
    return bool(contest) and any(len(sweep.axes[x]) > 1 for x in sweep.axes if x not in contest)


# --- sample paths ---------------------------------------------------------------------------------


def draw_sample_paths(sweep: Sweep, rows: Sequence[Row] | None = None, n_samples: int = 300) -> Any:
    """Draw sample paths of mechanisms over the true output, on one stream.

    By default of all mechanisms of the task in the middle of the grid. They are simulated anew, on a stream of the
    sweep's seed.
    """
    task = ""
    if rows is None:
        panel = _middle_panel(sweep)
        rows, task = _distinct_rows(sweep, panel.rows), panel.title()
    if not rows or len({x.group for x in rows}) != 1:
        raise ValueError("rows must be of one stream and one target, and at least one")
    names = _name_rows(sweep, rows)
    mechanisms = {name: sweep.mechanism(row) for name, row in zip(names, rows, strict=True)}
    settled = min(max(map(settling_time, mechanisms.values())), _LONGEST)
    horizons = [x.horizon for x in mechanisms.values() if x.horizon is not None]
    grid = sweep.configuration["grid"]
    model = build_model(grid["contents"][grid["cases"][rows[0].number][2]])
    after = max(settled, *(x.lag or 0 for x in mechanisms.values()))
    size = {"before": 0, "n_samples": min(horizons), "after": after} if horizons else {}
    size = {"before": settled, "n_samples": n_samples, "after": after} | size
    found = simulate_paths(mechanisms, model, seed=sweep.seed, **size)
    every = panels.row_styles(sweep, panels.variant_axes(sweep))
    looks = {
        name: every[panels.row_name(row, panels.variant_axes(sweep))] for name, row in zip(names, rows, strict=True)
    }
    return draw_paths(
        found, ": ".join(x for x in ("Sample paths over the true output (black)", task) if x), looks=looks
    )


def _middle_panel(sweep: Sweep) -> panels.Panel:
    """Return the task in the middle of those with the most mechanisms."""
    found = panels.task_panels(sweep, [x for x in sweep.axes if x not in panels.variant_axes(sweep)])
    sizes = [len(_distinct_rows(sweep, x.rows)) for x in found]
    full = [x for x, size in zip(found, sizes, strict=True) if size == max(sizes)]
    return full[len(full) // 2]


def _distinct_rows(sweep: Sweep, rows: Sequence[Row]) -> list[Row]:
    """Return rows with a mechanism, each of another name, and not too many."""
    found = {panels.row_name(x, panels.variant_axes(sweep)): x for x in rows if not x.failed}
    return panels.thin_out(list(found.values()), MAX_PATHS)


def _name_rows(sweep: Sweep, rows: Sequence[Row]) -> list[str]:
    """Name rows by what tells mechanisms of a task apart, or else by all axes."""
    short = [panels.row_name(x, panels.variant_axes(sweep)) for x in rows]
    return short if len(set(short)) == len(rows) else [panels.row_name(x, _ordered_axes(sweep)) for x in rows]


def _ordered_axes(sweep: Sweep) -> tuple[str, ...]:
    """Return all axes, first those that tell mechanisms of a task apart."""
    return tuple(dict.fromkeys([*panels.variant_axes(sweep), *sweep.axes]))


# --- convergence ----------------------------------------------------------------------------------


def draw_convergence(sweep: Sweep) -> Any:
    """Draw estimates with their intervals over the number of streams, beside the last one, and what was predicted.

    Of cases with several blocks, whose errors are not rare. Intervals are those of a fixed number of streams.
    """
    found = [x for x in sweep.rows if _converges(x)]
    if not found:
        raise ValueError("a sweep must have a case with several blocks of streams, got one block of each: ask for more")
    shown = panels.thin_out(found)
    titles = [panels.row_name(x, _ordered_axes(sweep)) for x in shown]
    drawn, grid = make_panels(titles, height=1.5, sharex=True, sharey=True)
    every = panels.row_styles(sweep, panels.variant_axes(sweep))
    widest = 0.0
    for (ax,), row in zip(grid, shown, strict=True):
        widest = max(
            widest,
            _draw_convergence(ax, row, every[panels.row_name(row, panels.variant_axes(sweep))]),
        )
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


def _converges(row: Row) -> bool:
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
