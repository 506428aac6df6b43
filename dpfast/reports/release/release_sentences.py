"""Sentences on top of the page of a release: what is promised, how much the estimates err, and if the model holds."""

from __future__ import annotations

import math

from dpfast.releases.batch import Release
from dpfast.releases.contributions import format_declared
from dpfast.releases.guarantee import Guarantee
from dpfast.releases.model_check.verdict import ModelCheck
from dpfast.releases.rounded_numbers import format_factor, format_rounded_up
from dpfast.reports.release.durations import format_steps
from dpfast.reports.release.published_sections import declared_period, format_share


def say_in_short(release: Release) -> list[str]:
    """Say what the reader wants to know first, each with the figures that the page explains further down."""
    first = " ".join([_say_promise(release), *_say_all_spans(release.guarantee), *_say_ledger(release)])
    said = first, *_say_missed(release.missed), *_say_error(release), _say_verdict(release.model_check)
    return [x for x in said if x]


def _say_verdict(check: ModelCheck) -> str:
    """Say whether the model holds; what contradicts it stands further down, where its letters are explained."""
    if check.agrees is not False:
        return check.verdict_text()
    return "What was published contradicts the model that the design assumed, so that what it predicts does not hold."


def _say_promise(release: Release) -> str:
    """Say what is published does to odds."""
    guarantee = release.guarantee
    return (
        f"What is published multiplies or divides anybody's odds on what is protected "
        f"({guarantee.items()['protected']}{_say_span(release)}) {_say_odds(guarantee.epsilon, guarantee.delta)}."
    )


def _say_odds(epsilon: float, delta: float) -> str:
    """Say by how much odds change at most."""
    but = f", but for δ = {format_declared(delta)}" if delta else ", without exception"
    return f"by at most {format_factor(epsilon)}: ε = {format_rounded_up(epsilon, 4)}{but}"


def _say_span(release: Release) -> str:
    """Say how long a span of persons is, where spans are declared, in days too where steps have a length."""
    persons = release.guarantee.persons
    if persons is None or persons.span_steps is None:
        return ""
    return f"; a span is {format_steps(persons.span_steps, declared_period(release))}"


def _say_all_spans(guarantee: Guarantee) -> list[str]:
    """Say what is published does to odds on all that one person has in the release, where that is in several spans."""
    loss, persons = guarantee.all_spans, guarantee.persons
    if loss is None or persons is None or persons.is_one:
        return []
    delta = loss.stated_delta(guarantee.delta)
    odds = _say_odds(loss.epsilon(delta), delta)
    return [f"Odds on all that one person has in the {persons.n_spans} spans of this release together change {odds}."]


def _say_ledger(release: Release) -> list[str]:
    """Say where it stands what all releases of these people's data have cost, which is another ε."""
    if release.ledger is None:
        return []
    return ["This is of the releases of this store alone; below it stands what all releases in the ledger have cost."]


def _say_missed(n: int) -> list[str]:
    """Say how many bins of a live release nobody counted."""
    if not n:
        return []
    were, they = ("bin was", "it ended, and it is") if n == 1 else ("bins were", "they ended, and they are")
    return [f"{n:,} {were} missed, see missed.csv: no process ran when {they} published as empty, whatever happened."]


def _say_error(release: Release) -> list[str]:
    """Say how far estimates are off, as v tells or else as the model predicts, and beside it what the constant does."""
    check, predicted = release.model_check, release.predicted_rmse_if_model_holds
    expected = "" if predicted is None else f"; {predicted:.4g} was predicted"
    said = []
    if check.estimated_rmse is not None and check.mse_interval is not None:
        low, high = map(math.sqrt, check.mse_interval)
        interval = f"95 % interval {low:.4g} to {high:.4g}"
        said.append(
            f"The estimates have an RMSE of {check.estimated_rmse:.4g} ({interval}), as what was published "
            f"tells{expected}."
        )
    elif predicted is not None and check.agrees is not False:
        whose = "" if release.output_rmse_if_model_holds is None else " for all outputs together"
        said.append(f"The estimates have an RMSE of {predicted:.4g}{whose}, if the model holds.")
    constant = release.constant_rmse_if_model_holds
    if constant is not None and predicted is not None and check.agrees is not False:
        share = format_share(release.explained_if_model_holds)
        said.append(
            f"Publishing the mean alone, at no cost of privacy, would have an RMSE of {constant:.4g}, if the model "
            f"holds: the estimates explain {share} of the variance of the true output."
        )
    return said
