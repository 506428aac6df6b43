"""Wiener receivers: the least mean square error behind a given prefilter."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.polynomial.polynomial import polyval
from numpy.typing import ArrayLike, NDArray
from scipy import linalg

from dpfast._support.errors import ToleranceWarning, UnstableFilterError, warn
from dpfast._support.validation import Array
from dpfast.design.prefilter.problem import move_zeros_off_circle
from dpfast.filters.filter import MAX_POLE_RADIUS, MAX_SECTION_POLES, Filter, ratio, run
from dpfast.filters.quadrature import graded_grid
from dpfast.filters.roots import in_pairs
from dpfast.filters.spectral_factor import (
    causal_energy,
    factor_polynomial,
    fft_angles,
    fft_length,
    minimum_phase,
    sum_zeros,
)
from dpfast.filters.state_space import balanced
from dpfast.mechanisms.receivers import LinearReceiver, Smoother
from dpfast.mechanisms.steady_error import linear_mse
from dpfast.signals.model import Model

Complex = NDArray[np.complex128]
_ACCURACY = 1e-10  # of a receiver, relative to its largest gain
_EXCESS = 1e-6  # of an MSE over the optimum: what is said
_OVERFLOW = 1e40  # a recursion whose poles rounding has moved outside
_NO_STATE = 1e-15
_FURTHER, _FURTHEST = 1.25, 1e-4  # steps in which zeros are moved off the circle, and how far
_LONGEST_PENCIL = 1000  # its zeros take the cube of that: some seconds
_INFINITE = 1e-13  # inverse of a zero that is none


def wiener_receiver(
    target: Filter, model: Model, prefilter: Filter, noise_std: float, lag: int | None
) -> LinearReceiver | Smoother:
    r"""The receiver with the least mean square error, as an exact rational filter.

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
    part = _causal_part(shaping * target, backward, lag)
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
    """The model, its zeros so far off the circle that 1/q is a filter, and q."""
    reachable, q = model, innovations_numerator(model.shaping, prefilter, noise_std)
    distance = 1 - MAX_POLE_RADIUS
    while np.abs(q.zeros).max(initial=0.0) > MAX_POLE_RADIUS and distance < _FURTHEST:
        distance *= _FURTHER
        reachable = move_zeros_off_circle(model, distance)
        q = innovations_numerator(reachable.shaping, prefilter, noise_std)
    return reachable, q


def innovations_numerator(shaping: Filter, prefilter: Filter, noise_std: float) -> Filter:
    """The FIR filter q: in sections, or as taps where it is long."""
    poles = np.concatenate([shaping.poles, prefilter.poles])
    degree = max(len(shaping.b) + len(prefilter.b), len(shaping.a) + len(prefilter.a)) - 2

    def spectrum(omega: Array) -> Array:
        return np.abs(shaping.response(omega) * prefilter.response(omega)) ** 2 + noise_std**2

    if degree > MAX_SECTION_POLES:
        return Filter(factor_polynomial(spectrum, poles, degree))
    lead = np.prod([np.trim_zeros(x.b, "f")[0] for x in (shaping, prefilter)])
    zeros = sum_zeros(np.concatenate([shaping.zeros, prefilter.zeros]), poles, (noise_std / lead) ** 2)
    q = Filter.from_zpk(zeros, np.zeros(len(zeros)), 1.0)
    middle = np.array(np.pi / 2)
    gain = math.sqrt(spectrum(middle)) * abs(np.prod(1 - poles * np.exp(-1j * middle)) / q.response(middle))
    return q * float(gain)


def _direct_numerator(signal: Filter, backward: Filter, lag: int) -> Filter:
    """R with [z^{-D} B(1/z) S(z)]₊ = R/D, as taps, D the denominator of S.

    The two-sided numerator is fed to 1/D up to time -1; what its state holds then is added to the rest.
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


class CausalPart(NamedTuple):
    """X = [z^{-D} B(1/z) S(z)]₊ = R/D by its samples x_0 ... x_T, and then C A^j ξ."""

    samples: Array
    a: Array
    b: Array
    c: Array
    state: Array  # ξ
    denominator: Filter

    def balance(self) -> CausalPart:
        """The same in coordinates in which a few slow poles close together keep their digits."""
        into, out = balanced(self.a, self.b, self.c[None], _NO_STATE)
        return self._replace(a=into @ self.a @ out, b=into @ self.b, c=self.c @ out, state=into @ self.state)

    def reduce(self, negligible: float) -> CausalPart:
        """X itself in the fewest states that change it by at most `negligible`, their poles the only ones of D."""
        scale = float(np.linalg.norm(self.c)) or 1.0  # so that the Hankel values sum to about one
        into, out = balanced(self.a, self.state[:, None], self.c[None] / scale, negligible / scale)
        a, state = into @ self.a @ out, into @ self.state
        poles = in_pairs(np.asarray(linalg.eigvals(a), dtype=np.complex128))
        poles *= np.minimum(1, MAX_POLE_RADIUS / np.maximum(np.abs(poles), MAX_POLE_RADIUS))  # rounding moves them
        denominator = Filter.from_zpk(poles, np.zeros(len(poles)), 1.0)
        return CausalPart(self.samples, a, state[:, None], self.c @ out, state, denominator)

    def filter(self) -> Filter:
        """R/D, by zeros and poles."""
        return ratio((self.numerator(),), (self.denominator,))

    def state_space(self) -> tuple[Array, Array, Array, float]:
        """A, B, C and D: the states are the last T inputs, and those that ξ begins."""
        last, n = len(self.samples) - 1, len(self.a)
        a, b = np.zeros((last + n, last + n)), np.zeros(last + n)
        a[:last, :last] = np.eye(last, k=-1)
        a[last:, last:] = self.a
        if last:
            a[last:, last - 1], b[0] = self.state, 1.0
        else:
            b[:] = self.state  # with no past inputs it is the input itself
        return a, b, np.concatenate([self.samples[1:], self.c]), float(self.samples[0])

    def numerator(self) -> Filter:
        """R by its zeros, those of a state space, where the coefficients would lose what roots in a cluster hold."""
        a, b, c, d = self.state_space()
        pencil = np.block([[a, b[:, None]], [c, d]])
        identity = np.diag(np.append(np.ones(len(a)), 0.0))
        above, below = linalg.eigvals(pencil, identity, homogeneous_eigvals=True)
        finite = np.abs(below) > _INFINITE * np.abs(above)
        zeros = in_pairs(above[finite] / below[finite])
        delay = np.append(np.zeros(len(a) - len(zeros)), 1.0)
        monic = Filter.from_zpk(zeros, np.zeros(len(zeros)), 1.0) * Filter(delay)
        loudest = fft_angles(1024)[np.argmax(np.abs(self.response(fft_angles(1024))))]
        gain = self.response(loudest) * self.denominator.response(loudest) / monic.response(loudest)
        return monic * float(gain.item().real)

    def response(self, omega: ArrayLike) -> Complex:
        """X at angles."""
        z = np.exp(1j * np.atleast_1d(omega))
        right = np.broadcast_to(self.state[:, None], (len(z), len(self.a), 1))
        later = np.linalg.solve(z[:, None, None] * np.eye(len(self.a)) - self.a, right)[:, :, 0] @ self.c
        return np.asarray(polyval(1 / z, self.samples) + later * z ** (1 - len(self.samples)))


def _causal_part(signal: Filter, backward: Filter, lag: int) -> CausalPart:
    """B and the taps of S are a two-sided sequence that runs through the rest of S: X is what comes from time 0 on."""
    taps, sections, recursion = signal.factors
    rest = Filter.from_factors(sections=sections, recursion=recursion)
    b = backward.impulse(backward.settling_time(1e-18) + lag)
    sequence = np.convolve(b[::-1], taps)
    start = lag - len(b) + 1  # its time; never after 0, as b is longer than the lag
    a, inputs, c, _ = rest.state_space()
    samples, state = run(rest, sequence)
    return CausalPart(samples[-start:], a, inputs, c[0], state, rest.denominator)


def _rounding_bound(part: CausalPart, rest: Filter) -> float:
    """Bound of the rounding of R's taps in H, relative to the largest value of H."""
    omega = graded_grid(rest.poles).omega
    size = np.abs(part.denominator.b).sum() * np.abs(part.samples).sum()
    gain = np.abs(rest.response(omega))
    loudest = gain * np.abs(part.response(omega) * part.denominator.response(omega))
    return float(np.finfo(float).eps * size * gain.max() / loudest.max())


def wiener_mse(target: Filter, model: Model, prefilter: Filter, noise_std: float, lag: int) -> float:
    """The least MSE of a lag behind a given prefilter, without its receiver, as :func:`wiener_mse`."""
    filters = (target, model.shaping, prefilter)
    poles = np.concatenate([x.poles for x in filters])
    grid = graded_grid(poles, degree=sum(len(x.b) for x in filters))
    psd, g = model.psd(grid.omega), prefilter.response(grid.omega)
    f = target.response(grid.omega)
    smoother = grid.mean(psd * np.abs(f) ** 2 * noise_std**2 / (psd * np.abs(g) ** 2 + noise_std**2))
    omega = fft_angles(fft_length(float(np.abs(poles).max(initial=0.0))))
    responses = target.response(omega), prefilter.response(omega)
    return smoother + cut_off_energy(model.psd(omega), *responses, noise_std**2, lag)


def cut_off_energy(psd: Array, f: Complex, g: Complex, noise: float, lag: int) -> float:
    """Energy of the smoother's response before the lag, in front of white innovations, at the angles of an FFT.

    What the MSE of the Wiener receiver of this lag is above that of the smoother.
    """
    q = minimum_phase(psd * np.abs(g) ** 2 + noise)
    return causal_energy(psd * f * (g / q).conj(), lag)[1]
