"""
Counts of departures
====================

This log of departures from an airport is public, so that estimates can be compared with the truth. The picture shows
what three mechanisms would have published on one day, each at ε = 1: block sums, which need no δ, and two filters
with Gaussian noise and δ = 10⁻⁶ (``zero_forcing``, "LZF", takes no model of the counts). Above each panel are the
root mean square error (RMSE) that the design predicts, and that of this day. The model is a guess, a mean of 2 with
neighbours that are alike, and the day is not like it: there are no departures at night. So estimates that rely on the
model err more than predicted.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import dpfast as dp

root = next(
    x for x in (Path.cwd(), *Path.cwd().parents) if (x / "examples").is_dir()
)
span = dp.Span.parse("2013-03-04", "2013-03-05", "5min")
log = root / "examples" / "nyc_departures_2013.csv.gz"
u = dp.count_events(
    log, span, ["EWR"], time="scheduled_departure", by="origin"
).counts[0]

target = dp.Filter(np.ones(12) / 12)
counts = dp.ARMA([1], [1, -0.5], mean=2.0)
mechanisms = [
    dp.block_sums(target, dp.Privacy(1), counts, lag=5),
    dp.optimal(target, dp.Privacy(1, 1e-6), counts, lag=5),
    dp.zero_forcing(target, dp.Privacy(1, 1e-6)),
]
hours = np.arange(len(u)) / 12
fig, axes = plt.subplots(
    3, 1, figsize=(8, 5.5), sharex=True, sharey=True, layout="constrained"
)
for ax, mechanism in zip(axes, mechanisms, strict=True):
    run = mechanism.simulate(u, seed=2)
    estimate, true = run.estimate[run.lag :], target.apply(u)
    rmse = np.sqrt(np.mean((estimate - true[: len(estimate)]) ** 2))
    ax.plot(hours, true, color="black", label="true mean of an hour")
    ax.plot(hours[: len(estimate)], estimate, label="estimate")
    ax.set_title(
        f"{mechanism.name}: RMSE {mechanism.predicted_rmse:.2f} predicted, "
        f"{rmse:.2f} here",
        loc="left",
        fontsize=9,
    )
axes[0].legend(frameon=False, ncols=2, fontsize=8, loc="lower center")
axes[1].set_ylabel("departures in 5 minutes")
axes[-1].set_xlabel("hour of 4 March 2013")
