"""Maps of the mechanism that errs least, over two axes of a sweep."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from dpfast._support import validation
from dpfast.reports.hover_points import name_values
from dpfast.reports.matplotlib_helpers import COLUMN, PAGE, SMALL, add_legend, add_note, label_axes, make_figure
from dpfast.reports.mechanism_styles import GREY, TRUTH, lighten
from dpfast.reports.sweep import axis_titles
from dpfast.reports.sweep import lines_and_panels as panels
from dpfast.reports.sweep.short_sentences import known_rmse
from dpfast.simulation.sweep.parameters import Label
from dpfast.simulation.sweep.result import Sweep
from dpfast.simulation.sweep.rows import Cell

MAX_MAPS, MAX_SMALL_MAPS = 4, 12  # with names and errors in the cells one above the other; with less, side by side
_FEW = 4  # columns that a column of a paper has room for
_MOST_TOLD = 10  # columns of cells with text; more are coloured only
_LINE, _EDGES, _LOW = 0.115, 0.155, 0.25  # inches of a line of text, of what is around it, of a cell without text
_LIGHT, _LIGHTER = 0.5, 0.74  # white in the colour of a family's first mechanism, and of its last
_CAPTION = "Least RMSE, predicted where it can be, and how far the nearest mechanism is behind"
_SMALL_CAPTION = "The mechanism of the least RMSE, and by how many per cent the nearest is behind"
_MOST_BESIDE = 4
_HATCH = "////"
_SMALLEST, _TENTH, _HUNDRED = 0.01, 0.1, 99.5  # percent, with two digits
_EDGE = 0.5  # inches that a layout may take from given axes
_LEFT, _LETTER = 0.6, 0.57  # inches at the left of the cells; width of a letter of its size


class _Map(NamedTuple):
    """The layout that all maps of a figure share: labels of rows and columns, names and colours of mechanisms."""

    width: float
    rows: str | None
    columns: str | None
    down: list[Label]
    across: list[Label]
    names: tuple[str, ...]  # axes
    colours: Mapping[str, Any]
    is_small: bool

    @property
    def has_text(self) -> bool:
        """Tell whether there is room for text in the cells."""
        return len(self.across) <= _MOST_TOLD


def draw_winners(sweep: Sweep, rows: str | None = None, columns: str | None = None) -> Any:
    """Map which mechanism errs least over two axes, its RMSE, and how far the nearest is behind; hatch the undecided.

    By default over ε and the lag or δ, whichever has more values, if these are axes, or else over those with the most
    values; a map for each combination of the others. Many maps are small, and tell errors by colours and per cent.
    """
    contest = contest_axes(sweep)
    free = [x for x in sweep.axes if x not in contest]
    rows, columns = _choose_axes(sweep, free, rows, columns)
    others = [x for x in free if x not in (rows, columns)]
    found: dict[tuple[Label, ...], list[Cell]] = {}
    for cell in sweep.winners(*contest):
        found.setdefault(tuple(cell.labels[x] for x in others), []).append(cell)
    shared = _plan_map(sweep, rows, columns, contest, n_maps=len(found))
    shown = panels.thin_out(list(found), MAX_SMALL_MAPS if shared.is_small else MAX_MAPS)
    cells = [cell for labels in shown for cell in found[labels]]
    beside = _maps_beside(len(sweep.axes[others[-1]]), len(shown)) if shared.is_small else 1
    height = _cell_height(sweep, cells, shared) * len(shared.down) + 0.45
    drawn, axes = make_figure(len(shown) // beside, beside, height=height, width=shared.width)
    for ax, labels in zip(axes.ravel(), shown, strict=True):
        for cell in found[labels]:
            _draw_cell(ax, sweep, cell, shared)
        _draw_frame(ax, shared)
        label_axes(ax, ", ".join(axis_titles.label_text(x, label) for x, label in zip(others, labels, strict=True)))
    _add_legend(drawn, axes[0, 0], cells, shared)
    caption = _SMALL_CAPTION if shared.is_small and shared.has_text else _CAPTION
    add_note(drawn, caption, panels.note_left_out(len(found), len(shown)), panels.note_failed(sweep))
    return drawn


def draw_one_map(sweep: Sweep, ax: Any) -> None:
    """Draw the map of a sweep that has one into given axes.

    Raises
    ------
    ValueError
        For a sweep that needs several maps.
    """
    contest = contest_axes(sweep)
    free = [x for x in sweep.axes if x not in contest]
    rows, columns = _choose_axes(sweep, free, None, None)
    if others := [x for x in free if x not in (rows, columns) and len(sweep.axes[x]) > 1]:
        raise ValueError(
            f"the sweep must have one map to be drawn into one pair of axes: choose one by where(...) of "
            f"{', '.join(others)}, or draw all of them by dpfast.plot(x, 'winners')"
        )
    inches = ax.get_window_extent().width / ax.figure.dpi + _LEFT - _EDGE
    shared = _plan_map(sweep, rows, columns, contest, n_maps=1)._replace(width=inches)
    cells = sweep.winners(*contest)
    for cell in cells:
        _draw_cell(ax, sweep, cell, shared)
    _draw_frame(ax, shared)
    label_axes(ax, "the mechanism that errs least")
    _name_colours(ax, cells, shared)
    ax.legend(fontsize=SMALL, frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=2)


def _maps_beside(n_values: int, n_maps: int) -> int:
    """Return how many small maps stand side by side: those of all values of an axis, or what else fills all rows."""
    liked = (n_values, *range(_MOST_BESIDE, 1, -1))
    return next((x for x in liked if 1 < x <= _MOST_BESIDE and n_maps % x == 0), 1)


def _plan_map(sweep: Sweep, rows: str | None, columns: str | None, names: tuple[str, ...], n_maps: int) -> _Map:
    """Plan the layout that all maps share; whatever tells those apart that are compared is part of their names."""
    down, across = _map_values(sweep, rows), _map_values(sweep, columns)
    is_small = n_maps > MAX_MAPS
    width = PAGE if is_small or len(across) > _FEW else COLUMN
    return _Map(width, rows, columns, down, across, names, row_colours(sweep, names), is_small)


def contest_axes(sweep: Sweep) -> tuple[str, ...]:
    """Return the axes of the contest, and those that tell mechanisms of one task apart."""
    return tuple(dict.fromkeys([*sweep.contest, *panels.variant_axes(sweep)]))


def _choose_axes(
    sweep: Sweep, free: Sequence[str], rows: str | None, columns: str | None
) -> tuple[str | None, str | None]:
    for word, axis in (("rows", rows), ("columns", columns)):
        if axis is not None:
            validation.choice(word, axis, free)
    if rows is not None and rows == columns:
        raise ValueError(f"rows and columns must be different axes, got {rows!r} twice")
    second = max(("lag", "delta"), key=lambda x: len(sweep.axes[x]) if x in free else 0)
    first = [x for x in (second, "epsilon") if x in free]
    liked = dict.fromkeys([*first, *sorted(free, key=lambda x: -len(sweep.axes[x]))])
    columns = columns or next((x for x in liked if x != rows), None)
    return rows or next((x for x in liked if x != columns), None), columns


def _map_values(sweep: Sweep, axis: str | None) -> list[Label]:
    """List the values of an axis in the order of a map; None alone for a map of one row."""
    if axis is None:
        return [None]
    ordered = panels.axis_values(sweep.rows, axis)
    return [*ordered, *(x for x in sweep.axes[axis] if x not in ordered)]


def row_colours(sweep: Sweep, names: tuple[str, ...]) -> dict[str, Any]:
    """Mix colours of families with white, so that text can be read; each of a family is lighter than the last."""
    families: dict[str, list[str]] = {}
    for name, colour in panels.row_base_colours(sweep, names).items():
        families.setdefault(colour, []).append(name)
    shades = {colour: np.linspace(_LIGHT, _LIGHTER, len(some)).tolist() for colour, some in families.items()}
    return {
        name: lighten(colour, white)
        for colour, some in families.items()
        for name, white in zip(some, shades[colour], strict=True)
    }


def _cell_height(sweep: Sweep, cells: Sequence[Cell], shared: _Map) -> float:
    """Return the height of a cell in inches, from the longest text."""
    if shared.is_small or not shared.has_text:
        return _LOW
    return _LINE * max((len(_cell_lines(sweep, cell, shared)) for cell in cells), default=1) + _EDGES


def _draw_cell(ax: Any, sweep: Sweep, cell: Cell, shared: _Map) -> None:
    """Draw a cell: colour, hatching, and text."""
    x = shared.across.index(None if shared.columns is None else cell.labels[shared.columns])
    y = shared.down.index(None if shared.rows is None else cell.labels[shared.rows])
    colour = shared.colours[panels.row_name(cell.best, shared.names)]
    undecided = cell.state == "undecided"
    look = {"hatch": _HATCH, "edgecolor": "white"} if undecided else {}
    (bar,) = ax.bar(x, 1, width=1, bottom=y - 0.5, color=colour, linewidth=0, **look)
    name_values(bar, _describe_cell(sweep, cell, shared))
    if shared.has_text:
        text = _behind(sweep, cell, shared) if shared.is_small else "\n".join(_cell_lines(sweep, cell, shared))
        place: dict[str, Any] = {
            "ha": "center",
            "va": "center",
            "bbox": {"facecolor": colour, "linewidth": 0, "pad": 0.5},
        }
        ax.text(x, y, text, fontsize=SMALL, color=TRUTH, linespacing=1.15, parse_math=False, **place)


def _describe_cell(sweep: Sweep, cell: Cell, shared: _Map) -> str:
    """Say all of a cell, for those who point at it: its place, the best with its RMSE, and the nearest."""
    place = [axis_titles.label_text(x, cell.labels[x]) for x in (shared.rows, shared.columns) if x is not None]
    said = [f"{panels.row_name(cell.best, shared.names)}, RMSE {known_rmse(cell.best):.4g}"]
    if cell.second is not None:
        said.append(f"{panels.row_name(cell.second, shared.names)} {_write_behind(_percent_behind(sweep, cell))}")
    text = "; ".join([*said, *["undecided"] * (cell.state == "undecided")])
    return f"{', '.join(place)}: {text}" if place else text


def _cell_lines(sweep: Sweep, cell: Cell, shared: _Map) -> list[str]:
    """Write name and RMSE of the best, and how far the nearest is behind on the streams of both, named if it fits."""
    room = int(72 * (shared.width - _LEFT) / (_LETTER * SMALL) / len(shared.across))
    lines = [
        *textwrap.wrap(panels.row_name(cell.best, shared.names), room),
        f"{known_rmse(cell.best):#.4g}".rstrip("."),
    ]
    if cell.second is None:
        return lines
    behind = _behind(sweep, cell, shared)
    whole = f"{panels.row_name(cell.second, shared.names)} {behind}"
    return [*lines, whole if len(whole) <= room else behind]


def _behind(sweep: Sweep, cell: Cell, shared: _Map) -> str:
    """Say how far the nearest is behind the best on the streams of both; nothing where the best is alone."""
    if cell.second is None:
        return ""
    text = _write_behind(_percent_behind(sweep, cell))
    return text.strip("+ %") if shared.is_small else text


def _percent_behind(sweep: Sweep, cell: Cell) -> float:
    assert cell.second is not None, "only then it is asked for"
    return 100 * (sweep.compare(cell.second, cell.best).rmse_ratio - 1)


def _write_behind(x: float) -> str:
    if x == 0:
        return "tie"
    if 0 < x < _SMALLEST:
        return f"<{_SMALLEST:g} %"
    digits = "+.2f" if abs(x) < _TENTH else "+#.2g" if abs(x) < _HUNDRED else "+.0f"
    return f"{x:{digits}}".rstrip(".") + " %"


def _draw_frame(ax: Any, shared: _Map) -> None:
    """Set limits and labels, and draw white lines between the cells."""
    ax.grid(visible=False)
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    ax.set_xlim(-0.5, len(shared.across) - 0.5)
    ax.set_ylim(-0.5, len(shared.down) - 0.5)
    for i in range(1, len(shared.across)):
        ax.axvline(i - 0.5, color="white", linewidth=1)
    for i in range(1, len(shared.down)):
        ax.axhline(i - 0.5, color="white", linewidth=1)
    ax.set_xticks(range(len(shared.across)), [_tick_text(shared.columns, x) for x in shared.across])
    ax.set_yticks(range(len(shared.down)), [_tick_text(shared.rows, x) for x in shared.down])
    place = ax.get_subplotspec()
    label_axes(
        ax,
        None,
        _axis_text(shared.columns) if place.is_last_row() or not shared.is_small else None,
        _axis_text(shared.rows) if place.is_first_col() else None,
    )


def _tick_text(axis: str | None, label: Label) -> str:
    if axis is None:
        return ""
    return (
        f"{label:.4g}"
        if isinstance(label, float)
        else axis_titles.label_text(axis, label).removeprefix(f"{axis_titles.axis_name(axis)} ")
    )


def _axis_text(axis: str | None) -> str:
    return "" if axis is None else axis_titles.axis_title(axis)


def _add_legend(drawn: Any, ax: Any, cells: Sequence[Cell], shared: _Map) -> None:
    """Add the mechanisms that win somewhere, and what the hatching is, to the legend."""
    _name_colours(ax, cells, shared)
    add_legend(drawn, ax, columns=4 if shared.width > COLUMN else 2)


def _name_colours(ax: Any, cells: Sequence[Cell], shared: _Map) -> None:
    """Draw nothing but what a legend takes its colours from."""
    best = {panels.row_name(x.best, shared.names) for x in cells}
    for name, colour in shared.colours.items():
        if name in best:
            ax.bar([0], [0], color=colour, label=name)
    if any(x.state == "undecided" for x in cells):
        ax.bar([0], [0], color=GREY, hatch=_HATCH, edgecolor="white", linewidth=0, label="undecided")
