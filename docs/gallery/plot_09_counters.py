"""
Counters
========

A *counter* publishes at every step how many events there were so far. Its error grows with time, so that most designs
are for a fixed number of steps, the *horizon*, here 256; "unbounded sum" needs none. The picture compares the
predicted root mean square error (RMSE) of five ways at each step, at ε = 1 and δ = 10⁻⁶, where no model of the events
is used. Noise that the steps share errs least here, and even needs no δ; :doc:`../../explanation/baselines` says what
each is.
"""

import matplotlib.pyplot as plt

import dpfast as dp

n, privacy = 256, dp.Privacy(1, 1e-6)
target = dp.running_sum(n)
mechanisms = {
    "optimal factorization": dp.optimal_factorization(target, privacy),
    "square root": dp.square_root(target, privacy),
    "binary tree": dp.binary_tree(target, privacy),
    "shared noise, δ = 0": dp.shared_noise(target, dp.Privacy(1)),
    "for ever: unbounded sum": dp.unbounded_sum(privacy),
}
fig, ax = plt.subplots(figsize=(7, 3.4), layout="constrained")
for name, mechanism in mechanisms.items():
    steps = (
        mechanism.step_mse(n)
        if mechanism.horizon is None
        else mechanism.step_mse()
    )
    ax.plot(steps**0.5, label=name)
ax.set(xlabel="step", ylabel="predicted RMSE", ylim=(0, None))
fig.legend(loc="outside upper center", ncols=3, frameon=False, fontsize=8)
