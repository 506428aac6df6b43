"""What a release promises, what was declared for it, and what it does not cover: sentences made of its numbers."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from dpfast._support import html_fragments as html
from dpfast._support.html_fragments import Html, items, paragraphs
from dpfast.releases import odds
from dpfast.releases.batch import Release
from dpfast.releases.contributions import format_declared
from dpfast.releases.guarantee import Guarantee
from dpfast.releases.persons.person_spans import PersonSpans
from dpfast.releases.rounded_numbers import format_factor, format_rounded_up
from dpfast.reports.html_page import facts
from dpfast.reports.release.durations import format_duration, format_steps
from dpfast.signals.events.periods import format_period

_NOT_SHOWN = (
    "How many persons and events there were, and how many were left out or clamped, is private: it is not on this page."
)

_AFTERWARDS = "The guarantee does not hold any more if somebody does one of these things afterwards:"
_FORBIDDEN = (
    "to change bounds, target, range, ε or model because of what the private counts have shown",
    "to publish the same days again from another store, or with another tool, without the same ledger",
    "to put an old copy of the store back, or to go on with a copy beside the original",
    "to lose the key of the persons' pseudonyms, or to make a new one",
    "to show others what the command marks as PRIVATE",
    "to let the data decide when something is published, or whether it is",
    "to go past the cap of the ledger, by a second one or a higher cap",
)
_ALLOWED = (
    "What is computed from the published numbers alone costs nothing more: estimates below zero, for example, may be "
    "set to zero."
)


def explain_odds(guarantee: Guarantee) -> list[Html]:
    """Explain what epsilon and delta mean for the odds of one person, and of several."""
    protected = guarantee.items()["protected"]
    epsilon, delta = guarantee.epsilon, guarantee.delta
    return [
        paragraphs(guarantee.sentence),
        paragraphs(
            f"What that means for odds: somebody knows everything else, and asks whether this is in the data: "
            f"{protected}. What is published multiplies or divides their odds by at most e^ε = {format_factor(epsilon)}"
            f"{', but for δ (below)' if delta else ', without exception: δ is 0'}. This is how probable it can be to "
            "them afterwards, by what they thought before:"
        ),
        tabulate_odds(epsilon),
        paragraphs(f"{_several(guarantee.persons)} protected less. From 50 % before, it can be afterwards:"),
        _tabulate_groups(guarantee),
        *([paragraphs(_explain_delta(epsilon, delta))] if delta else []),
    ]


def tabulate_odds(epsilon: float) -> Html:
    """Tabulate how probable something can be afterwards, by the odds beforehand."""
    rows = [(odds.format_prior(n), *odds.format_bounds(*odds.bound_probability(n, epsilon))) for n in odds.PRIORS]
    return html.table(("before", "afterwards at least", "at most"), rows, (False, True, True))


def _several(persons: PersonSpans | None) -> str:
    """Name those who are protected less."""
    if persons is None:
        return "Several such together, or somebody with several times what is declared for one, are"
    return "Several people together" + (" are" if persons.is_one else ", and one person over several spans, are")


def _tabulate_groups(guarantee: Guarantee) -> Html:
    one, several = ("one such", "{} such") if guarantee.persons is None else ("one person", "{} people")
    found = {one: guarantee.epsilon} | {several.format(n): epsilon for n, epsilon in guarantee.groups.items()}
    spans = guarantee.all_spans
    if guarantee.persons is not None and spans is not None and not guarantee.persons.is_one:
        found[f"one person, in all {guarantee.persons.n_spans} spans"] = spans.epsilon(guarantee.delta)
    rows = [
        (name, format_rounded_up(epsilon, 4), *odds.format_bounds(*odds.bound_probability(1, epsilon)))
        for name, epsilon in found.items()
    ]
    return html.table(("", "ε", "afterwards at least", "at most"), rows, (False, True, True, True))


def _explain_delta(epsilon: float, delta: float) -> str:
    """Say what δ is: what is true of it, and what is not."""
    beyond = odds.format_chance(odds.probability_beyond(epsilon, delta))
    return (
        f"What δ = {format_declared(delta)} means: nobody who sees all published values learns more than somebody to "
        f"whom a chance of {odds.format_chance(Decimal(repr(delta)))} gives the whole truth about it, and all other "
        "chances something that keeps odds within these bounds. It does not mean that odds go beyond the bounds with a "
        f"probability of at most δ: that probability can be larger. Beyond {odds.SLACK} times the factor they go, "
        f"whatever the data are, with a probability of at most {beyond}."
    )


def state_cost(release: Release) -> list[Html]:
    """State what the release alone cost, and what the ledger said of all together; nothing where it is in no ledger."""
    if release.ledger is None:
        return []
    guarantee, loss = release.guarantee, release.guarantee.terms.loss
    unit = "event" if guarantee.persons is None else f"person{guarantee.persons.in_span}"
    delta = format_declared(guarantee.delta)
    alone = f"ε = {_show(loss.epsilon(guarantee.delta))} at δ = {delta}, and ρ = {_show(loss.zcdp()[0])}"
    then = f"All releases together: when this one was entered, the ledger said: {release.ledger}"
    meaning = "ρ, or rho, is another measure of the same, zCDP, of which more is below"
    return [paragraphs(f"This release alone cost one {unit} at most {alone} ({meaning}).\n\n{then}")]


def _show(value: float | Fraction) -> str:
    return format_rounded_up(value, 6)


def describe_declared(release: Release) -> list[Html]:
    """Describe what was declared of persons and values, before anything was seen."""
    guarantee, declared = release.guarantee, release.declared or {}
    length = declared.get("period_us")
    period = None if length is None else np.timedelta64(int(length), "us")
    design = dict(release.design or {})
    return [facts(design | _describe_persons(guarantee, period) | _describe_events(declared)), paragraphs(_NOT_SHOWN)]


def _describe_persons(guarantee: Guarantee, period: np.timedelta64 | None) -> dict[str, str]:
    """Return the bounds: those that are enforced for each person, or else what is protected together."""
    found, persons = guarantee.items(), guarantee.persons
    each = "kept of one person" if persons is not None else "protected together"
    span = (
        {}
        if persons is None or persons.is_one
        else {"spans, in each of which this begins anew": _write_spans(persons, period)}
    )
    privacy = guarantee.privacy
    apart = (
        "" if period is None or privacy.max_events == 1 else f" ({format_duration(privacy.min_separation * period)})"
    )
    return {
        f"events {each}": f"{found['events']}{apart}",
        f"groups of these, {each}": found["streams per person"],
        **span,
        "change by one event": f"at most {format_declared(privacy.max_change)}",
        "range of a value": found["range"],
        **({"bounds on persons": "none is enforced: somebody may have more"} if persons is None else {}),
    }


def _write_spans(persons: PersonSpans, period: np.timedelta64 | None) -> str:
    assert persons.span_steps is not None, "they are several"
    here = "" if persons.n_spans is None else f"; {persons.n_spans} in this release"
    return f"of {format_steps(persons.span_steps, period)}{here}"


def _describe_events(declared: Mapping[str, Any]) -> dict[str, str]:
    """Return what the store declares of its steps and groups."""
    found = {}
    if declared.get("period_us"):
        found["bins"] = f"of {format_period(np.timedelta64(declared['period_us'], 'us'))}"
        found["clock"] = "UTC" if declared.get("zone") == "UTC" else "the local clock of the times, without a zone"
    names = {
        "time_column": "column of times",
        "time_format": "format of times",
        "count_column": "column of counts",
        "group_column": "column of groups",
        "person_column": "column of persons",
    }
    return found | {shown: str(declared[name]) for name, shown in names.items() if declared.get(name) is not None}


def state_in_full(guarantee: Guarantee) -> dict[str, list[Html]]:
    """Return the sections with the exact guarantee, and with what it does not cover."""
    return {
        "The guarantee in full": [
            facts(guarantee.items()),
            paragraphs("What these words mean:"),
            facts(guarantee.words()),
        ],
        "What is not covered": [
            *(items(guarantee.not_covered), paragraphs(_AFTERWARDS)),
            *(items(_FORBIDDEN), paragraphs(_ALLOWED)),
        ],
    }
