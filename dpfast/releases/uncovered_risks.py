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
    "other releases of the same data, also by others, but for earlier ones of the same store, which are added up here",
    _OTHER_STEPS,
    "the time at which something is published, whether it is published at all, and which events came in time to count",
    "the host: its memory, its disk, its other users, what the operating system's random numbers are worth",
    (
        "a store, the private folder that remembers what was published, that was restored from a backup or copied, "
        "where its witness, the record of it beside the published files, was restored or copied with it"
    ),
    (
        "choices made by looking at the data: of what is published (target), of what is assumed of the data (model), "
        "of the range, the span, the groups, the tolerance"
    ),
    "people who contribute more than is declared here",
)
_MORE_THAN_DECLARED = _UNCOVERED[-1]
_OTHER_SPANS = (
    "events of a person in other spans than those of this release, and in other stores, which add up; within a span "
    "the bounds are for all its releases together, and those of other steps promise no less than the worst of them"
)
_OTHER_STORES = (
    "events of a person in other stores, which add up; the bounds are for all releases of this one together, and those "
    "of other steps promise no less than the worst of them"
)
_OTHER_IDS = "people with several ids, each of which counts as a person, also where it is spelled in another way"


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
