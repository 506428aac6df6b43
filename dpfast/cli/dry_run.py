"""``dpfast release --dry-run``: what would be promised, which is public, and then how the rows fall, which is not."""

from __future__ import annotations

import argparse

from dpfast._support.wrapped_text import wrap_facts, wrap_paragraph
from dpfast.cli.declared_store import declare_store, find_places
from dpfast.cli.person_options import describe_spans, guarantee_alone
from dpfast.cli.release_input import count_file
from dpfast.releases.estimates_layout import Layout
from dpfast.releases.guarantee import Guarantee
from dpfast.releases.guarantee_words import explain_words
from dpfast.releases.integer.exact_base import ExactBase
from dpfast.releases.ledger.foresight import foresee_release
from dpfast.releases.ledger.ledger import as_ledger
from dpfast.reports.release.published_sections import format_share

_PUBLIC = (
    "What this release would promise and cost: all of it follows from what is declared, and nothing from the events."
)
_SHOWN = ("protected", "in odds", "events", "streams per person", "(ε, δ)", "zCDP", "spans", "groups")
_SAME = 1.001  # times the error of a design, above which the noise is larger than its
DRY = "A dry run: nothing was published or spent. What lines marked PRIVATE say is for you alone."
QUIET = "A dry run without the events: nothing was read, nothing was published and nothing was spent."


def run_dry(options: argparse.Namespace, plan: ExactBase, layout: Layout, first: int) -> str:
    """Print what is public, then count the file for the operator alone, unless that is to be quiet."""
    print(f"{describe_release(options, plan, layout, first)}\n", flush=True)
    if options.quiet:
        return QUIET
    count_file(options, plan, layout, first)
    return DRY


def describe_release(options: argparse.Namespace, plan: ExactBase, layout: Layout, first: int) -> str:
    """Say what a release would promise, how much it would err, and what the ledger would say of it."""
    span = layout.span
    guarantee = guarantee_alone(options, plan, span, first)
    items = guarantee.items()
    lines = {"steps": f"{span.n_bins:,} of {options.period} in {_count_groups(len(layout.groups))}"}
    lines |= {name: items[name] for name in _SHOWN if name in items}
    if options.person_span is not None:
        lines["cut"] = describe_spans(options, span, first)
    lines["error"] = _describe_error(plan)
    if options.ledger is not None:
        lines["ledger"] = _ask_ledger(options, plan, layout, guarantee, first)
    words = explain_words({name: items[name] for name in _SHOWN if name in items})
    parts = (
        wrap_paragraph(_PUBLIC),
        wrap_paragraph(guarantee.sentence),
        wrap_facts(lines),
        f"What these words mean:\n{wrap_facts(words)}",
    )
    return "\n\n".join(parts)


def _count_groups(n: int) -> str:
    return f"{n:,} groups" if n > 1 else "one group"


def _describe_error(plan: ExactBase) -> str:
    """Say what is predicted, and how much of the true output that explains."""
    predicted, explained = plan.predicted_rmse_if_model_holds, plan.explained_if_model_holds
    if predicted is None:
        return "no error is predicted of this mechanism, as only simulation tells it"
    part = "" if explained is None else f"; explains {format_share(explained)} of the variance of the true output"
    if (constant := plan.constant_rmse_if_model_holds) is not None:
        part += f", and publishing the mean alone errs by {constant:.4g}"
    whose = "" if plan.output_rmse_if_model_holds is None else " for all outputs together"
    return f"RMSE {predicted:.4g}{whose}{part}, if the model holds{_compare_design(plan, predicted)}"


def _compare_design(plan: ExactBase, predicted: float) -> str:
    """Say why the design predicted less, which knows nothing of persons in several streams; else nothing."""
    several, designed = plan.inputs.streams_per_person, plan.mechanism.predicted_rmse
    if several == 1 or designed is None or predicted <= _SAME * designed:
        return ""
    return (
        f"; the design predicted {designed:.4g}, for persons in one stream: here the noise is for persons in {several}"
    )


def _ask_ledger(options: argparse.Namespace, plan: ExactBase, layout: Layout, guarantee: Guarantee, first: int) -> str:
    """Say what a ledger would say of the release, which is not entered."""
    ledger, declared = as_ledger(options.ledger), declare_store(options, plan, layout)
    assert ledger is not None, "it was given"
    store = find_places(options, declared).store
    return foresee_release(ledger, store, declared, guarantee, first=first, count=layout.span.n_bins, name=options.name)
