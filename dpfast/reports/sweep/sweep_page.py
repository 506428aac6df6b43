"""The page of a sweep: what was simulated, what was found, what it means, and how to do it again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from dpfast._support.canonical_json import canonical
from dpfast._support.html_fragments import Html, items, paragraphs
from dpfast._support.text_table import Table
from dpfast.design import catalogue
from dpfast.privacy.provenance import FITTED
from dpfast.reports.glossary import FIGURES, explain_interval
from dpfast.reports.html_page import closing_sections, facts, page, picture, table
from dpfast.reports.sweep import lines_and_panels as panels
from dpfast.reports.sweep import sweep_pictures
from dpfast.reports.sweep.rmse_curves import describe_over
from dpfast.reports.sweep.short_sentences import say_in_short
from dpfast.reports.sweep.winner_map import contest_axes
from dpfast.simulation.intervals import ENOUGH
from dpfast.simulation.sweep import tables
from dpfast.simulation.sweep.parameters import Label
from dpfast.simulation.sweep.result import Sweep
from dpfast.simulation.sweep.rows import Cell, Row, constant_rows
from dpfast.simulation.sweep.stream_blocks import BATCHES, STREAMS

TITLE = "A sweep of mechanisms"
FILES, OBJECTS = ("study.csv", "study.md"), ("sweep.to_pandas()", "sweep.winners()")  # rows and winners, all of them
PRIVATE = (
    "A model or a design here was fitted to private data: all figures below, and a choice between mechanisms that is "
    "made by looking at them, depend on these data and protect nobody."
)
RESULTS = (
    "RMSE as simulated, with its interval from low to high, beside what was predicted of it; a dash: there is none. "
    "Explained: 1 − simulated MSE/variance of the true output, the latter under the model of the stream. The constant "
    f"publishes the mean; it is not simulated. {tables.IN_PARENTHESES}"
)
MEANING = FIGURES | {
    "Simulated": explain_interval("all streams", "means of batches of 8 streams, which are independent", "they")
    + " It covers chance in the simulation and nothing else; where a prediction is right, it lies inside about as "
    "often as the confidence says.",
    "Rare errors": "A receiver that decides between levels errs in events. A batch has an error event where its mean "
    f"squared error is more than one wrong decision makes. Where fewer than {ENOUGH} batches have one, and not all, "
    "their spread does not tell the error. The interval is then the exact binomial one of the probability of an event, "
    "its upper end times the largest squared error that is possible: it holds whatever the errors are, and is wide.",
    "Comparisons": "Mechanisms of one stream and target ran on the same inputs and the same unit noise. What is by "
    "chance easy or hard is so for all of them, and cancels in the difference of their errors: a comparison can be "
    "certain where intervals overlap. Where a contest is decided, the probability that the decision is wrong is at "
    "most one minus the confidence, however often it was looked at, as far as means of batches are normal; a tie is "
    "equal to the bit.",
}
_OF_OUTPUTS = (
    "Of several streams each output has a row, and all of them together, whose MSE is the sum. What is compared and "
    "drawn is of all together."
)
_NAMES = {"epsilon": "ε", "delta": "δ", "lag": "the lag"}
SHOWS = {
    "winners": "Map of the mechanism that errs least, its RMSE, and how far the nearest one is behind.",
    "gains": "Gain of the prefilter for each input of several streams, above the noise on what is published, for the "
    "mechanisms of one task: where a line is low, the noise hides what that input does.",
    "paths": "Sample paths: the estimates of each mechanism over the true output, on one and the same stream.",
    "convergence": "Estimates of the RMSE and their intervals against the number of streams, in percent from the "
    "last, and what was predicted.",
}
_COLUMNS = {
    "rmse": "RMSE",
    "low": "low",
    "high": "high",
    "predicted_rmse": "predicted",
    "ideal_rmse": "ideal",
    "lower_bound_rmse": "lower bound",
    "explained": "explained",
    "noise_std": "noise σ",
    "n_streams": "streams",
    "error_events": "error events",
    "interval_by": "interval by",
    "stopped": "stopped by",
}
_UNTIL_SETTLED = "as many as the slowest pole needs to decay to 0.001, or none beside a matrix mechanism"
_SEVERAL = ("length", "shares")
_FEW = 12  # values of a parameter that are all named
_SHORT = 240  # characters of the content of a filter or model that are shown


def sweep_page(
    sweep: Sweep, *, command: str | None = None, title: str | None = None, description: str | None = None
) -> str:
    """Make the page of a sweep; `command` is what makes it again, by default the call in Python."""
    rows_in, winners_in = FILES if command is not None else OBJECTS
    sections = {
        "In short": [items(said)] if (said := say_in_short(sweep, contest_axes(sweep))) else [],
        "Definition": _definition(sweep),
        "Results": [paragraphs(RESULTS), *_explain_outputs(sweep), _results(sweep, rows_in)],
        "Who errs least": _winners(sweep, winners_in),
        "Pictures": [_picture(name, figure) for name, figure in sweep_pictures.draw_all(sweep).items()],
        "What the figures mean": [facts(MEANING)],
        "Designs that failed, and notes": _notes(sweep),
        **closing_sections(command or _write_call(sweep)),
    }
    return page(title or TITLE, sections, lead=description, banner=PRIVATE if _is_fitted(sweep.configuration) else "")


def _is_fitted(content: Any) -> bool:
    """Tell whether anything in a content says that it was fitted to private data."""
    if isinstance(content, Mapping):
        return any(map(_is_fitted, content.values()))
    return any(map(_is_fitted, content)) if isinstance(content, (list, tuple)) else content == FITTED


# --- what was simulated ---------------------------------------------------------------------------


def _definition(sweep: Sweep) -> list[Html]:
    contents = Table(("parameter", "label", "content"), tuple(_contents(sweep)))
    shown = table(contents, "filters, models and mechanisms", where="the definition of the sweep", n_headers=2)
    parts = [facts({**_parameters(sweep), **_simulation(sweep)})]
    return [*parts, shown] if contents.rows else parts


def _parameters(sweep: Sweep) -> dict[str, str]:
    """Return all parameters and their values, axes first."""
    found: dict[str, dict[Label, None]] = {name: dict.fromkeys(labels) for name, labels in sweep.axes.items()}
    for row in sweep:
        for name, label in row.settings.items():
            found.setdefault(name, {})[label] = None
    return {name: _join_values([_write_value(name, x) for x in labels]) for name, labels in found.items()}


def _join_values(words: Sequence[str]) -> str:
    if len(words) <= _FEW:
        return ", ".join(words)
    return f"{', '.join(words[: _FEW // 2])}, …, {words[-1]} ({len(words)} values)"


def _write_value(name: str, given: Label) -> str:
    """Write a label as pictures have it, and as it was given."""
    if given is None:
        return "not taken"
    if name == "mechanism" and given in catalogue.FAMILIES:
        title = catalogue.family_label(str(given))
        return title if title == str(given).replace("_", " ") else f"{title} ({given})"
    if name in _SEVERAL and "," in str(given):
        return f"({given})"  # several numbers that are one value
    return f"{given:g}" if isinstance(given, float) else str(given)


def _simulation(sweep: Sweep) -> dict[str, str]:
    frame = sweep.configuration
    total = sum(x.n_streams for x in sweep) * sweep.n_samples
    burn_in = frame["burn_in"]
    before = f"{burn_in} more" if burn_in is not None else _UNTIL_SETTLED
    return {
        "size": f"{len(sweep.points)} points, {len(sweep)} cases, {total:.4g} counted samples",
        "streams": f"{sweep.n_samples} counted samples each, after {before}; in blocks of {STREAMS}",
        "common random numbers": "cases of one stream and target see the same inputs and the same unit noise",
        "rule": sweep.rule,
        "intervals": f"{100 * sweep.confidence:g}%, over means of {STREAMS // BATCHES} streams: Student's t, or wider",
        "seed": str(sweep.seed),
        "arithmetic": frame["dtype"],
        "digest": f"{sweep.digest} (SHA-256 of all that decides what is simulated)",
    }


def _contents(sweep: Sweep) -> Iterator[tuple[str, str, str]]:
    """Yield what labels stand for that are no numbers or words themselves."""
    grid = sweep.configuration["grid"]
    found: dict[tuple[str, str], str] = {}
    for row in sweep:
        _, arguments, stream = grid["cases"][row.number]
        arguments = {"model": stream, "stream": stream, **arguments}
        for name, label in row.settings.items():
            if (name, str(label)) not in found and arguments.get(name) in grid["contents"]:
                found[name, str(label)] = arguments[name]
    for (name, label), digest in found.items():
        text = canonical(grid["contents"][digest])
        cut = f"{text[:_SHORT]}… ({len(text)} characters; SHA-256 {digest})"
        yield name, label, text if len(text) <= _SHORT else cut


# --- what was found -------------------------------------------------------------------------------


def _explain_outputs(sweep: Sweep) -> list[Html]:
    return [paragraphs(_OF_OUTPUTS)] if tables.output_column(sweep) else []


def _results(sweep: Sweep, where: str) -> Html:
    """Tabulate each point, and the constant of each group."""
    axes = tables.add_mechanism_axis(_varied_axes(sweep, sweep.axes))
    rows = {x.number: (x, tables.output_figures(x)) for x in sweep}
    outputs, columns = tables.output_column(sweep), tables.drop_decision_columns(_COLUMNS, sweep)
    cells = []
    for point in sweep.points:
        row, figures = rows[point.case]
        known = {**row.settings, **point.labels}
        labels = [tables.label_text(axis, _write_label(axis, known[axis]), row) for axis in axes]
        cells += [(*labels, *(each[name] for name in (*outputs, *columns))) for each in figures]
    cells += [tuple(mean.get(x) for x in (*axes, *outputs, *columns)) for mean in constant_rows(sweep)]
    shown = Table((*axes, *outputs, *(_COLUMNS[x] for x in columns)), tuple(cells))
    return table(shown, "results", where=where, n_headers=len(axes) + len(outputs))


def _varied_axes(sweep: Sweep, axes: Iterable[str]) -> list[str]:
    """Return the axes with several labels; the definition tells the others."""
    return [x for x in axes if len(sweep.axes[x]) > 1]


def _write_label(axis: str, given: Label) -> Label:
    """Return a label as pictures have it."""
    return catalogue.family_label(str(given)) if axis == "mechanism" else given


def _winners(sweep: Sweep, where: str) -> list[Html]:
    if not sweep.contest:
        return []
    cells = sweep.winners()
    states = Counter(x.state for x in cells)
    tally = ", ".join(f"{n} {state}" for state, n in states.items())
    found = tables.winners_table(
        [_write_labels(sweep, x) for x in cells], lambda cell, row: panels.row_name(row, cell.contest)
    )
    n_headers = len(found.columns) - len(tables.VERDICT)
    return [
        paragraphs(f"Between the values of {' and '.join(sweep.contest)}, where all else is the same: {tally}."),
        table(found, "who errs least", where=where, n_headers=n_headers),
    ]


def _write_labels(sweep: Sweep, cell: Cell) -> Cell:
    """Return the cell with the labels of axes that vary, in words."""
    return cell._replace(labels={x: _write_label(x, cell.labels[x]) for x in _varied_axes(sweep, cell.labels)})


def _picture(name: str, figure: Any) -> Html:
    kind = name.removesuffix(".png").removeprefix("rmse-over-")
    axis = _NAMES.get(kind, kind.replace("-", " "))
    return picture(figure, SHOWS[kind] if kind in SHOWS else describe_over(figure, axis))


def _notes(sweep: Sweep) -> list[Html]:
    """List each text once, with the cases that it is about."""
    about: dict[str, list[Row]] = {}
    for row in sweep:
        for text in (row.error, *row.notes):
            if text is not None:
                about.setdefault(f"{'No design: ' if text is row.error else ''}{text}", []).append(row)
    varied = set(sweep.axes)
    lines = [f"{text} ({_join_names([_name_row(x, varied) for x in rows])})" for text, rows in about.items()]
    return [items(lines)] if lines else []


def _join_names(names: Sequence[str]) -> str:
    more = len(names) - _FEW
    return "; ".join(names[:_FEW]) + (f"; and {more} more" if more > 0 else "")


def _name_row(row: Row, varied: set[str]) -> str:
    return ", ".join(f"{name} {_write_value(name, x)}" for name, x in row.settings.items() if name in varied)


def _write_call(sweep: Sweep) -> str:
    """Write the call that gives the same numbers again, in Python."""
    frame = sweep.configuration
    return (
        f"dpfast.sweep(grid, seed={sweep.seed}, n_samples={sweep.n_samples}, burn_in={frame['burn_in']}, "
        f"dtype={frame['dtype']!r}, confidence={sweep.confidence:g}, …)"
        f"\n# the grid is that of the definition; and so is the rule: {sweep.rule}"
    )
