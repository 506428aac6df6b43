"""The picture of the README: a moving average of departures, and what a mechanism publishes of it under ε = 1.

python examples/front_picture.py docs/picture.png

The log is public, so that the true series can be shown. The noise is simulated: this is no release.
"""

import sys
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import dpfast as dp

LOG = Path(__file__).parent / "nyc_departures_2013.csv.gz"
DAY = 288  # bins of 5 minutes
TRUE, PUBLISHED = "#000000", "#0072B2"


def departures():
    """Counts of scheduled departures from JFK in bins of 5 minutes, from 4 March 2013, a Monday, for two days."""
    span = dp.Span.parse("2013-03-04", "2013-03-06", "5min")
    log = {"time": "scheduled_departure", "by": "origin"}
    return dp.count_events(LOG, span, ["EWR", "JFK", "LGA"], **log).counts[1]


def main(path):
    target = dp.Filter(np.ones(12) / 12)  # the mean of an hour
    model = dp.ARMA([1], [1, -0.5], mean=2.0)  # assumed, not fitted
    mechanism = dp.block_sums(target, dp.Privacy(epsilon=1), model, lag=5)
    u = departures()
    run = mechanism.simulate(u, seed=1)
    truth, estimate = target.apply(u), run.estimate[run.lag :]
    hours = np.arange(len(u)) / 12
    half = 1.96 * mechanism.predicted_rmse
    figure = Figure(figsize=(7, 2.7), layout="constrained")
    ax = figure.subplots()
    shown = hours[: len(estimate)]
    ax.fill_between(shown, estimate - half, estimate + half, color=PUBLISHED, alpha=0.2, linewidth=0)
    ax.plot(hours, truth, color=TRUE, linewidth=1.6, alpha=0.8, label="true series, which nobody may see")
    ax.plot(shown, estimate, color=PUBLISHED, linewidth=1.0, label="published under ε = 1, with its band of 95 %")
    ax.set_ylim(-0.7, 4.6)
    ax.set_xlim(0, hours[-1])
    ax.set_xticks(range(0, 48, 6), [f"{x % 24}:00" for x in range(0, 48, 6)])
    ax.tick_params(labelsize=8)
    ax.set_ylabel("departures in 5 minutes,\nmean of an hour", fontsize=8)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, fontsize=8, loc="upper left", ncols=2)
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main(*sys.argv[1:])
