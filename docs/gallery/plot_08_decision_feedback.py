"""
When decision feedback pays, and when not
=========================================

If the input has two levels only, a receiver can decide which level each input had, and use its decisions for those
that follow (*decision feedback*, as in a modem). Where nearly all decisions are right that is far better than any
linear receiver; where many are wrong, the wrong ones are fed back too, and it is far worse. On this filter, which
adds up hundreds of decisions, it wins at ε = 30 only. That is a promise in name alone, as the odds of an event may
then change by a factor of e³⁰. Soft decisions take the mean of both levels, weighed by their probabilities.
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
