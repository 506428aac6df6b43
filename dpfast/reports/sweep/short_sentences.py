"""Three sentences on top of the page of a sweep: who errs least, what more ε or lag buys, and what is not decided."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dpfast.reports.sweep import axis_titles
from dpfast.reports.sweep import lines_and_panels as panels
from dpfast.simulation.sweep.result import Sweep
from dpfast.simulation.sweep.rows import Cell, Row

_BUYS = ("epsilon", "lag")  # what the one who publishes may have more of
_MOST_NAMED = 4  # winners


def say_in_short(sweep: Sweep, contest: tuple[str, ...]) -> list[str]:
    """Say in sentences what a sweep found between the values of some axes; nothing where nothing was simulated."""
    cells = sweep.winners(*contest) if contest else ()
    if not cells:
        return []
    said = [_say_who_wins(sweep, cells)] if any(x.second is not None for x in cells) else []
    said += [text for axis in _BUYS if axis not in contest for text in _say_what_buys(sweep, cells, axis)]
    return [*said, _say_what_is_open(cells)] if said else []


def known_rmse(row: Row) -> float:
    """Return the predicted RMSE, which is exact, or the simulated one where there is none."""
    return row.rmse if row.predicted_rmse is None else row.predicted_rmse


def _say_who_wins(sweep: Sweep, cells: Sequence[Cell]) -> str:
    """Name the mechanisms that err least, in how many cases, and by how much the nearest one errs more."""
    behind: dict[str, list[float]] = {}
    for cell in cells:
        ratio = math.nan if cell.second is None else sweep.compare(cell.second, cell.best).rmse_ratio
        behind.setdefault(panels.row_name(cell.best, cell.contest), []).append(100 * (ratio - 1))
    ordered = sorted(behind, key=lambda name: -len(behind[name]))
    parts = [
        f"{name} in {len(behind[name])} of {len(cells)} cases{_write_lead(behind[name])}"
        for name in ordered[:_MOST_NAMED]
    ]
    more = len(ordered) - len(parts)
    others = f"; {more} more in the rest" if more else ""
    return f"Least error: {'; '.join(parts)}{others}."


def _write_lead(percents: Sequence[float]) -> str:
    known = [x for x in percents if math.isfinite(x)]
    return f", where the nearest errs {_write_range(known)} % more" if known else ""


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
    return [f"From {low} to {high} the least error falls by {_write_range(known)} %."]


def _fall(first: Cell, last: Cell) -> float:
    before, after = known_rmse(first.best), known_rmse(last.best)
    return 100 * (1 - after / before) if before > 0 else math.nan


def _say_what_is_open(cells: Sequence[Cell]) -> str:
    """Say which cases are not decided, and what would decide them."""
    n_open = sum(x.state == "undecided" for x in cells)
    if not n_open:
        return f"All {len(cells)} cases are decided." if len(cells) > 1 else "It is decided."
    are = "is" if n_open == 1 else "are"
    return (
        f"{n_open} of {len(cells)} cases {are} not decided: there the first two may be the other way round, and "
        "more streams (a larger budget, or decide=) would tell."
    )


def _write_range(values: Sequence[float]) -> str:
    low, high = (_write_number(x) for x in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"


def _write_number(x: float) -> str:
    return f"{x:.2g}".replace("-", "−") if abs(x) < 99.5 else f"{x:,.0f}".replace("-", "−")
