"""Decision-feedback equalisers, and the naive twin of each: for tests of several modules."""

import numpy as np
from helpers import reference

from dpfast._kernels.equalizer import Equalizer

FORWARD, FEEDBACK = np.array([0.4, 0.3, -0.1, 0.05]), np.array([0.35, -0.2, 0.1])
SHRINKAGE, ERROR = 0.8, 0.3
ALPHABETS = {  # levels, sorted, and their probabilities
    "two": ([-0.5, 0.5], [0.5, 0.5]),
    "asymmetric": ([-0.2, 1.0], [0.9, 0.1]),
    "four": ([-1.0, -0.5, 0.25, 2.0], [0.1, 0.4, 0.3, 0.2]),
    "nine": (np.arange(-4, 5) / 2.0, np.full(9, 1 / 9)),
    "unused": ([-1.0, 0.0, 1.0], [0.5, 0.0, 0.5]),
}
CASES = [
    (alphabet, decision)
    for alphabet in ALPHABETS
    for decision in ("hard", "soft")
    if (alphabet, decision) != ("unused", "hard")
]


def equalizer(alphabet, decision, lag=0, forward=FORWARD, taps=FEEDBACK, level=0.0):
    """E[u~ | u] = SHRINKAGE · u, an error around it of variance SHRINKAGE · ERROR; levels about `level`."""
    levels, probabilities = map(np.array, ALPHABETS[alphabet])
    levels = levels - level
    with np.errstate(divide="ignore"):
        offsets = np.log(probabilities) - SHRINKAGE * levels**2 / (2 * ERROR)
    thresholds = SHRINKAGE * (levels[1:] + levels[:-1]) / 2
    return Equalizer(forward, taps, levels, thresholds, levels / ERROR, offsets, decision == "soft", lag)


def decider(alphabet, decision, level=0.0):
    """What is made of u~ / SHRINKAGE."""
    levels, probabilities = ALPHABETS[alphabet]
    levels = [x - level for x in levels]
    if decision == "soft":
        return reference.posterior_mean(levels, probabilities, ERROR / SHRINKAGE)
    return reference.sign(levels) if len(levels) == 2 else reference.nearest(levels)


def twin(alphabet, decision, lag, v, forward=FORWARD, taps=FEEDBACK, level=0.0):
    """Decisions of each stream of v (streams, time)."""
    decide = decider(alphabet, decision, level)
    rows = [reference.decision_feedback(forward, taps, SHRINKAGE, decide, lag, row) for row in v]
    return np.reshape(rows, np.shape(v))
