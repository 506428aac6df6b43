"""
A private moving average of a DataFrame
=======================================

For somebody who knows :mod:`scipy.signal` and nothing of privacy. A table has the number of events of each five
minutes. We want to publish its moving average over an hour, so that nobody can tell from it whether any single event
happened.
"""

# %%
# The table
# ---------
# The scheduled departures from the three airports of New York on two days of 2013, which are public, so that we may
# look at them and compare. ``count_events`` reads a log and counts it in bins that we declare.

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import dpfast as dp

root = next(
    x for x in (Path.cwd(), *Path.cwd().parents) if (x / "examples").is_dir()
)
log = root / "examples" / "nyc_departures_2013.csv.gz"
airports = ["EWR", "JFK", "LGA"]
span = dp.Span.parse("2013-03-04", "2013-03-06", "5min")
counted = dp.count_events(
    log, span, airports, time="scheduled_departure", by="origin"
)
table = pd.DataFrame(
    counted.counts.T.astype(int),
    columns=airports,
    index=pd.date_range(
        "2013-03-04", periods=counted.counts.shape[1], freq="5min"
    ),
)
table.iloc[100:105]

# %%
# The filter
# ----------
# A :class:`dpfast.Filter` takes ``b`` and ``a`` as :func:`scipy.signal.lfilter` does. Filtering a DataFrame gives a
# DataFrame.

average = dp.Filter(np.ones(12) / 12)
true = average.filter(table).y
fig, axes = plt.subplots(1, 2, figsize=(8, 2.6), layout="constrained")
average.plot("gain", ax=axes[0], period="5min")
average.plot("impulse", ax=axes[1], period="5min")

# %%
# How private, and what we assume
# -------------------------------
# ``Privacy(epsilon=1)`` means: whoever reads what we publish, and knows everything else, may raise his odds that one
# event happened by a factor of at most e ≈ 2.7. The model says what we expect of the counts: a mean of 2, and
# neighbours that are alike. It must not come from private data: :doc:`../../choosing/which-model` says where else from.
# If it is wrong the guarantee is the same, but the error may be twice the predicted one.

privacy = dp.Privacy(epsilon=1)
model = dp.ARMA([1], [1, -0.5], mean=2.0)
model.plot("path", period="5min")

# %%
# The mechanism
# -------------
# ``best`` would try all that there is. We take block sums, which need no δ: they publish the sum of each few bins
# with noise on the integers, and estimate the moving average at every step. ``lag=5`` waits 25 minutes, which makes
# the estimate better.

mechanism = dp.block_sums(average, privacy, model, lag=5)
print(mechanism.summary())

# %%
# *Predicted RMSE* is the error that we have to expect, and *explained* the part of the movements of the true series
# that will be seen in the published one: 0 would be as good as publishing the mean, 1 perfect.
#
# Try it
# ------
# ``simulate`` runs the mechanism with simulated noise. That is for data that we may look at, such as these.

paths = mechanism.simulate(table, seed=1)
estimate = paths.estimate.shift(-paths.lag)  # the estimate at t is of t - lag
error = (estimate - true).to_numpy()
print(
    "RMSE:",
    np.sqrt(np.nanmean(error**2)).round(3),
    "predicted:",
    round(mechanism.predicted_rmse, 3),
)

fig, axes = plt.subplots(3, 1, figsize=(8, 5), sharex=True, layout="constrained")
for ax, name in zip(axes, airports, strict=True):
    half = 1.96 * mechanism.predicted_rmse
    ax.fill_between(
        estimate.index,
        estimate[name] - half,
        estimate[name] + half,
        alpha=0.2,
        linewidth=0,
    )
    ax.plot(true[name], color="black", label="true")
    ax.plot(estimate[name], label="private")
    ax.set_title(name, loc="left")
axes[1].set_ylabel("events in 5 minutes, mean of an hour")
fig.legend(
    *axes[0].get_legend_handles_labels(),
    loc="outside upper center",
    ncols=2,
    frameon=False,
)

# %%
# Publish it
# ----------
# Real data go through ``release``: integers, exact noise, and a store that remembers what was published. What the
# counts may be is declared, as up to 40 in a bin, and never read off the data. Rehearse with ``simulate`` or with
# counts that you make up, not with ``release``: two releases of the same data, also into two stores, cost twice. The
# estimates of a release stand at the time that they are of: there is nothing to shift.

import tempfile

inputs = dp.Inputs(0, 40, centre=2, n_streams=3)
with tempfile.TemporaryDirectory() as folder:
    result = dp.release(mechanism, table, Path(folder) / "store", inputs)
result.estimate.iloc[100:105]

# %%
# The release warns: what was published contradicts the model, as there are fewer flights than 2 in a bin, and many
# more by day than by night. That is no matter of privacy. It says what error to expect instead, and
# :doc:`../../explanation/adapting` makes a better model of what was published, at no cost. The result is a DataFrame
# again, with the labels of the table, and a guarantee in words.

print(result.guarantee.sentence)
result.plot(stream=1)

# %%
# Another filter or lag of the same table need not be a second release: :doc:`../../guides/release` has how one release
# serves several outputs.
#
# What next: :doc:`b_answer_for_a_log` bounds what a person contributes and goes on after a crash.

plt.show()  # the pictures, where this runs as a program
