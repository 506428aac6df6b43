"""Markov chains of every kind, and their stationary distributions: for tests of several modules."""

import numpy as np
import pytest
from scipy import linalg

LAZY = [[0.75, 0.25], [0.25, 0.75]]
CHAINS = {
    "paper": (LAZY, [-0.5, 0.5]),
    "skewed": ([[0.9, 0.1], [0.4, 0.6]], [0, 1]),
    "alternating": ([[0.1, 0.9], [0.8, 0.2]], [0, 1]),
    "three": ([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]], [0, 1, 5]),
    "rotating": ([[0.1, 0.8, 0.1], [0.1, 0.1, 0.8], [0.8, 0.1, 0.1]], [0, 1, -2]),
    "unsorted": ([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]], [3, -1, 2]),
    "duplicate levels": ([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]], [1, 0, 1]),
    "four": (linalg.circulant([0.6, 0.3, 0.05, 0.05]), [0, 1, 4, 2]),
    "five": (0.5 * np.eye(5) + 0.1 * linalg.circulant([0, 3, 1, 1, 0]), [1, 2, 0, 7, -3]),
    "one mode of three": (0.6 * np.eye(4) + 0.1, [0, 1, 2, 5]),
    "symmetric lump": ([[0.6, 0.2, 0.2], [0.2, 0.5, 0.3], [0.2, 0.3, 0.5]], [0, 1, 1]),
    "independent": ([[0.3, 0.2, 0.5]] * 3, [0, 1, 5]),
    "shift register": ([[0.7, 0.3, 0, 0], [0, 0, 0.7, 0.3], [0.7, 0.3, 0, 0], [0, 0, 0.7, 0.3]], [0, 1, 3, 4]),
    "slow": ([[0.9999, 0.0001], [0.0002, 0.9998]], [0, 1]),
    "big levels": (LAZY, [1e6, 1e6 + 1]),
}
every_chain = pytest.mark.parametrize(("transition", "levels"), CHAINS.values(), ids=CHAINS)


def stationary(transition):
    """A left eigenvector by 60 squarings of the transition matrix."""
    p = np.array(transition, float)
    for _ in range(60):
        p = p @ p
        p /= p.sum(axis=1, keepdims=True)
    return p[0]
