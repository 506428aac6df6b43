"""Reports of how well each mechanism would have served a historical log: tables, a picture and a page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dpfast._support.csv_cells import round_to_error
from dpfast._support.html_fragments import items, paragraphs
from dpfast._support.output_folder import OutputFolder
from dpfast._support.text_table import Estimate, Table
from dpfast._support.validation import Array
from dpfast._support.wrapped_text import wrap_paragraph
from dpfast.design.catalogue import family_label
from dpfast.filters.filter import Filter
from dpfast.filters.filter_matrix import FilterMatrix
from dpfast.filters.output_names import name_outputs
from dpfast.mechanisms import lags
from dpfast.privacy.privacy import Privacy
from dpfast.reports import html_page
from dpfast.reports.evaluation_sentences import say_in_short
from dpfast.reports.glossary import FIGURES, describe_task, explain_interval
from dpfast.reports.html_page import closing_sections, facts
from dpfast.reports.matplotlib_helpers import make_figure, plot_path, render_png
from dpfast.signals.events.historical_counts import EventCounts
from dpfast.signals.events.periods import format_period
from dpfast.simulation.channels_evaluation import evaluate_channels
from dpfast.simulation.evaluation import CONFIDENCE, MAX_LEVELS, SeriesResult, evaluate_log, has_levels
from dpfast.simulation.study import describe_rare_errors

BANNER = (
    "AN EVALUATION, NOT A RELEASE: these outputs contain the data, unprotected.",
    "The models were fitted to the data: nothing fitted here may be used to release private data.",
)
MEANING = {
    "RMSE": explain_interval(
        "all bins of the series and all draws of the noise, in the units of the target's output", "the draws"
    )
    + " The counts are what they are: of another log the interval says nothing.",
    "Predicted": FIGURES["Predicted"] + " Here the model is the autoregression fitted to the series, so that a "
    "difference shows how far the series is from it.",
    "Spread of true output": "Standard deviation of the target's output: an estimate that says nothing but the mean "
    "errs by this much.",
    "Explained": "1 − MSE/variance of the true output, both measured on the data: 1 is an estimate without error, and "
    "0 is as good as the constant, which publishes the mean that the target's output has by the fitted model.",
    "outputs.csv": "The true output and one draw of every estimate of it, in steps of at most a hundredth of its RMSE.",
}
_OF_SEVERAL = {
    "Predicted": FIGURES["Predicted"]
    + " Here the models are those that a mechanism was designed for: an autoregression fitted to each series, as if "
    "they were independent, or for correlated ones a vector autoregression fitted to all; of saved ones their own. A "
    "difference shows how far the series are from it.",
    "Correlated": "Mechanisms for streams that depend on one another. dp.VectorARMA.fit gives such a model in Python.",
}
SHOWN = (
    "True output (black) of the last days of each series, and one draw of two estimates of it: by zero forcing "
    f"({family_label('zero_forcing')}), and by the mechanism of finite lag that errs least. Not for release."
)
COLUMNS = ("series", "mechanism", "lag", "RMSE", "low", "high", "predicted", "spread of true output", "explained")
SHOWN_DAYS = 7
MAX_PANELS = 12


def report_evaluation(
    counts: EventCounts,
    target: Filter | FilterMatrix,
    privacy: Privacy,
    folder: OutputFolder,
    *,
    order: int,
    draws: int,
    seed: int,
    command: str,
    saved: Sequence[Any] = (),
    unit: float | None = None,
    progress: bool = False,
) -> str:
    """Evaluate every mechanism on every series, add the files to the folder, and return what is printed.

    For a FilterMatrix the series are its inputs, and mechanisms of several streams are evaluated on all of them
    together. The page shows the command; `unit` is for mechanisms that round; `progress` shows bars (tqdm, extra
    ``progress``).
    """
    given: dict[str, Any] = {"order": order, "draws": draws, "seed": seed, "saved": saved, "progress": progress}
    given["unit"] = unit
    several = isinstance(target, FilterMatrix)
    if isinstance(target, FilterMatrix):
        outputs, results, notes = evaluate_channels(counts, target, privacy, **given)
        names, task = name_outputs(target, counts.series), _describe_channels(counts, target, privacy, unit)
    else:
        outputs, results, notes = evaluate_log(counts, target, privacy, **given)
        names, task = counts.series, describe_task(target, privacy, unit)
    what = "output" if several else "series"
    table = Table((what, *COLUMNS[1:]), tuple(_cells(x) for x in results))
    start = np.datetime_as_string(counts.start, "auto")
    left_out = "" if several else _note_left_out(counts)
    fitted = "each series, or to all together (correlated)" if several else "each series"
    footer = (
        f"{counts.counts.shape[1]} bins of {format_period(counts.period)} from {start}; "
        f"RMSE over all bins and {draws} noise draws (seed {seed}), with {CONFIDENCE:.0%} intervals over the draws; "
        f"models: AR({order}) fitted to {fitted}; epsilon {privacy.epsilon:g}, delta {privacy.delta:g}; "
        "explained: 1 - MSE/variance of the true output, both measured on these data."
        f"{left_out} {describe_rare_errors(x.result for x in results)}".rstrip()
        + "".join(f" {note}" for note in notes)
    )
    text = "\n".join(BANNER)
    said = say_in_short(results)
    folder.add("evaluation.csv", table.csv(BANNER))
    short = "".join(f"- {x}\n" for x in said)
    folder.add("evaluation.md", f"**{text}**\n\n{short}\n{table.markdown()}\n\n{footer}\n")
    private = [x for x in results if x.mechanism.sees_data]
    folder.add("outputs.csv", _tabulate_outputs(counts, what, names, outputs, private).csv(BANNER))
    drawn = _draw_last_days(counts, names, outputs, private)
    folder.add("outputs.png", render_png(drawn))
    sections = {
        "In short": [items(said)] if said else [],
        "Definition": [facts(task), paragraphs(footer)],
        "Results": [html_page.table(table, "errors of the mechanisms", where="evaluation.csv", n_headers=3)],
        "Least error": [
            html_page.table(_tabulate_least(what, results), f"least error of each {what}", where="evaluation.csv")
        ],
        "Pictures": [html_page.picture(drawn, SHOWN)],
        "What the figures mean": [facts(MEANING | (_OF_SEVERAL if several else {}))],
        **closing_sections(command),
    }
    folder.add("report.html", html_page.page("Mechanisms on a log of events", sections, banner=" ".join(BANNER)))
    shown = table.join_interval("RMSE", CONFIDENCE).text(heads=[what], rest="evaluation.csv")
    return "\n\n".join([text, *map(wrap_paragraph, said), shown, wrap_paragraph(footer)])


def _cells(x: SeriesResult) -> tuple[Any, ...]:
    """Return the row of a mechanism on a series."""
    m, result = x.mechanism, x.result
    figures = result.rmse, *result.interval, result.predicted_rmse, x.spread, result.explained
    return x.series, m.name, lags.lag_text(m.lag), *figures


def _describe_channels(
    counts: EventCounts, target: FilterMatrix, privacy: Privacy, unit: float | None
) -> dict[str, str]:
    """Describe what is to be published of several series together, and which of them one person reaches."""
    change = privacy.max_change
    return {
        "inputs": ", ".join(counts.series),
        "outputs": ", ".join(name_outputs(target, counts.series)),
        "adjacency": str(privacy.adjacency).replace("_", " "),
        "epsilon": f"{privacy.epsilon:g}",
        "delta": f"{privacy.delta:g}",
        "max change": ", ".join(f"{x:g}" for x in change) if isinstance(change, tuple) else f"{change:g}",
        **({} if unit is None else {"unit": f"{unit:g}"}),
    }


def _note_left_out(counts: EventCounts) -> str:
    names = [name for name, u in zip(counts.series, counts.counts, strict=True) if not has_levels(u)]
    if not names:
        return ""
    return f" No decision feedback, which needs whole counts below {MAX_LEVELS}, for {', '.join(names)}."


def _tabulate_least(what: str, results: Sequence[SeriesResult]) -> Table:
    """Tabulate the mechanism that errs least on each series, among all and among those that can run as a stream."""
    rows = []
    for name in dict.fromkeys(x.series for x in results):
        every = sorted((x for x in results if x.series == name), key=lambda x: x.result.rmse)
        live = next(x for x in every if x.mechanism.lag is not None)
        rows.append(
            (
                name,
                *(y for x in (every[0], live) for y in (x.mechanism.name, Estimate(x.result.rmse, *x.result.interval))),
            )
        )
    level = f"[{CONFIDENCE:.0%} interval]"
    return Table((what, "of all", f"RMSE of it {level}", "as a stream", f"RMSE of that {level}"), tuple(rows))


def _tabulate_outputs(
    counts: EventCounts, what: str, series: Sequence[str], outputs: Array, results: list[SeriesResult]
) -> Table:
    """Tabulate the true output and one draw of every mechanism's estimate of it, by time and series, or output."""
    names = list(dict.fromkeys(x.mechanism.name for x in results))
    times = np.datetime_as_string(counts.times(), unit="s").tolist()
    rows: list[tuple[Any, ...]] = []
    for name, y in zip(series, outputs, strict=True):
        estimates = {
            x.mechanism.name: round_to_error(x.estimate.tolist(), x.result.rmse) for x in results if x.series == name
        }
        missing = [None] * len(y)
        columns = [[f"{x:.6g}" for x in y.tolist()], *(estimates.get(x, missing) for x in names)]
        rows += [(time, name, *row) for time, *row in zip(times, *columns, strict=True)]
    return Table(("time", what, "true output", *(f"private: {x}" for x in names)), tuple(rows))


def _draw_last_days(counts: EventCounts, series: Sequence[str], outputs: Array, results: list[SeriesResult]) -> Any:
    """Draw the last days of every series: true output, zero forcing, and the best mechanism of finite lag."""
    shown = int(min(outputs.shape[1], max(2, np.timedelta64(SHOWN_DAYS, "D") // counts.period)))
    n_panels = min(len(series), MAX_PANELS)
    drawn, axes = make_figure(n_panels, 1, height=1.9)
    times = counts.times()[-shown:]
    for ax, shown_as, y in zip(axes[:, 0], series, outputs, strict=False):
        causal = {x.mechanism.name: x for x in results if x.series == shown_as and x.mechanism.lag is not None}
        best = min(causal.values(), key=lambda x: x.result.rmse)
        names = [x for x in dict.fromkeys([family_label("zero_forcing"), best.mechanism.name]) if x in causal]
        estimates = {f"private: {name}": causal[name].estimate[-shown:] for name in names}
        plot_path(ax, times, y[-shown:], estimates, shown_as)
        ax.tick_params(axis="x", rotation=20)
    more = f"; the first {n_panels} of {len(series)}" if n_panels < len(series) else ""
    drawn.suptitle(f"Evaluation on the data themselves: not for release{more}", fontsize=9)
    return drawn
