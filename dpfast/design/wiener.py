"""Wiener receivers, which have the least mean square error behind a given prefilter."""

from __future__ import annotations

import math

import numpy as np

from dpfast._support.errors import DesignError, ToleranceWarning, UnstableFilterError, warn
from dpfast._support.validation import Array, Complex
from dpfast.design.causal_part import CausalPart, causal_energy, causal_part
from dpfast.design.prefilter.canonical_factor import move_zeros_off_circle
from dpfast.filters.fft_grid import circle_mean, circle_response, fft_angles
from dpfast.filters.filter import MAX_POLE_RADIUS, MAX_SECTION_POLES, Filter, ratio
from dpfast.filters.quadrature import graded_grid
from dpfast.filters.spectral_factor import factor_polynomial, spectral_factor, sum_zeros
from dpfast.mechanisms.receivers.linear import LinearReceiver
from dpfast.mechanisms.receivers.smoother import Smoother
from dpfast.mechanisms.steady_error import linear_mse
from dpfast.signals.model import Model

_ACCURACY = 1e-10  # of a receiver, relative to its largest gain
_EXCESS = 1e-6  # of an MSE over the optimum: a larger one is warned of
_OVERFLOW = 1e40  # a recursion whose poles rounding has moved outside
_FURTHER, _FURTHEST = 1.25, 1e-4  # steps in which zeros are moved off the circle, and how far
_MOST_ZEROS, _SAME_SPECTRUM, _ANGLES = 400, 1e-8, 2**13  # of a factor; and it is none that is farther off at an angle
_LONGEST_PENCIL = 1000  # its zeros take the cube of that: some seconds


def wiener_receiver(
    target: Filter, model: Model, prefilter: Filter, noise_std: float, lag: int | None
) -> LinearReceiver | Smoother:
    r"""Return the receiver with the least mean square error behind a prefilter, as an exact rational filter.

    With Ω = N_u/D_u the shaping filter, G = N_g/D_g, F = N_f/D_f, and q the minimum-phase polynomial of
    |q|² = |N_u N_g|² + σ²|D_u D_g|²: the smoother is A(z) B(1/z) with A = F D_g N_u/q and B = N_u N_g/q; that of a lag
    is H = D_g R/(q D_f), R a polynomial of about `lag` taps, or in sections where these would be inaccurate.

    A zero of the spectrum on the circle, in front of little noise, takes a pole of H nearer to the circle than a
    filter's may be. The receiver is then that of a spectrum with its zeros a little further off, which costs some 1e-5
    of the MSE for every zero.
    """
    try:
        reachable, q = _reachable_spectrum(model, prefilter, noise_std)
        return _most_accurate_receiver(target, reachable, prefilter, noise_std, lag, q)
    except UnstableFilterError as error:
        raise UnstableFilterError(
            f"the Wiener receiver of this prefilter is too slow: {error}; keep zeros of the prefilter and of the "
            "spectrum further off the circle, or take more noise"
        ) from error


def _most_accurate_receiver(
    target: Filter, model: Model, prefilter: Filter, noise_std: float, lag: int | None, q: Filter
) -> LinearReceiver | Smoother:
    shaping = model.shaping
    backward = ratio((shaping.numerator, prefilter.numerator), (q,))
    if lag is None:
        forward = ratio((target.numerator, shaping.numerator, prefilter.denominator), (q, target.denominator))
        return Smoother(forward, backward, target, model.mean)
    part = causal_part(shaping * target, backward, lag)
    rest = ratio((prefilter.denominator,), (q, target.denominator))
    forms = [_direct_numerator(shaping * target, backward, lag)]
    doubtful = _rounding_bound(part, rest) > _ACCURACY
    if doubtful and len(part.samples) <= _LONGEST_PENCIL:
        forms += [part.numerator(), part.balance().numerator()]
    filters = [ratio((x, prefilter.denominator), (q, target.denominator)) for x in forms]
    receivers = [LinearReceiver(x, target, model.mean, lag) for x in filters]
    if not doubtful:
        return receivers[0]
    errors = [linear_mse(target, model, prefilter, noise_std, x) for x in receivers]
    least = int(np.argmin(errors))
    excess = errors[least] / wiener_mse(target, model, prefilter, noise_std, lag) - 1
    if excess > _EXCESS:
        warn(
            f"the Wiener receiver of lag {lag} has an MSE {excess:.1e} (relative) above the optimum, as poles of "
            "target and signal cluster: merge them, or take the smoother",
            ToleranceWarning,
        )
    return receivers[least]


def _reachable_spectrum(model: Model, prefilter: Filter, noise_std: float) -> tuple[Model, Filter]:
    """Return q, and the model with its zeros moved so far off the circle that 1/q is a filter."""
    reachable, q = model, innovations_numerator(model.shaping, prefilter, noise_std)
    distance = 1 - MAX_POLE_RADIUS
    while np.abs(q.zeros).max(initial=0.0) > MAX_POLE_RADIUS and distance < _FURTHEST:
        distance *= _FURTHER
        reachable = move_zeros_off_circle(model, distance)
        q = innovations_numerator(reachable.shaping, prefilter, noise_std)
    return reachable, q


def innovations_numerator(shaping: Filter, prefilter: Filter, noise_std: float) -> Filter:
    """Return q, the spectral factor of |N_u N_g|² + σ²|D_u D_g|², in sections, or as taps where it is long.

    Where poles cluster q is small beside its taps, which tell nothing of it there: then it is in sections, too, but
    where its zeros are too many, or lie too close, to be found.
    """
    poles = np.concatenate([shaping.poles, prefilter.poles])
    degree = max(len(shaping.b) + len(prefilter.b), len(shaping.a) + len(prefilter.a)) - 2

    def spectrum(omega: Array) -> Array:
        return np.abs(shaping.response(omega) * prefilter.response(omega)) ** 2 + noise_std**2

    def in_sections() -> Filter:
        lead = np.prod([np.trim_zeros(x.b, "f")[0] for x in (shaping, prefilter)])
        zeros = sum_zeros(np.concatenate([shaping.zeros, prefilter.zeros]), poles, (noise_std / lead) ** 2)
        q = Filter.from_zpk(zeros, np.zeros(len(zeros)), 1.0)
        middle = np.array(np.pi / 2)
        gain = math.sqrt(spectrum(middle)) * abs(np.prod(1 - poles * np.exp(-1j * middle)) / q.response(middle))
        return q * float(gain)

    if degree <= MAX_SECTION_POLES:
        return in_sections()
    taps = Filter(factor_polynomial(spectrum, poles, degree))
    omega = fft_angles(_ANGLES)
    undone = taps.response(omega) / (shaping.denominator.response(omega) * prefilter.denominator.response(omega))
    if degree > _MOST_ZEROS or np.abs(np.abs(undone) ** 2 / spectrum(omega) - 1).max() <= _SAME_SPECTRUM:
        return taps
    try:
        return in_sections()
    except DesignError:
        return taps


def _direct_numerator(signal: Filter, backward: Filter, lag: int) -> Filter:
    """Return the taps of R with [z^{-D} B(1/z) S(z)]₊ = R/D, D the denominator of S.

    The two-sided numerator runs through 1/D up to time -1; what the state holds then is added to the rest.
    """
    from scipy.signal import lfilter  # late: it takes half as long to import as all of dpfast

    b = backward.impulse(backward.settling_time(1e-18) + lag)
    numerator = np.convolve(b[::-1], signal.b)
    before = len(b) - 1 - lag  # samples before time 0; never below it, as b is longer than the lag
    taps, denominator = numerator[before:], signal.a
    if len(denominator) == 1 or before == 0:  # scipy 1.17 returns another call's state for an empty input
        return Filter(taps)
    _, state = lfilter([1.0], denominator, numerator[:before], zi=np.zeros(len(denominator) - 1))
    taps = np.pad(taps, (0, max(0, len(state) - len(taps))))
    taps[: len(state)] += state
    return Filter(taps) if np.abs(taps).max() < _OVERFLOW else Filter([0.0])


def _rounding_bound(part: CausalPart, rest: Filter) -> float:
    """Bound what the rounding of the taps of R does to H, relative to the H-infinity norm of H."""
    omega = graded_grid(rest.poles).omega
    size = np.abs(part.denominator.b).sum() * np.abs(part.samples).sum()
    gain = np.abs(rest.response(omega))
    loudest = gain * np.abs(part.response(omega) * part.denominator.response(omega))
    return float(np.finfo(float).eps * size * gain.max() / loudest.max())


def wiener_mse(target: Filter, model: Model, prefilter: Filter, noise_std: float, lag: int) -> float:
    """Return the MSE of the Wiener receiver of a lag behind a given prefilter, without designing the receiver."""
    q = innovations_factor(model, prefilter, noise_std, float(np.abs(target.poles).max(initial=0.0)))
    n = 2 * (len(q) - 1)
    psd, f, g = model.psd(fft_angles(n)), circle_response(target, n), circle_response(prefilter, n)
    smoother = float(circle_mean(psd * np.abs(f) ** 2 * (noise_std / np.abs(q)) ** 2))
    return smoother + cut_off_energy(psd, f, g, q, lag)


def innovations_factor(model: Model, prefilter: Filter, noise_std: float, slowest: float = 0.0) -> Complex:
    """Return the spectral factor of v at the angles of an FFT that resolves it, and poles as slow as are given.

    It takes more of them where, in front of little noise, zeros of the spectrum are nearer to the circle than poles.
    """
    poles = np.concatenate([model.shaping.poles, prefilter.poles])

    def spectrum(omega: Array) -> Array:
        n = 2 * (len(omega) - 1)
        return np.asarray(model.psd(omega) * np.abs(circle_response(prefilter, n)) ** 2 + noise_std**2)

    return spectral_factor(spectrum, max(slowest, float(np.abs(poles).max(initial=0.0))))


def cut_off_energy(psd: Array, f: Complex, g: Complex, q: Complex, lag: int) -> float:
    """Return by how much the MSE of the Wiener receiver of a lag is above that of the smoother.

    That is the energy of the smoother's response before the lag, in front of white innovations. All spectra, responses
    and the factor q of the innovations are given at the angles of an FFT.
    """
    return causal_energy(psd * f * (g / q).conj(), lag)[1]
