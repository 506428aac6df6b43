"""Mechanisms over a horizon to try, and their errors in units of the noise."""

import math

import numpy as np

import dpfast as dp

UNIT = dp.Privacy.from_gdp(1, 1e-6)
EXAMPLE = dp.Filter([1, 0.995], [1, -0.995])
PRIVACY = dp.Privacy(1.0, 1e-5)
CHAIN = dp.MarkovChain([[0.9, 0.1], [0.1, 0.9]], levels=[-0.5, 0.5])
TARGETS = [dp.running_sum(32), dp.polynomial_decay(1, 20), dp.Toeplitz([1.0, -2.0, 0.5], 16)]


def unit_errors(mechanism):
    """Largest and mean, root mean square, in units of the noise multiplier."""
    k = UNIT.noise_multiplier
    return math.sqrt(mechanism.max_mse) / k, mechanism.predicted_rmse / k


def dense(target):
    """The lower triangular matrix of a target."""
    f = target.coefficients
    return np.array([[f[t - s] if t >= s else 0.0 for s in range(len(f))] for t in range(len(f))])
