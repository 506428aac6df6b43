"""Figures without pyplot: no global state, no display."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from dpfast import _validate
from dpfast._validate import Array

# Okabe and Ito (2008): told apart by colour-blind readers
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
TRUTH = "#000000"
_DPI = 150
_DECADE, _FEW_DECADES = 10, 300


def png(figure: Any) -> bytes:
    """A matplotlib figure as a picture."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=_DPI)
    return buffer.getvalue()


def figure(rows: int, columns: int = 1, *, height: float = 2.0, sharex: bool = False) -> tuple[Any, Any]:
    """A figure without pyplot (no global state, no display), and its axes (rows, columns)."""
    module = _validate.optional("matplotlib.figure", "plot")
    result = module.Figure(figsize=(max(6, 4.5 * columns), height * rows + 0.5), layout="constrained")
    axes = result.subplots(rows, columns, squeeze=False, sharex=sharex)
    for ax in axes.ravel():
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(alpha=0.25, linewidth=0.5)
        ax.tick_params(labelsize=8)
    return result, axes


def plot_path(ax: Any, time: Any, truth: Array, estimates: dict[str, Array], title: str) -> None:
    """True output, thick and black, under the estimates; with a legend where there are several."""
    ax.plot(time, truth, color=TRUTH, linewidth=2.2, alpha=0.75, label="true output")
    for colour, (name, estimate) in zip(COLOURS, estimates.items(), strict=False):
        ax.plot(time, estimate, color=colour, linewidth=0.9, label=name)
    ax.set_title(title, fontsize=9, loc="left", parse_math=False)
    if len(estimates) > 1:
        above = {"loc": "lower right", "bbox_to_anchor": (1, 1), "borderaxespad": 0.2}
        ax.legend(fontsize=7, ncols=1 + len(estimates), frameon=False, **above)


def plot_magnitudes(ax: Any, omega: Array, curves: dict[str, Array], title: str) -> None:
    """Magnitudes of prefilters of unit norm over a logarithmic frequency axis; the first one dashed."""
    for style, colour, (name, magnitude) in zip(("--", "-"), COLOURS, curves.items(), strict=False):
        ax.semilogx(omega, magnitude, color=colour, linewidth=1.2, linestyle=style, label=name)
    ax.set_title(title, fontsize=9, loc="left", parse_math=False)
    ax.set_xlabel("ω (radians per sample)", fontsize=8)
    ax.set_ylabel("|G|, ‖G‖₂ = 1", fontsize=8)
    ax.legend(fontsize=7, frameon=False)


class Style(NamedTuple):
    """How a line is drawn."""

    colour: str
    line: str = "-"
    width: float = 1.2
    alpha: float = 1.0


def plot_lines(ax: Any, x: Any, curves: Mapping[str, Any], styles: Mapping[str, Style], *, title: str) -> None:
    """Named curves over x, each in its own style; the legend is the figure's."""
    for name, y in curves.items():
        colour, line, width, alpha = styles[name]
        ax.plot(x, y, color=colour, linestyle=line, linewidth=width, alpha=alpha, label=name)
    ax.set_title(title, fontsize=9, loc="left", parse_math=False)


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
