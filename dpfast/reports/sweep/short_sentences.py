"""Three sentences on top of the page of a sweep: who errs least, what more ε or lag buys, and what is not decided."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dpfast.reports.sweep import axis_titles
from dpfast.reports.sweep import lines_and_panels as panels
from dpfast.simulation.sweep.result import Sweep
from dpfast.simulation.sweep.rows import Cell, Row
from dpfast.simulation.sweep.winner_sentences import say_what_is_open, say_who_wins, write_range

_BUYS = ("epsilon", "lag")  # what the one who publishes may have more of


def say_in_short(sweep: Sweep, contest: tuple[str, ...]) -> list[str]:
    """Say in sentences what a sweep found between the values of some axes; nothing where nothing was simulated."""
    cells = sweep.winners(*contest) if contest else ()
    if not cells:
        return []
    said = [say_who_wins(cells, _name_best)] if any(x.second is not None for x in cells) else []
    said += [text for axis in _BUYS if axis not in contest for text in _say_what_buys(sweep, cells, axis)]
    return [*said, say_what_is_open(cells)] if said else []


def _name_best(cell: Cell, row: Row) -> str:
    """Name a row as pictures do."""
    return panels.row_name(row, cell.contest)


def known_rmse(row: Row) -> float:
    """Return the predicted RMSE, which is exact, or the simulated one where there is none."""
    return row.rmse if row.predicted_rmse is None else row.predicted_rmse


def _say_what_buys(sweep: Sweep, cells: Sequence[Cell], axis: str) -> list[str]:
    """Say by how much the least error falls from the lowest value of an axis to the highest, all else the same."""
    values = [x for x in panels.axis_values(sweep.rows, axis) if panels.is_number(x)]
    if axis not in sweep.axes or len(values) < 2:
        return []
    falls = []
    for cell in cells:
        if cell.labels.get(axis) == values[0]:
            wanted = {**cell.labels, axis: values[-1]}
            falls += [_fall(cell, x) for x in cells if dict(x.labels) == wanted]
    known = [x for x in falls if math.isfinite(x)]
    if not known:
        return []
    low, high = (axis_titles.label_text(axis, x) for x in (values[0], values[-1]))
    return [f"From {low} to {high} the least error falls by {write_range(known)} %."]


def _fall(first: Cell, last: Cell) -> float:
    before, after = known_rmse(first.best), known_rmse(last.best)
    return 100 * (1 - after / before) if before > 0 else math.nan
