"""Estimates and their band, a panel for each group, as SVG in the page: its letters keep their size on any screen.

Curves are stretched to the width of the screen and texts are not, as the former are in a drawing of their own. It takes
no plotting library; letters and colours are those of the page, in the dark and on paper too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dpfast._support.html_fragments import Html, escape
from dpfast._support.validation import Array
from dpfast.reports.release.chart_axes import Ticks, number_ticks
from dpfast.reports.release.chart_points import StepNames, choose_columns, lay_points, say_values

MOST_COLUMNS = 600  # that are drawn; of more steps each shows the least and the largest
_WIDTH, _HEIGHT = 10_000, 1_000  # of the drawing of curves
_TOP, _TALL, _BELOW = 14, 150, 18  # pixels: above the curves, of them, and below for labels
_STRETCHED = 'preserveAspectRatio="none"'
_EDGE = 0.08  # of the width, where labels would leave the panel
_ROOM = 0.05  # of the range, above and below what is drawn
STYLE = """
.panels { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 27rem), 1fr)); gap: 1rem 2rem;
  margin: 0 0 1.2rem; }
.panels figure { width: auto; margin: 0; }
.panels figcaption { color: var(--text); font-weight: 500; margin: 0; max-width: none; overflow-wrap: anywhere; }
.drawing { position: relative; }
.drawing .points { inset: 0; width: 100%; height: 100%; }
.drawing .points .on { stroke: var(--text); }
.chart { display: block; --ink: #0b4f9e; --band: #0b4f9e; --shade: .2; }
@media (prefers-color-scheme: dark) { .chart { --ink: #8ec5ff; --band: #8ec5ff; --shade: .25; } }
.chart path { vector-effect: non-scaling-stroke; }
.chart .rules { stroke: var(--line); fill: none; }
.chart .band { fill: var(--band); fill-opacity: var(--shade); }
.chart .estimate { stroke: var(--ink); stroke-width: 1.3px; fill: none; }
.chart .range { stroke: var(--ink); stroke-width: .8px; fill: var(--ink); }
.chart text { font: 11.5px system-ui, sans-serif; fill: var(--quiet); stroke: var(--ground); stroke-width: 3px;
  paint-order: stroke; }
@media print {
  .panels { grid-template-columns: repeat(auto-fit, minmax(min(100%, 13rem), 1fr)); }
  .chart { --ink: #000; --band: #bbb; --shade: 1; }
}
"""


class GroupPanel(NamedTuple):
    """Describe a group: its name, its estimates, and half the width of their band where there is one."""

    title: str
    estimate: Array
    half_width: float | None = None


def draw_panels(panels: Sequence[GroupPanel], time: Ticks, name_step: StepNames) -> Html:
    """Draw panels over one axis of time; each has its own scale, and values of steps, which are named by a function."""
    drawn = (_draw_panel(x, time, name_step, len(panels)) for x in panels)
    return Html("\n".join(['<div class="panels">', *drawn, "</div>"]))


def _draw_panel(panel: GroupPanel, time: Ticks, name_step: StepNames, n_panels: int) -> str:
    _, edges, low, high = _columns(panel.estimate)
    half = panel.half_width or 0.0
    bottom, top = _limits(float(low.min()) - half, float(high.max()) + half)
    values = number_ticks(bottom, top)

    def place(y: Array) -> list[int]:
        places: list[int] = np.rint(_HEIGHT * (top - y) / (top - bottom)).astype(int).tolist()
        return places

    band = [] if panel.half_width is None else [_path("band", _area(edges, place(low - half), place(high + half)))]
    if len(edges) > len(panel.estimate):
        drawn = _path("estimate", _stairs(edges, place(low)))
    else:
        drawn = _path("range", _area(edges, place(low), place(high)))
    rules = _path("rules", "".join(f"M0 {round(_HEIGHT * (1 - x))}H{_WIDTH}" for x in values.places))
    lines = [
        f'<figure>\n<figcaption>{escape(panel.title)}</figcaption>\n<div class="drawing">',
        f'<svg class="chart" width="100%" height="{_TOP + _TALL + _BELOW}" role="img" aria-label="{_describe(panel)}">',
        f'<svg x="0" y="{_TOP}" width="100%" height="{_TALL}" viewBox="0 0 {_WIDTH} {_HEIGHT}" {_STRETCHED}>',
        *(rules, *band, drawn, "</svg>"),
        *(_text("0", _TOP + _TALL * (1 - x) - 3, label) for x, label in zip(*values, strict=True)),
        *_label_times(time),
        "</svg>",
        _lay_values(panel, (bottom, top), name_step, n_panels),
        "</div>\n</figure>",
    ]
    return "\n".join(lines)


def _lay_values(panel: GroupPanel, ends: tuple[float, float], name_step: StepNames, n_panels: int) -> Html:
    """Lay the values of steps, or of stretches where there are more, over curves between these ends of the axis."""
    starts, edges, low, high = _columns(panel.estimate)
    bottom, top = ends
    stops = [*starts[1:], len(panel.estimate)]
    points = []
    for i in choose_columns(len(starts), n_panels):
        first, end = name_step(starts[i]), name_step(stops[i] - 1)
        text = say_values(first if first == end else f"{first} to {end}", low[i], high[i], panel.half_width)
        y = _TOP + _TALL * (top - (low[i] + high[i]) / 2) / (top - bottom)
        points.append(((edges[i] + edges[i + 1]) / (2 * _WIDTH), y, text))
    return lay_points(points, _TOP + _TALL + _BELOW, panel.title)


def _columns(estimate: Array) -> tuple[list[int], list[int], Array, Array]:
    """Return the first steps of columns, their edges in the drawing, and the least and the largest estimate in each."""
    n = len(estimate)
    m = min(n, MOST_COLUMNS)
    starts = np.arange(m) * n // m
    edges = np.rint(_WIDTH * np.append(starts, n) / n).astype(int).tolist()
    return starts.tolist(), edges, np.minimum.reduceat(estimate, starts), np.maximum.reduceat(estimate, starts)


def _limits(low: float, high: float) -> tuple[float, float]:
    """Return the ends of an axis, with some room; of a single value as well."""
    room = _ROOM * (high - low) if high - low > 1e-9 * max(abs(low), abs(high)) else max(0.1 * abs(high), 0.1)
    return low - room, high + room


def _stairs(edges: Sequence[int], y: Sequence[int]) -> str:
    """Return a path that stays at its value through each column: an estimate is of a whole bin."""
    return f"M{edges[0]} " + "".join(
        f"{'V' * (i > 0)}{v}H{x}" for i, (v, x) in enumerate(zip(y, edges[1:], strict=True))
    )


def _area(edges: Sequence[int], low: Sequence[int], high: Sequence[int]) -> str:
    """Return a closed path: forth along the upper ends of the columns, and back along the lower ones."""
    back = "".join(f"V{v}H{x}" for v, x in zip(low[::-1], edges[-2::-1], strict=True))
    return f"{_stairs(edges, high)}{back}Z"


def _path(kind: str, d: str) -> str:
    return f'<path class="{kind}" d="{d}"/>'


def _label_times(time: Ticks) -> list[str]:
    y = _TOP + _TALL + _BELOW - 4
    return [
        _text(f"{100 * x:.2f}%", y, label, "start" if x < _EDGE else "end" if x > 1 - _EDGE else "middle")
        for x, label in zip(*time, strict=True)
    ]


def _text(x: str, y: float, label: str, anchor: str = "start") -> str:
    return f'<text x="{x}" y="{y:.1f}" text-anchor="{anchor}">{escape(label)}</text>'


def _describe(panel: GroupPanel) -> Html:
    """Say what is drawn, for those who do not see it."""
    low, high = float(panel.estimate.min()), float(panel.estimate.max())
    band = "" if panel.half_width is None else f", with a band of ±{panel.half_width:.4g}"
    return escape(f"Estimates of {panel.title} over time, from {low:.4g} to {high:.4g}{band}")
