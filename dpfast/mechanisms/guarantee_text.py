"""A mechanism in words: what it is, where its inputs came from, what it guarantees. ``dpfast show``."""

from __future__ import annotations

from dpfast._support.wrapped_text import wrap_paragraph
from dpfast.mechanisms.mechanism_kinds import AnyChannels, AnyMechanism
from dpfast.privacy.privacy import Privacy
from dpfast.privacy.provenance import SOURCES, fitted_inputs


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
    return [wrap_paragraph(f"{word:<19} {', '.join(found)}", 22, first="  ") for word, found in names.items() if found]


def guarantee_text(mechanism: AnyMechanism) -> str:
    """Say what holds for whom, and on which condition."""
    privacy, terms, events = mechanism.privacy, mechanism.guarantee_terms(), _events_text(mechanism.privacy)
    noise = f"{terms.noise} of standard deviation {mechanism.noise_std:.6g} that is drawn anew, once, and kept secret"
    text = (
        f"Two {terms.streams} that differ by {events} are told apart, from what is published and all that is computed "
        f"from it, no better than ({privacy.epsilon:g}, {terms.delta:g})-differential privacy allows: "
        f"{_say_factor(privacy.epsilon, terms.delta)}. That holds in exact arithmetic, "
        f"with {terms.chance or noise}, if the design does not depend on the data.{terms.ending}"
    )
    if private := fitted_inputs(mechanism.sources):
        text += f" It does depend on private data ({', '.join(private)}): for those data nothing is guaranteed."
    return wrap_paragraph(text, 2)


def channels_guarantee_text(mechanism: AnyChannels) -> str:
    """Say what holds for whom where there are several streams, and on which condition."""
    privacy = mechanism.privacy
    sizes = privacy.max_change if isinstance(privacy.max_change, tuple) else (privacy.max_change,)
    text = (
        f"Two sets of streams that differ by what one person changes are told apart, from what is published and all "
        f"that is computed from it, no better than ({privacy.epsilon:g}, {privacy.delta:g})-differential privacy "
        f"allows: {_say_factor(privacy.epsilon, privacy.delta)}. That holds in exact arithmetic, with noise that is "
        "drawn anew, once, and kept secret, if the design does not depend on the data. "
        f"What one person changes: {mechanism.one_person}, of size at most {', '.join(f'{x:g}' for x in sizes)}."
    )
    return wrap_paragraph(text, 2)


def _say_factor(epsilon: float, delta: float) -> str:
    """Say what differential privacy is, in a sentence for whoever has not met it."""
    beyond = f", plus {delta:g} (δ)" if delta else ""
    return f"any conclusion is at most e^{epsilon:g} times as probable from the one as from the other{beyond}"


def _events_text(privacy: Privacy) -> str:
    size = f"of size at most {privacy.max_change:g}"
    if privacy.max_events == 1:
        return f"one event {size}"
    samples = "sample" if privacy.min_separation == 1 else "samples"
    return f"at most {privacy.max_events} events {size}, at least {privacy.min_separation} {samples} apart,"
