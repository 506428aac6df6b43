"""What one person may have in a release, in words: events of a size, how many of them, and in which streams."""

from __future__ import annotations

from dpfast.privacy.privacy import Privacy
from dpfast.releases.integer.inputs import Inputs
from dpfast.releases.persons.person_bounds import streams_reached
from dpfast.releases.persons.person_spans import PersonSpans

_ONE_EVENT = {
    "one_input": "one event {size} in one of the {n} streams was",
    "each_input_same_time": "the events of one person, at most one in each of the {n} streams and all in the same "
    "step, each {size}, were",
    "each_input": "the events of one person, at most one in each of the {n} streams at any times, each {size}, were",
}
_SEVERAL_EVENTS = {
    "one_input": "the at most {events} events of one person, each in one of the {n} streams and {size}, were",
    "each_input_same_time": "the events of one person in at most {events} steps, in each of them at most one in each "
    "of the {n} streams, each {size}, were",
    "each_input": "the events of one person, at most {events} in each of the {n} streams at any times, each {size}, "
    "were",
}


def contribution_text(privacy: Privacy, inputs: Inputs, persons: PersonSpans | None) -> str:
    """Say what is in the data or not, with the verb; of persons :func:`kept_text` says which of their events count.

    Examples
    --------
    >>> contribution_text(Privacy(1, adjacency="one_input"), Inputs(0, 9, n_streams=3), None)
    'one event of size at most 1 in one of the 3 streams was'
    """
    size = f"of size at most {format_declared(privacy.max_change)}"
    if persons is not None:
        return f"the events of one person{persons.in_span} were"
    if privacy.adjacency is not None:
        words = _ONE_EVENT if privacy.max_events == 1 else _SEVERAL_EVENTS
        return words[privacy.adjacency].format(size=size, n=inputs.n_streams, events=privacy.max_events)
    if privacy.max_events == 1:
        return f"one event {size} was"
    return f"the at most {privacy.max_events} events of one person, each {size}, were"


def kept_text(privacy: Privacy, inputs: Inputs, verb: str = "") -> str:
    """Say how many events of a person are kept, where, how far apart and how large, with a verb or without.

    Parameters
    ----------
    privacy : Privacy
    inputs : Inputs
    verb : str
        With the space before it: one for one event, another for several.

    Examples
    --------
    >>> kept_text(Privacy(1, 1e-6, max_events=4, min_separation=6), Inputs(0, 9, n_streams=3, streams_per_person=2))
    'at most 4 in each of at most 2 streams, at least 6 steps apart, each of size at most 1'
    """
    reached = streams_reached(privacy, inputs)
    streams = "one stream" if reached == 1 else f"each of at most {reached} streams"
    many = "one" if privacy.max_events == 1 else str(privacy.max_events)
    apart = "" if privacy.max_events == 1 else f", at least {privacy.min_separation} steps apart"
    return f"at most {many} in {streams}{verb}{apart}, each of size at most {format_declared(privacy.max_change)}"


def streams_text(privacy: Privacy, inputs: Inputs) -> str:
    """Say in how many of the streams one person may be, and when."""
    when = {"each_input_same_time": ", in the same step", "each_input": ", at any times"}.get(
        privacy.adjacency or "", ""
    )
    return f"{streams_reached(privacy, inputs)} of {inputs.n_streams}{when}"


def lattice_changes(privacy: Privacy, inputs: Inputs) -> tuple[int, ...]:
    """Return the largest change of an integer: one for all streams or, where several differ, one for each."""
    if isinstance(privacy.max_change, tuple):
        return tuple(map(inputs.change, privacy.max_change))
    return (inputs.change(privacy.max_change),)


def change_text(privacy: Privacy, inputs: Inputs) -> str:
    """Write the largest change, and what it is in whole units after rounding."""
    changes = lattice_changes(privacy, inputs)
    units = f"{', '.join(map(str, changes))} unit{'s' * (changes != (1,))}"
    return f"{format_declared(privacy.max_change)}; after rounding {units}"


def format_declared(declared: float | tuple[float, ...]) -> str:
    """Write a number, or one for each stream, as it was declared, in full: cut short it could be less."""
    if isinstance(declared, tuple):
        return f"{', '.join(map(format_declared, declared))} (stream by stream)"
    return str(declared).removesuffix(".0")
