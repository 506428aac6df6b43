"""
For research: the paper, a sweep, and figures
=============================================

We reproduce the example of Le Ny (2013), compare its mechanisms with the optimum over ε and the lag, and make figures
for an article.
"""

# %%
# The example
# -----------
# The target is F(z) = (1 + .995z⁻¹)/(1 − .995z⁻¹), the input a chain of two levels ±1/2 that stays where it is with
# probability 3/4, and the guarantee has ε = ln 3 and δ = .05. ``zero_forcing`` (LZF) and ``lmmse`` are the paper's two
# mechanisms; what is printed is their root mean square error (RMSE).

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import dpfast as dp

target = dp.Filter([1, 0.995], [1, -0.995])
chain = dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[-0.5, 0.5])
paper = dp.Privacy(np.log(3), 0.05, calibration="paper")
zero_forcing = dp.zero_forcing(target, paper)
smoother = dp.lmmse(target, paper, chain)
print(
    "LZF",
    round(zero_forcing.ideal_rmse, 4),
    "and LMMSE",
    round(smoother.ideal_rmse, 4),
)

# %%
# The paper prints 8.82 and 7.43; :doc:`../../explanation/errata` says why these are wrong. Without
# ``calibration="paper"`` there is no more noise than (ε, δ) needs. ``optimal`` designs the best prefilter for a causal
# receiver, here one that estimates 5 steps late.

privacy = dp.Privacy(np.log(3), 0.05)
optimal = dp.optimal(target, privacy, chain, lag=5)
print(optimal.summary())

# %%
# Where is the error? On the left are the gains of the prefilter G, which stands before the noise, of the receiver H
# behind it, and of both; on the right is what noise and distortion add to the error at each frequency.

fig, axes = plt.subplots(1, 2, figsize=(8, 3), layout="constrained")
optimal.plot("gain", ax=axes[0])
optimal.plot("errors", ax=axes[1])

# %%
# Simulated errors
# ----------------
# All mechanisms see the same inputs and the same unit noise. In the picture rings are what was predicted, and bars are
# the simulated errors with their 95 % intervals.

mechanisms = [
    optimal,
    dp.zero_forcing(target, privacy),
    dp.lmmse(target, privacy, chain, lag=5),
]
study = dp.monte_carlo(mechanisms, chain, n_streams=128, n_samples=5_000, seed=1)
study

# %%
# A paired comparison decides between two of them.

study.compare("optimal lag 5", "LMMSE lag 5")

# %%
# A sweep
# -------
# A sweep simulates every mechanism of a grid, each until its error is known to 3 %. It can be interrupted and resumed,
# with bit-identical results. ``workers=8`` would run it in processes (in a script under
# ``if __name__ == "__main__":``, as each worker imports it), and ``executor=`` on the machines of a cluster.
# :doc:`../../guides/study` has the lines for Dask, and how parts of a grid on several machines become one table.

folder = Path("research-tutorial")
folder.mkdir(exist_ok=True)
grid = {
    "mechanism": ["optimal", "lmmse", "zero_forcing"],
    "target": target,
    "model": chain,
    "epsilon": [0.3, 1, 3],
    "delta": 0.05,
    "lag": [0, 5],
}
found = dp.sweep(
    grid,
    seed=1,
    store=folder / "study.sqlite",
    width=0.03,
    decide="mechanism",
    progress=False,
)
found

# %%
# Figures for an article
# ----------------------
# ``plot`` draws into your own axes. ``where`` picks the points of one lag.

fig, axes = plt.subplots(1, 2, figsize=(8, 3.4), layout="constrained")
found.where(lag=5).plot("epsilon", ax=axes[0])
found.plot("winners", ax=axes[1])

# %%
# The table for LaTeX comes by way of pandas; :doc:`../../guides/study` says what to cite.

rows = found.to_pandas().query("mechanism != 'constant'")
table = rows.pivot(index=["lag", "epsilon"], columns="mechanism", values="rmse")
print(table.reset_index().to_latex(index=False, float_format="{:.3g}".format))

# %%
# ``dpfast.plot`` draws the whole study in the sizes of a paper, and ``dpfast.report`` writes a page with tables,
# pictures and the lines that repeat it: open ``research-tutorial/study.html`` in a browser.

figure = dp.plot(found, "epsilon")
figure.savefig(folder / "rmse.pdf")
dp.report(found, folder / "study.html")
print(*sorted(x.name for x in folder.iterdir() if x.suffix in {".pdf", ".html"}))

# %%
# Lower bounds tell how far a mechanism is from the best (:doc:`../../choosing/bounds`): here beside the predicted RMSE
# of each, the bound for all mechanisms that add noise and filter linearly.

for x in mechanisms:
    bound = x.additive_bound_mse**0.5
    print(f"{x.name}: {x.predicted_rmse:.3g}, bound {bound:.3g}")
plt.show()  # the pictures, where this runs as a program
