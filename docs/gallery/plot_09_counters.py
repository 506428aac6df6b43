"""
Counters
========

A running sum is computed for a fixed number of steps, its horizon, with the logarithm of which the error grows. The
picture compares five ways to count privately; one of them needs no horizon.
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
