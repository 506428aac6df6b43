"""Polynomials in z⁻¹ and cascades of second-order sections: how they are made, their roots and their values."""

from __future__ import annotations

import functools

import numpy as np
from numpy.typing import ArrayLike

from dpfast._support.validation import Array, Complex
from dpfast.filters.pairing import pair_roots
from dpfast.filters.roots import polynomial_roots


def make_sections(zeros: ArrayLike, poles: ArrayLike, gain: float) -> Array:
    """Make sections of gain · Π(1 - zero z⁻¹) / Π(1 - pole z⁻¹), nearest poles and zeros paired."""
    if np.size(zeros) == 0 and np.size(poles) == 0:
        return np.array([[gain, 0, 0, 1, 0, 0]])[: int(gain != 1)]
    return pair_roots(zeros, poles, gain)


def trim(x: Array) -> Array:
    """Cut trailing zeros off; one coefficient stays at the least."""
    return np.trim_zeros(x, "b") if x.any() else x[:1]


def section_roots(polynomials: Array) -> Complex:
    """Find the roots in the z plane of every row, a polynomial in z⁻¹; those at zero are left out."""
    roots = [np.roots(trim(row)) for row in polynomials]
    return np.concatenate([*roots, np.empty(0)]).astype(np.complex128)


def factor_roots(rows: Array, long: Array) -> Complex:
    """Find the roots of every row and of a long polynomial, each in z⁻¹; those at zero are left out."""
    monic = trim(long / long[0]) if len(long) and long[0] else np.ones(1)
    return np.concatenate([section_roots(rows), _long_roots(monic.tobytes())])


@functools.lru_cache(maxsize=32)
def _long_roots(monic: bytes) -> Complex:
    """Find the roots of a polynomial, and keep them: products of filters share the long ones."""
    return polynomial_roots(np.frombuffer(monic))


def cascade_response(sections: Array, z: Complex) -> Complex:
    """Evaluate the product of all sections, where `z` holds the values of z⁻¹."""
    result = np.ones_like(z)
    for row in sections:
        result = result * _quadratic(row[:3], z) / _quadratic(row[3:], z)
    return result


def _quadratic(c: Array, z: Complex) -> Complex:
    """Evaluate c0 + c1 z + c2 z², exact in what cancels near z = ±1, where slow poles are."""
    sign = np.where(z.real >= 0, 1.0, -1.0)
    at_one = (c[0] + sign * c[1]) + c[2]
    step = z - sign  # z = sign + step, and step is small where it matters
    step = step.real + 1j * step.imag
    return np.asarray(at_one + step * (c[1] + c[2] * (2 * sign + step)))
