"""State spaces x⁺ = A x + B u, y = C x: their responses, Gramians and balanced coordinates, without differences."""

from __future__ import annotations

import numpy as np
from scipy import linalg

from dpfast._support.validation import Array, Complex

_MOST_NUMBERS = 2**17  # at once, of states at angles, so that they stay in the processor's cache


def gramian_root(a: Array, b: Array) -> Array:
    """Return R with RᵀR = Σ Aᵏ B Bᵀ Aᵏᵀ, the reachability Gramian and covariance of a state, by doubling.

    There are no differences, so no digits are lost.
    """
    if len(a) == 0:
        return a
    root, power = _triangle(b.T) if b.shape[1] > len(a) else b.T, a
    while linalg.norm(power) > 1e-20:
        root = _triangle(np.vstack([root, root @ power.T]))
        power = power @ power
    return np.vstack([root, np.zeros((len(a) - len(root), len(a)))])


def _triangle(root: Array) -> Array:
    """Return R of no more rows than columns, with RᵀR the same."""
    return np.asarray(linalg.qr(root, mode="r")[0][: root.shape[1]], dtype=np.float64)


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


def frequency_response(a: Array, b: Array, c: Array, d: Array, omega: Array) -> Complex:
    """Return C (zI - A)⁻¹ B + D at angles (...), as matrices (..., p, m), by back substitution in Schur coordinates.

    They are orthogonal, but for a scaling, so that no digits are lost where poles cluster, as they would in those of
    eigenvectors; and all angles share them, where elimination would take the cube of the states at each.
    """
    (p, m), n = d.shape, len(a)
    angles = np.asarray(omega, dtype=np.float64)
    out = np.empty((angles.size, p, m), np.complex128)
    out[...] = d
    if n:
        balanced, scale = linalg.matrix_balance(a)  # states of very different sizes
        triangle, turn = linalg.schur(balanced.astype(np.complex128), output="complex")
        before, behind = turn.conj().T @ linalg.solve(scale, b), c @ scale @ turn
        size = max(1, _MOST_NUMBERS // (n * m))
        for first in range(0, angles.size, size):
            z = np.exp(1j * angles.ravel()[first : first + size])
            states = _substitute_back(triangle, before, z)
            out[first : first + size] += (behind @ states).reshape(p, m, -1).transpose(2, 0, 1)
    return out.reshape(*angles.shape, p, m)


def _substitute_back(triangle: Complex, b: Complex, z: Complex) -> Complex:
    """Solve (zI - T) x = b for each column of b and each z, as (n, columns · z)."""
    n, m = b.shape
    x = np.empty((n, m * len(z)), np.complex128)
    for i in reversed(range(n)):
        known = (triangle[i, i + 1 :] @ x[i + 1 :]).reshape(m, len(z))
        x[i] = ((b[i][:, None] + known) / (z - triangle[i, i])).ravel()
    return x
