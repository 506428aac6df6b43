"""
A private moving average of a DataFrame
=======================================

You know :mod:`scipy.signal` and nothing of privacy. A table has the number of events in each five minutes. We want to
publish its moving average over an hour, so that nobody can be sure from it whether any single event happened.
"""

# %%
# The table
# ---------
# We take the scheduled departures from the three airports of New York on two days of 2013. They are public, so that
# we may look at them and compare. ``count_events`` reads a log, and counts its events in bins that we declare.

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
# ``Privacy(epsilon=1)`` means: for whoever reads what we publish, and knows everything else, the odds that one event
# happened change by a factor of at most e ≈ 2.7; :doc:`../../choosing/what-epsilon-means` has more. The model says what
# we expect of the counts: a mean of 2, and neighbours that are alike. It must not come from private data, and
# :doc:`../../choosing/which-model` says where you get one. If it is wrong the guarantee is the same, but the error may
# be twice the predicted one.

privacy = dp.Privacy(epsilon=1)
model = dp.ARMA([1], [1, -0.5], mean=2.0)
model.plot("path", period="5min")

# %%
# The mechanism
# -------------
# A *mechanism* is what adds noise, and makes an estimate of the moving average from what is then public. ``best`` would
# compare all kinds. We take block sums: they publish the sum of every few bins plus a random whole number, the noise,
# and estimate the moving average at every step. With ``lag=5`` the estimate comes 25 minutes late, and errs less.

mechanism = dp.block_sums(average, privacy, model, lag=5)
print(mechanism.summary())

# %%
# The line *privacy* says that δ is 0: the bound on the odds has no exceptions. (A δ above 0 would be a small
# probability on top of it.) The noise is *geometric*: a whole number, which is less probable the larger it is.
# *Predicted RMSE* is the root mean square error that we have to expect, and *explained* the share of the variance of
# the true series that the published one shows: 0 % would be as good as publishing the mean, and 100 % would be perfect.
#
# Try it
# ------
# ``simulate`` runs the mechanism with simulated noise. It is for data that you may look at, such as these. The band in
# the picture is 1.96 times the predicted RMSE to either side.

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
# Real data go through ``release``, which computes with integers, draws exact noise, and has a *store*, a folder that
# remembers what was published. You declare what the counts may be, here up to 40 in a bin and about 2 as a rule
# (``centre``); that is never read off the data. Rehearse with ``simulate`` or with
# counts that you make up, not with ``release``: two releases of the same data, also into two stores, cost ε twice. The
# estimates of a release are labelled with the time that they are of: there is nothing to shift.

import tempfile

inputs = dp.Inputs(0, 40, centre=2, n_streams=3)
with tempfile.TemporaryDirectory() as folder:
    result = dp.release(mechanism, table, Path(folder) / "store", inputs)
result.estimate.iloc[100:105]

# %%
# The release warns that what was published contradicts the model: there are fewer than 2 flights in a bin, and many
# more by day than by night. The guarantee does not depend on that. The warning says what error to expect instead, and
# :doc:`../../explanation/adapting` makes a better model from what was published, at no cost of privacy. The estimate is
# a DataFrame again, with the labels of the table, and the guarantee is there in words.

print(result.guarantee.sentence)
result.plot(stream=1)

# %%
# If you need another filter or lag of the same table, do not release it twice: :doc:`../../guides/release` shows how
# one release serves several outputs.
#
# What next: :doc:`b_answer_for_a_log` bounds what a person contributes and goes on after a crash.

plt.show()  # the pictures, where this runs as a program
