"""The page of a release: what is promised in plain words, what was published with its error, and how to check it."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpfast._support.html_fragments import Html, items, paragraphs
from dpfast._support.validation import Array
from dpfast.releases.batch import Release
from dpfast.reports import html_page
from dpfast.reports.release import estimate_chart
from dpfast.reports.release.durations import format_steps
from dpfast.reports.release.guarantee_sections import describe_declared, explain_odds, state_cost, state_in_full
from dpfast.reports.release.published_sections import (
    declared_period,
    draw_estimates,
    judge_model,
    plain_estimates,
    say_kept,
    tabulate_errors,
)
from dpfast.reports.release.release_sentences import say_in_short
from dpfast.signals.events.periods import format_period

GENERATOR = "dpfast release"
_PACKAGES = ("numpy", "scipy", "numba")
_STYLE = """
section > table { border: 1px solid var(--line); border-radius: .4rem; margin: 0 0 1rem; }
section > table th, section > table td { white-space: normal; }
@page { size: A4; margin: 13mm; }
@media print {
  section > table, dd { break-inside: avoid; }
  section > table { margin-bottom: .5rem; }
  section:last-of-type dl:last-child { grid-template-columns: repeat(3, max-content 1fr); }
}
"""
_REPEAT = (
    "This page was made from what was published, and holds nothing else. It can be made again from the store at any "
    "time, which spends nothing. The same version makes the same bytes, as long as no further release of the same "
    "steps changes the guarantee:"
)


def release_page(release: Release, *, title: str | None = None, description: str | None = None) -> str:
    """Make the page of a release from what was published.

    Parameters
    ----------
    release : Release
    title, description : str, optional
    """
    estimate = plain_estimates(release)
    lead = f"{_describe_size(release, estimate)}\n\n{description or ''}".strip()
    sections = {
        "In short": [items(say_in_short(release))],
        "What is promised": explain_odds(release.guarantee),
        "What all releases have cost": state_cost(release),
        "What was declared": describe_declared(release),
        "What was published": [
            *say_kept(release.guarantee),
            *draw_estimates(release, estimate),
            *tabulate_errors(release),
        ],
        "Does the model hold?": judge_model(release.model_check),
        **state_in_full(release.guarantee),
        "How to check this page": _explain_check(release),
    }
    style = estimate_chart.STYLE + _STYLE
    return html_page.page(
        title or "A release under differential privacy", sections, lead=lead, style=style, generator=GENERATOR
    )


# --- what it is -----------------------------------------------------------------------------------


def _describe_size(release: Release, estimate: Array) -> str:
    """Say of which steps and groups the release is."""
    n_groups, n_steps = estimate.shape
    name = "" if release.name is None else f" ({release.name})"
    what = "group" if release.output_rmse_if_model_holds is None else "output"
    groups = f"{n_groups:,} {what}s" if n_groups > 1 else f"one {what}"
    steps = format_steps(n_steps, declared_period(release)) if n_steps != 1 else "one step"
    span = _describe_span(release, n_steps)
    return f"Release {release.number}{name} of its store: estimates of {steps} for {groups}, {span}."


def _describe_span(release: Release, n_steps: int) -> str:
    times, period = release.times, declared_period(release)
    if times is None or period is None or not n_steps:
        return f"from step {release.first:,} on"
    edges = np.append(times[:1], times[-1:] + period)
    whole = not np.any(edges.astype("datetime64[us]").astype(np.int64) % 60_000_000)
    start, end = np.datetime_as_string(edges, unit="m" if whole else "us").tolist()
    zone = {"UTC": " UTC", "local": " on the local clock"}.get((release.declared or {}).get("zone", ""), "")
    return f"a step of {format_period(period)} each, from {start.replace('T', ' ')} to {end.replace('T', ' ')}{zone}"


# --- how to check it ------------------------------------------------------------------------------


def _explain_check(release: Release) -> list[Html]:
    of_values = (
        "The SHA-256 of the published values, which anyone can compute from values.csv or in Python by "
        "dp.read_release(STORE).digest, is:"
    )
    which = release.number if release.name is None else repr(release.name)
    calls: dict[str, Any] = {
        "by the command": "dpfast release --read STORE --out DIR",
        "in Python": f"dp.report(dp.read_release(STORE, {which}), 'report.html')",
    }
    return [
        paragraphs(_REPEAT),
        html_page.facts(calls),
        paragraphs(of_values),
        html_page.code(release.digest),
        html_page.facts(html_page.list_versions(_PACKAGES)),
    ]
