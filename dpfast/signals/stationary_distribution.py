"""The stationary distribution of a finite Markov chain, with the digits of its small probabilities."""

from __future__ import annotations

import numpy as np
from scipy import linalg

from dpfast._support.validation import Array
from dpfast.filters.filter import MAX_POLE_RADIUS


def stationary_distribution(p: Array) -> Array:
    """Compute the stationary distribution; a reducible or periodic chain is refused."""
    from scipy.sparse import csgraph

    k = len(p)
    n_parts, part = csgraph.connected_components(p > 0, connection="strong")
    if n_parts > 1:
        other = int(np.argmax(part != part[0]))
        raise ValueError(
            "transition must be irreducible, "
            f"got a chain in {n_parts} parts: there is no way from state 0 to state {other} and back"
        )
    moduli = np.sort(np.abs(linalg.eigvals(p)))
    if k > 1 and moduli[-2] > MAX_POLE_RADIUS:
        raise ValueError(
            f"transition must be aperiodic and mixing, got a second eigenvalue of modulus {moduli[-2]:.9g} "
            f"(the limit is {MAX_POLE_RADIUS:g}): its spectrum has a line"
        )
    return _eliminate_states(p)


def _eliminate_states(p: Array) -> Array:
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
