"""
Why the optimum beats two steps
===============================

The paper designs the prefilter for a smoother, and then a causal receiver behind it. That prefilter has bands without
gain, which no causal receiver can use. Designing both together errs less, most at a small lag. On the left are
the errors over the lag, on the right the gains of the prefilters.
"""

import matplotlib.pyplot as plt
import numpy as np

import dpfast as dp

target = dp.Filter([1, 0.995], [1, -0.995])
chain = dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[-0.5, 0.5])
privacy = dp.Privacy(np.log(3), 0.05, calibration="paper")
lags = [0, 1, 2, 5, 10, 20]
optimal = [dp.optimal(target, privacy, chain, lag=d) for d in lags]
two_steps = [dp.lmmse(target, privacy, chain, lag=d) for d in lags]

fig, axes = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
axes[0].plot(
    lags, [x.predicted_rmse for x in two_steps], "^--", label="two steps"
)
axes[0].plot(lags, [x.predicted_rmse for x in optimal], "o-", label="optimum")
axes[0].plot(
    lags,
    [x.lower_bound_mse**0.5 for x in optimal],
    color="gold",
    linewidth=6,
    alpha=0.6,
    zorder=0,
    label="lower bound",
)
axes[0].set(xlabel="lag (samples)", ylabel="RMSE")
axes[0].legend(frameon=False)
omega = np.geomspace(1e-3, np.pi, 500)
for mechanism, label in (
    (two_steps[0], "two steps"),
    (optimal[0], "optimum"),
    (dp.lmmse(target, privacy, chain), "smoother"),
):
    axes[1].loglog(
        omega / (2 * np.pi), mechanism.magnitudes(omega).prefilter, label=label
    )
axes[1].set(
    xlabel="frequency (cycles per sample)",
    ylabel="|G|, of unit norm",
    ylim=(1e-3, 30),
)
axes[1].legend(frameon=False)
