"""
An attack on floating-point noise
=================================

Adding noise from ``numpy`` to a count does not protect it. Floating-point numbers lie on grids, and the grid shows in
the lowest bits: a single published value can prove what the count was. Releases of dpfast draw exact noise, in whole
numbers, which have no such bits.
"""

import matplotlib.pyplot as plt
import numpy as np

# %%
# Noise of standard deviation 1.76 is added to a count of 0 or 1. If the count was 0, a value near 0 keeps the fine
# grid of its noise. If it was 1, the sum was rounded to a coarser grid, and such a value never comes.

rng = np.random.default_rng(1)
noise = 1.756 * rng.standard_normal(200_000)


def is_fine(v):
    """Tell whether a value near zero is off the grid of 2**-54."""
    return (np.abs(v) < 0.25) & (v * 2.0**54 != np.round(v * 2.0**54))


share = [float(is_fine(count + noise).mean()) for count in (0, 1)]
print("of the count 0:", round(share[0], 4), " of the count 1:", share[1])

fig, ax = plt.subplots(figsize=(5, 2.6), layout="constrained")
bars = ax.bar(["count 0", "count 1"], share, color=["tab:red", "tab:blue"])
ax.bar_label(bars, fmt="{:.2%}")
ax.set(
    ylabel="share of published values\nthat prove the count 0", ylim=(0, 0.09)
)

# %%
# One value in 13 is such a proof, if the count was 0: no guarantee of any ε holds with a δ below that. The command
# ``dpfast audit`` makes this attack, and others, on real releases. Their exact noise withstands it
# (:doc:`../../guides/audit`).

assert share[0] > 0.05
assert share[1] == 0
