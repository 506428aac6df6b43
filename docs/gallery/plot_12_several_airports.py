"""
Several airports at once
========================

The departures of three airports are published under one guarantee. It depends on how many of the airports one person
may be counted at: each stream has noise of its own, and hiding a person in p streams needs √p times as much of it.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import dpfast as dp

root = next(
    x for x in (Path.cwd(), *Path.cwd().parents) if (x / "examples").is_dir()
)
airports = ["EWR", "JFK", "LGA"]
span = dp.Span.parse("2013-03-04", "2013-03-05", "5min")
log = root / "examples" / "nyc_departures_2013.csv.gz"
u = dp.count_events(
    log, span, airports, time="scheduled_departure", by="origin"
).counts.astype(int)
mechanism = dp.optimal(
    dp.Filter(np.ones(12) / 12),
    dp.Privacy(3, 1e-6),
    dp.ARMA([1], [1, -0.5], mean=2.0),
    lag=5,
)

# %%
# ``release`` publishes all three, for persons who depart at one airport only. (The store, a folder that remembers
# what was published, is thrown away here.) It warns that what was published contradicts the model: there are fewer
# departures than it says, and they have a daily rhythm. The guarantee does not depend on that, and the bands have the
# error that was estimated from what was published.

fig, axes = plt.subplots(3, 1, figsize=(8, 6), sharex=True, layout="constrained")
with tempfile.TemporaryDirectory() as folder:
    inputs = dp.Inputs(0, 40, centre=2, n_streams=3, streams_per_person=1)
    result = dp.release(mechanism, u, Path(folder) / "store", inputs)
for i, ax in enumerate(axes):
    result.plot(stream=i, ax=ax)
    ax.plot(
        mechanism.target.apply(u[i]), color="black", linewidth=0.8, label="true"
    )
    ax.set_title(airports[i], loc="left")
    ax.label_outer()
    ax.legend(frameon=False, fontsize=7, ncols=3, loc="upper left")

# %%
# If a person may be counted at two or three of them, everybody pays with more noise. Here are the predicted root mean
# square errors (RMSE), in departures in 5 minutes.

for p in (1, 2, 3):
    plan = dp.exact(
        mechanism, dp.Inputs(0, 40, centre=2, n_streams=3, streams_per_person=p)
    )
    print(
        p,
        "streams: predicted RMSE",
        round(plan.predicted_rmse_if_model_holds, 3),
    )
