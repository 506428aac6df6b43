"""
The paper's example and its errata
==================================

Le Ny (2013) designs private versions of a linear filter. In all of them the input goes through a *prefilter*,
Gaussian noise is added, and a *receiver* estimates the filter's output from what is then public. Section VI of the
paper compares three on one stream of two levels, ±1/2: *zero forcing* (the receiver undoes the prefilter), *LMMSE*
(the linear receiver of least mean square error), and *decision feedback* (the receiver decides which level each input
had). The root mean square errors that the paper prints for the first two, 8.82 and 7.43, should be 7.47 and 5.62
(4.67 with the spectrum that the stream really has), and decision feedback does not help at this ε.
:doc:`../../explanation/errata` has the derivations.
"""

import matplotlib.pyplot as plt
import numpy as np

import dpfast as dp

target = dp.Filter([1, 0.995], [1, -0.995])
chain = dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[-0.5, 0.5])
privacy = dp.Privacy(np.log(3), 0.05, calibration="paper")
mechanisms = [
    dp.zero_forcing(target, privacy),
    dp.lmmse(target, privacy, chain),
    dp.decision_feedback(
        target,
        privacy,
        chain,
        lag=5,
        decision="sign",
        prefilter="decision-feedback",
        name="DFE, sign",
    ),
]

u = chain.sample(1, 3000, seed=0)[0]
window = np.arange(2000, 2200)
fig, axes = plt.subplots(3, 1, figsize=(8, 6), sharex=True, layout="constrained")
for ax, mechanism in zip(axes, mechanisms, strict=True):
    run = mechanism.simulate(u, seed=0)
    late = run.lag or 0  # a smoother knows all of the stream
    ax.plot(window, target.apply(u)[window], color="black", label="true output")
    ax.plot(window, run.estimate[window + late], label="estimate")
    ax.set_title(mechanism.name, loc="left")
axes[0].legend(frameon=False, ncols=2, fontsize=8)
axes[-1].set_xlabel("time (samples)")

# %%
# The table has the errors of the three, predicted and simulated on 64 streams, with intervals of 95 %. The *constant*
# publishes the mean and nothing of the data: the receiver that decides by the sign errs more than that.

dp.monte_carlo(mechanisms, chain, n_streams=64, n_samples=5_000, seed=1)
