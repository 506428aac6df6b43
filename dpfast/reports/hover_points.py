"""The points of a picture with their values, as a drawing without ink that lies over it in a page.

Each point is a circle with a title, which browsers show by themselves; the script of pages shows it at once, and by
arrow keys. Names of lines are those of the legend, or those that ``name_values`` gives.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dpfast._support.html_fragments import Html, escape
from dpfast._support.validation import Array
from dpfast.reports.page_script import HOVERED

_RADIUS = 7  # pixels around a point that belong to it
_MOST, _MOST_OF_LINE = 1_500, 100  # points of a picture, and of a line of it, from all along it


class HoverPoint(NamedTuple):
    """A point of a picture: its place in parts of width and height from the upper left, and what is said of it.

    `around` is how far from it a pointer is on it, as a part of the width; at least some pixels.
    """

    x: float
    y: float
    text: str
    around: float = 0.0


def name_values(artist: Any, text: str) -> None:
    """Name a line that has no label, or say all of a bar, for those who point at it."""
    artist.set_gid(text)


def find_points(figure: Any) -> list[list[HoverPoint]]:
    """Find the points of each line, and the named bars of each panel, of a figure that was rendered.

    Examples
    --------
    >>> from dpfast.reports.matplotlib_helpers import make_figure, render_png
    >>> drawn, axes = make_figure(1)
    >>> line = axes[0, 0].plot([1, 2], [0.5, 0.25], label="LMMSE")
    >>> image = render_png(drawn)
    >>> [[x.text for x in points] for points in find_points(drawn)]
    [['LMMSE: 1, 0.5', 'LMMSE: 2, 0.25']]
    """
    lines = [(ax, line, name) for ax in figure.axes for line in ax.lines if (name := _name(line))]
    most = max(2, min(_MOST_OF_LINE, _MOST // max(1, len(lines))))
    found = [_points_of_line(ax, line, name, most) for ax, line, name in lines]
    found += [[_point_of_bar(ax, bar) for bar in ax.patches if bar.get_gid()] for ax in figure.axes]
    return [x for x in found if x]


def overlay(figure: Any, width: int, height: int) -> Html:
    """Return the drawing over the picture of a rendered figure, of so many pixels; nothing where it has no points."""
    found = find_points(figure)
    if not found:
        return Html("")
    lines = "\n".join(f"<g>{''.join(_circle(x, width, height) for x in points)}</g>" for points in found)
    heard = f"{sum(map(len, found))} points of the picture with their values, by arrow keys"
    return Html(f'<svg {HOVERED} viewBox="0 0 {width} {height}" role="img" aria-label="{heard}">\n{lines}\n</svg>')


def _circle(point: HoverPoint, width: int, height: int) -> str:
    radius = max(_RADIUS, width * point.around)
    place = f'cx="{width * point.x:.0f}" cy="{height * point.y:.0f}" r="{radius:.0f}"'
    return f"<circle {place}><title>{escape(point.text)}</title></circle>"


def _name(line: Any) -> str:
    """Return what a line is called; nothing for rules and frames, which have no name."""
    label = str(line.get_label())
    return line.get_gid() or ("" if label.startswith("_") else label)


def _points_of_line(ax: Any, line: Any, name: str, most: int) -> list[HoverPoint]:
    """Return the points of a line that lie in its panel: all, or so many from all along it."""
    places = line.get_transform().transform(np.asarray(line.get_xydata(), float))
    seen = _find_inside(ax, places)
    kept = seen[np.unique(np.linspace(0, len(seen) - 1, min(most, len(seen))).round().astype(int))]
    x, y = line.get_xdata(orig=True), line.get_ydata(orig=True)
    return [_place(ax, places[i], f"{name}: {_write(ax, 'x', x[i])}, {_write(ax, 'y', y[i])}") for i in kept.tolist()]


def _find_inside(ax: Any, places: Array) -> Any:
    """Return the indices of places that are in a panel, or on its frame."""
    (left, bottom), (right, top) = ax.bbox.get_points()
    x, y = places.T
    return np.flatnonzero((left - 1 <= x) & (x <= right + 1) & (bottom - 1 <= y) & (y <= top + 1))


def _point_of_bar(ax: Any, bar: Any) -> HoverPoint:
    low, high = bar.get_window_extent().get_points()
    around = min(high - low) / 2 / ax.figure.bbox.width
    return _place(ax, (low + high) / 2, bar.get_gid())._replace(around=float(around))


def _place(ax: Any, pixels: Array, text: str) -> HoverPoint:
    x, y = ax.figure.transFigure.inverted().transform(pixels)
    return HoverPoint(float(x), float(1 - y), text)


def _write(ax: Any, direction: str, value: Any) -> str:
    """Write a coordinate as its axis does where it is marked, with what the axis is called."""
    title = _find_title(ax, direction)
    if isinstance(value, np.datetime64):
        text = str(np.datetime_as_string(value, unit="auto")).replace("T", " ")
    else:
        text = _fixed_labels(getattr(ax, f"{direction}axis")).get(float(value), f"{value:.5g}")
    return f"{title} {text}" if title else text


def _find_title(ax: Any, direction: str) -> str:
    """Return the title of an axis, which may be written at another panel of the row or column alone."""
    span = "rowspan" if direction == "y" else "colspan"
    mine = getattr(ax.get_subplotspec(), span)
    alike = [ax, *(x for x in ax.figure.axes if x.get_subplotspec() and getattr(x.get_subplotspec(), span) == mine)]
    titles = (getattr(x, f"get_{direction}label")().replace("\n", " ") for x in alike)
    return next((x.partition(" (")[0] for x in titles if x), "")  # without units, and what a sign means


def _fixed_labels(axis: Any) -> dict[float, str]:
    """Return the labels of places that were chosen one by one, such as of a smoother at the end of the lags."""
    places = getattr(axis.get_major_locator(), "locs", ())  # others compute them from the limits
    return dict(zip(map(float, places), axis.get_major_formatter().format_ticks(places), strict=True))
