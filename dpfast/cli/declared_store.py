"""What a store of ``dpfast release`` declares, and the folders that it is in."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from dpfast.cli.person_options import person_fields
from dpfast.releases.composed_releases import declared_bounds
from dpfast.releases.estimates_layout import Layout
from dpfast.releases.integer.exact_base import ExactBase
from dpfast.releases.store.store_folders import Places, for_new_store
from dpfast.signals.events.periods import parse_period


def declare_store(options: argparse.Namespace, plan: ExactBase, layout: Layout) -> dict[str, Any]:
    """Say what the steps of the store mean, which are numbers there, and the bounds: the same in all its releases.

    With another period or another column of times two releases of the same data would have other steps, and would pass
    for releases of different data; with other groups a stream would go on as another.
    """
    span = layout.span
    return {
        "time_column": options.time,
        "time_format": options.time_format,
        "zone": "UTC" if span.utc else "local",
        "period_us": span.period,
        "origin": str(np.datetime64(span.start if options.follow else 0, "us")),
        "count_column": options.count,
        "group_column": options.by,
        "groups": list(layout.groups),
        "last_step": span.n_bins - 1 if options.follow else None,
        "grace_us": _microseconds(options.grace) if options.follow else None,
        **person_fields(options),
        **declared_bounds(plan),
    }


def _microseconds(length: str | None) -> int:
    return 0 if length is None else int(parse_period(length).astype(np.int64))


def find_places(options: argparse.Namespace, declared: dict[str, Any]) -> Places:
    """Find the folders to publish from; a new store has places of its own."""
    out, store = Path(options.out), None if options.store is None else Path(options.store)
    return for_new_store(out, store, declared) if options.new_store else Places.choose(out, store)
