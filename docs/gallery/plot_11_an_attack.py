"""
An attack on floating-point noise
=================================

Adding ``numpy`` noise to a count does not protect it: the lowest bits of one published value can give an event away.
Draws of the exact noise are integers, and have no such bits.
"""

import matplotlib.pyplot as plt
import numpy as np

# %%
# Noise of standard deviation 1.76 is added to a count of 0 or 1. A value near 0 keeps the fine grid of its noise if
# the count was 0; after adding 1 the sum is rounded to a coarser grid.

rng = np.random.default_rng(1)
noise = 1.756 * rng.standard_normal(200_000)


def is_fine(v):
    """Tell whether a value near zero is off the grid of 2**-54: which a sum with 1 never is."""
    return (np.abs(v) < 0.25) & (v * 2.0**54 != np.round(v * 2.0**54))


share = [float(is_fine(count + noise).mean()) for count in (0, 1)]
print("of the count 0:", round(share[0], 4), " of the count 1:", share[1])

fig, ax = plt.subplots(figsize=(5, 2.6), layout="constrained")
bars = ax.bar(["count 0", "count 1"], share, color=["tab:red", "tab:blue"])
ax.bar_label(bars, fmt="{:.2%}")
ax.set(ylabel="share of published values\nthat prove the count 0", ylim=(0, 0.09))

# %%
# A single such value is certain proof, whatever ε is. ``dpfast audit`` makes this attack, and others, on the exact
# noise, which withstands (:doc:`../../guides/audit`).

assert share[0] > 0.05
assert share[1] == 0
