"""Second-order sections of roots: the poles nearest to the circle come last, each with the zeros nearest to it."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dpfast._support.validation import Array, Complex

_SAME = 100 * np.finfo(np.float64).eps  # relative: roots this near to being conjugates, or real, are it


def pair_roots(zeros: ArrayLike, poles: ArrayLike, gain: float) -> Array:
    """Return sections (n, 6) of gain · Π(1 - zero z⁻¹) / Π(1 - pole z⁻¹), those of :func:`scipy.signal.zpk2sos`.

    Importing that one takes half a second.
    """
    n = max(np.size(zeros), np.size(poles))
    n += n % 2  # so that the real ones come in pairs, too
    zeros_left, poles_left = (_one_of_each_pair(np.pad(np.ravel(x), (0, n - np.size(x)))) for x in (zeros, poles))
    sections = []
    while len(poles_left):
        pole, poles_left = _take(poles_left, np.abs(1 - np.abs(poles_left)))
        other = pole.conjugate()
        if pole.imag == 0:
            other, poles_left = _take(poles_left, np.abs(1 - np.abs(poles_left)), only_real=True)
        zero, zeros_left = _take(zeros_left, np.abs(zeros_left - pole))
        last = zero.conjugate()
        if zero.imag == 0:
            last, zeros_left = _take(zeros_left, np.abs(zeros_left - pole), only_real=True)
        sections.append([*_quadratic(zero, last), *_quadratic(pole, other)])
    found = np.array(sections[::-1])
    found[0, :3] *= gain
    return found


def _quadratic(x: complex, y: complex) -> tuple[float, float, float]:
    """Return the coefficients of (1 - x z⁻¹)(1 - y z⁻¹), which are real."""
    return 1.0, 0.0 - (x + y).real, (x * y).real + 0.0


def _take(roots: Complex, distances: Array, *, only_real: bool = False) -> tuple[complex, Complex]:
    """Return the root of the least distance, and the others."""
    i = np.argmin(np.where(roots.imag == 0, distances, np.inf) if only_real else distances)
    return complex(roots[i]), np.delete(roots, i)


def _one_of_each_pair(roots: Complex) -> Complex:
    """Return the upper ones of complex pairs, which are averaged, and the real ones, each kind in order."""
    ordered = roots[np.lexsort((np.abs(roots.imag), roots.real))].astype(np.complex128)
    real = np.abs(ordered.imag) <= _SAME * np.abs(ordered)
    upper, lower = ordered[~real & (ordered.imag > 0)], ordered[~real & (ordered.imag < 0)].conj()
    if len(upper) == len(lower):
        upper, lower = _within_runs(upper), _within_runs(lower)
        if np.all(np.abs(upper - lower) <= _SAME * np.abs(lower)):
            return np.concatenate([(upper + lower) / 2, ordered[real].real])
    raise ValueError("roots must be real or come in conjugate pairs, got one without its conjugate: give both")


def _within_runs(roots: Complex) -> Complex:
    """Order roots of nearly the same real part, which rounding has mixed up, by their imaginary parts."""
    starts = np.diff(roots.real, prepend=-np.inf) > _SAME * np.abs(np.roll(roots, 1))
    return roots[np.lexsort((np.abs(roots.imag), np.cumsum(starts)))]
