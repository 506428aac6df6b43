"""
The idea in one picture
=======================

Events are counted in bins. We want to publish a moving average of the counts, and nobody shall be able to tell from
it whether one particular event happened. So random noise is added before anything is published, and the average is
estimated from the noisy numbers. Only the blue line and its band are published here, under ε = 1: whatever somebody
knew before, the odds of one event change by a factor of at most e ≈ 2.7 (:doc:`../../choosing/what-epsilon-means`).
The band is 1.96 times the predicted error to either side, so that the true average should be inside of it in 95 % of
the bins.
"""

import matplotlib.pyplot as plt
import numpy as np

import dpfast as dp

target = dp.Filter(np.ones(12) / 12)
counts = dp.ARMA([1.2], [1, -0.8], mean=2.0)
mechanism = dp.block_sums(target, dp.Privacy(epsilon=1), counts, lag=5)

u = np.random.default_rng(3).poisson(2 + 1.5 * np.sin(np.arange(400) / 40))
run = mechanism.simulate(u, seed=1)
estimate, true = run.estimate[run.lag :], target.apply(u)[: -run.lag]
half = 1.96 * mechanism.predicted_rmse

fig, ax = plt.subplots(figsize=(8, 3), layout="constrained")
ax.plot(u, ".", color="0.8", label="events in each bin: private")
ax.plot(true, color="black", label="their moving average: private too")
low, high = estimate - half, estimate + half
ax.fill_between(range(len(estimate)), low, high, alpha=0.2, linewidth=0)
ax.plot(estimate, label="published, with its band of 95 %")
ax.set(xlabel="bin", ylabel="events")
fig.legend(loc="outside upper center", frameon=False, ncols=3, fontsize=8)
print("in the band:", round(float(np.mean(np.abs(estimate - true) <= half)), 3))
