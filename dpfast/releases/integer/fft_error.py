"""Errors behind long integer prefilters, on as many angles as an FFT gives at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dpfast._support.validation import Array, Complex
from dpfast.design.wiener import cut_off_energy
from dpfast.filters.fft_grid import circle_mean, fft_angles, fft_length
from dpfast.filters.filter import Filter
from dpfast.filters.spectral_factor import minimum_phase
from dpfast.mechanisms.mechanism import Mechanism
from dpfast.mechanisms.receivers.base import LinearMap, Receiver
from dpfast.mechanisms.steady_error import linear_mse, worst_errors
from dpfast.signals.model import Model

LONG = 1024  # taps, beyond which quadrature takes long
_DECAY = 24.0  # of the slowest mode over the period, in nepers: errors are right to about 1e-10
_ANGLES_PER_TAP = 8


class FftCircle(NamedTuple):
    """The angles of an FFT of length n, with a target and a signal at each of them."""

    n: int
    omega: Array
    target: Complex
    psd: Array | None

    @classmethod
    def of(cls, target: Filter, model: Model | None = None, n_taps: int = 1, least: int = 1) -> FftCircle:
        """Take angles that are fine enough for the slowest poles and for so many taps, of at least a given length."""
        poles = target.poles if model is None else np.concatenate([target.poles, model.shaping.poles])
        n = fft_length(float(np.abs(poles).max(initial=0.0)), decay=_DECAY)
        n = max(n, least, 1 << (_ANGLES_PER_TAP * max(n_taps, len(target.b)) - 1).bit_length())
        omega = fft_angles(n)
        return cls(n, omega, target.response(omega), None if model is None else model.psd(omega))

    def mean(self, values: Array) -> float:
        """Return the mean over all frequencies."""
        return float(circle_mean(values))

    def mse(self, taps: Array, noise_std: float, receiver: LinearMap, worst: float | None) -> float:
        """Return the error of a linear receiver behind these taps, or its worst for a given mean square."""
        h = receiver.response_on_circle(self.n)
        wanted = self.target * np.exp(-1j * (receiver.lag or 0) * self.omega)
        distortion = np.abs(wanted - h * np.fft.rfft(taps, self.n)) ** 2
        noise = noise_std**2 * self.mean(np.abs(h) ** 2)
        if worst is not None:
            return noise + worst * float(distortion.max())
        assert self.psd is not None
        return noise + self.mean(self.psd * distortion)

    def best_mse(self, taps: Array, noise_std: float, lag: int | None) -> float:
        """Return the error of the best linear receiver of a lag behind these taps; without a model, of zero forcing."""
        g, noise = np.fft.rfft(taps, self.n), noise_std**2
        if self.psd is None:
            with np.errstate(divide="ignore", invalid="ignore"):  # zeros on the circle: not good enough
                return noise * self.mean(np.abs(self.target) ** 2 / np.abs(g) ** 2)
        smoother = self.mean(self.psd * np.abs(self.target) ** 2 * noise / (self.psd * np.abs(g) ** 2 + noise))
        if lag is None:
            return smoother
        q = minimum_phase(self.psd * np.abs(g) ** 2 + noise)
        return smoother + cut_off_energy(self.psd, self.target, g, q, lag)


def predicted_mse(mechanism: Mechanism, prefilter: Filter, noise_std: float, receiver: Receiver) -> float | None:
    """Return the stationary error of what runs, as that of a mechanism; None where only simulation tells."""
    target, model, worst = mechanism.target, mechanism.model, mechanism.mean_square
    linear = receiver.as_linear()
    if linear is None:
        return None
    if worst is None and model is None:
        circle = FftCircle.of(target)
        return noise_std**2 * circle.mean(np.abs(linear.response_on_circle(circle.n)) ** 2)
    if len(prefilter.b) > LONG:
        return FftCircle.of(target, model, len(prefilter.b)).mse(prefilter.b, noise_std, linear, worst)
    if worst is not None:
        return sum(worst_errors(target, worst, prefilter, noise_std, linear))
    assert model is not None
    return linear_mse(target, model, prefilter, noise_std, linear)
