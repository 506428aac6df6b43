"""Pictures of a sweep: RMSE over its axes, which mechanism errs least, gains or sample paths, convergence."""

from __future__ import annotations

from typing import Any

from dpfast.reports.sweep import lines_and_panels as panels
from dpfast.reports.sweep.convergence import converges, draw_convergence
from dpfast.reports.sweep.prefilter_gains import draw_gains, has_gains
from dpfast.reports.sweep.rmse_curves import draw_over
from dpfast.reports.sweep.sweep_sample_paths import draw_sample_paths
from dpfast.reports.sweep.winner_map import contest_axes, draw_winners
from dpfast.simulation.sweep.result import Sweep


def draw_all(sweep: Sweep) -> dict[str, Any]:
    """Draw the pictures that make sense for the axes of a sweep, by the names of their files; none without a design."""
    if not any(x.n_streams for x in sweep.rows):
        return {}
    numeric = [x for x in sweep.axes if panels.is_numeric(sweep, x)]
    found = {f"rmse-over-{x.replace('_', '-')}.png": draw_over(sweep, x) for x in numeric}
    if _has_contest(sweep):
        found["winners.png"] = draw_winners(sweep)
    if has_gains(sweep):
        found["gains.png"] = draw_gains(sweep)
    if not any(x.outputs for x in sweep.rows):  # paths are of one stream
        found["paths.png"] = draw_sample_paths(sweep)
    if any(converges(x) for x in sweep.rows):
        found["convergence.png"] = draw_convergence(sweep)
    return found


def _has_contest(sweep: Sweep) -> bool:
    """Tell whether there are mechanisms to be told apart, and tasks in which that may come out otherwise."""
    contest = contest_axes(sweep)
    return bool(contest) and any(len(sweep.axes[x]) > 1 for x in sweep.axes if x not in contest)
