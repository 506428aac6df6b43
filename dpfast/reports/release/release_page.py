"""The page of a release: what is promised in plain words, what was published with its error, and how to check it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast._support import html_fragments as html
from dpfast._support.dataframes import unwrap
from dpfast._support.html_fragments import Html, paragraphs
from dpfast._support.validation import Array
from dpfast.releases.batch import Release
from dpfast.reports import html_page
from dpfast.reports.release import estimate_chart
from dpfast.reports.release.chart_axes import Ticks, step_ticks, time_ticks
from dpfast.reports.release.estimate_chart import MOST_COLUMNS, GroupPanel
from dpfast.reports.release.guarantee_sections import describe_declared, explain_odds, state_in_full
from dpfast.signals.events.periods import format_period

GENERATOR = "dpfast release"
MOST_PANELS = 24
NORMAL = 1.96  # standard deviations, within which 95 % of normal errors lie
_PACKAGES = ("numpy", "scipy", "numba")
_STYLE = """
section > table { border: 1px solid var(--line); border-radius: .4rem; margin: 0 0 1rem; }
section > table th, section > table td { white-space: normal; }
@page { size: A4; margin: 15mm; }
@media print { section > table, dd { break-inside: avoid; } }
"""
_MEANING = (
    "RMSE is the root mean square error of the estimates, in the units of the target's output. Explained is the part "
    "of the variance of the true output that the estimates explain. Both are computed from the model that the design "
    "assumed, never measured on the data: where the data are otherwise, the true error may be several times as large."
)
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
        "What is promised": explain_odds(release.guarantee),
        **({} if release.ledger is None else {"What all releases have cost": [paragraphs(release.ledger)]}),
        "What was declared": describe_declared(release),
        "What was published": [*_draw(release, estimate), *_tabulate_errors(release)],
        **state_in_full(release.guarantee),
        "How to check this page": _explain_check(release),
    }
    style = estimate_chart.STYLE + _STYLE
    return html_page.page(
        title or "A release under differential privacy", sections, lead=lead, style=style, generator=GENERATOR
    )


def plain_estimates(release: Release) -> Array:
    """Return the estimates as an array (streams, time), without the labels of the data that were released."""
    values = np.asarray(unwrap("estimate", release.estimate)[0], float)
    return values.reshape(len(release.privatized), -1)


# --- what it is -----------------------------------------------------------------------------------


def _describe_size(release: Release, estimate: Array) -> str:
    """Say of which steps and groups the release is."""
    n_groups, n_steps = estimate.shape
    name = "" if release.name is None else f" ({release.name})"
    groups = f"{n_groups:,} groups" if n_groups > 1 else "one group"
    steps = f"{n_steps:,} steps" if n_steps != 1 else "one step"
    span = _describe_span(release, n_steps)
    return f"Release {release.number}{name} of its store: estimates of {steps} for {groups}, {span}."


def _describe_span(release: Release, n_steps: int) -> str:
    times, period = release.times, _period(release)
    if times is None or period is None or not n_steps:
        return f"from step {release.first:,} on"
    edges = np.append(times[:1], times[-1:] + period)
    whole = not np.any(edges.astype("datetime64[us]").astype(np.int64) % 60_000_000)
    start, end = np.datetime_as_string(edges, unit="m" if whole else "us").tolist()
    zone = {"UTC": " UTC", "local": " on the local clock"}.get((release.declared or {}).get("zone", ""), "")
    return f"a step of {format_period(period)} each, from {start.replace('T', ' ')} to {end.replace('T', ' ')}{zone}"


def _period(release: Release) -> np.timedelta64 | None:
    length = (release.declared or {}).get("period_us")
    return None if length is None else np.timedelta64(int(length), "us")


# --- what was published ---------------------------------------------------------------------------


def _draw(release: Release, estimate: Array) -> list[Html]:
    """Draw the estimates of each group with their band, and say what is drawn."""
    n_groups, n_steps = estimate.shape
    if not n_steps:
        return [paragraphs("No step has an estimate yet.")]
    error = release.predicted_rmse_if_model_holds
    half = None if error is None else NORMAL * error
    names = release.groups or tuple(f"stream {i + 1}" for i in range(n_groups))
    panels = [GroupPanel(name, y, half) for name, y in zip(names, estimate, strict=True)][:MOST_PANELS]
    drawn = estimate_chart.draw_panels(panels, _time_ticks(release.times, _period(release), release.first, n_steps))
    return [paragraphs(_explain_drawing(half, n_steps, n_groups)), drawn]


def _time_ticks(times: NDArray[np.datetime64] | None, period: np.timedelta64 | None, first: int, n: int) -> Ticks:
    if times is None or period is None:
        return step_ticks(first, n)
    return time_ticks(int(times[0].astype("datetime64[us]").astype(np.int64)), n * int(period.astype(np.int64)))


def _explain_drawing(half: float | None, n_steps: int, n_groups: int) -> str:
    line = "The line is what is published: the estimate of the target's output in each step."
    if n_steps > MOST_COLUMNS:
        line = (
            f"Of {n_steps:,} steps the drawing shows {MOST_COLUMNS} stretches of time: from the least to the largest "
            "published estimate in each."
        )
    band = (
        "No error is predicted of this mechanism, as only simulation tells it: there is no band."
        if half is None
        else f"The pale band is ±{half:.3g} about it, {NORMAL} times the predicted error: if the model holds and "
        "errors are nearly normal, the true output lies in it in 95 % of the steps."
    )
    scale = " Each group has a scale of its own." if n_groups > 1 else ""
    cut = f" The first {MOST_PANELS} of {n_groups:,} groups are drawn." if n_groups > MOST_PANELS else ""
    return f"{line} {band}{scale}{cut}"


def _tabulate_errors(release: Release) -> list[Html]:
    """Tabulate the errors that are known, and beside them that of publishing the mean alone."""
    error, explained = release.predicted_rmse_if_model_holds, release.explained_if_model_holds
    if error is None:
        return []
    rows = [("predicted, if the model holds", f"{error:.4g}", _format_share(explained))]
    if explained is not None:
        constant = error / math.sqrt(1 - explained) if explained < 1 else math.inf
        rows.append(("constant: publish the mean alone, at no cost", f"{constant:.4g}", _format_share(0.0)))
    return [html.table(("", "RMSE", "explained"), rows, (False, True, True)), paragraphs(_MEANING)]


def _format_share(x: float | None) -> str:
    """Write a share in percent, rounded down: 100 % is an estimate without error."""
    return "–" if x is None else f"{math.floor(1000 * x) / 10:.1f}\u00a0%"


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
