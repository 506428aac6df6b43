"""Options of ``dpfast release`` about persons: how much of one person's events is published."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Any

import numpy as np

from dpfast._support.errors import AccuracyWarning, warn
from dpfast.cli.options import at_least
from dpfast.mechanisms.mechanism import Mechanism
from dpfast.privacy.privacy import Privacy
from dpfast.releases.composed_releases import compose_guarantee
from dpfast.releases.guarantee import Guarantee
from dpfast.releases.integer.exact_base import ExactBase
from dpfast.releases.persons.declared_persons import Persons
from dpfast.releases.persons.person_bounds import PersonBounds
from dpfast.releases.persons.person_spans import PersonSpans
from dpfast.releases.stderr_messages import say
from dpfast.signals.events.declared_span import Span
from dpfast.signals.events.periods import parse_period

_MOST_EDGES = 5  # of spans that are written out
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
        help="begin anew with the bounds after each span of this length, such as 4w, counted from 1970-01-01, a "
        "Thursday, with --follow from the start (default: never, all bins are one span)",
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
    """Return a mechanism with the noise that the bounds take which the options name; warn where it had others."""
    named = {name: getattr(options, name) for name in ("max_events", "min_separation")}
    designed = mechanism.privacy
    privacy = replace(designed, **{name: x for name, x in named.items() if x is not None})
    if _events_text(privacy) != _events_text(designed):
        apart = f" --min-separation {privacy.min_separation}" * (privacy.max_events > 1)
        warn(
            f"the mechanism was designed for {_events_text(designed)} of one person, and gets the noise for "
            f"{_events_text(privacy)}: the guarantee holds, but the family that errs least for the one may be a bad "
            f"one for the other; design it by dpfast design --max-events {privacy.max_events}{apart}",
            AccuracyWarning,
        )
    return mechanism.under(privacy)


def _events_text(privacy: Privacy) -> str:
    """Say for how many events the noise is; of one, how far apart they are says nothing."""
    if privacy.max_events == 1:
        return "one event"
    return f"{privacy.max_events} events at least {privacy.min_separation} bins apart"


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


def tell_spans(options: argparse.Namespace, span: Span, first: int) -> None:
    """Say on standard error how a release falls into spans of persons, before anything is published."""
    if options.person_span is not None and not options.quiet:
        say(describe_spans(options, span, first))


def describe_spans(options: argparse.Namespace, span: Span, first: int) -> str:
    """Say into how many spans of persons a release falls, and where it is cut.

    Parameters
    ----------
    options : Namespace
        With a span of persons.
    span : Span
        The bins of the release.
    first : int
        The number of its first step in the store.
    """
    steps = _span_length(options) // span.period
    number, last = first // steps, (first + span.n_bins - 1) // steps
    edges = [_clock_text(span.time(k * steps - first)) for k in range(number + 1, min(last, number + _MOST_EDGES) + 1)]
    begun = "the start" if options.follow else "1970-01-01 (a Thursday)"
    counted = f"spans of {options.person_span} are counted from {begun}"
    if number == last:
        return f"all bins are in one span of persons: {counted}"
    more = f" and {last - number - _MOST_EDGES:,} more times" * (last - number > _MOST_EDGES)
    return (
        f"the bins are in {last - number + 1:,} spans of persons, cut at {', '.join(edges)}{more}: {counted}. In each "
        "the bounds begin anew, and over all of them a person is protected less; without --person-span all bins are "
        "one span"
    )


def _clock_text(moment: int) -> str:
    text: str = np.datetime_as_string(np.datetime64(moment, "us"), unit="us").removesuffix(".000000")
    return text.removesuffix(":00").replace("T00:00", "")


def guarantee_alone(options: argparse.Namespace, plan: ExactBase, span: Span, first: int) -> Guarantee:
    """Return the guarantee of a release of a file, before anything is read and beside no other."""
    persons = declared_persons(options, span)
    if persons is None:
        return plan.guarantee
    bounds = PersonBounds.of(plan.mechanism.privacy, plan.inputs, persons.span)
    return compose_guarantee(plan, [], [], (), PersonSpans.of(bounds, plan.memory, first, span.n_bins))
