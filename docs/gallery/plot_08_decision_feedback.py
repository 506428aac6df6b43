"""
When decision feedback pays, and when not
=========================================

A receiver that decides for the levels of the input, and feeds its decisions back, is far better at weak privacy and
far worse at strong privacy: wrong decisions feed back too.
"""

import matplotlib.pyplot as plt

import dpfast as dp

target = dp.Filter([1, 0.995], [1, -0.995])
chain = dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[-0.5, 0.5])
epsilons = [1, 5, 10, 20, 30]
rows = {
    "optimal": [],
    "decision feedback, soft": [],
    "decision feedback, sign": [],
}
for epsilon in epsilons:
    privacy = dp.Privacy(epsilon, 0.05)
    own = {"lag": 5, "prefilter": "decision-feedback"}
    made = [
        dp.optimal(target, privacy, chain, lag=5, name="optimal"),
        dp.decision_feedback(
            target, privacy, chain, name="decision feedback, soft", **own
        ),
        dp.decision_feedback(
            target,
            privacy,
            chain,
            name="decision feedback, sign",
            decision="sign",
            **own,
        ),
    ]
    study = dp.monte_carlo(made, chain, n_streams=64, n_samples=4_000, seed=1)
    for result in study:
        rows[result.name].append((result.rmse, *result.interval))

fig, ax = plt.subplots(figsize=(6, 3.4), layout="constrained")
for name, found in rows.items():
    middle, low, high = zip(*found, strict=True)
    ax.loglog(epsilons, middle, "o-", label=name)
    ax.fill_between(epsilons, low, high, alpha=0.2)
ax.set(xlabel="ε at δ = .05", ylabel="simulated RMSE, with intervals of 95 %")
ax.legend(frameon=False)
