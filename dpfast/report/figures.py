"""Figures without pyplot: no global state, no display. Widths are those of a column and of a page of a paper."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from typing import Any

from dpfast import _validate
from dpfast._validate import Array
from dpfast.report.styles import GREY, TRUTH, Style, styles

COLUMN, PAGE = 3.5, 7.0  # inches
TITLE, LABEL, SMALL = 8.5, 8, 7  # points, at these widths
_DPI = 200
_DECADE, _FEW_DECADES = 10, 300
_NEAR = 2.0  # times the reference: what is shown where differences are small
_MARGIN, _LEAST_ROOM = 0.12, 1e-3  # of the range, and of the values, above what is shown


def png(figure: Any) -> bytes:
    """A matplotlib figure as a picture."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=_DPI)
    return buffer.getvalue()


def figure(
    rows: int,
    columns: int = 1,
    *,
    height: float = 2.0,
    width: float = PAGE,
    ratios: Sequence[float] = (1,),
    **shared: Any,
) -> tuple[Any, Any]:
    """A figure and its axes (rows, columns); `height` is that of a row, `ratios` of heights are repeated downwards."""
    module = _validate.optional("matplotlib.figure", "plot")
    result = module.Figure(figsize=(width, height * rows + 0.5), layout="constrained")
    heights = [ratios[i % len(ratios)] for i in range(rows)]
    axes = result.subplots(rows, columns, squeeze=False, height_ratios=heights, **shared)
    for ax in axes.ravel():
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(alpha=0.25, linewidth=0.5)
        ax.tick_params(labelsize=SMALL)
    return result, axes


def panels(
    n: int, *, height: float, ratios: Sequence[float] = (1,), **shared: Any
) -> tuple[Any, list[tuple[Any, ...]]]:
    """A figure of n panels, each of axes one above the other with these ratios; the width of a page, of a column for one.

    Axes that are shared have their numbers at the lowest panel of each column.
    """
    columns = min((x for x in (1, 2, 3, 4) if x <= n), key=lambda x: (-(-n // x) if x > 1 or n == 1 else math.inf, x))
    width = COLUMN if columns == 1 else PAGE
    each = len(ratios)
    drawn, axes = figure(each * -(-n // columns), columns, height=height, width=width, ratios=ratios, **shared)
    places = [divmod(i, columns) for i in range(axes.size // each)]
    every = [tuple(axes[row * each : (row + 1) * each, column]) for row, column in places]
    for ax in (ax for of_panel in every[n:] for ax in of_panel):
        ax.remove()
    for of_panel in lowest(every[:n]):
        of_panel[-1].tick_params(labelbottom=True)
    return drawn, every[:n]


def lowest(grid: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """The lowest panel of each column."""
    return list({x[0].get_subplotspec().colspan.start: x for x in grid}.values())


def leftmost(grid: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """The first panel of each row."""
    return [x for x in grid if x[0].get_subplotspec().colspan.start == 0]


def note(drawn: Any, *texts: str) -> None:
    """Above all panels, what has to be said of them, if there is anything."""
    said = "; ".join(x for x in texts if x)
    if said:
        drawn.suptitle(said, fontsize=SMALL, color=GREY, x=0.01, ha="left", parse_math=False)


def spaced(places: Sequence[float], least: float, last: float) -> list[int]:
    """Which of several places in order to label, so that they are apart by parts of the range; the last one always."""
    room = max(places) - min(places) or 1.0
    kept: list[int] = []
    for i, x in enumerate(places[:-1]):
        if (not kept or x - places[kept[-1]] >= least * room) and places[-1] - x >= last * room:
            kept.append(i)
    return [*kept, len(places) - 1]


def words(ax: Any, title: str | None = None, x: str | None = None, y: str | None = None) -> None:
    """Title and labels of an axis, in the same sizes everywhere; what is not given is left alone."""
    if title is not None:
        ax.set_title(title, fontsize=TITLE, loc="left", parse_math=False)
    if x is not None:
        ax.set_xlabel(x, fontsize=LABEL, parse_math=False)
    if y is not None:
        ax.set_ylabel(y, fontsize=LABEL, parse_math=False)


def legend(drawn: Any, *axes: Any, columns: int = 3) -> None:
    """One legend for the figure, of all that its panels show."""
    handles = {label: line for ax in axes for line, label in zip(*ax.get_legend_handles_labels(), strict=True)}
    place = {"loc": "outside lower center", "ncols": min(columns, len(handles))}
    drawn.legend(handles.values(), handles, fontsize=SMALL, frameon=False, **place)


def plot_path(
    ax: Any,
    time: Any,
    truth: Array,
    estimates: Mapping[str, Array],
    title: str,
    looks: Mapping[str, Style] | None = None,
) -> None:
    """True output, thick and black, under the estimates; with a legend where there are several."""
    ax.plot(time, truth, color=TRUTH, linewidth=2.2, alpha=0.75, label="true output")
    known = styles(list(estimates)) if looks is None else looks
    for name, estimate in estimates.items():
        ax.plot(time, estimate, color=known[name].colour, linewidth=0.9, label=name)
    words(ax, title)
    if len(estimates) > 1:
        above = {"loc": "lower right", "bbox_to_anchor": (1, 1), "borderaxespad": 0.2}
        ax.legend(fontsize=SMALL, ncols=1 + len(estimates), frameon=False, **above)


def plot_lines(
    ax: Any,
    x: Any,
    curves: Mapping[str, Any],
    looks: Mapping[str, Style],
    title: str | None = None,
    markersize: float = 4,
) -> None:
    """Named curves over x, each in its own style; the legend is the figure's."""
    for name, y in curves.items():
        colour, line, width, alpha, marker = looks[name]
        of_line = {"color": colour, "linestyle": line, "linewidth": width, "alpha": alpha, "label": name}
        ax.plot(x, y, marker=marker, markersize=markersize, **of_line)
    words(ax, title)


def near(ax: Any, curves: Mapping[str, Sequence[float]], reference: float) -> None:
    """The axis holds the curves that come near the reference (all where it is not finite), and names those above it."""
    known = {label: [y for y in ys if not math.isnan(y)] for label, ys in curves.items()}
    lows = {label: min(ys) for label, ys in known.items() if ys}
    top = _NEAR * reference
    shown = [y for label, low in lows.items() if low <= top for y in known[label]]
    room = _MARGIN * (max(shown) - min(shown)) + _LEAST_ROOM * max(shown)
    ax.set_ylim(min(shown) - room / 2, max(shown) + room)
    above = ", ".join(f"{label} {low:.4g}" for label, low in lows.items() if low > top)
    if above:
        place = {"transform": ax.transAxes, "ha": "right", "va": "top"}
        ax.text(0.99, 0.98, f"above: {above}", fontsize=SMALL, parse_math=False, **place)


def logarithmic(ax: Any, directions: str) -> None:
    """Logarithmic "x", "y" or "xy", with plain numbers: the more, the fewer decades there are."""
    ticker = _validate.optional("matplotlib.ticker", "plot")
    for direction in directions:
        getattr(ax, f"set_{direction}scale")("log")
        axis = getattr(ax, f"{direction}axis")
        low, high = axis.get_view_interval()
        axis.set_major_locator(ticker.LogLocator(subs=_digits(high / low)))
        axis.set_major_formatter("{x:g}")
        axis.set_minor_formatter(ticker.NullFormatter())


def _digits(ratio: float) -> Sequence[int]:
    """First digits of the ticks of an axis whose ends have this ratio."""
    if ratio < _DECADE:
        return range(1, 10)
    return (1, 2, 5) if ratio < _FEW_DECADES else (1,)
