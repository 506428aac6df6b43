"""Spectral factors: minimum-phase filters of a given spectrum; all spectra are even."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from dpfast._support.errors import PaleyWienerError
from dpfast._support.validation import Array, Complex
from dpfast.filters.fft_grid import MAX_FFT, fft_angles, fft_length
from dpfast.filters.roots import aberth, pair_roots

Spectrum = Callable[[Array], Array]
_DECAYED = 1e-13  # the end of a cepstrum, relative
_START = 0.3  # of its distance from the circle: where a zero starts beside a root
_ROUNDING = 1e-15
_TINY = 1e-60
_AT_THE_ORIGIN = 1e-30
_NOISE = 1e-9  # below it an end that does not shrink on a finer grid is rounding


def minimum_phase(spectrum: Array) -> Complex:
    """Compute the minimum-phase factor Q, |Q|² = spectrum, from and at the angles of :func:`fft_angles`.

    The cepstrum is folded; its first and its Nyquist bin count half. A spectrum with a zero on the grid has none.

    Raises
    ------
    PaleyWienerError
        Where the spectrum is not positive.
    """
    if not (spectrum > 0).all():
        raise PaleyWienerError(
            "a spectrum must be positive to have a minimum-phase factor, got "
            f"{np.count_nonzero(~(spectrum > 0))} of {len(spectrum)} values at or below zero: add a little white noise"
        )
    n = 2 * (len(spectrum) - 1)
    cepstrum = np.fft.irfft(np.log(spectrum), n)
    folded = np.zeros(n)
    folded[: n // 2 + 1] = cepstrum[: n // 2 + 1]
    folded[0] /= 2
    folded[n // 2] /= 2
    return np.exp(np.fft.rfft(folded))


def spectral_factor(spectrum: Spectrum, slowest: float) -> Complex:
    """Compute the minimum-phase factor on a grid that is doubled until the cepstrum has decayed.

    It decays to rounding at the least.

    Parameters
    ----------
    spectrum : callable
        The spectrum at given angles.
    slowest : float
        Modulus of the pole of the spectrum that is nearest to the circle; the grid starts from it.
    """
    n, before = fft_length(slowest), math.inf
    while True:
        values = spectrum(fft_angles(n))
        factor = minimum_phase(values)
        cepstrum = np.abs(np.fft.irfft(np.log(values), n)[: n // 2 + 1])
        tail = float(cepstrum[n // 4 :].max() / max(1.0, cepstrum.max()))
        if tail <= _DECAYED or (tail < _NOISE and tail > before / 2) or n >= MAX_FFT:
            return factor
        n, before = 2 * n, tail


def factor_polynomial(spectrum: Spectrum, poles: Complex, degree: int) -> Array:
    """Find the minimum-phase polynomial q with |q|² = spectrum · Π|1 - pole z⁻¹|², in powers of z⁻¹.

    Parameters
    ----------
    spectrum : callable
        Positive and rational.
    poles : array of complex
        Poles of the spectrum inside the circle.
    degree : int
        Degree of q, at least the number of poles.
    """
    factor = spectral_factor(spectrum, float(np.abs(poles).max(initial=0.0)))
    z = np.exp(-1j * fft_angles(2 * (len(factor) - 1)))
    return np.fft.irfft(factor * np.polynomial.polynomial.polyval(z, np.poly(poles).real))[: degree + 1]


def sum_zeros(a: ArrayLike, b: ArrayLike, weight: float) -> Complex:
    r"""Find the zeros inside the circle of Π|1 - a z⁻¹|² + weight · Π|1 - b z⁻¹|², as many as the longer list.

    By Aberth's simultaneous iteration on both products as they are given, never multiplied out: so the zeros are exact
    to rounding wherever the roots cluster. (The same from coefficients, or from a Riccati equation, loses all digits.)

    Parameters
    ----------
    a, b : array_like of complex
        Roots in conjugate pairs: of `a` anywhere, of `b` inside the circle.
    weight : float
        Above 0.
    """
    a, modulus = np.asarray(a, dtype=np.complex128), np.maximum(np.abs(a), 1)
    # reflected: beside 1/a* the factor 1 - a* z would lose all digits, and a root of both lists would not be seen
    a, weight = a / modulus / modulus, weight / float(np.prod(modulus)) ** 2
    degree = max(np.size(a), np.size(b))
    common, first, second = _split_common(_pad_roots(a, degree), _pad_roots(b, degree))
    n = len(first)
    start = second + _START * (1 - np.abs(second)) * np.exp(1j * np.arange(n))

    def newton(z: Complex) -> tuple[Complex, Complex, Array]:
        (value, slope), (other, other_slope) = _product(first, z), _product(second, z)
        error = _ROUNDING * n * (np.abs(value) + weight * np.abs(other))
        return value + weight * other, slope + weight * other_slope, error

    return pair_roots(np.concatenate([common, aberth(newton, start, mirrored=True)]))


def _pad_roots(roots: ArrayLike, degree: int) -> list[complex]:
    """Pad roots to the degree with roots at the origin, where they also go if they nearly are there."""
    every = np.append(roots, np.zeros(degree - np.size(roots))).astype(np.complex128)
    every[np.abs(every) < _AT_THE_ORIGIN] = 0
    return list(every)


def _split_common(a: list[complex], b: list[complex]) -> tuple[Complex, Complex, Complex]:
    """Split off what is in both lists: zeros of both are multiple ones of the sum, if several."""
    common, rest, other = [], [], list(b)
    for root in a:
        if root in other:
            other.remove(root)
            common.append(root)
        else:
            rest.append(root)
    both, first, second = (np.array(x, dtype=np.complex128) for x in (common, rest, other))
    return both, first, second


def _product(roots: Complex, z: Complex) -> tuple[Complex, Complex]:
    """Evaluate Π(z - root)(1 - root* z) and its derivative."""
    inside, outside = z[:, None] - roots, 1 - roots.conj() * z[:, None]
    inside[np.abs(inside) < _TINY] = outside[np.abs(outside) < _TINY] = _TINY
    value = np.prod(inside * outside, axis=1)
    return value, value * (1 / inside - roots.conj() / outside).sum(axis=1)
