"""The example of Le Ny 2013, Section VI: a table of simulated errors, the paper's two figures, and its errata."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpfast._support.html_fragments import paragraphs
from dpfast._support.output_folder import OutputFolder
from dpfast._support.text_table import Table
from dpfast._support.validation import Array
from dpfast._support.wrapped_text import wrap_paragraph
from dpfast.design.prefilter.design_problem import Problem
from dpfast.design.prefilter.water_filling import feedback_water_filling, smoother_water_filling
from dpfast.mechanisms import lags
from dpfast.mechanisms.constant import NAME, constant
from dpfast.reports import html_page
from dpfast.reports.glossary import FIGURES, explain_interval
from dpfast.reports.html_page import closing_sections, code, facts
from dpfast.reports.matplotlib_helpers import SMALL, label_axes, make_figure, plot_lines, render_png, set_logarithmic
from dpfast.reports.mechanism_styles import TRUTH, Style, choose_styles
from dpfast.reports.paper_example_text import print_example
from dpfast.reports.sample_paths import draw_paths, simulate_paths
from dpfast.simulation.monte_carlo import monte_carlo
from dpfast.simulation.paper_example import (
    CALIBRATIONS,
    CHAIN,
    DECISIONS,
    DFE,
    LAG,
    LMMSE,
    LZF,
    OPTIMAL,
    OWN,
    TARGET,
    PaperMechanism,
    design_mechanisms,
    find_mechanism,
)
from dpfast.simulation.study import Result, Study, describe_rare_errors

ERRATA = """\
The paper prints RMSE 8.82 (LZF) and 7.43 (LMMSE). They do not follow from its own parameters:
  LZF, κ of the paper:                        {lzf:.6f}   (κ <|F|>, printed 8.82)
  LMMSE smoother, printed spectrum:           {printed:.6f}   (printed 7.43)
  LMMSE smoother, spectrum of the ±1/2 chain: {chain:.6f}
The printed spectrum, numerator 3/4, has variance 1; a ±1/2 chain has
variance 1/4, hence numerator 3/16. The paper's display of the LMMSE receiver drops d². Its hard
decision feedback, said to do well, is far worse than the linear mechanisms at this privacy level:
wrong decisions feed back and F integrates them. Its ideal RMSE assumes error-free decisions."""

DEFINITION = {
    "target": "F(z) = (1 + 0.995 z⁻¹)/(1 − 0.995 z⁻¹)",
    "signal": "symmetric chain of levels ±1/2 that stays with probability 3/4; variance 1/4, spectrum that of an AR(1)",
    "privacy": "ε = ln 3, δ = 0.05, changes of one event by at most 1",
    "κ": "noise per sensitivity: by the formula of the paper, and exact, the least that suffices",
}
MEANING = FIGURES | {
    "On the chain": "The same for the simulated chain, where a mechanism was designed for another spectrum.",
    "Simulated": explain_interval("all streams", "streams, which are independent")
    + " Every mechanism sees the same inputs and the same unit noise.",
}
SHOWN = {
    "paths": "Sample paths: the estimates of eight mechanisms, each in the colour of its family, over the true output "
    "(black), on one and the same stream. All panels have one axis; what leaves it is said.",
    "prefilters": "Magnitude of the prefilter over frequency, ideal and as realised, of the LMMSE design and of that "
    "for decision feedback.",
}
COLUMNS = (
    "κ",
    "designed for",
    "mechanism",
    "prefilter",
    "decision",
    "lag",
    "lower bound",
    "ideal RMSE",
    "predicted",
    "on the chain",
    "simulated",
    "low",
    "high",
    "explained",
)


def _cells(row: PaperMechanism, study: Study) -> tuple[Any, ...]:
    """Return the row of a mechanism; what is predicted for its own spectrum and on the chain are two figures."""
    m, result = row.mechanism, study[row.mechanism.name]
    bound = None if m.lower_bound_mse is None else math.sqrt(m.lower_bound_mse)
    errors = bound, m.ideal_rmse, m.predicted_rmse, *_chain_cells(result)
    return row.calibration, row.spectrum, row.family, row.prefilter, row.decision, lags.lag_text(m.lag), *errors


def _chain_cells(result: Result) -> tuple[Any, ...]:
    """Return what is predicted on the chain, what was simulated, and the share that this explains."""
    return result.predicted_rmse, result.rmse, *result.interval, result.explained


def _constant_cells(study: Study) -> tuple[Any, ...]:
    """Return the row of the constant, which has no noise, and so no κ."""
    errors = None, None, study[NAME].predicted_rmse, *_chain_cells(study[NAME])
    return "any", "chain", NAME, "0", None, "0", *errors


def report_example(
    folder: OutputFolder, *, n_streams: int, n_samples: int, seed: int, command: str, progress: bool
) -> str:
    """Design, simulate, add the files to the folder, and return what is printed; the page shows the command."""
    rows = [row for calibration in CALIBRATIONS for row in design_mechanisms(calibration)]
    study = monte_carlo(
        [*(row.mechanism for row in rows), constant(TARGET, CHAIN)],
        CHAIN,
        n_streams=n_streams,
        n_samples=n_samples,
        seed=seed,
        progress=progress,
    )
    table = Table(COLUMNS, (*(_cells(row, study) for row in rows), _constant_cells(study)))
    errata = ERRATA.format(**_ideal_errors(rows))
    footer = (
        f"Simulated on the ±1/2 chain: {n_streams} streams of {n_samples} samples after {study.burn_in}, seed {seed}; "
        f"{100 * study.confidence:g}% intervals.\n"
        "Designed for the printed spectrum (variance 1) or the chain's (variance 1/4). Lower bound: for all linear "
        "mechanisms of the lag; of LZF, for those that do not distort. Ideal RMSE of decision feedback assumes "
        "error-free decisions.\nExplained: 1 - simulated MSE/variance of the true output, the latter by the chain's "
        f"spectrum; the constant publishes the mean. {describe_rare_errors(study)}".rstrip()
    )
    folder.add("example.csv", table.csv())
    folder.add(
        "example.md", f"# The paper's example\n\n{table.markdown()}\n\n{footer}\n\n## Errata\n\n{_quote(errata)}\n"
    )
    paths, drawn = _draw_paths(rows, seed)
    folder.add("paths.csv", paths.csv())
    folder.add("paths.png", render_png(drawn))
    prefilters = _draw_prefilters(rows)
    folder.add("prefilters.png", render_png(prefilters))
    told = "\n".join(map(wrap_paragraph, footer.splitlines()))
    sections = {
        "Definition": [facts(DEFINITION), paragraphs(footer)],
        "Results": [html_page.table(table, "errors of the mechanisms", where="example.csv", n_headers=6)],
        "Pictures": [html_page.picture(drawn, SHOWN["paths"]), html_page.picture(prefilters, SHOWN["prefilters"])],
        "What the figures mean": [facts(MEANING)],
        "Errata": [code(errata)],
        **closing_sections(command),
    }
    folder.add("report.html", html_page.page("The example of Le Ny 2013, Section VI", sections))
    return f"{print_example(rows, study)}\n\n{told}\n\n{errata}"


def _quote(text: str) -> str:
    return f"```text\n{text}\n```"


def _ideal_errors(rows: list[PaperMechanism]) -> dict[str, float]:
    """Return the errors that the paper prints otherwise."""
    ideal = {(r.calibration, r.spectrum, r.mechanism.lag, r.family): r.mechanism.ideal_rmse for r in rows}
    found = {
        "lzf": ideal["paper", "any", 0, LZF],
        "printed": ideal["paper", "printed", None, LMMSE],
        "chain": ideal["paper", "chain", None, LMMSE],
    }
    return {name: value for name, value in found.items() if value is not None}


# --- the paper's two figures ----------------------------------------------------------------------


def _draw_paths(rows: list[PaperMechanism], seed: int) -> tuple[Table, Any]:
    """Draw sample paths over the true output, of receivers with hard and soft decisions; return their table too."""
    panels = {
        LZF: find_mechanism(rows, LZF, LZF),
        f"{LMMSE} smoother": find_mechanism(rows, LMMSE, LMMSE, lag=None),
        f"{LMMSE}, lag {LAG}": find_mechanism(rows, LMMSE, LMMSE, lag=LAG),
        f"{OPTIMAL}, lag {LAG}": find_mechanism(rows, OPTIMAL, OPTIMAL, lag=LAG),
        **{
            f"{DFE}, {title} prefilter, {decision}": find_mechanism(rows, DFE, prefilter, decision, LAG)
            for title, prefilter in (("own", OWN), (LMMSE, f"{LMMSE}, chain"))
            for decision in DECISIONS
        },
    }
    # The samples lie after the start of every filter, and well before the end, which a smoother feels.
    paths = simulate_paths(panels, CHAIN, seed=seed, before=3000, n_samples=600, after=1000)
    columns: dict[str, Array] = {"t": np.arange(600.0), "true output": paths.truth, **paths.estimates}
    drawn = draw_paths(paths, "Sample paths over the true output (black); ε = ln 3, δ = 0.05, κ of the paper")
    shown = ([f"{x:.6g}" for x in values.tolist()] for values in columns.values())  # one simulation of many
    return Table(tuple(columns), tuple(zip(*shown, strict=True))), drawn


def _draw_prefilters(rows: list[PaperMechanism]) -> Any:
    """Draw |G| of the LMMSE and of the decision-feedback design, ideal and realised."""
    omega = np.geomspace(1e-3, np.pi, 800)
    own = find_mechanism(rows, DFE, OWN, "soft", LAG)
    problem = Problem(TARGET, CHAIN, own.privacy.noise_multiplier**2)
    pairs = {
        LMMSE: (smoother_water_filling(problem), find_mechanism(rows, LMMSE, LMMSE, lag=None)),
        DFE: (feedback_water_filling(problem), own),
    }
    drawn, axes = make_figure(1, 2, height=2.2)
    for ax, (family, (water, mechanism)) in zip(axes[0], pairs.items(), strict=True):
        curves = {"ideal": np.sqrt(water.x(omega)), "realised": np.abs(mechanism.prefilter.response(omega))}
        looks = {"ideal": Style(TRUTH, "-", 3.0, 0.3), "realised": choose_styles([family])[family]._replace(marker="")}
        plot_lines(ax, omega / (2 * np.pi), curves, looks, f"prefilter of the {family} design")
        set_logarithmic(ax, "x")
        label_axes(ax, x="frequency (cycles per sample)", y="|G|, ‖G‖₂ = 1")
        ax.legend(fontsize=SMALL, frameon=False)
    return drawn
