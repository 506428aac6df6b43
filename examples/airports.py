"""Three airports: the total of their departures and how they differ, for somebody who is at one of them, or at all.

    python examples/airports.py [--out DIR]

First the departures from New York in 2013, counted every five minutes: models are fitted to the first half of the year,
errors are those on the second half. Then streams that depend on one another by a known correlation: what designing them
together gains over designing each of their filters alone.
"""

import argparse
import math
from pathlib import Path

import numpy as np

import dpfast as dp
from dpfast._support.output_folder import OutputFolder
from dpfast._support.text_table import Table
from dpfast.reports.matplotlib_helpers import label_axes, make_figure, render_png
from dpfast.reports.mechanism_styles import CONSTANT, choose_styles
from dpfast.signals.channel_outputs import output_variances

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
STUDIED = "separate", "joint", "joint, correlation known", "constant"


def counts():
    """Departures of each airport every five minutes, (3, steps): those of the two halves of the year."""
    span = dp.Span.parse("2013-01-01", "2014-01-01", "5min")
    u = dp.count_events(LOG, span, AIRPORTS, time="scheduled_departure", by="origin").counts.astype(float)
    return np.split(u[:, : u.shape[1] // 2 * 2], 2, axis=1)


def designs(before, adjacency, *, order=ORDER, tolerance=1e-3):
    """What `dp.best` compares, and the receiver that knows how the airports depend on one another."""
    privacy = dp.Privacy(EPSILON, DELTA, adjacency=adjacency)
    alone = [dp.ARMA.fit(x, order, source="public") for x in before]
    best = dp.best(TARGET, privacy, alone, lag=LAG, tolerance=tolerance)
    found = dict(zip([row.name for row in best.choice.rows], (best, *best.alternatives), strict=False))
    together = dp.VectorARMA.fit(before, order, source="public")
    behind = found["optimal"].prefilter
    found["optimal, correlation known"] = dp.lmmse(TARGET, privacy, together, lag=LAG, prefilter=behind)
    return found


def errors_on(mechanism, u):
    """RMSE of each output on given streams, with the noise of one seed."""
    estimate = mechanism.simulate(u, seed=1).estimate[:, SETTLED:]
    truth = TARGET.apply(u)[:, SETTLED - mechanism.lag : u.shape[1] - mechanism.lag]
    return np.sqrt(np.mean((estimate - truth) ** 2, axis=1))


def departures(**options):
    """RMSE on the second half of the year, and how much of all outputs an estimate explains, by mechanism."""
    before, after = counts()
    truth = TARGET.apply(after)[:, SETTLED:]
    spread = truth.std(axis=1)
    rows = []
    for person, adjacency in PERSONS.items():
        for name, mechanism in designs(before, adjacency, **options).items():
            errors = errors_on(mechanism, after)
            rows.append((person, name, mechanism.predicted_rmse, *errors, 1 - (errors**2).sum() / (spread**2).sum()))
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
    rows = []
    for person, adjacency in PERSONS.items():
        privacy = dp.Privacy(math.log(3), 0.05, adjacency=adjacency)
        for lag in lags:
            separate, joint = (
                dp.optimal(ZONES, privacy, alone, lag=lag, prefilter=form, tolerance=tolerance)
                for form in ("separate", "diagonal")
            )
            for correlation in CORRELATIONS:
                truth = zones(correlation)
                knowing = dp.lmmse(ZONES, privacy, truth, lag=lag, prefilter=joint.prefilter)
                constant = float(output_variances(ZONES, truth).sum())
                mse = separate.predict(truth), joint.predict(truth), knowing.predicted_mse, constant
                rows.append((person, lag, correlation, *map(math.sqrt, mse), 100 * (1 - math.sqrt(mse[2] / mse[0]))))
    columns = ("somebody is", "lag", "correlation", *STUDIED, "% below separate")
    return Table(columns, tuple(rows))


def picture(table):
    """RMSE of the studied designs over the correlation, a panel for each person and lag."""
    panels = list(dict.fromkeys(row[:2] for row in table.rows))
    drawn, axes = make_figure(1, len(panels), height=2.6, sharey=True)
    families = dict.fromkeys(STUDIED[1:3], "optimal") | {"separate": "zero_forcing"}
    styles = choose_styles(families) | {"constant": CONSTANT}
    for ax, panel in zip(axes[0], panels, strict=True):
        rows = np.array([row[2:7] for row in table.rows if row[:2] == panel], dtype=float)
        for name, values in zip(STUDIED, rows[:, 1:].T, strict=True):
            style = styles[name]
            ax.plot(rows[:, 0], values, color=style.colour, linestyle=style.line, marker=style.marker, label=name)
        label_axes(ax, f"{panel[0]}\nlag {panel[1]}", "correlation")
    label_axes(axes[0, 0], y="RMSE, all outputs together")
    axes[0, 0].legend(fontsize=6, frameon=False)
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
