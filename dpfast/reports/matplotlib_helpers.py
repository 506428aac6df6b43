"""Figures without pyplot: no global state, no display. Widths are those of a column and of a page of a paper."""

from __future__ import annotations

import io
import math
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from dpfast._support import validation
from dpfast._support.validation import Array
from dpfast.reports.hover_points import name_values
from dpfast.reports.mechanism_styles import GREY, TRUTH, Style, choose_styles

COLUMN, PAGE = 3.5, 7.0  # inches
TITLE, LABEL, SMALL = 8.5, 8, 7  # points, at these widths
_DPI = 200
# The ratio of the ends of a logarithmic axis gives the first digits of its numbers; none: those of a linear axis.
_DIGITS: dict[float, tuple[int, ...]] = {2.5: (), 12: (1, 2, 3, 5), 300: (1, 2, 5), math.inf: (1,)}
_MOST_COLUMNS = 4
_FIXED = "\u00a0"  # a space at which no line ends
_LETTER, _FRAME = 0.56, 24  # width of a letter of its size; points of a panel that are left of its title
_NEAR = 2.0  # times the reference: what is shown where differences are small
_MARGIN, _LEAST_ROOM = 0.12, 1e-3  # of the range, and of the values, above what is shown
_LINE, _LINE_HEIGHT = 110, 0.08  # letters in a line of names on a picture, and its height as a part of an axis


def render_png(figure: Any, dpi: int = _DPI) -> bytes:
    """Render a matplotlib figure as a PNG file."""
    agg = validation.optional("matplotlib.backends.backend_agg", "plot")
    buffer = io.BytesIO()
    figure.set_dpi(dpi)
    agg.FigureCanvasAgg(figure).print_png(buffer)  # savefig would draw all of it twice, the first time for the layout
    return buffer.getvalue()


def make_figure(
    rows: int,
    columns: int = 1,
    *,
    height: float = 2.0,
    width: float = PAGE,
    ratios: Sequence[float] = (1,),
    **shared: Any,
) -> tuple[Any, Any]:
    """Make a figure and its axes (rows, columns); `height` is that of a row, `ratios` of heights repeat downwards."""
    module = validation.optional("matplotlib.figure", "plot")
    result = module.Figure(figsize=(width, height * rows + 0.5), layout="constrained")
    heights = [ratios[i % len(ratios)] for i in range(rows)]
    axes = result.subplots(rows, columns, squeeze=False, height_ratios=heights, **shared)
    for ax in axes.ravel():
        style_axes(ax)
    return result, axes


def make_axes(width: float, height: float) -> Any:
    """Make axes in a new figure of pyplot, which notebooks and `pyplot.show` show."""
    pyplot = validation.optional("matplotlib.pyplot", "plot")
    return pyplot.subplots(figsize=(width, height), layout="constrained")[1]


def style_axes(ax: Any) -> None:
    """Give axes the frame, the grid and the letters of all pictures."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(alpha=0.25, linewidth=0.5)
    ax.tick_params(labelsize=SMALL)


def make_panels(
    titles: Sequence[str], *, height: float, ratios: Sequence[float] = (1,), **shared: Any
) -> tuple[Any, list[tuple[Any, ...]]]:
    """Make a figure with a panel for each title; a panel has axes one above the other with these ratios.

    It is as wide as a page; a single panel as a column. Axes that are shared have their numbers at the lowest panels,
    or at all of them where the last row is not full.
    """
    n, each = len(titles), len(ratios)
    columns = n if n < _MOST_COLUMNS else min((3, 4), key=lambda x: -(-n // x))
    width = COLUMN if columns == 1 else PAGE
    drawn, axes = make_figure(each * -(-n // columns), columns, height=height, width=width, ratios=ratios, **shared)
    places = [divmod(i, columns) for i in range(axes.size // each)]
    every = [tuple(axes[row * each : (row + 1) * each, column]) for row, column in places]
    for ax in (ax for of_panel in every[n:] for ax in of_panel):
        ax.remove()
    n_letters = int((72 * width / columns - _FRAME) / (_LETTER * TITLE))
    for of_panel, title in zip(every, titles, strict=False):
        label_axes(of_panel[0], _wrap(title, n_letters))
        of_panel[-1].tick_params(labelbottom=len(every) > n or of_panel in every[n - columns : n])
    return drawn, every[:n]


def _wrap(text: str, n_letters: int, mark: str = ",") -> str:
    """Break a text into lines that end after a mark, if that can be, or else after a word."""
    pieces = text.replace(f"{mark} ", f"{mark}\n").split("\n")
    fixed = " ".join(x if len(x) > n_letters else x.replace(" ", _FIXED) for x in pieces)
    return "\n".join(x.replace(_FIXED, " ").strip() for x in textwrap.wrap(fixed, n_letters))


def lowest_panels(grid: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Return the panels of the last row."""
    last = max(x[0].get_subplotspec().rowspan.start for x in grid)
    return [x for x in grid if x[0].get_subplotspec().rowspan.start == last]


def leftmost_panels(grid: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Return the first panel of each row."""
    return [x for x in grid if x[0].get_subplotspec().colspan.start == 0]


def add_note(drawn: Any, *texts: str) -> None:
    """Write above all panels what has to be said of them; nothing where all texts are empty."""
    text = "; ".join(x for x in texts if x)
    if text:
        drawn.suptitle(
            _wrap(text, int(72 * drawn.get_figwidth() / (_LETTER * SMALL)), ";"),
            fontsize=SMALL,
            color=GREY,
            x=0.01,
            ha="left",
            parse_math=False,
        )


def choose_apart(places: Sequence[float], least: float) -> list[int]:
    """Choose which of several ordered places to label: the last, and others that are apart by a part of the range."""
    room = least * (max(places) - min(places))
    kept: list[int] = []
    for i, x in enumerate(places[:-1]):
        if (not kept or x - places[kept[-1]] >= room) and places[-1] - x >= room:
            kept.append(i)
    return [*kept, len(places) - 1]


def label_axes(ax: Any, title: str | None = None, x: str | None = None, y: str | None = None) -> None:
    """Set title and labels of an axis, in the same sizes everywhere; what is not given is left alone."""
    if title is not None:
        ax.set_title(title, fontsize=TITLE, loc="left", parse_math=False)
    if x is not None:
        ax.set_xlabel(x, fontsize=LABEL, parse_math=False)
    if y is not None:
        ax.set_ylabel(y, fontsize=LABEL, parse_math=False)


def add_legend(drawn: Any, *axes: Any, columns: int = 3) -> None:
    """Add one legend to the figure, for all that its panels show, in fewer columns where it would be too wide."""
    handles = {label: line for ax in axes for line, label in zip(*ax.get_legend_handles_labels(), strict=True)}
    for n in range(min(columns, len(handles)), 0, -1):
        place = {"loc": "outside lower center", "ncols": n}
        legend = drawn.legend(handles.values(), handles, fontsize=SMALL, frameon=False, **place)
        if n == 1 or legend.get_window_extent().width <= drawn.bbox.width:
            return
        legend.remove()


def plot_path(
    ax: Any,
    time: Any,
    truth: Array,
    estimates: Mapping[str, Array],
    title: str,
    looks: Mapping[str, Style] | None = None,
) -> None:
    """Plot the true output, thick and black, under the estimates; with a legend where there are several."""
    ax.plot(time, truth, color=TRUTH, linewidth=2.2, alpha=0.75, label="true output")
    known = choose_styles(list(estimates)) if looks is None else looks
    for name, estimate in estimates.items():
        ax.plot(time, estimate, color=known[name].colour, linewidth=0.9, label=name)
    label_axes(ax, title)
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
    """Plot named curves over x, each in its own style; the legend is the figure's."""
    for name, y in curves.items():
        colour, line, width, alpha, marker = looks[name]
        of_line = {"color": colour, "linestyle": line, "linewidth": width, "alpha": alpha, "label": name}
        ax.plot(x, y, marker=marker, markersize=markersize, **of_line)
    label_axes(ax, title)


def plot_rings(ax: Any, x: Any, y: Any, look: Style, name: str = "") -> None:
    """Plot what was predicted: the markers of a line, hollow; of a mechanism that is named to those who point at it."""
    hollow = {"markersize": 5, "markerfacecolor": "none", "markeredgewidth": 0.7}
    ax.plot(x, y, color=look.colour, linestyle="", marker=look.marker, **hollow)
    if name:
        name_values(ax.lines[-1], f"{name}, predicted")


def explain_marks(ax: Any, confidence: float, *, with_rings: bool) -> None:
    """Add to the legend what bands and rings are."""
    if with_rings:
        plot_rings(ax, [], [], Style(GREY, marker="o"))
        ax.lines[-1].set_label("predicted")
    ax.fill_between([], [], [], color=GREY, alpha=0.3, linewidth=0, label=f"{100 * confidence:g} % interval")


def zoom_in(ax: Any, curves: Mapping[str, Sequence[float]], reference: float) -> None:
    """Limit the axis to curves that come near the reference (to all where it is not finite); name those above it."""
    known = {label: [y for y in ys if not math.isnan(y)] for label, ys in curves.items()}
    lows = {label: min(ys) for label, ys in known.items() if ys}
    top = _NEAR * reference
    shown = [y for label, low in lows.items() if low <= top for y in known[label]]
    room = _MARGIN * (max(shown) - min(shown)) + _LEAST_ROOM * max(shown)
    above = ", ".join(f"{label} {low:.4g}" for label, low in lows.items() if low > top)
    words = textwrap.wrap(f"above: {above}", _LINE) if above else []
    further = _LINE_HEIGHT * max(0, len(words) - 1) * (max(shown) - min(shown) + 1.5 * room)  # for more than one line
    ax.set_ylim(min(shown) - room / 2, max(shown) + room + further)
    if words:
        place = {"transform": ax.transAxes, "ha": "right", "va": "top"}
        ax.text(0.99, 0.98, "\n".join(words), fontsize=SMALL, parse_math=False, **place)


def set_logarithmic(ax: Any, directions: str, digits: Sequence[int] | None = None) -> None:
    """Make "x", "y" or "xy" logarithmic, with plain numbers: of these first digits, or the more, the fewer decades."""
    ticker = validation.optional("matplotlib.ticker", "plot")
    for direction in directions:
        getattr(ax, f"set_{direction}scale")("log")
        axis = getattr(ax, f"{direction}axis")
        low, high = axis.get_view_interval()
        first = next(x for most, x in _DIGITS.items() if high / low < most) if digits is None else digits
        axis.set_major_locator(ticker.LogLocator(subs=first) if first else ticker.MaxNLocator(4))
        axis.set_major_formatter("{x:g}")
        axis.set_minor_formatter(ticker.NullFormatter())
