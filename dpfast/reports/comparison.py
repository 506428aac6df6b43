"""Reports of all families of mechanisms side by side: tables, pictures and a page."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dpfast._support.html_fragments import Html, items, paragraphs
from dpfast._support.output_folder import OutputFolder
from dpfast._support.progress import progress_bar
from dpfast._support.text_table import Table
from dpfast._support.validation import Array
from dpfast._support.wrapped_text import wrap_paragraph
from dpfast.design.best_demand import Demand
from dpfast.design.comparison import (
    LABELS,
    SideBySide,
    check_choice,
    compare_families,
    count_points,
    lower_bound,
    lower_bound_at_lag,
)
from dpfast.design.left_out_summary import say_left_out
from dpfast.mechanisms import lags
from dpfast.mechanisms.base import Magnitudes
from dpfast.mechanisms.best_choice import ChoiceRow
from dpfast.mechanisms.constant import NAME, Constant
from dpfast.mechanisms.guarantee_text import describe
from dpfast.mechanisms.mechanism_kinds import AnyMechanism
from dpfast.mechanisms.serialization.mechanism_file import to_text
from dpfast.privacy.provenance import FITTED, Provenance, fitted_inputs
from dpfast.reports import html_page
from dpfast.reports import mechanism_styles as styles
from dpfast.reports.declared_inputs import declare_inputs
from dpfast.reports.design_answer import DesignInShort, show_answer
from dpfast.reports.glossary import FIGURES, describe_model, describe_task
from dpfast.reports.html_page import closing_sections, code, facts
from dpfast.reports.matplotlib_helpers import (
    add_legend,
    label_axes,
    make_figure,
    plot_lines,
    render_png,
    set_logarithmic,
    zoom_in,
)
from dpfast.signals.output_variance import explained_share
from dpfast.simulation.best_mechanism import find_best

COLUMNS = (
    "mechanism",
    "lag",
    "predicted RMSE",
    "interval",
    "worst step",
    "ideal RMSE",
    "lower bound",
    "explained",
    "noise %",
    "distortion %",
    "prefilter",
    "receiver",
    "guarantee",
    "inputs may react",
    "exact release",
)
# What is printed leaves these out first where there is no room.
_ASIDE = "noise %", "distortion %", "receiver", "prefilter", "ideal RMSE", "lower bound"
FOOTER = (
    "RMSE: predicted, of the realised filters on the model, or simulated where there is an interval; worst step, of "
    "the step with the largest error; ideal, by the formula of the family (that of DFE assumes error-free "
    "decisions, and only simulation tells its real error, as that of posterior means: --simulate); lower bound, for "
    "all linear mechanisms with Gaussian noise behind a prefilter that are no later, which other noise may go "
    "below. Explained: 1 - predicted MSE/variance of the true output, both under the model; the constant publishes "
    "the mean, at no cost of privacy. Noise and distortion are shares of the predicted mean square error. Inputs "
    "may react: the guarantee also holds where inputs depend on what was published before. Exact release: what "
    "exact, release and dpfast release take so far."
)
PRIVATE = (
    "The model was fitted to private data: all figures here, the pictures, and a choice between mechanisms that is "
    "made by looking at them, depend on these data and protect nobody."
)
SHOWN = {
    "curves.png": "Predicted RMSE of each family over the lag and over ε, with the lower bound for all linear "
    "mechanisms of the lag with Gaussian noise, and the constant, which publishes the mean; what was asked for is "
    "marked by a thin line. Over the lag those far above the bound are named instead.",
    "magnitudes.png": "Magnitudes over frequency, of mechanisms of filters: the prefilter G scaled to unit norm, the "
    "receiver H of that G, and HG of the mechanisms that distort beside the target.",
}
BOUND = "lower bound (linear, Gaussian noise, at the lag)"
Lines = dict[str, tuple[Sequence[float], dict[str, list[float]]]]  # over what: values, and a curve for each label
MINIMIZED = {"mean": "the mean square error", "worst_step": "the error in the worst step"}
ALL_SERVE = "All of them do."
_SEED = 0  # of simulations
_SMALLEST_SHOWN = 1e-5
_LOWEST = 1e-5, 0.03  # of the frequencies shown


def report_comparison(
    task: Demand,
    folder: OutputFolder,
    *,
    sources: Mapping[str, Provenance],
    choose: str | None,
    command: str,
    progress: bool,
    simulate: bool = False,
) -> str:
    """Design all families, add the files to the folder, and return what is printed; the page shows the command."""
    check_choice(choose, task)
    # the bar of a command is there from its beginning: a single design may take minutes
    options: dict[str, Any] = {"simulate": simulate, "seed": _SEED, "progress": progress, "patience": 0.0}
    ranking, best = find_best(task, list_all=True, **options)
    assert best.choice is not None, "it comes from there"
    with progress_bar(progress, count_points(task), "drawing curves", unit="design") as advance:
        found = compare_families(ranking, best.choice, sources=sources, choose=choose, advance=advance)
    chosen = found.mechanisms[found.chosen]
    lines: Lines = {"lag": _collect_lines(found.over_lag, task), "epsilon": _collect_lines(found.over_epsilon, task)}
    table = _table(found, task)
    is_private = task.model is not None and task.model.source == FITTED
    banner = wrap_paragraph(PRIVATE).splitlines() if is_private else []
    saved = _explain_choice(found)
    left_out = say_left_out(found.choice.reasons, found.mechanisms, "design.md")
    notes = filter(None, (FOOTER, *found.notes, left_out, *([PRIVATE] if is_private else [])))
    below = "\n".join(map(wrap_paragraph, notes))
    text = f"{below}\n\n{wrap_paragraph(saved)}\n\nSaved as mechanism.json:\n{describe(chosen)}"
    sentence, answer = found.choice.sentence, _answer(found, task, folder)
    folder.add("design.csv", table.csv(banner))
    folder.add("design.md", write_markdown(sentence, table, text, found.left_out))
    folder.add("curves.csv", _long_table(lines).csv(banner))
    pictures = {"curves.png": _draw_curves(lines, task), "magnitudes.png": _draw_magnitudes(found.mechanisms, task)}
    for name, drawn in pictures.items():
        folder.add(name, render_png(drawn))
    folder.add("mechanism.json", to_text(chosen))
    parts = {
        "In short": show_answer(answer),
        "Which is best": [paragraphs(sentence), paragraphs(saved)],
        "Results": [
            html_page.table(table, "errors of the mechanisms", where="design.csv", n_headers=2),
            paragraphs(FOOTER),
        ],
        "What bounds there are": [items(found.notes)],
        "What does not serve": [items(found.left_out or [ALL_SERVE])],
        "Saved as mechanism.json": [code(describe(chosen))],
        "Pictures": [html_page.picture(drawn, SHOWN[name]) for name, drawn in pictures.items()],
    }
    folder.add("report.html", _page(task, parts, " ".join(banner), command))
    shown = table.text(aside=_ASIDE, rest="design.csv")
    return f"{answer.text()}\n\n{wrap_paragraph(sentence)}\n\n{shown}\n\n{text}"


def write_markdown(sentence: str, table: Table, text: str, left_out: Sequence[str]) -> str:
    """Write the Markdown of a comparison: what is printed, the whole table, and what does not serve, why."""
    why = "\n".join(map(wrap_paragraph, left_out or [ALL_SERVE]))
    below = f"```text\n{text}\n\nWhat does not serve:\n{why}\n```"
    return f"# Mechanisms side by side\n\n{sentence}\n\n{table.markdown()}\n\n{below}\n"


def _answer(found: SideBySide, task: Demand, folder: OutputFolder) -> DesignInShort:
    """Say of the mechanism that is saved what a reader wants to know first."""
    chosen = found.mechanisms[found.chosen]
    row = next((x for x in found.choice.rows if x.name == found.chosen), None)
    rmse, interval = (chosen.predicted_rmse, "") if row is None else (row.rmse, row.interval_text)
    constant = None if task.constant is None else task.constant.predicted_rmse
    releasable, fitted = not chosen.release_hindrance(), bool(fitted_inputs(chosen.sources))
    file, inputs = folder.path / "mechanism.json", declare_inputs(chosen, [] if task.model is None else [task.model])
    return DesignInShort(found.chosen, chosen.lag, rmse, constant, releasable, fitted, file, (), inputs, interval)


def _explain_choice(found: SideBySide) -> str:
    """Say whether what is saved can be released exactly, and how much worse it is than the best of all."""
    rows = {x.name: x for x in found.choice.rows}
    chosen, best = rows.get(found.chosen), found.choice.rows[0]
    if found.mechanisms[found.chosen].release_hindrance():
        return f"Saved is {found.chosen}, of which there is no exact release so far: it is for studies."
    mine, least = None if chosen is None else chosen.rmse, best.rmse
    if mine is None or not least or mine <= least:  # the best itself, or one that is not ranked, such as a smoother
        return f"Saved is {found.chosen}, which can be released exactly."
    ratio = mine / least
    words = f"{ratio - 1:.1%} above" if ratio < 2 else f"{ratio:.1f} times" if ratio < 10 else f"{ratio:,.0f} times"
    how = "" if best.releasable else ", of which there is no exact release so far"
    return (
        f"Saved is {found.chosen}, which can be released exactly; its predicted RMSE is {words} that of the best of "
        f"all, {best.name}{how} (--choose saves any)."
    )


def _page(task: Demand, parts: Mapping[str, list[Html]], banner: str, command: str) -> str:
    model = "none" if task.model is None else describe_model(task.model)
    asked = {
        "model": model,
        "minimized": MINIMIZED[task.minimize],
        "lag": lags.lag_text(task.lag),
        "tolerance": f"{task.tolerance:g}",
    }
    definition = describe_task(task.filter, task.privacy, task.unit) | asked
    sections = {
        "Definition": [facts(definition)],
        **parts,
        "What the figures mean": [facts(FIGURES)],
        **closing_sections(command),
    }
    return html_page.page("Mechanisms side by side", sections, banner=banner)


# --- the table and the curves ---------------------------------------------------------------------


def _table(found: SideBySide, task: Demand) -> Table:
    """Write a row for each mechanism, and one for the constant; a column without a cell is left out."""
    ranked = {x.name: x for x in found.choice.rows}
    rows = [_cells(label, m, ranked.get(label), found, task) for label, m in found.mechanisms.items()]
    if task.constant is not None:
        rows.append(_constant_cells(task.constant))
    kept = [i for i, name in enumerate(COLUMNS) if name != "interval" or any(row[i] for row in rows)]
    return Table(tuple(COLUMNS[i] for i in kept), tuple(tuple(row[i] for i in kept) for row in rows))


def _cells(label: str, m: AnyMechanism, ranked: ChoiceRow | None, found: SideBySide, task: Demand) -> tuple[Any, ...]:
    part = explained_share(m.predicted_mse, task.variance)  # also of those that need no model
    shares = (_percentage(x, m.predicted_mse) for x in (m.predicted_noise_mse, m.predicted_distortion_mse))
    exact = "not yet" if m.release_hindrance() else "yes"
    guarantee = "(ε, δ)" if m.guarantee_terms().delta else "pure ε"
    rmse, interval = m.predicted_rmse, ""
    if ranked is not None:
        rmse, part = ranked.rmse, ranked.explained
        interval = "" if ranked.interval is None else "{:.5g} … {:.5g}".format(*ranked.interval)
    errors = rmse, interval, _root(m.worst_step_mse), m.ideal_rmse, lower_bound(m, found.mechanisms)
    reacts = "yes" if found.reacts[label] else "no"
    return label, lags.lag_text(m.lag), *errors, part, *shares, *m.sizes(), guarantee, reacts, exact


def _constant_cells(mean: Constant) -> tuple[Any, ...]:
    errors = mean.predicted_rmse, "", _root(mean.worst_step_mse), None, None
    return NAME, lags.lag_text(mean.lag), *errors, mean.explained, *[None] * 7


def _root(mse: float | None) -> float | None:
    return None if mse is None else math.sqrt(mse)


def _percentage(part: float | None, whole: float | None) -> float | None:
    return 100 * part / whole if part is not None and whole else None


def _collect_lines(
    designs: Mapping[Any, Mapping[str, AnyMechanism]], task: Demand
) -> tuple[Sequence[float], dict[str, list[float]]]:
    """Return values, and over them the lower bound, the RMSE of each family and the constant; NaN without a design."""
    rows = list(designs.values())
    labels = dict.fromkeys(label for row in rows for label in row)
    lines = {label: [_or_nan(row[label].predicted_rmse if label in row else None) for row in rows] for label in labels}
    constant = {} if task.constant is None else {NAME: [task.constant.predicted_rmse] * len(rows)}
    return list(designs), {BOUND: [_or_nan(lower_bound_at_lag(row)) for row in rows], **lines, **constant}


def _known_curves(
    lines: tuple[Sequence[float], dict[str, list[float]]],
) -> tuple[Sequence[float], dict[str, list[float]]]:
    """Leave out curves without a point, such as the bound where no noise is Gaussian."""
    values, curves = lines
    return values, {label: y for label, y in curves.items() if not all(map(math.isnan, y))}


def _or_nan(value: float | None) -> float:
    return math.nan if value is None else value


def _long_table(lines: Lines) -> Table:
    rows = [
        (axis, x, label, None if math.isnan(y) else y)
        for axis, (xs, curves) in lines.items()
        for label, ys in curves.items()
        for x, y in zip(xs, ys, strict=True)
    ]
    return Table(("over", "value", "mechanism", "predicted RMSE"), tuple(rows))


# --- pictures -------------------------------------------------------------------------------------

_STYLES = {name: style._replace(marker="") for name, style in styles.choose_styles(LABELS).items()}
_STYLES |= {
    BOUND: styles.BOUND,
    NAME: styles.CONSTANT,
    "target": styles.Style(styles.GREY, "-", 4.0, 0.35),
}


def _draw_curves(lines: Lines, task: Demand) -> Any:
    """Draw the predicted RMSE over the lag, and over epsilon; mark what was asked for."""
    drawn, axes = make_figure(2, 1, height=2.6)
    over_lag, over_epsilon = axes[:, 0]
    known = {axis: _known_curves(x) for axis, x in lines.items()}
    plot_lines(over_lag, *known["lag"], _STYLES, f"over the lag, ε = {task.privacy.epsilon:.4g}")
    plot_lines(over_epsilon, *known["epsilon"], _STYLES, f"over ε, lag {lags.lag_text(task.lag)}")
    over_lag.locator_params(axis="x", integer=True)
    curves = known["lag"][1]
    zoom_in(over_lag, curves, max((y for y in curves.get(BOUND, []) if not math.isnan(y)), default=math.inf))
    set_logarithmic(over_epsilon, "xy")
    for ax, given, axis in ((over_lag, task.lag, "lag (samples)"), (over_epsilon, task.privacy.epsilon, "ε")):
        if given is not None:
            ax.axvline(given, color=styles.GREY, linewidth=0.6, zorder=0)
        label_axes(ax, None, axis, "predicted RMSE")
    add_legend(drawn, over_lag)
    return drawn


def _draw_magnitudes(made: Mapping[str, AnyMechanism], task: Demand) -> Any:
    """Draw |G| for G of unit norm, |H| with the gain that this takes away, and |HG| where it is not the target."""
    drawn, axes = make_figure(3, 1, height=2.2, sharex=True)
    omega = _frequencies(task)
    found = {label: x for label, m in made.items() if (x := m.magnitudes(omega)) is not None}
    g, h = {label: x.prefilter for label, x in found.items()}, _receivers(found)
    distorting = [label for label in h if made[label].predicted_distortion_mse]
    whole = {"target": np.abs(task.filter.response(omega))} | {label: g[label] * h[label] for label in distorting}
    panels = {"|G|, ‖G‖₂ = 1": g, "|H|, of that G": h, "|HG|, where it is not |F|": whole}
    for ax, (title, curves) in zip(axes[:, 0], panels.items(), strict=True):
        plot_lines(ax, omega / (2 * np.pi), curves, _STYLES, title)
        largest = max(y.max() for y in curves.values())
        set_logarithmic(ax, "xy")
        ax.set_ylim(_SMALLEST_SHOWN * largest, 2 * largest)
    label_axes(axes[-1, 0], x="frequency (cycles per sample)")
    add_legend(drawn, *axes[:, 0])
    return drawn


def _receivers(found: Mapping[str, Magnitudes]) -> dict[str, Array]:
    return {label: x.receiver for label, x in found.items() if x.receiver is not None}


def _frequencies(task: Demand) -> Array:
    """Return frequencies from a tenth of the finest detail of target and signal to π."""
    poles = [task.filter.poles, *([] if task.model is None else [task.model.shaping.poles])]
    detail = min((1 - np.abs(np.concatenate(poles))).min(initial=1), 1 / len(task.filter.b))
    return np.geomspace(np.clip(detail / 10, *_LOWEST), np.pi, 800)
