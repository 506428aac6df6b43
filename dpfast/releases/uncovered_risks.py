"""Which data sets a guarantee compares, and what it does not cover, in words."""

from __future__ import annotations

from dpfast.releases.persons.person_spans import PersonSpans

_ADJACENCY = (
    "the data with those events, and the same data without them (such data sets are called neighbours, or adjacent); "
    "moving an event to another time is two changes"
)
_PERSON_ADJACENCY = (
    "the data with all events of one person{in_span}, however many, and the same data with none of them (such data "
    "sets are called neighbours, or adjacent); exchanging them for others is two changes"
)
_OTHER_STEPS = (
    "events at other steps than those of this release: each release of a store has a guarantee of its own, and an "
    "event whose time was corrected between two of them may be in both, and counts as two"
)
_UNCOVERED = (
    "other releases of the same data, also by others (earlier ones of the same store are added up here)",
    _OTHER_STEPS,
    "what the time of publication tells, whether anything is published at all, and which events came in time to count",
    "the computer: its memory, its disk, its other users, and how good the operating system's random numbers are",
    (
        "a store (the private folder that remembers what was published) that was copied, or restored from a backup, "
        "together with its witness (the record of it beside the published files)"
    ),
    (
        "choices made by looking at the data: of what is published (target), what is assumed of the data (model), the "
        "range, the span, the groups or the tolerance"
    ),
    "people who contribute more than is declared here",
)
_MORE_THAN_DECLARED = _UNCOVERED[-1]
_OTHER_SPANS = (
    "events of a person in other spans than those of this release, or in other stores: what they cost adds up. "
    "(Within a span the bounds are for all its releases together: at different steps these promise what the worst does)"
)
_OTHER_STORES = (
    "events of a person in other stores: what they cost adds up. (In this store the bounds are for all releases "
    "together: at different steps these promise what the worst of them does)"
)
_OTHER_IDS = "people with several ids, or whose id is spelled in several ways: each counts as another person"


def say_adjacency(persons: PersonSpans | None) -> str:
    """Say which data sets are neighbours: they differ by events, or by all that one person has in a span."""
    return _ADJACENCY if persons is None else _PERSON_ADJACENCY.format(in_span=persons.in_span)


def list_uncovered(persons: PersonSpans | None, *, whole: bool) -> tuple[str, ...]:
    """List the risks that a guarantee does not cover.

    Parameters
    ----------
    persons : PersonSpans or None
    whole : bool
        Whether it is that of all releases of its store together.
    """
    if persons is not None:
        left = {_MORE_THAN_DECLARED, _OTHER_STEPS}
        beyond = _OTHER_STORES if persons.span_steps is None else _OTHER_SPANS
        return (*(x for x in _UNCOVERED if x not in left), beyond, _OTHER_IDS)
    return tuple(x for x in _UNCOVERED if not (whole and x == _OTHER_STEPS))
