"""Maps of which mechanism errs least over two axes of a sweep."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dpfast import _validate
from dpfast.report.figures import PAGE, SMALL, figure, legend, note, words
from dpfast.report.styles import GREY, TRUTH, Style, lighter
from dpfast.studies import lines
from dpfast.studies.curves import failed, left_out, spread
from dpfast.studies.result import Sweep
from dpfast.studies.rows import Cell
from dpfast.studies.values import Label

MAX_MAPS = 4
_LIGHT, _LIGHTER = 0.45, 0.72  # white in the colour of a family's first mechanism, and of its others
_CELL = 0.47  # inches, the height of three lines of text
_HATCH = "////"
Labels = dict[str, Label]


def winners(sweep: Sweep, rows: str | None = None, columns: str | None = None) -> Any:
    """Which mechanism errs least, over two axes: its RMSE, and how far the nearest one is behind; hatched if undecided.

    The axes are by default those with the most values; over the others there is a map for each combination.
    """
    contest = contested(sweep)
    free = [x for x in sweep.axes if x not in contest]
    rows, columns = _axes(sweep, free, rows, columns)
    others = [x for x in free if x not in (rows, columns)]
    cells = sweep.winners(*contest)
    several: dict[tuple[Label, ...], list[Cell]] = {}
    for cell in cells:
        several.setdefault(tuple(cell.labels[x] for x in others), []).append(cell)
    shown = spread(list(several), MAX_MAPS)
    names = lines.variants(sweep)
    down, across = _values(sweep, rows), _values(sweep, columns)
    drawn, axes = figure(len(shown), 1, height=_CELL * len(down) + 0.4, width=PAGE)
    looks = lines.looks(sweep, names)
    for (ax,), labels in zip(axes, shown, strict=True):
        for cell in several[labels]:
            place = (across.index(cell.labels.get(columns)), down.index(cell.labels.get(rows)))
            _draw(ax, cell, place, names, looks)
        _frame(ax, rows, down, columns, across)
        words(ax, lines.titled(dict(zip(others, labels, strict=True))))
    _legend(drawn, axes[0, 0], [x for some in shown for x in several[some]], names, looks)
    note(drawn, left_out(len(several), len(shown)), failed(sweep))
    return drawn
