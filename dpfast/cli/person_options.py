"""Options of ``dpfast release`` about persons: how much of one person's events is published."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Any

import numpy as np

from dpfast.cli.options import at_least
from dpfast.mechanisms.mechanism import Mechanism
from dpfast.releases.composed_releases import compose_guarantee
from dpfast.releases.guarantee import Guarantee
from dpfast.releases.integer.exact_base import ExactBase
from dpfast.releases.persons.declared_persons import Persons
from dpfast.releases.persons.person_bounds import PersonBounds
from dpfast.releases.persons.person_spans import PersonSpans
from dpfast.signals.events.declared_span import Span
from dpfast.signals.events.periods import parse_period

_WITH_PERSON = ("max_events", "min_separation", "person_span", "person_key")


def add_persons(group: Any) -> None:
    """Add the options to a group."""
    group.add_argument(
        "--person",
        metavar="COLUMN",
        help="protect persons, whose ids are in this column: leave out what one has beyond the bounds (default: "
        "protect events)",
    )
    group.add_argument(
        "--max-events",
        type=at_least(1),
        metavar="M",
        help="keep at most M events of a person in a group and span (default: as the mechanism was designed for)",
    )
    group.add_argument(
        "--min-separation",
        type=at_least(1),
        metavar="B",
        help="keep events of a person in a group that are at least B bins apart (default: as designed)",
    )
    group.add_argument(
        "--person-span",
        metavar="LENGTH",
        help="begin anew with the bounds after each span of this length, such as 4w, counted from 1970, with --follow "
        "from the start (default: never)",
    )
    group.add_argument(
        "--person-key",
        metavar="FILE",
        help="keep the key under which the store knows persons in this file (default: beside the store, with .key)",
    )


def check_persons_options(options: argparse.Namespace, span: Span) -> None:
    """Refuse options about persons that would have no effect, and a span that is no whole number of bins."""
    given = [name for name in _WITH_PERSON if getattr(options, name) is not None]
    if options.person is None and given:
        name = given[0]
        raise ValueError(f"{name} must come with --person: without ids nobody can tell whose events are too many")
    if options.person_span is not None and _span_length(options) % span.period:
        must_be = f"a whole number of periods of {options.period}"
        raise ValueError(f"person_span must be {must_be}, got {options.person_span}")


def _span_length(options: argparse.Namespace) -> int:
    try:
        return int(parse_period(options.person_span).astype(np.int64))
    except ValueError as error:
        raise ValueError(str(error).replace("period", "person_span", 1)) from None


def under_bounds(mechanism: Mechanism, options: argparse.Namespace) -> Mechanism:
    """Return a mechanism with the noise that the bounds take which the options name."""
    named = {name: getattr(options, name) for name in ("max_events", "min_separation")}
    return mechanism.under(replace(mechanism.privacy, **{name: x for name, x in named.items() if x is not None}))


def declared_persons(options: argparse.Namespace, span: Span) -> Persons | None:
    """Return what is declared of persons; None where events are protected."""
    if options.person is None:
        return None
    steps = None if options.person_span is None else _span_length(options) // span.period
    return Persons(steps, options.person_key)


def person_fields(options: argparse.Namespace) -> dict[str, Any]:
    """Return what a store declares of persons, beside the bounds."""
    if options.person is None:
        return {}
    return {
        "person_column": options.person,
        "person_span_us": None if options.person_span is None else _span_length(options),
    }


def guarantee_alone(options: argparse.Namespace, plan: ExactBase, span: Span, first: int) -> Guarantee:
    """Return the guarantee of a release of a file, before anything is read and beside no other."""
    persons = declared_persons(options, span)
    if persons is None:
        return plan.guarantee
    bounds = PersonBounds.of(plan.mechanism.privacy, plan.inputs, persons.span)
    return compose_guarantee(plan, [], [], (), PersonSpans.of(bounds, plan.memory, first, span.n_bins))
