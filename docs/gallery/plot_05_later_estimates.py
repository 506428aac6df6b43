"""
What a later estimate gains
===========================

With a lag the receiver waits, and sees what is published later. Most is gained in the first few steps.
"""

import matplotlib.pyplot as plt
import numpy as np

import dpfast as dp

counts = dp.ARMA([1], [1, -0.5], mean=2.0)
targets = {
    "mean of 12": dp.Filter(np.ones(12) / 12),
    "smoothing .9": dp.Filter([0.1], [1, -0.9]),
    "as it is": dp.Filter([1]),
}
lags = [0, 1, 2, 4, 8, 16]

fig, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
for name, target in targets.items():
    errors = np.array(
        [
            dp.block_sums(target, dp.Privacy(1), counts, lag=d).predicted_rmse
            for d in lags
        ]
    )
    ax.plot(lags, errors / errors[0], "o-", label=name)
ax.set(xlabel="lag (samples)", ylabel="RMSE / RMSE at lag 0", ylim=(0, 1.05))
ax.legend(frameon=False)
