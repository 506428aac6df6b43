"""Gains of the prefilters of a sweep of several streams: what each mechanism keeps of each input."""

from __future__ import annotations

from typing import Any

from dpfast.mechanisms.channels_mechanism import ChannelsMechanism
from dpfast.reports.matplotlib_helpers import add_note, label_axes, make_figure
from dpfast.reports.objects.channel_plots import draw_prefilter_gains
from dpfast.reports.sweep.sweep_sample_paths import distinct_rows, middle_panel, name_rows
from dpfast.simulation.sweep.result import Sweep

_BESIDE, _HEIGHT = 3, 2.2  # panels of a row, and inches of each


def has_gains(sweep: Sweep) -> bool:
    """Tell whether there are prefilters of several streams."""
    return bool(_gains(sweep))


def draw_gains(sweep: Sweep) -> Any:
    """Draw how loud each input is in what is published, above the noise: a panel for each mechanism of a task.

    It is the task in the middle of the grid, of those with the most mechanisms.

    Raises
    ------
    ValueError
        Where no mechanism is of filters of several streams.
    """
    found = _gains(sweep)
    if not found:
        raise ValueError("gains must be of a sweep of several streams, got none whose mechanisms have prefilters")
    rows = -(-len(found) // _BESIDE)
    drawn, axes = make_figure(rows, min(_BESIDE, len(found)), height=_HEIGHT)
    shown, others = axes.ravel()[: len(found)], axes.ravel()[len(found) :]
    for ax in others:
        ax.set_visible(False)
    for ax, (name, mechanism) in zip(shown, found.items(), strict=True):
        draw_prefilter_gains(mechanism, ax)
        label_axes(ax, name)
    low, high = zip(*(ax.get_ylim() for ax in shown), strict=True)
    for ax in shown:
        ax.set_ylim(min(low), max(high))  # the same for all, so that panels can be compared
    add_note(drawn, middle_panel(sweep).title())
    return drawn


def _gains(sweep: Sweep) -> dict[str, ChannelsMechanism]:
    """Return the mechanisms with prefilters of a task by their names, not too many."""
    rows = distinct_rows(sweep, middle_panel(sweep).rows)
    made = {name: sweep.mechanism(row) for name, row in zip(name_rows(sweep, rows), rows, strict=True)}
    return {name: x for name, x in made.items() if isinstance(x, ChannelsMechanism)}
