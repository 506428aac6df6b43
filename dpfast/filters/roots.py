"""All zeros of a function are found at once here, by Aberth's iteration."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dpfast._support.errors import DesignError
from dpfast._support.validation import Array, Complex

Newton = Callable[[Complex], tuple[Complex, Complex, Array]]

_MAX_ROUNDS = 300
_ROUNDING = 1e-15
_AT_ZERO = 1e-50  # a distance so short is none
_LARGEST_MATRIX = 2**22  # elements: what the differences of many zeros take in memory
_LONG = 32  # degree above which the n³ of a companion matrix is much
_SAMPLES = (8, 64)  # of a winding number, for each coefficient
_TURN = 0.7  # radians: starts off every axis of symmetry


def aberth(newton: Newton, start: Complex, *, mirrored: bool = False) -> Complex:
    """Find the zeros of a function, all at once: Newton's steps, each kept off the other zeros (Aberth 1973).

    Parameters
    ----------
    newton : callable
        z → (f, f', error of f by rounding), all up to a factor common to the three.
    start : array of complex
        As many different points as there are zeros; not symmetric about the real axis, or real pairs never part.
    mirrored : bool
        For every zero z inside the circle 1/z* is a zero too; those inside are found.

    Raises
    ------
    DesignError
        Where it does not converge.
    """
    z, left = start.copy(), np.arange(len(start))
    for _ in range(_MAX_ROUNDS):
        if len(left) == 0:
            return z
        value, slope, error = newton(z[left])
        below = slope - value * _repulsion(z, left, mirrored)
        step = np.divide(value, below, out=np.zeros_like(value), where=value != 0)
        z[left] -= step
        if mirrored:
            outside = np.abs(z) > 1
            z[outside] = 1 / z[outside].conj()
        left = left[(np.abs(value) > error) & (np.abs(step) > _ROUNDING * np.abs(z[left]) + _AT_ZERO)]
    raise DesignError(
        f"all {len(start)} zeros of a filter must be found, and {len(left)} were not: give a shorter filter, or one "
        "whose poles and zeros lie less close together"
    )


def _repulsion(z: Complex, which: NDArray[np.intp], mirrored: bool) -> Complex:
    """Sum 1/(z_i - z_j) over the other zeros, for some of them."""
    if not mirrored and len(z) > _LONG:
        return _long_repulsion(z, which)
    result = np.empty(len(which), dtype=np.complex128)
    for part in np.array_split(np.arange(len(which)), 1 + len(which) * len(z) // _LARGEST_MATRIX):
        own = z[which[part], None]
        apart = own - z
        apart[np.abs(apart) < _AT_ZERO] = np.inf
        result[part] = (1 / apart).sum(axis=1)
        if mirrored:
            result[part] += (z.conj() / (own * z.conj() - 1)).sum(axis=1)
    return result


def _long_repulsion(z: Complex, which: NDArray[np.intp]) -> Complex:
    """Sum the same compiled."""
    from dpfast._kernels import zero_search  # late: most filters need no compiler

    own = _side_by_side(z[which], zero_search.LANES)
    out = np.empty_like(own)
    zero_search.add_repulsion(own, np.stack([z.real, z.imag]), np.empty((zero_search.N_SUMS, zero_search.LANES)), out)
    return np.asarray((out[0] + 1j * out[1])[: len(which)])


def _side_by_side(z: Complex, lanes: int) -> Array:
    """Return real and imaginary parts, padded with zeros to a multiple of the lanes."""
    result = np.zeros((2, -(-len(z) // lanes) * lanes))
    result[0, : len(z)], result[1, : len(z)] = z.real, z.imag
    return result


def polynomial_roots(coefficients: Array) -> Complex:
    """Find the roots of Σ c_k z^(n-k), as :func:`numpy.roots`, in a second where that takes minutes.

    Long ones are conjugate to rounding only.
    """
    c = np.trim_zeros(np.asarray(coefficients, dtype=np.float64))
    n = len(c) - 1
    if n <= _LONG:
        return np.asarray(np.roots(coefficients), dtype=np.complex128)
    at_zero = np.zeros(len(np.trim_zeros(coefficients, "f")) - len(c), dtype=np.complex128)

    def newton(z: Complex) -> tuple[Complex, Complex, Array]:
        """Evaluate in powers of 1/z outside of the circle, where powers of z overflow."""
        value, slope, error = np.empty_like(z), np.empty_like(z), np.empty(len(z))
        outside = np.abs(z) > 1
        value[~outside], slope[~outside], error[~outside] = _horner(c, z[~outside])
        w = 1 / z[outside]
        value[outside], inner, error[outside] = _horner(c[::-1], w)
        slope[outside] = w * (n * value[outside] - w * inner)
        return value, slope, error

    return np.concatenate([aberth(newton, _newton_polygon(c[::-1])), at_zero])


def are_surely_inside(coefficients: Array, radius: float) -> bool:
    """Tell whether all roots of Σ c_k z^(n-k) surely have a modulus below the radius; if it is not sure, they may.

    By the winding number of Σ c_k z^-k on that circle, which is zero then. It is that of a polygon, if no sample is so
    near to zero that the curve could pass on the other side of it on its way to the next one: halfway it is no further
    off than its slope and a bound of its curvature allow.
    """
    c = np.asarray(coefficients, dtype=np.float64)
    times = np.arange(len(c), dtype=np.float64)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        c = c / np.abs(c).max() * radius**-times
    if not np.isfinite(c).all():
        return False
    total, curvature = float(np.abs(c).sum()), float((times**2 * np.abs(c)).sum())
    for samples in _SAMPLES:
        n = 1 << (samples * len(c)).bit_length()
        values, slopes = np.fft.rfft(c, n), np.fft.rfft(times * c, n)
        half = np.pi / n
        reach = half * np.abs(slopes) + half**2 / 2 * curvature + _ROUNDING * n.bit_length() * total
        if (np.abs(values) > reach).all():
            turned = np.angle(values[1:] / values[:-1]).sum()  # over half of the circle; the other one is conjugate
            return bool(abs(turned) < np.pi / 2)
    return False


def multiply_roots(roots: Complex) -> Array:
    """Multiply Π(1 - root z⁻¹) out, the roots in the disk and closed under conjugation.

    Many are multiplied on the circle: taken one after the other, partial products would grow beyond all bounds.
    """
    n = len(roots)
    if n <= _LONG:
        return np.atleast_1d(np.poly(roots)).real
    size = 1 << (2 * n).bit_length()
    z = np.exp(-2j * np.pi * np.arange(size // 2 + 1) / size)
    log = np.zeros(len(z), dtype=np.complex128)
    with np.errstate(divide="ignore"):  # a root on the grid: zero
        for root in roots:
            log += np.log(1 - root * z)
    return np.asarray(np.fft.irfft(np.exp(log))[: n + 1])


def _horner(c: Array, z: Complex) -> tuple[Complex, Complex, Array]:
    """Evaluate Σ c_k z^(n-k), its derivative, and a bound of its rounding."""
    from dpfast._kernels import zero_search  # late: most filters need no compiler

    points = _side_by_side(z, zero_search.LANES)
    own, out = np.concatenate([points, [np.hypot(*points)]]), np.empty((5, points.shape[1]))
    zero_search.evaluate(np.ascontiguousarray(c), own, np.empty((zero_search.N_SUMS, zero_search.LANES)), out)
    out = out[:, : len(z)]
    return out[0] + 1j * out[1], out[2] + 1j * out[3], _ROUNDING * len(c) * out[4]


def _newton_polygon(c: Array) -> Complex:
    """Place starts on circles about the origin, for ascending c: radii right in order of magnitude (Bini 1996)."""
    exponent = np.flatnonzero(c)
    height = np.log(np.abs(c[exponent]))
    hull: list[int] = []
    for i in range(len(exponent)):
        while len(hull) > 1 and _is_below(exponent, height, hull[-2], hull[-1], i):
            hull.pop()
        hull.append(i)
    circles = []
    for low, high in itertools.pairwise(hull):
        count = int(exponent[high] - exponent[low])
        radius = math.exp((height[low] - height[high]) / count)
        circles.append(radius * np.exp(1j * (2 * np.pi * np.arange(count) / count + _TURN * (low + 1))))
    return np.concatenate(circles)


def _is_below(x: NDArray[np.intp], y: Array, first: int, middle: int, last: int) -> bool:
    """Tell whether the middle point is not above the line through the other two."""
    rise, run = y[last] - y[first], x[last] - x[first]
    return bool((y[middle] - y[first]) * run <= rise * (x[middle] - x[first]))


def pair_roots(roots: Complex) -> Complex:
    """Make the roots of a real polynomial exactly real, or exactly conjugate."""
    rest, paired = roots[np.argsort(-np.abs(roots.imag), kind="stable")], []
    while len(rest):
        root, rest = complex(rest[0]), rest[1:]
        distance = np.abs(rest - root.conjugate())
        if len(rest) and distance.min() < 2 * abs(root.imag):
            partner = int(np.argmin(distance))
            half = (root + complex(rest[partner]).conjugate()) / 2
            rest = np.delete(rest, partner)
            paired += [half, half.conjugate()]
        else:
            paired.append(complex(root.real))
    return np.array(paired, dtype=np.complex128)
