"""
Persons and events
==================

A guarantee may be about one event, or about all events of one person, of which there are at most so many. Hiding a
person with several events takes more noise than hiding one event. It takes less of it where the events are known to
be far apart, as the filter in front of the noise has forgotten one before the next comes: 24 steps are as good as 288
for this average of 12 steps. The picture has predicted root mean square errors (RMSE) at ε = 1 and δ = 10⁻⁶, beside
the *constant*, which publishes the mean and nothing of the data. At 8 events little is left to gain over it.
"""

import matplotlib.pyplot as plt
import numpy as np

import dpfast as dp

target = dp.Filter(np.ones(12) / 12)
counts = dp.ARMA([1], [1, -0.5], mean=2.0)
most = [1, 2, 4, 8]

fig, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
for apart, style in {1: "o-", 24: "o-", 288: "s--"}.items():
    errors = [
        dp.lmmse(
            target,
            dp.Privacy(1, 1e-6, max_events=m, min_separation=apart),
            counts,
            lag=5,
        ).predicted_rmse
        for m in most
    ]
    ax.plot(
        most,
        errors,
        style,
        label=f"at least {apart} step{'s' * (apart > 1)} apart",
    )
ax.axhline(
    dp.constant(target, counts).predicted_rmse,
    color="0.5",
    linestyle=":",
    label="constant",
)
ax.set(xlabel="events of one person", ylabel="predicted RMSE", ylim=(0, 0.6))
ax.legend(frameon=False)
