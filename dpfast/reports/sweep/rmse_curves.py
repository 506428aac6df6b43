"""Curves of the RMSE over an axis of a sweep: a line for each mechanism, a panel for each task; and their caption."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np

from dpfast._support import validation
from dpfast._support.validation import Array
from dpfast.mechanisms.lags import SMOOTHER
from dpfast.reports import mechanism_styles as styles
from dpfast.reports.matplotlib_helpers import (
    SMALL,
    add_legend,
    add_note,
    choose_apart,
    explain_marks,
    label_axes,
    leftmost_panels,
    lowest_panels,
    make_panels,
    plot_lines,
    plot_rings,
    set_logarithmic,
)
from dpfast.reports.mechanism_styles import GREY, Style
from dpfast.reports.sweep import axis_titles
from dpfast.reports.sweep import lines_and_panels as panels
from dpfast.reports.sweep.lines_and_panels import Panel
from dpfast.reports.sweep.panel_curves import ADDITIVE_BOUND, BOUND, CONSTANT, Excess, PanelCurves
from dpfast.simulation.sweep.parameters import Label
from dpfast.simulation.sweep.result import Sweep

_MUCH = 8  # ratio of the ends of an axis, from which on it is logarithmic
_GAP = 0.18  # between the last lag and the smoother, of the axis
_CLOSE = 100.0  # percent above the reference: nearer than that, differences are shown once more
_LINEAR, _SQUEEZED = 1.0, 0.6  # percent up to which the scale is linear, and its length in decades
_APART = 0.09  # numbers of the lag, of the axis
_PERCENT_APART = 0.16  # numbers of percent, of the axis, which is low
_THIN = 2.5  # points, of a bound beside which differences are small
_ROOM, _PERCENT_ROOM = 1.15, 1.5  # around what is shown
REFERENCES = {BOUND: styles.BOUND, ADDITIVE_BOUND: styles.ADDITIVE_BOUND, CONSTANT: styles.CONSTANT}
_PREDICTED = "predicted"
_SHOWN = {
    _PREDICTED: "rings the predicted errors",
    BOUND: "the thick yellow line the lower bound for linear mechanisms with Gaussian noise",
    ADDITIVE_BOUND: "the thick dashed line the additive bound, which is for linear receivers behind noise of any law, "
    "block sums too",
    CONSTANT: "grey dots the constant, which publishes the mean",
}
_ABOVE_BOUND, _ABOVE_LEAST = "% above\nlower bound", "% above\nthe least"
_BELOW = {
    _ABOVE_BOUND: "Below, all of it in percent above that lower bound.",
    _ABOVE_LEAST: "Below, all of it in percent above the mechanism that errs least there; what is below zero is less.",
}


def draw_over(sweep: Sweep, axis: str) -> Any:
    """Draw the RMSE over a numeric axis with intervals, predictions, bounds and the constant; below, how far apart.

    Below, errors are in percent above the lower bound, where it is known and nothing is below it, or else above the
    least of them.
    """
    validation.choice("axis", axis, [x for x in sweep.axes if panels.is_numeric(sweep, x)])
    names = panels.line_axes(sweep, axis)
    found = _find_panels(sweep, axis, names)
    shown = panels.thin_out(found)
    curves = [PanelCurves.collect(sweep, x, axis, names) for x in shown]
    bounded = all(x.is_bounded for x in curves)
    below = _ABOVE_BOUND if bounded else _ABOVE_LEAST
    excesses = [(x.excess(bounded), x.excess_of_references(bounded)) for x in curves]
    excesses = excesses if any(_is_close(x) for x, _ in excesses) else []
    drawn, grid = make_panels(
        [x.title() for x in shown], ratios=(1.7, 1) if excesses else (1,), height=1.35, sharex=True
    )
    looks, places = panels.row_styles(sweep, names), _Places(axis, [x for one in curves for x in one.xs])
    for i, one in enumerate(curves):
        _draw_curves(grid[i][0], one, places, looks)
        if excesses:
            _draw_excess(grid[i][1], places.positions(one.xs), *excesses[i], looks)
    _set_axes(grid, curves, excesses, places)
    _label_axes(grid, sweep, curves, axis, below)
    add_legend(drawn, *(x[0] for x in grid), columns=2 if len(shown) == 1 else 4)
    add_note(
        drawn,
        panels.note_left_out(len(found), len(shown)),
        panels.note_failed(sweep),
        panels.note_rare(sweep),
    )
    return drawn


def describe_over(drawn: Any, axis: str) -> str:
    """Say in words what such a picture shows over an axis, by what is in its legend and on its lower panels."""
    named = {x.get_text() for legend in drawn.legends for x in legend.get_texts()}
    marks = ["bands are the intervals of the simulation", *(text for name, text in _SHOWN.items() if name in named)]
    said = f"RMSE against {axis} for each mechanism: {', '.join(marks)}."
    above = {x.get_ylabel() for x in drawn.axes}
    return " ".join([said, *(text for label, text in _BELOW.items() if label in above)])


def draw_task(sweep: Sweep, axis: str, ax: Any) -> None:
    """Draw the RMSE over a numeric axis into given axes, which has room for one task.

    Raises
    ------
    ValueError
        For a sweep of several tasks.
    """
    names = panels.line_axes(sweep, axis)
    found = _find_panels(sweep, axis, names)
    if len(found) > 1:
        apart = ", ".join(dict.fromkeys(x for panel in found for x in panel.labels))
        raise ValueError(
            f"one pair of axes has room for one panel, and the sweep has {len(found)}, which differ in {apart}: choose "
            f"one by where(...) of {apart}, or draw all of them by dpfast.plot"
        )
    one = PanelCurves.collect(sweep, found[0], axis, names)
    places = _Places(axis, one.xs)
    _draw_curves(ax, one, places, panels.row_styles(sweep, names))
    places.scale_axis(ax)
    _limit_rmse(ax, one)
    has_smoother = axis == "lag" and places.has_smoother
    label_axes(ax, found[0].title(), axis_titles.axis_title(axis, has_smoother=has_smoother), "RMSE")
    explain_marks(ax, sweep.confidence, with_rings=any(x.predicted_rmse is not None for x in sweep.rows))
    ax.legend(fontsize=SMALL, framealpha=0.9, edgecolor="none")  # no curve strikes through its words


def _find_panels(sweep: Sweep, axis: str, names: Sequence[str]) -> list[Panel]:
    """Return a panel for each task, without those in which the axis has one value, if there are others."""
    found = panels.task_panels(sweep, [x for x in sweep.axes if x not in (*names, axis)])
    return [x for x in found if len(panels.axis_values(x.rows, axis)) > 1] or found


def _is_close(excesses: Excess) -> bool:
    """Tell whether some are so near to the reference that they have to be told apart, besides the reference itself."""
    return any(x != 0 and x < _CLOSE for values in excesses.values() for x, _, _ in values)


def _to_scale(x: Array) -> Array:
    """Map to a logarithmic scale with a zero; margins may be below it."""
    return np.sign(x) * np.log1p(np.abs(x))


def _from_scale(x: Array) -> Array:
    return np.sign(x) * np.expm1(np.abs(x))


class _Places:
    """A horizontal axis, which places labels: the smoother at the right end, as the latest of all lags."""

    def __init__(self, axis: str, labels: Sequence[Label]) -> None:
        self.axis = axis
        self.values = sorted({float(x) for x in labels if panels.is_number(x)})
        self.has_smoother = SMOOTHER in labels
        low, high = self.values[0], self.values[-1]
        if axis == "lag":
            self.scale = "lag"
            end = math.log1p(high) + max(_GAP * (math.log1p(high) - math.log1p(low)), _GAP)
            self.smoother = math.expm1(end)
        else:
            self.scale = "log" if low > 0 and high / low >= (1 if axis == "epsilon" else _MUCH) else "linear"

    def positions(self, labels: Sequence[Label]) -> list[float]:
        """Return the place of each label."""
        return [float(x) if panels.is_number(x) else self.smoother for x in labels]

    def scale_axis(self, ax: Any) -> None:
        """Set scale and ticks of an axis, and of those that share it."""
        if self.scale == "lag":
            ax.set_xscale("function", functions=(_to_scale, _from_scale))
            ends = [self.smoother] if self.has_smoother else []
            kept = choose_apart([math.log1p(x) for x in (*self.values, *ends)], _APART)
            shown = [[*self.values, *ends][i] for i in kept]
            ax.set_xticks(shown, ["∞" if x in ends else f"{x:g}" for x in shown])
        elif self.scale == "log":
            set_logarithmic(ax, "x")


def _draw_curves(ax: Any, one: PanelCurves, places: _Places, looks: dict[str, Style]) -> None:
    x = places.positions(one.xs)
    plot_lines(ax, x, one.references, REFERENCES)
    ranks = one.ranks()
    for name, rows in one.rows.items():
        _draw_band(ax, x, name, one.rmse_estimates(name), looks[name])
        ax.lines[-1].set_zorder(2 + ranks[name])
        predicted = [math.nan if row is None or row.predicted_rmse is None else row.predicted_rmse for row in rows]
        plot_rings(ax, x, predicted, looks[name], name)
    ax.set_yscale("log")


def _draw_band(ax: Any, x: list[float], name: str, values: Sequence[tuple[float, float, float]], look: Style) -> None:
    """Draw estimates with the band of their intervals."""
    middle, low, high = zip(*values, strict=True)
    ax.fill_between(x, low, high, color=look.colour, alpha=0.25, linewidth=0)
    plot_lines(ax, x, {name: middle}, {name: look}, markersize=2.6)


def _draw_excess(
    ax: Any, x: list[float], excess: Excess, references: dict[str, list[float]], looks: dict[str, Style]
) -> None:
    """Draw percent above the reference: linear where they are small, logarithmic from there on."""
    ax.axhline(0, color=GREY, linewidth=0.6, zorder=1)
    thinner = {name: look._replace(width=min(look.width, _THIN)) for name, look in REFERENCES.items()}
    plot_lines(ax, x, references, thinner)
    for name, values in excess.items():
        _draw_band(ax, x, name, values, looks[name])
    ax.set_yscale("symlog", linthresh=_LINEAR, linscale=_SQUEEZED)


def _set_axes(
    grid: Sequence[tuple[Any, ...]],
    curves: Sequence[PanelCurves],
    excesses: Sequence[tuple[Excess, dict[str, list[float]]]],
    places: _Places,
) -> None:
    """Set limits, scales and ticks; percent are on one scale in all panels."""
    places.scale_axis(grid[0][0])
    drawn = [y for excess, _ in excesses for values in excess.values() for of_row in values for y in of_row]
    drawn += [y for _, references in excesses for values in references.values() for y in values]
    known = [y for y in drawn if math.isfinite(y)]
    low, high = (_PERCENT_ROOM * x for x in (min([-_LINEAR / 2, *known]), max([_LINEAR, *known])))
    for of_panel, one in zip(grid, curves, strict=True):
        _limit_rmse(of_panel[0], one)
        for below in of_panel[1:]:
            below.set_ylim(low, high)
            kept = _percent_ticks(low, high)
            below.set_yticks(kept, [f"{x:g}".replace("-", "−") for x in kept])


def _percent_ticks(low: float, high: float) -> list[float]:
    """Choose zero and powers of ten with both signs that are far enough apart, the larger ones first."""
    decades = [10.0**k for k in range(math.floor(math.log10(high)), -1, -1)]
    kept = [0.0]
    room = _PERCENT_APART * (_percent_place(high) - _percent_place(low))
    for x in (sign * y for sign in (1, -1) for y in decades):
        if low <= x <= high and all(abs(_percent_place(x) - _percent_place(y)) >= room for y in kept):
            kept.append(x)
    return sorted(kept)


def _percent_place(x: float) -> float:
    """Return the place on the axis of percent, in decades."""
    least = min(abs(x), _LINEAR)
    return math.copysign(_SQUEEZED * least / _LINEAR + math.log10(max(abs(x) / _LINEAR, 1)), x)


def _limit_rmse(ax: Any, one: PanelCurves) -> None:
    """Set the limits of an axis of errors to what is drawn."""
    every = [
        y for y in chain(*one.references.values(), *(x for name in one.rows for x in one.rmse_estimates(name))) if y > 0
    ]
    ax.set_ylim(min(every, default=1) / _ROOM, max(every, default=1) * _ROOM)
    set_logarithmic(ax, "y")


def _label_axes(
    grid: Sequence[tuple[Any, ...]], sweep: Sweep, curves: Sequence[PanelCurves], axis: str, percent: str
) -> None:
    """Name the axes, at the left and below; and tell in the legend what rings and bands are."""
    for of_panel in lowest_panels(grid):
        label_axes(
            of_panel[-1],
            x=axis_titles.axis_title(axis, has_smoother=axis == "lag" and any(SMOOTHER in x.xs for x in curves)),
        )
    for of_panel in leftmost_panels(grid):
        label_axes(of_panel[0], y="RMSE")
        for below in of_panel[1:]:
            label_axes(below, y=percent)
    explain_marks(grid[0][0], sweep.confidence, with_rings=any(x.predicted_rmse is not None for x in sweep.rows))
