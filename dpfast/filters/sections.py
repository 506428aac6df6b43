"""Polynomials in z⁻¹ and cascades of second-order sections: how they are made, their roots and their values."""

from __future__ import annotations

import functools
import math

import numpy as np
from numpy.polynomial.polynomial import polyval
from numpy.typing import ArrayLike

from dpfast._support.validation import Array, Complex
from dpfast.filters.pairing import pair_roots
from dpfast.filters.roots import polynomial_roots

_ONE = np.ones(1)
_IN_CACHE = 4096  # points
_LONG = 128  # coefficients, from which on a product of matrices is worth while


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


def rational_response(taps: Array, sections: Array, recursion: Array, z: Complex) -> Complex:
    """Evaluate taps / recursion times the product of all sections, where `z` holds the values of z⁻¹.

    It goes by blocks of points that stay in the cache, which takes a seventh of the time for a million points.
    """
    points = z.ravel()
    result = np.empty_like(points)
    for start in range(0, len(points), _IN_CACHE):
        some = points[start : start + _IN_CACHE]
        block = _multiply_sections(sections, some)
        if len(taps) > 1 or len(recursion) > 1:
            block = _evaluate(taps, some) / _evaluate(recursion, some) * block
        elif taps[0] != recursion[0]:
            block *= taps[0] / recursion[0]
        result[start : start + _IN_CACHE] = block
    return result.reshape(z.shape)


def cascade_response(sections: Array, z: Complex) -> Complex:
    """Evaluate the product of all sections, where `z` holds the values of z⁻¹."""
    return rational_response(_ONE, sections, _ONE, z)


def _evaluate(c: Array, z: Complex) -> Complex:
    """Evaluate c0 + c1 z + c2 z² + …, many coefficients in a quarter of the time of Horner's rule.

    Then that rule runs in a power of z, with polynomials in z for coefficients, all of them by one product of matrices.
    """
    if len(c) < _LONG:
        return np.asarray(polyval(z, c))
    width = math.isqrt(len(c) - 1) + 1
    rows = np.zeros((-(-len(c) // width), width))
    rows.ravel()[: len(c)] = c
    z_powers = powers(z, width + 1)
    parts = (rows @ z_powers[:-1].view(np.float64)).view(np.complex128)
    return np.asarray(polyval(z_powers[-1], parts, tensor=False))


def powers(z: Complex, n: int) -> Complex:
    """Return z⁰ … zⁿ⁻¹ as rows, by products of two that are known: a sixteenth of the time of powers one by one."""
    rows = np.ones((n, len(z)), dtype=np.complex128)
    known, next_power = 1, z
    while known < n:
        more = min(known, n - known)
        np.multiply(rows[:more], next_power, out=rows[known : known + more])
        known, next_power = known + more, next_power * next_power
    return rows


def _multiply_sections(sections: Array, z: Complex) -> Complex:
    result = np.ones_like(z)
    sign = np.where(z.real >= 0, 1.0, -1.0)
    step = z - sign  # z = sign + step, and step is small where it matters
    for row in sections:
        for c, combine in ((row[:3], np.multiply), (row[3:], np.divide)):
            if c[0] != 1 or c[1:].any():
                combine(result, _quadratic(c, sign, step), out=result)
    return result


def _quadratic(c: Array, sign: Array, step: Complex) -> Complex:
    """Evaluate c0 + c1 z + c2 z² at z = sign + step, exact in what cancels near z = ±1, where slow poles are."""
    value = step * ((2 * sign + step) * c[2] + c[1])
    value += (c[0] + sign * c[1]) + c[2]
    return np.asarray(value)
