"""Wiener receivers: the least mean square error behind a given prefilter."""

from __future__ import annotations

import math

import numpy as np

from dpfast._validate import Array
from dpfast.design.prefilter import Problem
from dpfast.filters import MAX_SECTION_POLES, Filter, ratio
from dpfast.mechanism import LinearReceiver, Smoother
from dpfast.models import Model
from dpfast.quadrature import Grid
from dpfast.spectra import Spectrum, causal_energy, factor_polynomial, fft_angles, minimum_phase, sum_zeros


def wiener(
    target: Filter, model: Model, prefilter: Filter, noise_std: float, lag: int | None
) -> LinearReceiver | Smoother:
    r"""The receiver with the least mean square error, as an exact rational filter.

    With Ω = N_u/D_u the shaping filter, G = N_g/D_g, F = N_f/D_f, and q the minimum-phase polynomial of
    |q|² = |N_u N_g|² + σ²|D_u D_g|²: the smoother is A(z) B(1/z) with A = F D_g N_u/q and B = N_u N_g/q; that of a lag
    is H = D_g R/(q D_f), R a polynomial of about `lag` taps.
    """
    shaping = model.shaping
    q = _innovations_numerator(shaping, prefilter, noise_std)
    backward = ratio((shaping.numerator, prefilter.numerator), (q,))
    if lag is None:
        forward = ratio((target.numerator, shaping.numerator, prefilter.denominator), (q, target.denominator))
        return Smoother(forward, backward, target, model.mean)
    taps = Filter(_causal_numerator(target, shaping, backward, lag))
    receiver = ratio((taps, prefilter.denominator), (q, target.denominator))
    return LinearReceiver(receiver, target, model.mean, lag)


def _innovations_numerator(shaping: Filter, prefilter: Filter, noise_std: float) -> Filter:
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


def _causal_numerator(target: Filter, shaping: Filter, backward: Filter, lag: int) -> Array:
    """R with [z^{-D} B(1/z) N_u N_f / (D_u D_f)]₊ = R / (D_u D_f).

    The two-sided numerator is fed to 1/(D_u D_f) up to time -1; what its state holds then is added to the rest.
    """
    from scipy import signal  # late: it takes half as long to import as all of dpfast

    b = backward.impulse(backward.settling_time(1e-18) + lag)
    numerator = np.convolve(b[::-1], np.convolve(shaping.b, target.b))
    start = lag - len(b) + 1  # time of the first sample
    numerator = np.concatenate([np.zeros(max(0, start)), numerator])
    before = max(0, -start)
    denominator = np.convolve(shaping.a, target.a)
    if len(denominator) == 1 or before == 0:  # scipy 1.17 returns another call's state for an empty input
        return numerator[before:]
    _, state = signal.lfilter([1.0], denominator, numerator[:before], zi=np.zeros(len(denominator) - 1))
    taps = numerator[before:]
    taps = np.pad(taps, (0, max(0, len(state) - len(taps))))
    taps[: len(state)] += state
    return taps


def wiener_mse(problem: Problem, shape: Spectrum, lag: int, n: int, grid: Grid) -> float:
    """MSE of the ideal Wiener receiver of a lag behind a minimum-phase G with |G|² ∝ shape.

    The smoother's MSE plus the energy of what the lag cuts off, both sums of positive terms.
    """
    x = shape(grid.omega)
    psd, gain = problem.psd(grid.omega), problem.gain(grid.omega)
    smoother = grid.mean(psd * gain**2 / (psd * x / (problem.cost * grid.mean(x)) + 1))
    omega = fft_angles(n)
    power, psd = shape(omega), problem.psd(omega)
    g = minimum_phase(power)
    q = minimum_phase(psd * power + problem.cost * grid.mean(x))
    return smoother + causal_energy(psd * problem.target.response(omega) * (g / q).conj(), lag)[1]
