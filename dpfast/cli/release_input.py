"""What ``dpfast release`` reads of a file: counts, or events of persons; and what the operator alone sees of it."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from dpfast.cli.person_options import declared_persons
from dpfast.releases.estimates_layout import Layout
from dpfast.releases.integer.exact_base import ExactBase
from dpfast.releases.integer.last_block import End
from dpfast.releases.persons.declared_persons import Persons
from dpfast.releases.persons.person_bounds import PersonBounds
from dpfast.releases.persons.person_events import Events, largest_value
from dpfast.releases.persons.protection import bound_afresh
from dpfast.releases.private_counts import PrivateCounts
from dpfast.signals.events.declared_counts import count_events
from dpfast.signals.events.declared_span import Span


def count_file(options: argparse.Namespace, plan: ExactBase, layout: Layout, first: int) -> None:
    """Count the events of a file for the operator alone, those of persons as a new store would keep them."""
    with shown_counts(options, plan, layout) as shown:
        u = read_file(options, plan, layout, shown)
        if isinstance(u, Events):
            persons = declared_persons(options, layout.span) or Persons()
            privacy = plan.mechanism.privacy
            bounds = PersonBounds.of(privacy, plan.inputs, persons.span)
            u, beyond = bound_afresh(u, first, bounds, largest_value(privacy.max_change))
            shown.count_beyond(beyond)
        shown.count_clamped(u)


@contextlib.contextmanager
def shown_counts(options: argparse.Namespace, plan: ExactBase, layout: Layout) -> Iterator[PrivateCounts]:
    """Count what the operator alone sees, and show it at the end, also where a row is refused."""
    shown = PrivateCounts(layout.groups, plan.inputs)
    try:
        yield shown
    finally:
        if not options.quiet:
            shown.show()


def read_file(
    options: argparse.Namespace, plan: ExactBase, layout: Layout, shown: PrivateCounts
) -> NDArray[np.int64] | Events:
    """Read the counts of a file, or its events where persons are protected."""
    file, span, groups = options.events, layout.span, layout.groups
    columns = {name: getattr(options, name) for name in ("time", "by", "count", "time_format")}
    if options.person is None:
        largest = largest_value(plan.mechanism.privacy.max_change)
        counted = count_events(file, span, groups, **columns, largest=largest, seen=shown.see)
        return np.asarray(counted.counts, np.int64)
    return Events.read(file, span, groups, **columns, person=options.person, seen=shown.see)


def first_step(span: Span) -> int:
    """Number the first step: by periods since 1970, so that all releases of a store number their steps alike."""
    number, rest = divmod(span.start, span.period)
    if rest or number < 0:
        before = np.datetime64(span.start - rest, "us")
        must_be = f"start must be a whole number of periods after 1970-01-01T00:00, such as {before}"
        raise ValueError(f"{must_be}: all releases of a store have the same bins")
    return number


def declared_end(options: argparse.Namespace, span: Span) -> End:
    """Return what becomes of a block that the last bin leaves unfinished: which one it is, is declared by the span."""
    return End(options.last_block, span.n_bins if options.last_block == "publish" else None)
