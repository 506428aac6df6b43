"""Curves of the RMSE over an axis of a sweep: a line for each mechanism, a panel for each task."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from dpfast._support import validation
from dpfast._support.validation import Array
from dpfast.mechanisms.lags import SMOOTHER
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
from dpfast.reports.mechanism_styles import BOUND, Style
from dpfast.reports.sweep import axis_titles
from dpfast.reports.sweep import lines_and_panels as panels
from dpfast.reports.sweep.lines_and_panels import Panel
from dpfast.simulation.study import compare_paired
from dpfast.simulation.sweep.parameters import Label
from dpfast.simulation.sweep.result import Sweep
from dpfast.simulation.sweep.rows import Row

_MUCH = 8  # ratio of the ends of an axis, from which on it is logarithmic
_GAP = 0.18  # between the last lag and the smoother, of the axis
_MOST, _LINEAR = 100.0, 1.0  # percent above the reference: what is shown, and up to where the scale is linear
_APART = 0.09  # numbers of the lag, of the axis
_PERCENT = (-10, -1, 0, 1, 10, 100)
_ROOM = 1.15  # around what is shown
_SAME = 1e-6  # of an RMSE that is at the bound
_BOUND = "lower bound, Gaussian noise"
Estimate = tuple[float, float, float]  # with its interval: low, high
Excess = dict[str, list[Estimate]]
_NAN: Estimate = (math.nan, math.nan, math.nan)


def draw_over(sweep: Sweep, axis: str) -> Any:
    """Draw the RMSE over a numeric axis with intervals, predictions and the lower bound; and how far that is away."""
    validation.choice("axis", axis, [x for x in sweep.axes if panels.is_numeric(sweep, x)])
    names = panels.line_axes(sweep, axis)
    found = _find_panels(sweep, axis, names)
    shown = panels.thin_out(found)
    curves = [_Curves.collect(sweep, x, axis, names) for x in shown]
    bounded = all(x.is_bounded for x in curves)
    excesses = [x.excess(bounded) for x in curves]
    excesses = excesses if any(_is_close(x) for x in excesses) else []
    drawn, grid = make_panels(
        [x.title() for x in shown], ratios=(1.7, 1) if excesses else (1,), height=1.35, sharex=True
    )
    looks, places = panels.row_styles(sweep, names), _Places(axis, [x for one in curves for x in one.xs])
    for i, one in enumerate(curves):
        _draw_curves(grid[i][0], one, places, looks)
        if excesses:
            _draw_excess(grid[i][1], one, excesses[i], places, looks)
    _set_axes(grid, curves, excesses, places)
    _label_axes(grid, sweep, curves, axis, "lower bound" if bounded else "the least")
    add_legend(drawn, *(x[0] for x in grid), columns=2 if len(shown) == 1 else 4)
    add_note(
        drawn,
        panels.note_left_out(len(found), len(shown)),
        panels.note_failed(sweep),
        panels.note_rare(sweep),
    )
    return drawn


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
            f"the sweep must be of one task to be drawn into one pair of axes, got {len(found)}: choose one by "
            f"where(...) of {apart}, or draw all of them by dpfast.plot"
        )
    one = _Curves.collect(sweep, found[0], axis, names)
    places = _Places(axis, one.xs)
    _draw_curves(ax, one, places, panels.row_styles(sweep, names))
    places.scale_axis(ax)
    _limit_rmse(ax, one)
    has_smoother = axis == "lag" and places.has_smoother
    label_axes(ax, found[0].title(), axis_titles.axis_title(axis, has_smoother=has_smoother), "RMSE")
    explain_marks(ax, sweep.confidence, with_rings=any(x.predicted_rmse is not None for x in sweep.rows))
    ax.legend(fontsize=SMALL, frameon=False)


def _find_panels(sweep: Sweep, axis: str, names: Sequence[str]) -> list[Panel]:
    """Return a panel for each task, without those in which the axis has one value, if there are others."""
    found = panels.task_panels(sweep, [x for x in sweep.axes if x not in (*names, axis)])
    return [x for x in found if len(panels.axis_values(x.rows, axis)) > 1] or found


def _is_close(excesses: Excess) -> bool:
    """Tell whether some are so near to the reference that they have to be told apart, besides the reference itself."""
    return any(x != 0 and x < _MOST for values in excesses.values() for x, _, _ in values)


@dataclass(frozen=True)
class _Curves:
    """The curves of a panel: rows by mechanism along the axis, or None; and the lower bound, or NaN."""

    xs: list[Label]
    rows: dict[str, list[Row | None]]
    bounds: list[float]
    confidence: float

    @classmethod
    def collect(cls, sweep: Sweep, panel: Panel, axis: str, names: Sequence[str]) -> _Curves:
        """Collect the rows of a panel; those that do not depend on the axis are everywhere on it."""
        xs = panels.axis_values(panel.rows, axis)
        rows: dict[str, list[Row | None]] = {panels.row_name(x, names): [None] * len(xs) for x in panel.rows}
        bounds: list[list[float]] = [[] for _ in xs]
        for row in panel.rows:
            bound = panels.lower_bound(sweep, row)
            for i in range(len(xs)) if axis not in row.settings else [xs.index(row.settings[axis])]:
                rows[panels.row_name(row, names)][i] = None if row.failed else row
                bounds[i] += [] if bound is None or row.failed else [bound]
        known = {name: some for name, some in rows.items() if any(some)}
        return cls(xs, known, [max(x, default=math.nan) for x in bounds], sweep.confidence)

    @property
    def is_bounded(self) -> bool:
        """True where there is a lower bound everywhere, and nothing is below, as mechanisms of other noise may be."""
        rows = [(x, bound) for some in self.rows.values() for x, bound in zip(some, self.bounds, strict=True)]
        predicted = [(x.predicted_rmse, bound) for x, bound in rows if x is not None and x.predicted_rmse is not None]
        return not any(map(math.isnan, self.bounds)) and all(x >= bound * (1 - _SAME) for x, bound in predicted)

    def rmse_estimates(self, name: str) -> list[Estimate]:
        """Return the RMSE and its interval along the axis."""
        return [_NAN if x is None else (x.rmse, *x.drawn_interval) for x in self.rows[name]]

    def ranks(self) -> dict[str, float]:
        """Rank the mechanisms from the worst, 0, to the best, below 1: the best is drawn over the others."""
        means = {
            name: float(np.mean([math.log(x.mse) if x.mse > 0 else -math.inf for x in rows if x is not None]))
            for name, rows in self.rows.items()
        }
        ordered = sorted(means, key=lambda name: -means[name])
        return {name: i / len(ordered) for i, name in enumerate(ordered)}

    def excess(self, bounded: bool) -> Excess:
        """Return percent above the lower bound, or above the least RMSE."""
        if bounded:
            return {
                name: [_excess_over_bound(*x) for x in zip(self.rows[name], self.bounds, strict=True)]
                for name in self.rows
            }
        best = [_least(some) for some in zip(*self.rows.values(), strict=True)]
        return {name: [self._excess_over(*x) for x in zip(rows, best, strict=True)] for name, rows in self.rows.items()}

    def _excess_over(self, row: Row | None, best: Row | None) -> Estimate:
        """Compare on the streams of both, which ran on the same inputs."""
        if row is None or best is None or best.mse == 0:
            return _NAN
        n = min(len(row.batch_means), len(best.batch_means))
        found = compare_paired(row.batch_means[:n], best.batch_means[:n], self.confidence, (row.sizes, best.sizes))
        mse = float(best.batch_means[:n].mean())
        low, high = (_percent(math.sqrt(max(0.0, 1 + x / mse))) for x in found.interval)
        if row.is_rare or best.is_rare:
            low = high = math.nan
        return _percent(found.rmse_ratio), low, high


def _least(rows: Sequence[Row | None]) -> Row | None:
    """Return the row of the least error; None where no mechanism has a design."""
    return min((x for x in rows if x is not None), key=lambda x: x.mse, default=None)


def _excess_over_bound(row: Row | None, bound: float) -> Estimate:
    if row is None:
        return _NAN
    low, high = row.drawn_interval
    return _percent(row.rmse / bound), _percent(low / bound), _percent(high / bound)


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


def _draw_curves(ax: Any, one: _Curves, places: _Places, looks: dict[str, Style]) -> None:
    x = places.positions(one.xs)
    if not all(map(math.isnan, one.bounds)):
        plot_lines(ax, x, {_BOUND: one.bounds}, {_BOUND: BOUND})
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


def _draw_excess(ax: Any, one: _Curves, excesses: Excess, places: _Places, looks: dict[str, Style]) -> None:
    """Draw percent above the reference: linear where they are small, logarithmic from there on."""
    ax.axhline(0, color=BOUND.colour, linewidth=BOUND.width / 2, alpha=BOUND.alpha)
    for name, values in excesses.items():
        _draw_band(ax, places.positions(one.xs), name, values, looks[name])
    ax.set_yscale("symlog", linthresh=_LINEAR, linscale=0.6)


def _set_axes(
    grid: Sequence[tuple[Any, ...]], curves: Sequence[_Curves], excesses: Sequence[Excess], places: _Places
) -> None:
    """Set limits, scales and ticks."""
    places.scale_axis(grid[0][0])
    least = min((x[1] for some in excesses for values in some.values() for x in values if x[1] < 0), default=0.0)
    for of_panel, one in zip(grid, curves, strict=True):
        _limit_rmse(of_panel[0], one)
        for below in of_panel[1:]:
            below.set_ylim(_ROOM * min(least, -_LINEAR / 2), _MOST)
            kept = [x for x in _PERCENT if x >= min(least, 0)]
            below.set_yticks(kept, [f"{x:g}" for x in kept])


def _limit_rmse(ax: Any, one: _Curves) -> None:
    """Set the limits of an axis of errors to what is drawn."""
    every = [y for y in chain(one.bounds, *(x for name in one.rows for x in one.rmse_estimates(name))) if y > 0]
    ax.set_ylim(min(every, default=1) / _ROOM, max(every, default=1) * _ROOM)
    set_logarithmic(ax, "y")


def _label_axes(
    grid: Sequence[tuple[Any, ...]], sweep: Sweep, curves: Sequence[_Curves], axis: str, reference: str
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
            label_axes(below, y=f"% above\n{reference}")
    explain_marks(grid[0][0], sweep.confidence, with_rings=any(x.predicted_rmse is not None for x in sweep.rows))


def _percent(ratio: float) -> float:
    return 100 * (ratio - 1)
