"""Sample paths of mechanisms on one and the same stream."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from dpfast._support.validation import Array
from dpfast.mechanisms.mechanism_kinds import AnyMechanism
from dpfast.reports.matplotlib_helpers import PAGE, SMALL, label_axes, make_figure, plot_path
from dpfast.reports.mechanism_styles import Style
from dpfast.signals.model import Model

_ROOM = 1.0  # beyond the true output, in units of its range: an estimate that is far off does not flatten the others


class SamplePaths(NamedTuple):
    """The true output, and every mechanism's estimate of it, whenever that was known; each (time,)."""

    truth: Array
    estimates: dict[str, Array]


def simulate_paths(
    mechanisms: Mapping[str, AnyMechanism], model: Model, *, seed: Any, before: int, n_samples: int, after: int
) -> SamplePaths:
    """Simulate on one stream, without the samples before, when filters start, and after, which a smoother needs.

    A matrix mechanism runs over its horizon from the first sample on: then there are none before.
    """
    u = model.sample(1, before + n_samples + after, seed=seed)[0]
    shown = slice(before, before + n_samples)
    target = next(iter(mechanisms.values())).target
    truth = target.apply(u[: target.horizon])
    found = {}
    for name, x in mechanisms.items():
        made = x.simulate(u[: x.horizon], seed=seed)
        found[name] = made.estimate[made.lag :][shown]
    return SamplePaths(truth[shown], found)


def draw_paths(paths: SamplePaths, title: str, *, looks: Mapping[str, Style] | None = None, columns: int = 2) -> Any:
    """Draw a panel for each mechanism, all on the same axes; an estimate that leaves them is said to."""
    rows = -(-len(paths.estimates) // columns)
    drawn, axes = make_figure(rows, columns, width=PAGE * columns / 2, height=1.5, sharex=True, sharey=True)
    low, high = _limits(paths)
    for ax in axes.ravel()[len(paths.estimates) :]:
        ax.remove()
    for ax, (name, estimate) in zip(axes.ravel(), paths.estimates.items(), strict=False):
        plot_path(ax, range(len(paths.truth)), paths.truth, {name: estimate}, name, looks)
        if extremes := _note_extremes(estimate, low, high):
            place = {"transform": ax.transAxes, "ha": "right", "va": "bottom"}
            ax.text(0.99, 0.02, extremes, fontsize=SMALL, **place)
    axes[0, 0].set_ylim(low, high)
    for ax in axes.ravel()[: len(paths.estimates)][-columns:]:
        ax.tick_params(labelbottom=True)
        label_axes(ax, x="time (samples)")
    drawn.suptitle(title, fontsize=9, parse_math=False)
    return drawn


def _limits(paths: SamplePaths) -> tuple[float, float]:
    """Return the limits of what is near the true output, with a little room."""
    low, high = paths.truth.min(), paths.truth.max()
    room, y = _ROOM * (high - low), np.array([paths.truth, *paths.estimates.values()])
    visible = y[(low - room <= y) & (y <= high + room)]
    margin = 0.05 * np.ptp(visible) or 0.5
    return float(visible.min() - margin), float(visible.max() + margin)


def _note_extremes(estimate: Array, low: float, high: float) -> str:
    """Tell where an estimate goes, if out of sight."""
    least, most = estimate.min(), estimate.max()
    if low <= least and most <= high:
        return ""
    ends = list(dict.fromkeys(f"{x:.3g}" for x in (least, most)))
    return f"leaves the axis: {' to '.join(ends)}".replace("-", "−")
