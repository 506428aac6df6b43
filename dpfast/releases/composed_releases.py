"""The guarantee of several releases of one store together, for whoever they declare to be one person."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from dpfast._support.errors import ReleaseError
from dpfast.privacy.privacy import Privacy
from dpfast.releases.guarantee import Guarantee
from dpfast.releases.guarantee_terms import ReleaseTerms
from dpfast.releases.integer.exact_base import ExactBase
from dpfast.releases.integer.exact_forms import load_exact
from dpfast.releases.integer.inputs import Inputs
from dpfast.releases.persons.person_spans import PersonSpans
from dpfast.releases.store.earlier_releases import Earlier

_PERSON = ("max_change", "max_events", "min_separation")


def declared_bounds(plan: ExactBase) -> dict[str, Any]:
    """Return what a release declares of values, streams and persons, as JSON holds it."""
    privacy = plan.mechanism.privacy
    reach = {} if privacy.adjacency is None else {"adjacency": privacy.adjacency}
    person = {name: getattr(privacy, name) for name in _PERSON}
    if isinstance(privacy.max_change, tuple):
        person["max_change"] = list(privacy.max_change)
    return {**plan.inputs.public(), **person, **reach}


def load_plans(releases: Sequence[Earlier]) -> dict[int, ExactBase]:
    """Return the mechanisms of releases, by their ids."""
    known: dict[str, ExactBase] = {}
    result = {}
    for entry in releases:
        text = json.dumps(entry.configuration, sort_keys=True)
        if text not in known:
            known[text] = load_exact(entry.configuration)
        result[entry.id] = known[text]
    return result


def compose_guarantee(
    plan: ExactBase,
    others: Sequence[Earlier],
    same_steps: Sequence[Earlier],
    unchecked: Sequence[str] = (),
    persons: PersonSpans | None = None,
) -> Guarantee:
    """Return the guarantee of a release among those of its store.

    Where all of them declare one kind of person (and have noise of one kind, if that has several events), it is
    composed with those of the same steps alone: what a person has at other steps is not there any more to be had at
    these. Where they differ, it is composed with all of them, for a person of the largest of all bounds in each, and
    covers the whole store.

    Parameters
    ----------
    plan : ExactBase
    others : sequence of Earlier
        All other releases of the store.
    same_steps : sequence of Earlier
        Those of `others` that share steps with it.
    unchecked : sequence of str
        Declared fields that are the operator's word.
    persons : PersonSpans, optional
        Of the release, where the store protects persons.

    Raises
    ------
    ReleaseError
        Where nothing is proven of all of them together.
    """
    alone = plan.guarantee
    if unchecked or persons is not None:
        alone = replace(alone, unchecked=tuple(unchecked), persons=persons)
    if not others:
        return alone
    plans = load_plans(others)
    alike = len({_declared_person(x) for x in (plan, *plans.values())}) == 1
    if not alike:
        _check_one_adjacency([plan, *plans.values()])
    past = [plans[entry.id] for entry in (same_steps if alike else others)]
    if not past:
        return alone
    everyone = [plan, *past]
    if persons is not None:  # one of them with a memory is enough for a number that depends on two spans
        persons = replace(persons, joined=any(x.memory > 0 for x in everyone))
    own, *losses = [_terms_for_largest(x, everyone) for x in everyone]
    privacy, inputs = _largest_declaration(plan, everyone)
    others_losses = [x.loss for x in losses]
    result = Guarantee.of(privacy, inputs, own, others_losses, whole=not alike, unchecked=unchecked, persons=persons)
    if result.epsilon == math.inf:
        raise ReleaseError(
            "the release would leave nothing promised: for a person of the largest bounds that releases of the store "
            f"declare, here {privacy.max_events} events, the delta of one of them comes to 1. Keep the bounds, or "
            "begin another store (--new-store), and add the two up in a ledger"
        )
    return result


def _declared_person(plan: ExactBase) -> tuple[object, ...]:
    """Return what is declared of a person, and, where that has several events, the kind of the noise.

    Of several events some may be behind noise of one kind and some behind another: together they can cost more than
    all of them behind either. So it is with two laws of a δ, where one has the larger ε and the other the larger δ; and
    with two mechanisms where events in several streams are at times of their own, each where that stream costs most.
    """
    declared = declared_bounds(plan)
    names = *_PERSON, "streams_per_person", "n_streams", "adjacency"
    person: tuple[object, ...] = tuple(str(declared[name]) for name in names if name in declared)
    if declared.get("adjacency") == "each_input":
        person += (plan.stream_costs,)
    if declared["max_events"] * declared["streams_per_person"] == 1:
        return person
    loss = plan.guarantee.loss
    return *person, bool(loss.shifts), bool(loss.pure), loss.approximate


def _check_one_adjacency(plans: Sequence[ExactBase]) -> None:
    """Refuse releases that differ in which streams one person reaches: nothing is proven of them together."""
    demands = {(x.mechanism.privacy.adjacency, x.mechanism.privacy.max_change, x.inputs.n_streams) for x in plans}
    if len(demands) > 1 and any(adjacency is not None for adjacency, *_ in demands):
        raise ReleaseError(
            "the release must be for the same person as others of its store, who reaches the same streams by changes "
            f"of the same size, got {len(demands)} kinds of them: begin another store (--new-store), and add the two "
            "up in a ledger"
        )


def _largest_declaration(plan: ExactBase, everyone: Sequence[ExactBase]) -> tuple[Privacy, Inputs]:
    """Return what a release declares, but for a person of the largest bounds that any of some releases declares."""
    demands = [x.mechanism.privacy for x in everyone]
    own = plan.mechanism.privacy
    privacy = replace(
        own,
        # Gaussian noise has no ε without a δ
        delta=own.delta or max(x.delta for x in demands),
        max_change=max(x.max_change for x in demands),
        max_events=max(x.max_events for x in demands),
        min_separation=min(x.min_separation for x in demands),
    )
    streams = max(x.inputs.streams_per_person for x in everyone)
    return privacy, replace(plan.inputs, streams_per_person=min(streams, plan.inputs.n_streams))


def _terms_for_largest(plan: ExactBase, everyone: Sequence[ExactBase]) -> ReleaseTerms:
    """Return what a release costs such a person."""
    return plan.terms(*_largest_declaration(plan, everyone))
