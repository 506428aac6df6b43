"""Three airports: the total of their departures and how they differ, for somebody who is at one of them, or at all.

    python examples/airports.py [--out DIR]

First the departures from New York in 2013, counted every five minutes: models are fitted to the first half of the year,
errors are those on the second half. Then streams that depend on one another by a known correlation: what designing them
together gains over designing each of their filters alone.
"""

import argparse
import itertools
import math
from pathlib import Path

import numpy as np

import dpfast as dp
from dpfast._support.output_folder import OutputFolder
from dpfast._support.text_table import Table
from dpfast.reports.matplotlib_helpers import label_axes, make_figure, render_png
from dpfast.reports.mechanism_styles import CONSTANT, choose_styles

LOG = Path(__file__).parent / "nyc_departures_2013.csv.gz"
AIRPORTS = ("EWR", "JFK", "LGA")
OUTPUTS = ("total", "EWR - JFK", "JFK - LGA")
HOUR, QUARTER = dp.Filter([1 / 12], [1, -11 / 12]), dp.Filter([1 / 3], [1, -2 / 3])
TARGET = dp.FilterMatrix([[HOUR, HOUR, HOUR], [QUARTER, -1 * QUARTER, 0], [0, QUARTER, -1 * QUARTER]])
PERSONS = {"at one of them": "one_input", "at all, at any times": "each_input"}
EPSILON, DELTA, LAG, ORDER = 1.0, 1e-6, 3, 12
SETTLED = 1000  # steps of the second half that are left out

SLOW, QUICK = dp.Filter([0.05], [1, -0.95]), dp.Filter([0.2], [1, -0.8])
ZONES = dp.FilterMatrix([[SLOW, SLOW, SLOW], [QUICK, -1 * QUICK, 0]])
POLES, VARIANCES = (0.5, 0.5, 0.8), (0.25, 0.25, 1.0)
CORRELATIONS = (0.0, 0.3, 0.6, 0.9)
FORMS, KNOWING, MIXING = ("separate", "diagonal"), "optimal, correlation known", "the same, mixing streams"
STUDIED = "separate", "joint", "joint, correlation known", "the same, mixing streams", "constant"


def counts():
    """Departures of each airport every five minutes, (3, steps): those of the two halves of the year."""
    span = dp.Span.parse("2013-01-01", "2014-01-01", "5min")
    u = dp.count_events(LOG, span, AIRPORTS, time="scheduled_departure", by="origin").counts.astype(float)
    return np.split(u[:, : u.shape[1] // 2 * 2], 2, axis=1)


def designs(before, adjacency, *, order=ORDER, tolerance=1e-3):
    """What `dp.best` compares, and the optimum that knows how the airports depend on one another."""
    privacy = dp.Privacy(EPSILON, DELTA, adjacency=adjacency)
    alone = [dp.ARMA.fit(x, order, source="public") for x in before]
    best = dp.best(TARGET, privacy, alone, lag=LAG, tolerance=tolerance)
    together = dp.VectorARMA.fit(before, order, source="public")
    found = dict(zip([row.name for row in best.choice.rows], (best, *best.alternatives), strict=False))
    return found | {KNOWING: dp.optimal(TARGET, privacy, together, lag=LAG, tolerance=tolerance, name=KNOWING)}


def departures(**options):
    """RMSE on the second half of the year, and how much of all outputs an estimate explains, by mechanism."""
    before, after = counts()
    rows = []
    for person, adjacency in PERSONS.items():
        designed = designs(before, adjacency, **options)
        found = dp.evaluate(designed.values(), after, seed=1, burn_in=SETTLED)
        named = zip(designed, found, strict=True)
        rows += [(person, name, x.predicted_rmse, *x.output_rmse, x.explained) for name, x in named]
        spread = (math.sqrt(x.variance) for x in found.results[0].outputs)
        rows.append((person, "constant", None, *spread, 0.0))
    columns = ("somebody is", "mechanism", "predicted, all", *(f"on the log: {x}" for x in OUTPUTS), "explained")
    return Table(columns, tuple(rows))


def zones(correlation):
    """Streams whose innovations have a correlation."""
    stds = np.sqrt(np.array(VARIANCES) * (1 - np.array(POLES) ** 2))
    covariance = np.outer(stds, stds) * (correlation + (1 - correlation) * np.eye(3))
    return dp.VectorARMA([np.diag(POLES)], innovation_covariance=covariance)


def gains(lags=(0, 10), tolerance=1e-3):
    """RMSE of all outputs together, predicted, over the correlation: what designing streams together gains."""
    alone = [
        dp.ARMA([math.sqrt(v * (1 - p * p))], [1, -p], innovation_std=1.0)
        for p, v in zip(POLES, VARIANCES, strict=True)
    ]
    streams = {x: zones(x) for x in CORRELATIONS}
    task = {"mechanism": "optimal", "target": ZONES, "epsilon": math.log(3), "delta": 0.05, "tolerance": tolerance}
    task |= {"adjacency": list(PERSONS.values()), "lag": list(lags)}
    independent = {**task, "model": alone, "stream": streams, "prefilter": list(FORMS)}
    knowing = {**task, "model": streams}
    mixing = {**knowing, "prefilter": "general"}
    found = dp.sweep([independent, knowing, mixing], seed=1, n_samples=1, width=None, budget=1)
    predicted = {_case(row): row for row in found}
    rows = []
    for (person, adjacency), lag, correlation in itertools.product(PERSONS.items(), lags, CORRELATIONS):
        every = [predicted[adjacency, lag, correlation, x] for x in (*FORMS, KNOWING, MIXING)]
        rmse = [x.predicted_rmse for x in every]
        constant = math.sqrt(every[0].variance)
        rows.append((person, lag, correlation, *rmse, constant, 100 * (1 - rmse[2] / rmse[0])))
    columns = ("somebody is", "lag", "correlation", *STUDIED, "% below separate")  # with the correlation known
    return Table(columns, tuple(rows))


def _case(row):
    """Who a row of the sweep is for, its lag and correlation, and the form of its prefilter or that it knows."""
    labels = row.settings
    knows, form = "stream" not in labels, labels["prefilter"]
    correlation = labels["model" if knows else "stream"]
    known = MIXING if form == "general" else KNOWING
    return labels["adjacency"], labels["lag"], correlation, known if knows else form


def picture(table):
    """RMSE of the studied designs over the correlation, a panel for each person and lag."""
    panels = list(dict.fromkeys(row[:2] for row in table.rows))
    drawn, axes = make_figure(1, len(panels), height=2.6, sharey=True)
    families = dict.fromkeys(STUDIED[1:4], "optimal") | {"separate": "zero_forcing"}
    styles = choose_styles(families) | {"constant": CONSTANT}
    for ax, panel in zip(axes[0], panels, strict=True):
        rows = np.array([row[2:8] for row in table.rows if row[:2] == panel], dtype=float)
        for name, values in zip(STUDIED, rows[:, 1:].T, strict=True):
            style = styles[name]
            ax.plot(rows[:, 0], values, color=style.colour, linestyle=style.line, marker=style.marker, label=name)
        label_axes(ax, f"{panel[0]}\nlag {panel[1]}", "correlation")
    label_axes(axes[0, 0], y="RMSE, all outputs together")
    axes[0, -1].legend(fontsize=6, frameon=False, loc="lower left")
    axes[0, 0].set_ylim(bottom=0)
    return drawn


def main():
    parser = argparse.ArgumentParser(description="Three airports that one person may reach")
    parser.add_argument("--out", default="airports", help="folder for the files (%(default)s)")
    folder = OutputFolder(Path(parser.parse_args().out))
    log, study = departures(), gains()
    folder.add("airports.md", f"# Three airports\n\n{log.markdown()}\n\n{study.markdown()}\n")
    folder.add("airports.png", render_png(picture(study)))
    print(f"{log.text()}\n\n{study.text()}\n")
    print("Written:", *folder.write())


if __name__ == "__main__":
    main()
