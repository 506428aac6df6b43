"""State spaces x⁺ = A x + B u, y = C x: their responses, Gramians and balanced coordinates, without differences."""

from __future__ import annotations

import numpy as np
from scipy import linalg

from dpfast._support.validation import Array, Complex

_MOST_DOUBLINGS = 64  # a pole that numbers tell from the circle takes no more
_DIVERGED = 1e100  # powers of a stable system may grow before they fall, but not so far
_MOST_NUMBERS = 2**17  # at once, of states at angles, so that they stay in the processor's cache


def gramian_root(a: Array, b: Array) -> Array:
    """Return R with RᵀR = Σ Aᵏ B Bᵀ Aᵏᵀ, the reachability Gramian and covariance of a state, by doubling.

    There are no differences, so no digits are lost.

    Raises
    ------
    numpy.linalg.LinAlgError
        Where the system is not stable.
    """
    if len(a) == 0:
        return a
    root, power = _triangle(b.T) if b.shape[1] > len(a) else b.T, a
    for _ in range(_MOST_DOUBLINGS):
        size = np.linalg.norm(power)
        if size <= 1e-20:
            return np.vstack([root, np.zeros((len(a) - len(root), len(a)))])
        if size > _DIVERGED:
            break
        root = _triangle(np.vstack([root, root @ power.T]))
        power = power @ power
    raise np.linalg.LinAlgError("the system is not stable: its powers have no sum")


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
    eigenvectors; and all angles share them, where elimination would take the cube of the states at each. A delay line
    at the end is read as taps behind what it sees.
    """
    (p, m), angles, n = d.shape, np.asarray(omega, dtype=np.float64), _count_recursive(a)
    out = np.empty((angles.size, p, m), np.complex128)
    out[...] = d
    triangle, before, turn = _schur_coordinates(a[:n, :n], b[:n])
    behind, seen = c[:, :n] @ turn, np.hstack([a[n:, :n] @ turn, b[n:]])
    taps = _late_taps(a[n:, n:], seen, c[:, n:])
    size = max(1, _MOST_NUMBERS // max(n * m, len(taps), 1))
    for first in range(0, angles.size, size):
        z = np.exp(1j * angles.ravel()[first : first + size])
        states = _substitute_back(triangle, before, z).reshape(n, m, len(z)).transpose(2, 0, 1)
        late = np.tensordot(z[:, None] ** -np.arange(1.0, len(taps) + 1), taps, axes=1)
        out[first : first + size] += (behind + late[:, :, :n]) @ states + late[:, :, n:]
    return out.reshape(*angles.shape, p, m)


def _count_recursive(a: Array) -> int:
    """Return how many states there are before a delay line, which passes values on as they are; else all.

    Only there are taps no sums, which could grow and cancel.
    """
    first = 1 + int(np.flatnonzero(np.triu(a).any(axis=0)).max(initial=-1))
    line = a[first:, first:]
    each = [np.count_nonzero(line, axis=axis).max(initial=0) for axis in (0, 1)]
    return first if max(each) <= 1 and bool(np.isin(line, (0, 1)).all()) else len(a)


def _schur_coordinates(a: Array, b: Array) -> tuple[Complex, Complex, Complex]:
    """Return T and T'B of a triangle T = T'A T'⁻¹, and T'⁻¹."""
    if len(a) == 0:
        return a.astype(np.complex128), b.astype(np.complex128), a.astype(np.complex128)
    balanced, (scale, order) = linalg.matrix_balance(a, separate=True)  # states of very different sizes
    triangle, turn = linalg.schur(balanced.astype(np.complex128), output="complex")
    return triangle, turn.conj().T @ (b[order] / scale[:, None]), (scale[:, None] * turn)[np.argsort(order)]


def _late_taps(a: Array, b: Complex, c: Array) -> Complex:
    """Return C AᵏB, k = 0, 1, ..., until Aᵏ is zero, as A is that of a delay line: (taps, p, inputs)."""
    rows, later = [], c
    while later.any():
        rows.append(later)
        later = later @ a
    found = np.reshape(rows, (len(rows) * len(c), len(a))) @ b
    return np.asarray(found.reshape(len(rows), len(c), b.shape[1]), dtype=np.complex128)


def _substitute_back(triangle: Complex, b: Complex, z: Complex) -> Complex:
    """Solve (zI - T) x = b for each column of b and each z, as (n, columns · z)."""
    n, m = b.shape
    x = np.empty((n, m * len(z)), np.complex128)
    for i in reversed(range(n)):
        known = (triangle[i, i + 1 :] @ x[i + 1 :]).reshape(m, len(z))
        x[i] = ((b[i][:, None] + known) / (z - triangle[i, i])).ravel()
    return x
