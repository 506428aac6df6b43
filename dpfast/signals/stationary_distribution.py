"""The stationary distribution of a finite Markov chain, with the digits of its small probabilities."""

from __future__ import annotations

import numpy as np

from dpfast._support.validation import Array


def stationary_distribution(p: Array) -> Array:
    """Compute the stationary distribution without subtractions: small probabilities keep their digits.

    Grassmann, Taksar and Heyman 1985.
    """
    p = p.copy()
    for k in range(len(p) - 1, 0, -1):
        p[:k, k] /= p[k, :k].sum()
        p[:k, :k] += np.outer(p[:k, k], p[k, :k])
    pi = np.ones(len(p))
    for k in range(1, len(p)):
        pi[k] = pi[:k] @ p[:k, k]
    return np.asarray(pi / pi.sum())
