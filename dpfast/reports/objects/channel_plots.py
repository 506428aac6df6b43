"""Pictures of several streams: gains of a matrix of filters, of the prefilter for each input, errors of each output."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dpfast._support.validation import Array
from dpfast.filters.filter_matrix import FilterMatrix
from dpfast.mechanisms.channels_base import ChannelsBase
from dpfast.mechanisms.channels_mechanism import ChannelsMechanism
from dpfast.reports.matplotlib_helpers import SMALL, label_axes
from dpfast.reports.mechanism_styles import GREY
from dpfast.reports.objects.frequency_axis import AxisUnit, choose_angles, decibels, limit_decibels
from dpfast.signals.channel_outputs import output_variances

_COLOURS = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"  # of inputs, in turn
_LINES = "-", "--", ":", "-."  # of outputs, or inputs alone, in turn: what lies below another line is seen
_MOST_NAMED = 12  # curves that a legend has room for


def kinds_of_channels(x: ChannelsBase) -> dict[str, Callable[..., None]]:
    """Return the pictures that there are of a mechanism of several streams."""
    gains = {"gain": draw_prefilter_gains} if isinstance(x, ChannelsMechanism) else {}
    return {**gains, "outputs": draw_output_errors}


def draw_entry_gains(x: FilterMatrix, ax: Any, period: str | None = None) -> None:
    """Draw the gain of every entry that is not zero in dB: a colour for each input, a kind of line for each output."""
    omega = _angles(x)
    gains, (p, m) = np.abs(x.response(omega)), x.shape
    curves = {
        f"output {i}, input {j}": (gains[:, i, j], _COLOURS[j % len(_COLOURS)], _LINES[i % len(_LINES)])
        for i in range(p)
        for j in range(m)
        if gains[:, i, j].any()
    }
    _draw_decibels(ax, omega, curves, period)
    label_axes(ax, "gain of each entry", y="gain (dB)")


def draw_prefilter_gains(x: ChannelsMechanism, ax: Any, period: str | None = None) -> None:
    """Draw how loud each input is in what is published, |G_i|₂ over all channels, for noise of deviation one."""
    omega = _angles(x.target, x.prefilter, x.receiver)
    gains = np.linalg.norm(x.prefilter.response(omega), axis=-2) / x.noise_std
    inputs = [j for j in range(gains.shape[1]) if gains[:, j].any()]
    curves = {f"input {j}": (gains[:, j], _COLOURS[j % len(_COLOURS)], _LINES[j % len(_LINES)]) for j in inputs}
    _draw_decibels(ax, omega, curves, period)
    label_axes(ax, "prefilter: each input above the noise", y="gain (dB)")


def draw_output_errors(x: ChannelsBase, ax: Any) -> None:
    """Draw the predicted RMSE of each output and, with a model, that of publishing its mean."""
    rmse = np.sqrt(x.output_mse)
    places = np.arange(len(rmse))
    ax.bar(places, rmse, width=0.55, color=_COLOURS[0], label="predicted error")
    models = getattr(x, "models", None)
    if models is not None:
        constant = np.sqrt(output_variances(x.target, models))
        ax.plot(places, constant, color=GREY, linestyle="", marker="_", markersize=18, label="publishing the mean")
        ax.legend(fontsize=SMALL, frameon=False)
    ax.set_xticks(places, [f"output {i}" for i in places])
    ax.set_ylim(bottom=0)
    label_axes(ax, "error of each output", y="RMSE")


def _angles(*systems: FilterMatrix) -> Array:
    poles = np.concatenate([x.poles for x in systems])
    return choose_angles(poles, max(x.order for x in systems) + 1)


def _draw_decibels(ax: Any, omega: Array, curves: dict[str, tuple[Array, str, str]], period: str | None) -> None:
    """Draw gains by their names; a matrix without any is a line far below."""
    clock = AxisUnit.of(period)
    for label, (gain, colour, kind) in curves.items():
        style = {"color": colour, "linewidth": 1.3, "linestyle": kind}
        ax.plot(clock.frequencies(omega), decibels(gain), label=label, **style)
    if curves:
        limit_decibels(ax, [decibels(gain) for gain, *_ in curves.values()])
    if 1 < len(curves) <= _MOST_NAMED:
        ax.legend(fontsize=SMALL, frameon=False)
    clock.label_frequency(ax)
