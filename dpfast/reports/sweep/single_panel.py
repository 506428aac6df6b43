"""One picture of a sweep in given axes: of a single task, where `plot` draws a panel for each."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from dpfast.reports.sweep import lines_and_panels as panels
from dpfast.reports.sweep.rmse_curves import draw_task
from dpfast.reports.sweep.winner_map import draw_one_map
from dpfast.simulation.sweep.result import Sweep

WINNERS = "winners"


def sweep_kinds(sweep: Sweep) -> dict[str, Callable[..., None]]:
    """Return the pictures of a sweep that fit into one pair of axes."""
    numeric = [axis for axis in sweep.axes if panels.is_numeric(sweep, axis)]
    return {**{axis: partial(_draw_over, axis) for axis in numeric}, WINNERS: draw_one_map}


def _draw_over(axis: str, sweep: Sweep, ax: Any) -> None:
    draw_task(sweep, axis, ax)
