"""
Why the optimum beats two steps
===============================

The paper designs a private filter in two steps: first the prefilter in front of the noise, for a receiver that sees
the whole stream (a *smoother*); then a causal receiver behind that prefilter. But a smoother's prefilter has no gain
at all in some bands, and a causal receiver cannot make up for that. ``optimal`` designs both together, and errs less:
5 % at lag 0, and .4 % at a lag of 20 samples. (With a lag of D the estimate of each step comes D steps later.) On the
left are the predicted errors over the lag, with a bound below which no linear mechanism with Gaussian noise goes; on
the right are the gains of the prefilters.
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
