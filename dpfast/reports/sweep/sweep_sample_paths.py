"""Sample paths of the mechanisms of a sweep, over the true output."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dpfast.mechanisms.mechanism_kinds import AnyChannels
from dpfast.reports.sample_paths import draw_paths, simulate_paths
from dpfast.reports.sweep import lines_and_panels as panels
from dpfast.simulation.prepared_study import settling_time
from dpfast.simulation.sweep.result import Sweep
from dpfast.simulation.sweep.rows import Row
from dpfast.simulation.sweep.several_streams import build_models

MAX_PATHS = 8
_LONGEST = 100_000  # samples before those of a path, for filters that settle slowly


def draw_sample_paths(sweep: Sweep, rows: Sequence[Row] | None = None, n_samples: int = 300) -> Any:
    """Draw sample paths of mechanisms over the true output, on one stream.

    By default of all mechanisms of the task in the middle of the grid. They are simulated anew, on a stream of the
    sweep's seed.
    """
    task = ""
    if rows is None:
        panel = middle_panel(sweep)
        rows, task = distinct_rows(sweep, panel.rows), panel.title()
    if not rows or len({x.group for x in rows}) != 1:
        raise ValueError("rows must be of one stream and one target, and at least one")
    names = name_rows(sweep, rows)
    made = {name: sweep.mechanism(row) for name, row in zip(names, rows, strict=True)}
    mechanisms = {name: x for name, x in made.items() if not isinstance(x, AnyChannels)}
    if len(mechanisms) < len(made):
        raise ValueError("rows must be of mechanisms of one stream, got some of several: there is the picture 'gains'")
    settled = min(max(map(settling_time, mechanisms.values())), _LONGEST)
    horizons = [x.horizon for x in mechanisms.values() if x.horizon is not None]
    grid = sweep.configuration["grid"]
    model = build_models(grid["contents"][grid["cases"][rows[0].number][2]])
    after = max(settled, *(x.lag or 0 for x in mechanisms.values()))
    size = {"before": 0, "n_samples": min(horizons), "after": after} if horizons else {}
    size = {"before": settled, "n_samples": n_samples, "after": after} | size
    found = simulate_paths(mechanisms, model, seed=sweep.seed, **size)
    every = panels.row_styles(sweep, panels.variant_axes(sweep))
    looks = {
        name: every[panels.row_name(row, panels.variant_axes(sweep))] for name, row in zip(names, rows, strict=True)
    }
    title = ": ".join(x for x in ("Sample paths over the true output (black)", task) if x)
    return draw_paths(found, title, looks=looks)


def middle_panel(sweep: Sweep) -> panels.Panel:
    """Return the task in the middle of those with the most mechanisms."""
    found = panels.task_panels(sweep, [x for x in sweep.axes if x not in panels.variant_axes(sweep)])
    sizes = [len(distinct_rows(sweep, x.rows)) for x in found]
    full = [x for x, size in zip(found, sizes, strict=True) if size == max(sizes)]
    return full[len(full) // 2]


def distinct_rows(sweep: Sweep, rows: Sequence[Row]) -> list[Row]:
    """Return rows with a mechanism, each of another name, and not too many."""
    found = {panels.row_name(x, panels.variant_axes(sweep)): x for x in rows if not x.failed}
    return panels.thin_out(list(found.values()), MAX_PATHS)


def name_rows(sweep: Sweep, rows: Sequence[Row]) -> list[str]:
    """Name rows by what tells mechanisms of a task apart, or else by all axes."""
    short = [panels.row_name(x, panels.variant_axes(sweep)) for x in rows]
    return short if len(set(short)) == len(rows) else [panels.row_name(x, panels.ordered_axes(sweep)) for x in rows]
