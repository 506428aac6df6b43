"""The chain that is benchmarked: what every contestant computes for each sample.

    u ──► G ──►(+)──► DFE ──► û,   squared error of F û against F u of LAG samples before

u a ±1/2 Markov chain that changes its sign with probability 1/4, G four second-order sections, white Gaussian noise,
64 forward and 16 feedback taps with sign decisions, F of one pole.
"""

import numpy as np
from scipy import signal

import dpfast as dp
from dpfast.mechanisms.receivers.decision_feedback import DecisionFeedback

LEVEL = 0.5
LAG = 10
SOS = signal.butter(8, 0.3, output="sos")
# Decisions by these are wrong for every fourth sample, and do not lock; the speed does not depend on them.
FORWARD = 0.2 * 0.7 ** np.abs(np.arange(64) - 4)
FEEDBACK = 0.02 * np.cos(np.arange(1, 17))
TARGET_B, TARGET_A = [1.0, 0.995], [1.0, -0.995]
# Multiply-adds of a sample, counted as the difference equations have them: sections, taps, F, noise, square.
MULTIPLY_ADDS = 5 * len(SOS) + len(FORWARD) + len(FEEDBACK) + 3 + 1 + 1

MODEL = dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[-LEVEL, LEVEL])
_TARGET = dp.Filter(TARGET_B, TARGET_A)
MECHANISM = dp.Mechanism(
    name="chain",
    target=_TARGET,
    privacy=dp.Privacy(epsilon=1.5, delta=0.05),
    model=MODEL,
    prefilter=dp.Filter.from_sos(SOS),
    receiver=DecisionFeedback(
        forward=FORWARD,
        feedback=FEEDBACK,
        levels=np.array([-LEVEL, LEVEL]),
        probabilities=np.array([0.5, 0.5]),
        shrinkage=1.0,
        error_variance=0.25,
        decision="sign",
        target=_TARGET,
        mean=0.0,
        lag=LAG,
    ),
)
NOISE_STD = MECHANISM.noise_std
