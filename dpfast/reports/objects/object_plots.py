"""The kinds of pictures that there are of each class: one of them into given axes, or all, or a small one."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from dpfast._support import validation
from dpfast.filters.filter import Filter
from dpfast.filters.filter_matrix import FilterMatrix
from dpfast.filters.toeplitz import Toeplitz
from dpfast.mechanisms.base import MechanismBase
from dpfast.mechanisms.channels_base import ChannelsBase
from dpfast.mechanisms.constant import Constant
from dpfast.releases.batch import Release
from dpfast.reports.matplotlib_helpers import COLUMN, PAGE, make_axes, make_figure, render_png, style_axes
from dpfast.reports.objects import channel_plots, filter_plots, mechanism_plots, model_plots, release_plot
from dpfast.reports.study_dot_plot import study_kinds
from dpfast.reports.sweep.single_panel import sweep_kinds
from dpfast.signals.model import ShapedModel
from dpfast.simulation.study import Study
from dpfast.simulation.sweep.result import Sweep

Kinds = Mapping[str, Callable[..., None]]
_HEIGHT = 2.1  # inches
_SMALL_DPI = 110
_MOST_SMALL, _TWO_ROWS = 3, 4


@functools.singledispatch
def kinds_of(x: Any) -> Kinds:
    """Return the pictures that there are of an object, by their names."""
    raise validation.fail("x", "a filter, model, mechanism, release, study or sweep", x)


@kinds_of.register
def _(x: Filter) -> Kinds:
    return {"gain": filter_plots.draw_gain, "impulse": filter_plots.draw_impulse}


@kinds_of.register
def _(x: FilterMatrix) -> Kinds:
    return {"gain": channel_plots.draw_entry_gains}


@kinds_of.register
def _(x: ChannelsBase) -> Kinds:
    return channel_plots.kinds_of_channels(x)


@kinds_of.register
def _(x: Toeplitz) -> Kinds:
    return {"impulse": filter_plots.draw_impulse}


@kinds_of.register
def _(x: ShapedModel) -> Kinds:
    return {"spectrum": model_plots.draw_spectrum, "path": model_plots.draw_path}


@kinds_of.register(MechanismBase)
@kinds_of.register(Constant)
def _(x: MechanismBase | Constant) -> Kinds:
    return mechanism_plots.kinds_of_mechanism(x)


@kinds_of.register
def _(x: Release) -> Kinds:
    return {"estimate": release_plot.draw_estimate}


kinds_of.register(Study)(study_kinds)
kinds_of.register(Sweep)(sweep_kinds)


def draw_kind(x: Any, kind: str | None, ax: Any, **options: Any) -> Any:
    """Draw one picture of an object into matplotlib axes, or into new ones of pyplot; return the axes."""
    kinds = kinds_of(x)
    if not kinds:
        raise ValueError(f"there is no picture of {x!r}, as nothing is predicted of it without a model: give it one")
    kind = next(iter(kinds)) if kind is None else kind
    validation.choice("kind", kind, kinds)
    given = {name: value for name, value in options.items() if value is not None}
    taken = [*inspect.signature(kinds[kind]).parameters][2:]
    for name in given:
        if name not in taken:
            raise ValueError(f"{name} must be left out for {kind!r}, which takes {' and '.join(taken) or 'none'}")
    if ax is None:
        ax = make_axes(COLUMN, _HEIGHT + 0.4)
    elif not hasattr(ax, "fill_between"):
        raise validation.fail("ax", "axes of matplotlib", ax)
    style_axes(ax)
    kinds[kind](x, ax, **given)
    return ax


def draw_all_kinds(x: Any, most: int | None = None) -> Any:
    """Draw the pictures of an object side by side; return the figure, of which pyplot knows nothing."""
    kinds = dict(list(kinds_of(x).items())[:most])
    if not kinds:
        return None
    beside = len(kinds) if len(kinds) < _TWO_ROWS else 2
    drawn, axes = make_figure(-(-len(kinds) // beside), beside, height=_HEIGHT, width=min(PAGE, COLUMN * beside))
    for ax, draw in zip(axes.ravel(), kinds.values(), strict=True):
        draw(x, ax)
    return drawn


def render_small(x: Any) -> tuple[bytes, str]:
    """Render the picture that a notebook shows as a PNG file, and say what it is; nothing where there is none."""
    drawn = draw_all_kinds(x, _MOST_SMALL)
    if drawn is None:
        return b"", ""
    words = ", ".join(ax.get_title(loc="left") for ax in drawn.axes)
    return render_png(drawn, _SMALL_DPI), f"{type(x).__name__}: {words}"
