"""
Blocks against filters, over ε
==============================

A guarantee has two numbers: ε, and a small probability δ on top of it; the smaller both are, the more private.
Gaussian noise behind a filter needs a δ above 0, and the smaller δ is, the more noise it takes. Block sums publish
the sum of every few inputs plus a random whole number, and need no δ. The picture has the predicted root mean square
errors (RMSE) of both for a moving average of 12 steps, with estimates 5 steps late. Block sums err less than the
filter with δ = 10⁻⁶ at every ε. The filter with δ = .05, a far weaker promise, errs less than they do up to ε ≈ 1.6.
"""

import matplotlib.pyplot as plt
import numpy as np

import dpfast as dp

target = dp.Filter(np.ones(12) / 12)
chain = dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[-0.5, 0.5])
epsilons = np.geomspace(0.3, 5, 6)

fig, ax = plt.subplots(figsize=(6, 3.4), layout="constrained")
for delta, style in ((1e-6, "o-"), (0.05, "s--")):
    filters = [
        dp.optimal(target, dp.Privacy(e, delta), chain, lag=5).predicted_rmse
        for e in epsilons
    ]
    ax.loglog(
        epsilons,
        filters,
        style,
        color="tab:green",
        label=f"optimal filter, δ = {delta:g}",
    )
blocks = [
    dp.block_sums(target, dp.Privacy(e), chain, lag=5).predicted_rmse
    for e in epsilons
]
ax.loglog(epsilons, blocks, "H-", color="#882255", label="block sums, δ = 0")
ax.axhline(
    dp.constant(target, chain).predicted_rmse,
    color="0.5",
    linestyle=":",
    label="constant: publish the mean",
)
ax.set(xlabel="ε", ylabel="predicted RMSE")
ax.set_xticks([0.3, 1, 3], ["0.3", "1", "3"])
ax.set_yticks([0.03, 0.1, 0.2], ["0.03", "0.1", "0.2"])
ax.minorticks_off()
ax.legend(frameon=False, fontsize=8)
