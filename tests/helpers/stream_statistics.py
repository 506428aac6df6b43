"""The noise of means over simulated streams."""

import math

import numpy as np

# |z| of a standard normal is above 5.7 with probability 1.2e-8: with up to 80 comparisons a test, a false alarm has
# probability below 1e-6. Seeds are fixed.
SIGMAS = 5.7


def worst_z(samples, expected):
    """Largest |mean - expected| over the axis 0, in standard errors."""
    error = samples.std(axis=0, ddof=1) / math.sqrt(len(samples))
    return np.abs((samples.mean(axis=0) - expected) / error).max()
