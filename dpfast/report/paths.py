"""Sample paths of mechanisms on one and the same stream."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from dpfast._validate import Array
from dpfast.mechanism import Mechanism
from dpfast.models import Model
from dpfast.report.figures import PAGE, figure, plot_path, words
from dpfast.report.styles import Style


class SamplePaths(NamedTuple):
    """True output, and every mechanism's estimate of it, whenever that was known; each (time,)."""

    truth: Array
    estimates: dict[str, Array]


def sample_paths(
    mechanisms: Mapping[str, Mechanism], model: Model, *, seed: Any, before: int, n_samples: int, after: int
) -> SamplePaths:
    """Simulate on one stream, without the samples before, when filters start, and after, which a smoother needs."""
    u = model.sample(1, before + n_samples + after, seed=seed)[0]
    shown = slice(before, before + n_samples)
    truth = next(iter(mechanisms.values())).target.filter(u).y[shown]
    found = {name: x.simulate(u, seed=seed).estimate[x.lag or 0 :][shown] for name, x in mechanisms.items()}
    return SamplePaths(truth, found)


def draw_paths(paths: SamplePaths, title: str, *, looks: Mapping[str, Style] | None = None, columns: int = 2) -> Any:
    """A panel for each mechanism, all on the same axes."""
    rows = -(-len(paths.estimates) // columns)
    drawn, axes = figure(rows, columns, width=PAGE * columns / 2, height=1.5, sharex=True, sharey=True)
    for ax in axes.ravel()[len(paths.estimates) :]:
        ax.remove()
    for ax, (name, estimate) in zip(axes.ravel(), paths.estimates.items(), strict=False):
        plot_path(ax, range(len(paths.truth)), paths.truth, {name: estimate}, name, looks)
    for ax in axes.ravel()[: len(paths.estimates)][-columns:]:
        ax.tick_params(labelbottom=True)
        words(ax, x="time (samples)")
    low, high = paths.truth.min(), paths.truth.max()
    room = high - low  # an estimate that is lost leaves the picture
    every = np.clip(list(paths.estimates.values()), low - room, high + room)
    axes[0, 0].set_ylim(min(low, every.min()) - room / 20, max(high, every.max()) + room / 20)
    drawn.suptitle(title, fontsize=9, parse_math=False)
    return drawn
