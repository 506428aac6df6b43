"""Pictures of a sweep: RMSE over its axes, which mechanism errs least, sample paths, convergence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dpfast.reports.figures import explain, leftmost, legend, logarithmic, lowest, note, panels, words
from dpfast.reports.sample_paths import draw_paths, sample_paths
from dpfast.reports.styles import GREY, TRUTH, Style
from dpfast.reports.sweep import panels as lines
from dpfast.reports.sweep.curves import over
from dpfast.reports.sweep.winner_map import contested, winners
from dpfast.simulation.intervals import mean_interval
from dpfast.simulation.monte_carlo import settling_time
from dpfast.simulation.sweep.blocks import BATCHES, STREAMS
from dpfast.simulation.sweep.design_task import build_model
from dpfast.simulation.sweep.result import Sweep
from dpfast.simulation.sweep.rows import Row

MAX_PATHS = 8
_LONGEST = 100_000  # samples before those of a path, for filters that settle slowly
_POINTS = 60  # of a line of convergence
_PREDICTED: dict[str, Any] = {"color": TRUTH, "linestyle": (0, (1, 1)), "linewidth": 0.9}


def all(sweep: Sweep) -> dict[str, Any]:
    """The pictures that a sweep's axes make sense for, by the names of their files; none where all designs failed."""
    if not any(x.n_streams for x in sweep.rows):
        return {}
    numeric = [x for x in sweep.axes if lines.is_numeric(sweep, x)]
    found = {f"rmse-over-{x.replace('_', '-')}.png": over(sweep, x) for x in numeric}
    if _has_contest(sweep):
        found["winners.png"] = winners(sweep)
    found["paths.png"] = paths(sweep)
    if any(_converges(x) for x in sweep.rows):
        found["convergence.png"] = convergence(sweep)
    return found


def _has_contest(sweep: Sweep) -> bool:
    """Whether there are mechanisms to be told apart, and tasks in which that may come out otherwise."""
    contest = contested(sweep)
    return bool(contest) and any(len(sweep.axes[x]) > 1 for x in sweep.axes if x not in contest)


# --- sample paths ---------------------------------------------------------------------------------


def paths(sweep: Sweep, rows: Sequence[Row] | None = None, n_samples: int = 300) -> Any:
    """Sample paths of mechanisms over the true output, on one stream.

    By default of all mechanisms of the task in the middle of the grid. They are simulated anew, on a stream of the
    sweep's seed.
    """
    task = ""
    if rows is None:
        panel = _middle(sweep)
        rows, task = _apart(sweep, panel.rows), panel.title()
    if not rows or len({x.group for x in rows}) != 1:
        raise ValueError("rows must be of one stream and one target, and at least one")
    names = _names(sweep, rows)
    mechanisms = {name: sweep.mechanism(row) for name, row in zip(names, rows, strict=True)}
    settled = min(max(map(settling_time, mechanisms.values())), _LONGEST)
    horizons = [x.horizon for x in mechanisms.values() if x.horizon is not None]
    grid = sweep.configuration["grid"]
    model = build_model(grid["contents"][grid["cases"][rows[0].number][2]])
    after = max(settled, *(x.lag or 0 for x in mechanisms.values()))
    size = {"before": 0, "n_samples": min(horizons), "after": after} if horizons else {}
    size = {"before": settled, "n_samples": n_samples, "after": after} | size
    found = sample_paths(mechanisms, model, seed=sweep.seed, **size)
    every = lines.looks(sweep, lines.variants(sweep))
    looks = {name: every[lines.name(row, lines.variants(sweep))] for name, row in zip(names, rows, strict=True)}
    return draw_paths(
        found, ": ".join(x for x in ("Sample paths over the true output (black)", task) if x), looks=looks
    )


def _middle(sweep: Sweep) -> lines.Panel:
    """The task in the middle of those with the most mechanisms."""
    found = lines.panels(sweep, [x for x in sweep.axes if x not in lines.variants(sweep)])
    sizes = [len(_apart(sweep, x.rows)) for x in found]
    full = [x for x, size in zip(found, sizes, strict=True) if size == max(sizes)]
    return full[len(full) // 2]


def _apart(sweep: Sweep, rows: Sequence[Row]) -> list[Row]:
    """Mechanisms that there are, each of another name."""
    found = {lines.name(x, lines.variants(sweep)): x for x in rows if not x.failed}
    return lines.spread(list(found.values()), MAX_PATHS)


def _names(sweep: Sweep, rows: Sequence[Row]) -> list[str]:
    """How rows are called: by what tells mechanisms of a task apart, or else by all axes."""
    short = [lines.name(x, lines.variants(sweep)) for x in rows]
    return short if len(set(short)) == len(rows) else [lines.name(x, _axes(sweep)) for x in rows]


def _axes(sweep: Sweep) -> tuple[str, ...]:
    """All axes: first those that tell mechanisms of a task apart."""
    return tuple(dict.fromkeys([*lines.variants(sweep), *sweep.axes]))


# --- convergence ----------------------------------------------------------------------------------


def convergence(sweep: Sweep) -> Any:
    """Estimates with their intervals over the number of streams, beside the last one, and what was predicted.

    Of cases with several blocks, whose errors are not rare. Intervals are those of a fixed number of streams.
    """
    found = [x for x in sweep.rows if _converges(x)]
    if not found:
        raise ValueError("a sweep must have a case with several blocks of streams, got one block of each: ask for more")
    shown = lines.spread(found)
    titles = [lines.name(x, _axes(sweep)) for x in shown]
    drawn, grid = panels(titles, height=1.5, sharex=True, sharey=True)
    every = lines.looks(sweep, lines.variants(sweep))
    widest = 0.0
    for (ax,), row in zip(grid, shown, strict=True):
        widest = max(widest, _draw_convergence(ax, row, every[lines.name(row, lines.variants(sweep))]))
    first = grid[0][0]
    first.set_ylim(-widest, widest)
    logarithmic(first, "x", (1, 3))
    for (ax,) in lowest(grid):
        words(ax, x="streams")
    for (ax,) in leftmost(grid):
        words(ax, y="RMSE, % from the last")
    explain(first, sweep.confidence, with_rings=False)
    if any(x.predicted_rmse is not None for x in shown):
        first.plot([], [], **_PREDICTED, label="predicted")
    legend(drawn, first)
    several = "cases that ran on several blocks of streams, and err often enough for intervals,"
    note(drawn, lines.left_out(len(found), len(shown), several))
    return drawn


def _converges(row: Row) -> bool:
    return len(row.batch_means) > BATCHES and not row.is_rare


def _draw_convergence(ax: Any, row: Row, look: Style) -> float:
    """Percent from the last estimate; half the height that is worth seeing."""
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
