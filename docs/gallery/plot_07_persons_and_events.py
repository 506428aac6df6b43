"""
Persons and events
==================

Hiding a person with several events takes more noise than hiding one event. It takes less of it where the events are far
apart.
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
