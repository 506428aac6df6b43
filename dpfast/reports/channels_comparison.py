"""Reports of all mechanisms of several streams side by side, of which one is saved: a table and a page."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

from dpfast._support import validation
from dpfast._support.errors import DesignError
from dpfast._support.html_fragments import items, paragraphs
from dpfast._support.output_folder import OutputFolder
from dpfast._support.text_table import Table
from dpfast._support.wrapped_text import wrap_paragraph
from dpfast.design.left_out_summary import say_left_out
from dpfast.design.mimo.best_channels import CANDIDATES, AnyChannels, best_of_channels
from dpfast.filters.filter_matrix import FilterMatrix
from dpfast.filters.output_names import name_outputs
from dpfast.mechanisms import lags
from dpfast.mechanisms.best_choice import REFERENCE, Choice, ChoiceRow, join_reasons
from dpfast.mechanisms.guarantee_text import describe
from dpfast.mechanisms.serialization.mechanism_file import to_text
from dpfast.privacy.privacy import Privacy
from dpfast.privacy.provenance import fitted_inputs
from dpfast.reports import html_page
from dpfast.reports.comparison import ALL_SERVE, write_markdown
from dpfast.reports.declared_inputs import declare_inputs
from dpfast.reports.design_answer import DesignInShort, show_answer
from dpfast.reports.html_page import closing_sections, code
from dpfast.reports.mechanism_page import mechanism_page
from dpfast.signals.channel_outputs import output_variances
from dpfast.signals.model import Model

OF_OUTPUT = "RMSE of "
FOOTER = (
    "RMSE: predicted, of the realised filters on the models: of all outputs together, and of each. Explained: 1 - "
    "predicted MSE/variance of all true outputs, both under the models; the constant publishes the means, at no "
    "cost of privacy. Exact release: what exact, release and dpfast release take; perhaps, where only rounding its "
    "filters to integers tells."
)
PRIVATE = (
    "A model was fitted to private data: all figures here, and a choice between mechanisms that is made by looking "
    "at them, depend on these data and protect nobody."
)


class ChannelsAsked(NamedTuple):
    """The task for several streams: what is to be published, how privately, and what is assumed."""

    target: FilterMatrix
    privacy: Privacy
    models: tuple[Model, ...] | None
    names: tuple[str, ...]  # of the streams
    lag: Any
    unit: float | None
    tolerance: float


class _DesignsOfSeveral(NamedTuple):
    """The mechanisms by their labels in order of their errors, how they compare, and the one that is saved."""

    mechanisms: dict[str, AnyChannels]
    choice: Choice
    chosen: str


def report_channels(
    asked: ChannelsAsked, folder: OutputFolder, *, choose: str | None, command: str, progress: bool
) -> str:
    """Design all that can serve, add the files to the folder, and return what is printed."""
    if choose is not None:
        validation.choice("choose", choose, [x.label for x in CANDIDATES])
    found = _design(asked, choose, progress)
    saved = found.mechanisms[found.chosen]
    private = wrap_paragraph(PRIVATE).splitlines() if fitted_inputs(saved.sources) else []
    table, reasons = _tabulate(asked, found), found.choice.reasons
    notes, left_out = replace(found.choice, reasons=()).notes(), join_reasons(reasons)
    below = filter(None, (FOOTER, *notes, say_left_out(reasons, found.mechanisms, "design.md")))
    told = "\n".join([*map(wrap_paragraph, below), *private])
    said = _say_saved(found)
    text = f"{told}\n\n{wrap_paragraph(said)}\n\nSaved as mechanism.json:\n{describe(saved)}"
    sentence, answer = found.choice.sentence, _answer(found, asked, folder)
    # of many outputs the errors of the last are left out where there is no room
    shown = table.text(aside=[x for x in reversed(table.columns) if x.startswith(OF_OUTPUT)], rest="design.csv")
    folder.add("design.csv", table.csv(private))
    folder.add("design.md", write_markdown(sentence, table, text, left_out))
    folder.add("mechanism.json", to_text(saved))
    folder.add("mechanism.html", mechanism_page(saved))
    sections = {
        "In short": show_answer(answer),
        "Which is best": [paragraphs(sentence), paragraphs(said)],
        "Results": [html_page.table(table, "errors of the mechanisms", where="design.csv"), paragraphs(FOOTER)],
        "What bounds there are": [items(notes or ["None is known."])],
        "What does not serve": [items(left_out or [ALL_SERVE])],
        "Saved as mechanism.json": [code(describe(saved))],
        **closing_sections(command),
    }
    folder.add("report.html", html_page.page("Mechanisms side by side", sections, banner=" ".join(private)))
    return f"{answer.text()}\n\n{wrap_paragraph(sentence)}\n\n{shown}\n\n{text}"


def _answer(found: _DesignsOfSeveral, asked: ChannelsAsked, folder: OutputFolder) -> DesignInShort:
    """Say of the mechanism that is saved what a reader wants to know first."""
    rows, saved = {x.name: x for x in found.choice.rows}, found.mechanisms[found.chosen]
    constant = next((x.rmse for x in found.choice.rows if x.status == REFERENCE), None)
    releasable, fitted = not saved.release_hindrance(), bool(fitted_inputs(saved.sources))
    row, file = rows[found.chosen], folder.path / "mechanism.json"
    inputs = declare_inputs(saved, asked.models or ())
    return DesignInShort(found.chosen, row.lag, row.rmse, constant, releasable, fitted, file, asked.names, inputs)


def _design(asked: ChannelsAsked, choose: str | None, progress: bool) -> _DesignsOfSeveral:
    first = best_of_channels(
        asked.target,
        asked.privacy,
        asked.models,
        lag=asked.lag,
        releasable=False,
        drawn=True,
        unit=asked.unit,
        tolerance=asked.tolerance,
        progress=progress,
    )
    choice: Choice | None = first.choice
    assert choice is not None, "it comes from there"
    rows = [x for x in choice.rows if x.status != REFERENCE]
    made = dict(zip([x.name for x in rows], [first, *choice.alternatives], strict=True))
    if choose is not None and choose not in made:
        why = [reason for name, reason in choice.reasons if name == choose]
        raise DesignError(". ".join([f"choose must be one of {', '.join(made)}, got {choose!r}", *why]))
    releasable = [x.name for x in rows if x.releasable]
    return _DesignsOfSeveral(made, choice, choose or (releasable or [rows[0].name])[0])


def _say_saved(found: _DesignsOfSeveral) -> str:
    """Say whether what is saved can be released exactly, and how much worse it is than the best of all."""
    rows = {x.name: x for x in found.choice.rows}
    mine, least = rows[found.chosen], found.choice.rows[0]
    sure = (
        "which can be released exactly"
        if mine.releasable
        else "which is released exactly if its filters can be rounded"
    )
    text = f"Saved is {found.chosen}, {sure}"
    if mine.rmse is not None and least.rmse and mine.rmse > least.rmse:
        text += f"; its predicted RMSE is {mine.rmse / least.rmse - 1:.1%} above that of the best of all, {least.name}"
    return f"{text}{' (--choose saves any)' if len(found.mechanisms) > 1 else ''}."


# --- the table ------------------------------------------------------------------------------------


def _tabulate(asked: ChannelsAsked, found: _DesignsOfSeveral) -> Table:
    """Write a row for each mechanism, and one for the constant, with the error of each output."""
    names = name_outputs(asked.target, asked.names)
    columns = "mechanism", "lag", "RMSE", *(OF_OUTPUT + x for x in names), "explained", "guarantee", "exact release"
    return Table(columns, tuple(_cells(row, asked, found) for row in found.choice.rows))


def _cells(row: ChoiceRow, asked: ChannelsAsked, found: _DesignsOfSeveral) -> tuple[Any, ...]:
    if row.status == REFERENCE:
        assert asked.models is not None, "they tell its error"
        variances, told = output_variances(asked.target, asked.models), ("", "")
    else:
        m = found.mechanisms[row.name]
        variances, told = m.output_mse, (row.guarantee, _release_word(row, m))
    errors = (math.sqrt(x) for x in variances.tolist())
    return row.name, lags.lag_text(row.lag), row.rmse, *errors, row.explained, *told


def _release_word(row: ChoiceRow, m: AnyChannels) -> str:
    if row.releasable:
        return "yes"
    return "not yet" if m.release_hindrance() else "perhaps"
