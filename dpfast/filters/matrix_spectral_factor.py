"""Minimum-phase factors of matrix spectra of real signals, by Wilson's iteration on the grids of FFTs."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np

from dpfast._support.errors import PaleyWienerError
from dpfast._support.validation import Array, Complex
from dpfast.filters.fft_grid import fft_angles, fft_length
from dpfast.filters.spectral_factor import minimum_phase

Side = Literal["left", "right"]
_LARGEST_GRID = 2**17  # of an FFT: 64 MB for a spectrum of 8 channels
_MOST_STEPS = 100  # far from the factor a step halves the error: from singular to rounding it takes half as many
_QUADRATIC = 1e-6  # a residual from which a step squares the error, if it is not rounding
_ROUNDING = 1e-15
_DECAYED = 1e-13  # the end of an impulse response, relative
_NOISE = 1e-9  # below it an end that does not shrink on a finer grid is rounding
_USELESS = 1e-6  # an end that is too long for the largest grid
_SINGULAR = 1e-13  # of the power of the channels: an eigenvalue that is rounding


class MatrixFactor(NamedTuple):
    """A minimum-phase factor of a matrix spectrum, at the n/2 + 1 angles of an FFT of length n.

    Attributes
    ----------
    factor : array of complex, (angles, n, n)
        Q, causal, as is its inverse. Its first tap, Q at z = ∞, is triangular with a positive diagonal: lower where
        W = Q Q*, upper where W = Q* Q. No other factor is minimum-phase and has that.
    residual : float
        The largest entry of the difference between W and the product, beside the power of its two channels there.
    tail : float
        The largest tap that is not among the first quarter of the grid, where a causal factor that has decayed has
        none, beside the largest of its channel: what the grid cuts off.
    """

    factor: Complex
    residual: float
    tail: float

    def taps(self) -> Array:
        """Return the impulse response (length of the grid, n, n)."""
        return np.fft.irfft(self.factor, axis=0)


def matrix_minimum_phase(spectrum: Complex, *, side: Side = "left", start: Complex | None = None) -> MatrixFactor:
    r"""Factor a spectrum that is given on the grid of an FFT.

    Each channel is first divided by its own cepstral factor, which leaves a spectrum with ones on its diagonal: so
    diagonal spectra and those of one channel are done, and scales of channels do not matter. The rest is Wilson's
    iteration (SIAM J. Appl. Math. 23, 1972, 420-426), Newton's method for W = Q Q*,

    .. math:: Q ← Q\,[Q^{-1} W Q^{-*} + I]_+,

    with the causal part [·]₊, of which the term at zero counts half.

    Parameters
    ----------
    spectrum : array of complex, (angles, n, n)
        W, Hermitian and positive definite, at the angles of :func:`fft_angles`; on the other half of the circle it is
        its conjugate.
    side : {"left", "right"}
        Which factor: "left" for W = Q Q*, as the innovations of a signal with spectrum W; "right" for W = Q* Q, as a
        prefilter of a given gain.
    start : array of complex, (angles, n, n), optional
        The factor of a spectrum nearby, of the same side: from there the iteration takes fewer steps.

    Raises
    ------
    PaleyWienerError
        Where the spectrum is singular, or negative, at an angle of the grid, or so near to it that the iteration fails.
    """
    if side == "right":  # Wᵀ = Q Q* is W = Qᵀ* Qᵀ
        turned = None if start is None else np.swapaxes(start, 1, 2)
        found = matrix_minimum_phase(np.swapaxes(spectrum, 1, 2), start=turned)
        return found._replace(factor=np.swapaxes(found.factor, 1, 2))
    _check_definite(spectrum)
    diagonal = np.einsum("wii->iw", spectrum).real
    scales = np.stack([minimum_phase(power) for power in diagonal], axis=1)
    scaled = spectrum / (scales[:, :, None] * scales[:, None, :].conj())
    q = _iterate(scaled, _constant_root(scaled) if start is None else start / scales[:, :, None])
    residual = float(np.abs(scaled - q @ _adjoint(q)).max())
    factor = _make_triangular(scales[:, :, None] * q)
    return MatrixFactor(factor, residual, _tail(factor))


def matrix_spectral_factor(
    spectrum: Callable[[Array], Complex], slowest: float, *, side: Side = "left"
) -> MatrixFactor:
    """Factor a spectrum on a grid that is doubled until the impulse response of the factor has decayed to rounding.

    Parameters
    ----------
    spectrum : callable
        The spectrum (angles, n, n) at given angles (angles,).
    slowest : float
        Modulus of the pole of the spectrum that is nearest to the circle; the grid starts from it.
    side : {"left", "right"}
        As for :func:`matrix_minimum_phase`.

    Raises
    ------
    PaleyWienerError
        Where the spectrum is singular at an angle, or so near to it that no grid holds the factor.
    """
    n, before = min(fft_length(slowest), _LARGEST_GRID), math.inf
    while True:
        found = matrix_minimum_phase(spectrum(fft_angles(n)), side=side)
        if found.tail <= _DECAYED or (found.tail < _NOISE and found.tail > before / 2):
            return found
        if n >= _LARGEST_GRID:
            break
        n, before = 2 * n, found.tail
    if found.tail > _USELESS:
        raise PaleyWienerError(
            "spectrum must be positive definite on the circle, and is so nearly singular that its factor does not "
            f"decay within {n} samples: add a little white noise to every channel"
        )
    return found


def _tail(factor: Complex) -> float:
    taps = np.abs(np.fft.irfft(factor, axis=0)).max(axis=2)
    return float((taps[len(taps) // 4 :].max(axis=0) / taps.max(axis=0)).max())


def _adjoint(x: Complex) -> Complex:
    return np.swapaxes(x, -1, -2).conj()


def _check_definite(spectrum: Complex) -> None:
    """Refuse what has an eigenvalue that is not positive, beside the powers of the channels."""
    power = np.einsum("wii->wi", spectrum).real
    if (power > 0).all():
        root = np.sqrt(power)
        smallest = np.linalg.eigvalsh(spectrum / (root[:, :, None] * root[:, None, :]))[:, 0]
    else:
        smallest = power.min(axis=1) / max(float(power.max()), np.finfo(float).tiny)
    worst = int(np.argmin(smallest))
    if not smallest[worst] > _SINGULAR:
        raise PaleyWienerError(
            "spectrum must be positive definite to have a minimum-phase factor, got the eigenvalue "
            f"{smallest[worst]:.2g} of its coherences at the angle {fft_angles(2 * (len(power) - 1))[worst]:.6g}: "
            "add a little white noise to every channel, or leave out a channel that others determine"
        )


def _constant_root(w: Complex) -> Complex:
    """Return the factor of a constant spectrum that has the same power."""
    return np.broadcast_to(np.linalg.cholesky(np.fft.irfft(w, axis=0)[0]), w.shape).astype(np.complex128)


def _iterate(w: Complex, q: Complex) -> Complex:
    """Return Q with W = Q Q* by Newton steps from a minimum-phase one."""
    identity = np.eye(w.shape[1])
    before = math.inf
    for _ in range(_MOST_STEPS):
        inverse: Complex = np.asarray(np.linalg.inv(q), dtype=np.complex128)
        ratio: Complex = np.asarray(inverse @ w @ _adjoint(inverse))
        error = float(np.abs(ratio - identity).max())
        if error <= _ROUNDING * len(identity) or (error < _QUADRATIC and error > before / 2):
            return q
        q, before = np.asarray(q @ (_causal_half(ratio) + identity / 2)), error
    raise PaleyWienerError(
        "spectrum must be positive definite on the circle, and is so nearly singular that its factor was not found in "
        f"{_MOST_STEPS} steps: add a little white noise to every channel, or take a finer grid"
    )


def _causal_half(x: Complex) -> Complex:
    """Return the causal part of a Hermitian function, of which its real part's double is the whole."""
    taps = np.fft.irfft(x, axis=0)
    n = len(taps)
    taps[0] /= 2
    taps[n // 2] /= 2
    taps[n // 2 + 1 :] = 0
    return np.asarray(np.fft.rfft(taps, axis=0))


def _make_triangular(q: Complex) -> Complex:
    """Turn the innovations so that the first tap is lower triangular with a positive diagonal."""
    first = np.fft.irfft(q, axis=0)[0]
    _, upper = np.linalg.qr(first.T)
    lower = upper.T * np.sign(np.diag(upper))
    return np.asarray(q @ np.linalg.solve(first, lower))
