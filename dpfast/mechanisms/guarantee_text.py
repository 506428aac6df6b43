"""A mechanism in words: what it is, where its inputs came from, what it guarantees. ``dpfast show``."""

from __future__ import annotations

import textwrap

from dpfast.mechanisms.mechanism_kinds import AnyChannels, AnyMechanism
from dpfast.privacy.privacy import Privacy
from dpfast.privacy.provenance import SOURCES, fitted_inputs

_WIDTH = 110


def describe(mechanism: AnyMechanism | AnyChannels) -> str:
    """Describe a mechanism in words: its summary, the sources of its inputs, and its guarantee.

    Examples
    --------
    >>> from dpfast import Filter, input_perturbation
    >>> print(describe(input_perturbation(Filter([1, 1]), Privacy(1, 1e-6))).splitlines()[0])
    input perturbation
    """
    if isinstance(mechanism, AnyChannels):
        return "\n".join([mechanism.summary(), "guarantee", channels_guarantee_text(mechanism)])
    return "\n".join(
        [mechanism.summary(), "inputs of the design", *_source_lines(mechanism), "guarantee", guarantee_text(mechanism)]
    )


def _source_lines(mechanism: AnyMechanism) -> list[str]:
    names = {word: [name for name, x in mechanism.sources.items() if x == word] for word in SOURCES}
    return [_wrap(f"{word:<19} {', '.join(found)}", 22) for word, found in names.items() if found]


def guarantee_text(mechanism: AnyMechanism) -> str:
    """Say what holds for whom, and on which condition."""
    privacy, terms, events = mechanism.privacy, mechanism.guarantee_terms(), _events_text(mechanism.privacy)
    noise = f"{terms.noise} of standard deviation {mechanism.noise_std:.6g} that is drawn anew, once, and kept secret"
    text = (
        f"Two {terms.streams} that differ by {events} are told apart, from v and all that is computed from "
        f"v, no better than ({privacy.epsilon:g}, {terms.delta:g})-differential privacy allows: in exact arithmetic, "
        f"with {terms.chance or noise}, if the design does not depend on the data.{terms.ending}"
    )
    if private := fitted_inputs(mechanism.sources):
        text += f" It does depend on private data ({', '.join(private)}): for those data nothing is guaranteed."
    return _wrap(text, 2)


def channels_guarantee_text(mechanism: AnyChannels) -> str:
    """Say what holds for whom where there are several streams, and on which condition."""
    privacy = mechanism.privacy
    sizes = privacy.max_change if isinstance(privacy.max_change, tuple) else (privacy.max_change,)
    text = (
        f"Two sets of streams that differ by what one person changes are told apart, from v and all that is computed "
        f"from v, no better than ({privacy.epsilon:g}, {privacy.delta:g})-differential privacy allows: in exact "
        f"arithmetic, with noise that is drawn anew, once, and kept secret, if the design does not depend on the data. "
        f"What one person changes: {mechanism.one_person}, of size at most {', '.join(f'{x:g}' for x in sizes)}."
    )
    return _wrap(text, 2)


def _wrap(text: str, indent: int) -> str:
    return textwrap.fill(text, _WIDTH, initial_indent="  ", subsequent_indent=" " * indent)


def _events_text(privacy: Privacy) -> str:
    size = f"of size at most {privacy.max_change:g}"
    if privacy.max_events == 1:
        return f"one event {size}"
    samples = "sample" if privacy.min_separation == 1 else "samples"
    return f"at most {privacy.max_events} events {size}, at least {privacy.min_separation} {samples} apart,"
