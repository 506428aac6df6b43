"""
Adapting
========

A design assumes a model of the input, and the model may be wrong: here it says that inputs are independent, and in
truth they drift slowly. What was published is private already. So anybody may fit a better model to it, and estimate
anew from the same published numbers, at no cost of privacy. ``adapt`` does that, and takes the new receiver only
where it errs less on parts that were held out.
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
# The bars are root mean square errors (RMSE): the one that the design predicted, its true one, the true one after
# adapting, and what a receiver would reach that was told the true model.

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
