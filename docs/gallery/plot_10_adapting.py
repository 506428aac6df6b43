"""
Adapting
========

The design assumes a model that is wrong. What is published is private already, so that a better model may be fitted
to it at no cost.
"""

import matplotlib.pyplot as plt

import dpfast as dp

target, privacy = dp.Filter([0.1], [1, -0.9]), dp.Privacy(1, 1e-3)
assumed, true = dp.ARMA([1], [1]), dp.ARMA([1], [1, -0.95])
mechanism = dp.lmmse(target, privacy, assumed, lag=5)
u = true.sample(1, 20_000, seed=1)
run = mechanism.simulate(u, seed=2)
found = dp.adapt(mechanism, run.privatized)
print(found)

# %%
# The error on the true model, before and after, beside what the true model would have given.

ideal = dp.lmmse(target, privacy, true, lag=5, prefilter=mechanism.prefilter)
bars = {
    "predicted under\nthe wrong model": mechanism.predicted_rmse,
    "true error": mechanism.predict(true) ** 0.5,
    "adapted": found.mechanism.predict(true) ** 0.5,
    "true model known": ideal.predicted_rmse,
}
fig, ax = plt.subplots(figsize=(6, 3), layout="constrained")
ax.bar(
    list(bars),
    list(bars.values()),
    color=["0.7", "tab:red", "tab:blue", "tab:green"],
)
ax.set_ylabel("RMSE")
