"""``dpfast evaluate`` for several streams together: the series of a log are the inputs of one target."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from dpfast._support.errors import DataError
from dpfast._support.settings_file import read_words
from dpfast.cli.channel_options import REACH
from dpfast.design.channel_target_specs import MIXED, mixes_streams, parse_matrix
from dpfast.filters.filter_matrix import FilterMatrix
from dpfast.mechanisms.channels_base import ChannelsBase
from dpfast.privacy.privacy import Privacy
from dpfast.signals.events.historical_counts import EventCounts

_OF_FILE = ".toml"


def is_of_several(options: argparse.Namespace) -> bool:
    """Tell whether the target is one of several streams, or its inputs have names."""
    return options.groups is not None or mixes_streams(options.target) or options.target.endswith(_OF_FILE)


def check_one_stream(options: argparse.Namespace) -> None:
    """Refuse what there is for several streams alone."""
    if options.adjacency is not None:
        raise ValueError(
            f"adjacency must come with a target of several streams, such as {MIXED}, got {options.target!r}, which is "
            "evaluated on each series alone"
        )
    if isinstance(options.max_change, tuple):
        raise ValueError(
            f"max_change must be one number for a target of one stream, got {len(options.max_change)}: take a target "
            f"of several, such as {MIXED}"
        )


def read_privacy(options: argparse.Namespace) -> Privacy:
    """Return the privacy, which says which of the series one person reaches."""
    if options.adjacency is None:
        raise ValueError(
            "adjacency must be given for several streams, as it has no default; it says which of them one person "
            f"reaches. {REACH}"
        )
    return Privacy(options.epsilon, options.delta, max_change=options.max_change, adjacency=options.adjacency)


def choose_series(counts: EventCounts, groups: list[str] | None) -> EventCounts:
    """Return the series of these names, in this order; all of them, as the log has them, where none are named.

    Raises
    ------
    DataError
        For names that the log does not have, or that are given twice.
    """
    names = list(counts.series) if groups is None else groups
    missing = [x for x in names if x not in counts.series]
    if missing:
        raise DataError(
            f"groups must be of the log, which has {', '.join(counts.series)}, got {', '.join(missing)}: leave these "
            "out"
        )
    if not names or len(set(names)) < len(names):
        raise DataError(f"groups must be different names, got {', '.join(names) or 'none'}")
    rows = [counts.series.index(x) for x in names]
    chosen = np.ascontiguousarray(counts.counts[rows])
    chosen.flags.writeable = False
    return EventCounts(chosen, tuple(names), counts.start, counts.period)


def read_target(spec: str, m: int) -> FilterMatrix:
    """Return the target of m streams that a text describes, or a file of rows of filters.

    Raises
    ------
    ValueError
        For anything else.
    """
    if not spec.endswith(_OF_FILE):
        return parse_matrix(spec, m)
    content = read_words(Path(spec), ("target",))
    if "target" not in content:
        raise DataError(f"{spec} must have the word target, with a row for each output: target = [[1, 1], [1, -1]]")
    return parse_matrix(content["target"], m)


def check_saved(path: str, mechanism: Any) -> Any:
    """Refuse a saved mechanism of one stream."""
    if not isinstance(mechanism, ChannelsBase):
        raise ValueError(
            f"{path} must be of several streams, as the target is, got {mechanism.full_name}: evaluate it with its own "
            "target, on each series alone"
        )
    return mechanism
