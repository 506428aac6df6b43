"""
Blocks against filters, over ε
==============================

Where δ is small, Gaussian noise itself costs most. Block sums with integer noise need no δ, and err less; at δ = .05
they do not.
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
