"""Reports of all families of mechanisms side by side: tables, pictures and a page."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dpfast._support.html_fragments import Html, items, paragraphs
from dpfast._support.output_folder import OutputFolder
from dpfast._support.text_table import Table
from dpfast._support.validation import Array
from dpfast.design.comparison import (
    ENTRIES,
    ComparisonTask,
    SideBySide,
    compare_families,
    lower_bound,
    lower_bound_at_lag,
)
from dpfast.mechanisms import lags
from dpfast.mechanisms.base import Magnitudes
from dpfast.mechanisms.constant import NAME, Constant
from dpfast.mechanisms.guarantee_text import describe
from dpfast.mechanisms.mechanism_kinds import AnyMechanism
from dpfast.mechanisms.serialization.mechanism_file import to_text
from dpfast.privacy.provenance import FITTED, Provenance
from dpfast.reports import html_page
from dpfast.reports import mechanism_styles as styles
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

COLUMNS = (
    "mechanism",
    "lag",
    "predicted RMSE",
    "ideal RMSE",
    "lower bound",
    "explained",
    "noise %",
    "distortion %",
    "prefilter",
    "receiver",
    "exact release",
)
FOOTER = """\
RMSE: predicted, of the realised filters on the model; ideal, by the formula of the family (that of DFE assumes
error-free decisions, and only simulation tells its real error); lower bound, for all linear mechanisms with Gaussian
noise behind a prefilter that are no later, which other noise may go below. Explained: 1 - predicted MSE/variance of the
true output, both under the model; the constant publishes the mean, at no cost of privacy. Noise and distortion are
shares of the predicted mean square error. Exact release: what exact, release and dpfast release take so far."""
PRIVATE = """\
The model was fitted to private data: all figures here, the pictures, and a choice between mechanisms that is made by
looking at them, depend on these data and protect nobody."""
SHOWN = {
    "curves.png": "Predicted RMSE of each family over the lag and over ε, with the lower bound for all linear "
    "mechanisms of the lag with Gaussian noise, and the constant, which publishes the mean; what was asked for is "
    "marked by a thin line. Over the lag those far above the bound are named instead.",
    "magnitudes.png": "Magnitudes over frequency, of mechanisms of filters: the prefilter G scaled to unit norm, the "
    "receiver H of that G, and HG of the mechanisms that distort beside the target.",
}
BOUND = "lower bound (linear, Gaussian noise, at the lag)"
Lines = dict[str, tuple[Sequence[float], dict[str, list[float]]]]  # over what: values, and a curve for each label
_SMALLEST_SHOWN = 1e-5
_LOWEST = 1e-5, 0.03  # of the frequencies shown


def report_comparison(
    task: ComparisonTask,
    folder: OutputFolder,
    *,
    sources: Mapping[str, Provenance],
    choose: str | None,
    command: str,
    progress: bool,
) -> str:
    """Design all families, add the files to the folder, and return what is printed; the page shows the command."""
    found = compare_families(task, sources=sources, choose=choose, progress=progress)
    chosen = found.mechanisms[found.chosen]
    lines: Lines = {"lag": _collect_lines(found.over_lag, task), "epsilon": _collect_lines(found.over_epsilon, task)}
    rows = [_cells(label, mechanism, found.mechanisms, task.constant) for label, mechanism in found.mechanisms.items()]
    table = Table(COLUMNS, (*rows, _constant_cells(task.constant)))
    notes = "".join(f"\n{note}" for note in found.notes)
    if task.model.source == FITTED:
        notes += f"\n{PRIVATE}"
    saved = _explain_choice(found)
    text = f"{FOOTER}{notes}\n\n{saved}\n\nSaved as mechanism.json:\n{describe(chosen)}"
    banner = PRIVATE.splitlines() if task.model.source == FITTED else []
    folder.add("design.csv", table.csv(banner))
    folder.add("design.md", f"# Mechanisms side by side\n\n{table.markdown()}\n\n```text\n{text}\n```\n")
    folder.add("curves.csv", _long_table(lines).csv(banner))
    pictures = {"curves.png": _draw_curves(lines, task), "magnitudes.png": _draw_magnitudes(found.mechanisms, task)}
    for name, drawn in pictures.items():
        folder.add(name, render_png(drawn))
    folder.add("mechanism.json", to_text(chosen))
    parts = {
        "Results": [
            html_page.table(table, "errors of the mechanisms", where="design.csv", n_headers=2),
            paragraphs(FOOTER),
        ],
        "Designs that failed": [items(found.notes)] if found.notes else [],
        "Saved as mechanism.json": [paragraphs(saved), code(describe(chosen))],
        "Pictures": [html_page.picture(drawn, SHOWN[name]) for name, drawn in pictures.items()],
    }
    folder.add("report.html", _page(task, parts, " ".join(banner), command))
    return f"{table.text()}\n\n{text}"


def _explain_choice(found: SideBySide) -> str:
    """Say whether what is saved can be released exactly, and how much worse it is than the best of all."""
    chosen, best = found.mechanisms[found.chosen], found.mechanisms[found.best]
    if chosen.release_hindrance():
        return f"Saved is {found.chosen}, of which there is no exact release so far: it is for studies."
    mine, least = chosen.predicted_rmse, best.predicted_rmse
    if mine is None or not least or mine <= least:  # the best itself, or a smoother, which is no stream
        return f"Saved is {found.chosen}, which can be released exactly."
    ratio = mine / least
    words = f"{ratio - 1:.1%} above" if ratio < 2 else f"{ratio:.1f} times" if ratio < 10 else f"{ratio:,.0f} times"
    how = ", of which there is no exact release so far" if best.release_hindrance() else ""
    return (
        f"Saved is {found.chosen}, which can be released exactly; its predicted RMSE is {words} that of the best of "
        f"all, {found.best}{how} (--choose saves any)."
    )


def _page(task: ComparisonTask, parts: Mapping[str, list[Html]], banner: str, command: str) -> str:
    asked = {"model": describe_model(task.model), "lag": lags.lag_text(task.lag), "tolerance": f"{task.tolerance:g}"}
    definition = describe_task(task.target, task.privacy, task.unit) | asked
    sections = {
        "Definition": [facts(definition)],
        **parts,
        "What the figures mean": [facts(FIGURES)],
        **closing_sections(command),
    }
    return html_page.page("Mechanisms side by side", sections, banner=banner)


# --- the table and the curves ---------------------------------------------------------------------


def _cells(label: str, m: AnyMechanism, designs: Mapping[str, AnyMechanism], mean: Constant) -> tuple[Any, ...]:
    part = explained_share(m.predicted_mse, mean.predicted_mse)  # also of those that need no model
    shares = (_percentage(x, m.predicted_mse) for x in (m.predicted_noise_mse, m.predicted_distortion_mse))
    exact = "not yet" if m.release_hindrance() else "yes"
    errors = m.predicted_rmse, m.ideal_rmse, lower_bound(m, designs)
    return label, lags.lag_text(m.lag), *errors, part, *shares, *m.sizes(), exact


def _constant_cells(mean: Constant) -> tuple[Any, ...]:
    return NAME, lags.lag_text(mean.lag), mean.predicted_rmse, None, None, mean.explained, *[None] * 5


def _percentage(part: float | None, whole: float | None) -> float | None:
    return 100 * part / whole if part is not None and whole else None


def _collect_lines(
    designs: Mapping[Any, Mapping[str, AnyMechanism]], task: ComparisonTask
) -> tuple[Sequence[float], dict[str, list[float]]]:
    """Return values, and over them the lower bound, the RMSE of each family and the constant; NaN without a design."""
    rows = list(designs.values())
    labels = dict.fromkeys(label for row in rows for label in row)
    lines = {label: [_or_nan(row[label].predicted_rmse if label in row else None) for row in rows] for label in labels}
    constants = [task.constant.predicted_rmse] * len(rows)
    return list(designs), {BOUND: [_or_nan(lower_bound_at_lag(row)) for row in rows], **lines, NAME: constants}


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

_STYLES = {name: style._replace(marker="") for name, style in styles.choose_styles(x.label for x in ENTRIES).items()}
_STYLES |= {
    BOUND: styles.BOUND,
    NAME: styles.CONSTANT,
    "target": styles.Style(styles.GREY, "-", 4.0, 0.35),
}


def _draw_curves(lines: Lines, task: ComparisonTask) -> Any:
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


def _draw_magnitudes(made: Mapping[str, AnyMechanism], task: ComparisonTask) -> Any:
    """Draw |G| for G of unit norm, |H| with the gain that this takes away, and |HG| where it is not the target."""
    drawn, axes = make_figure(3, 1, height=2.2, sharex=True)
    omega = _frequencies(task)
    found = {label: x for label, m in made.items() if (x := m.magnitudes(omega)) is not None}
    g, h = {label: x.prefilter for label, x in found.items()}, _receivers(found)
    distorting = [label for label in h if made[label].predicted_distortion_mse]
    whole = {"target": np.abs(task.target.response(omega))} | {label: g[label] * h[label] for label in distorting}
    panels = {"|G|, ‖G‖₂ = 1": g, "|H|, of that G": h, "|HG|, where it is not |F|": whole}
    for ax, (title, curves) in zip(axes[:, 0], panels.items(), strict=True):
        plot_lines(ax, omega, curves, _STYLES, title)
        largest = max(y.max() for y in curves.values())
        set_logarithmic(ax, "xy")
        ax.set_ylim(_SMALLEST_SHOWN * largest, 2 * largest)
    label_axes(axes[-1, 0], x="ω (radians per sample)")
    add_legend(drawn, *axes[:, 0])
    return drawn


def _receivers(found: Mapping[str, Magnitudes]) -> dict[str, Array]:
    return {label: x.receiver for label, x in found.items() if x.receiver is not None}


def _frequencies(task: ComparisonTask) -> Array:
    """Return frequencies from a tenth of the finest detail of target and signal to π."""
    poles = np.concatenate([task.target.poles, task.model.shaping.poles])
    detail = min((1 - np.abs(poles)).min(initial=1), 1 / len(task.target.b))
    return np.geomspace(np.clip(detail / 10, *_LOWEST), np.pi, 800)
