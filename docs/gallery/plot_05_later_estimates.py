"""
What a later estimate gains
===========================

An estimate that may come some steps late, by its *lag*, can use what was published in between. Here are the predicted
errors of block sums (noisy sums of every few inputs) at ε = 1, for three targets, each relative to its error without
a lag. Most is gained in the first few steps: after four steps the moving average errs 15 % less, and a longer lag
hardly helps.
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
