"""State spaces x⁺ = A x + B u, y = C x: their Gramians and balanced coordinates, without differences."""

from __future__ import annotations

import numpy as np
from scipy import linalg

from dpfast._support.validation import Array


def gramian_root(a: Array, b: Array) -> Array:
    """Return R with RᵀR = Σ Aᵏ B Bᵀ Aᵏᵀ, the reachability Gramian and covariance of a state, by doubling.

    There are no differences, so no digits are lost.
    """
    root, power = b.T, a
    while linalg.norm(power) > 1e-20:
        stacked = np.vstack([root, root @ power.T])
        root = np.asarray(linalg.qr(stacked, mode="r")[0][: len(a)], dtype=np.float64)
        power = power @ power
    return np.vstack([root, np.zeros((len(a) - len(root), len(a)))])


def balance_states(a: Array, b: Array, c: Array, negligible: float) -> tuple[Array, Array]:
    """Return T⁻ and T such that T⁻ A T, T⁻ B and C T are balanced, in the fewest states.

    States are left out where twice the rest of the Hankel singular values, which bounds the error (Glover 1984), is
    `negligible` beside one and their sum. In these coordinates poles in a cluster stay well conditioned; those of a
    cascade of sections lose all digits.
    """
    if len(a) == 0:
        return np.zeros((0, 0)), np.zeros((0, 0))
    reached, seen = gramian_root(a, b), gramian_root(a.T, c.T)
    u, size, v = linalg.svd(seen @ reached.T)
    rest = np.cumsum(size[::-1])[::-1]
    n = int(np.count_nonzero(2 * rest > negligible * (1 + size.sum())))
    scale = np.sqrt(size[:n])
    return (u[:, :n] / scale).T @ seen, reached.T @ v[:n].T / scale
