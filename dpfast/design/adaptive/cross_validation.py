r"""The error of receivers, estimated from privatized signals alone, and from those that they were not designed for.

E|z^{-D} F u - H v|² = <P_u |F|²> + <P_v |H|²> - 2 Re<H* z^{-D} (F/G) (P_v - σ²)> is, but for what is the same for all
receivers, linear in P_v, so the periodogram of v estimates it without bias and without a model. Where G lets so
little through that F/G would be all noise, a fitted spectrum stands in.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dpfast._support.validation import Array, Complex
from dpfast.design.adaptive.input_spectrum import Fit, Periodogram, Whittle, expected_periodogram, join_periodograms
from dpfast.filters.fft_grid import fft_length
from dpfast.filters.filter import Filter
from dpfast.filters.warped_circle import make_circle
from dpfast.mechanisms.receivers.base import LinearMap
from dpfast.signals.arma import ARMA
from dpfast.signals.model import Model

N_PARTS = 5  # of v in time, each held out once
_SHORTEST = 50  # samples of a part
_TRANSIENT = 0.01  # of G's impulse response: what is left of it when v counts as stationary
_VISIBLE = 0.01  # of the noise: for signals below it a model's spectrum stands in
_FINER = 8  # steps of the circle an ordinate, at the least: responses settle within so many segments


def split_in_time(v: Array, prefilter: Filter, lag: int | None) -> tuple[Periodogram, ...]:
    """Return the periodograms of the parts of v behind the transient of G."""
    transient, least = prefilter.settling_time(_TRANSIENT), least_samples(prefilter, lag)
    if v.shape[0] == 0 or v.shape[1] < least:
        raise ValueError(
            f"v must have at least {least} samples in time, got shape {v.shape} (streams, time): {transient} until the "
            f"prefilter has settled, and {N_PARTS} parts of {(least - transient) // N_PARTS}"
        )
    if v.min() == v.max():
        raise ValueError("v must not be constant, as its noise is not: give the privatized signal")
    return Periodogram.from_parts(v[:, transient:], N_PARTS)


def least_samples(prefilter: Filter, lag: int | None) -> int:
    """Return how many samples in time v must have: the transient of G, and all parts."""
    return prefilter.settling_time(_TRANSIENT) + N_PARTS * max(_SHORTEST, 2 * (lag or 0))


class Channel:
    """The channel of v = G (u - mean) + n, on a circle whose steps are a fraction of those of periodograms.

    Parameters
    ----------
    target : Filter
        F, whose output should be published.
    prefilter : Filter
        G.
    noise_std : float
        σ.
    receiver : LinearMap
        The given one; its mean was subtracted from u.
    length : int
        Of a segment of v.
    """

    def __init__(self, target: Filter, prefilter: Filter, noise_std: float, receiver: LinearMap, length: int) -> None:
        slowest = max(float(np.abs(x.poles).max(initial=0.0)) for x in (target, prefilter, *receiver.filters()))
        self.step = max(_FINER, math.ceil(fft_length(slowest) / length))
        self.circle = make_circle(0.0, self.step * length)
        self.length, self.noise, self.lag, self.mean = length, noise_std**2, receiver.lag, receiver.mean
        omega = self.circle.grid.omega
        self.wanted = target.response(omega) * self.circle.z ** -(receiver.lag or 0)
        self.gain = prefilter.response(omega)
        self.given = Response(np.asarray(receiver.response(omega)), receiver.mean)
        self.smoothed = self.expected_ordinates(np.abs(self.gain) ** 2)

    @property
    def steady(self) -> float:
        """G(0), the gain of the prefilter for a constant input."""
        return float(self.gain[0].real)

    def expected_ordinates(self, spectrum: Array) -> Array:
        """Return the periodogram that is expected of a spectrum on the circle."""
        return expected_periodogram(spectrum, self.length)

    def likelihood(self, data: Periodogram) -> Whittle:
        """Return the likelihood of spectra of u, given a periodogram."""
        return Whittle(self.smoothed, self.noise, data)

    def log_likelihood(self, data: Periodogram, model: Model | None) -> float:
        """Return Whittle's ℓ of a model as it is, and of its mean, which moves that of v alone; None: no signal."""
        whittle = self.likelihood(data)
        if model is None:
            return whittle.signal_log_likelihood(np.zeros(self.length // 2 + 1))
        signal = self.expected_ordinates(model.psd(self.circle.grid.omega) * np.abs(self.gain) ** 2)
        off = data.mean - (model.mean - self.mean) * self.steady
        power = float(signal[0]) + self.noise
        return whittle.signal_log_likelihood(signal) - off**2 * data.n_segments * data.length / (2 * power)

    def power_at_zero(self, fit: Fit) -> float:
        """Return P_v(0) of a fit."""
        return (fit.innovation_std * self.steady / float(fit.a.sum())) ** 2 + self.noise

    def fitted_model(self, data: Periodogram, fit: Fit) -> ARMA:
        """Return the fitted spectrum as a model, its mean moved by what v says, less what chance alone would give.

        That is Stein's estimate, cut at zero: a mean that was right stays nearly so.
        """
        mean = self.mean
        if abs(data.mean * self.steady) > np.finfo(float).tiny:
            chance = self.power_at_zero(fit) / (data.n_segments * data.length * data.mean**2)
            mean += max(0.0, 1 - chance) * data.mean / self.steady
        return ARMA.from_shaping(fit.shaping, mean=mean, source="public", fitted_order=fit.order)

    def best_response(self, model: ARMA) -> Response:
        """Return the Wiener filter of the lag."""
        psd = model.psd(self.circle.grid.omega)
        power = psd * np.abs(self.gain) ** 2 + self.noise
        cross = psd * self.wanted * self.gain.conj()
        if self.lag is None:
            return Response(cross / power, model.mean)
        q = self.circle.outer_factor(power)
        return Response(self.circle.causal_part(cross / q.conj()) / q, model.mean)


class Response(NamedTuple):
    """H on the circle of a channel, and the mean that it takes u to have."""

    h: Complex
    mean: float


class Gain(NamedTuple):
    """MSE that another receiver saves on parts of v that it was not designed for, relative to that of the given one.

    Attributes
    ----------
    relative : float
    standard_error : float
        Asymptotic, as if v were Gaussian.
    predicted : float
        What the fits expect, each on the input as it has it.
    of_parts : tuple of float
        `relative` is their average.
    """

    relative: float
    standard_error: float
    predicted: float
    of_parts: tuple[float, ...]


def cross_validate(channel: Channel, parts: tuple[Periodogram, ...], fit: Fit) -> Gain:
    """Hold each part out once, from a fit of this order to the others, and return what adapting saves on it."""
    whole, given, at_zero = join_periodograms(parts), channel.given, channel.power_at_zero(fit)
    errors, saved, foreseen, variance = [], [], [], []
    for i, part in enumerate(parts):
        rest = join_periodograms(parts[:i] + parts[i + 1 :])
        model = channel.fitted_model(rest, channel.likelihood(rest).maximize(fit.parameters))
        trial, adapted = _Trial(channel, part, model), channel.best_response(model)
        errors.append(trial.mse(given))
        saved.append(errors[-1] - trial.mse(adapted))
        foreseen.append(trial.mse_on_model(given) - trial.mse_on_model(adapted))
        weights, slope = trial.weights(given) - trial.weights(adapted), trial.slope(given) - trial.slope(adapted)
        variance.append(_variance(whole, at_zero, weights, slope, part.n_segments))
    # The noise that passes is known, and bounds the error from below.
    passed = channel.noise * channel.circle.grid.mean(np.abs(given.h) ** 2)
    scale = max(float(np.mean(errors)), passed)
    standard_error = math.sqrt(sum(variance)) / len(parts) / scale
    predicted = float(np.mean(foreseen)) / scale
    return Gain(float(np.mean(saved)) / scale, standard_error, predicted, tuple(x / scale for x in saved))


class _Trial:
    """A part of v, and a model that it is compared with."""

    def __init__(self, channel: Channel, part: Periodogram, model: ARMA) -> None:
        self.channel, self.part, self.mean = channel, part, model.mean
        self.psd = model.psd(channel.circle.grid.omega)
        power = self.psd * np.abs(channel.gain) ** 2
        self.foreseen = channel.expected_ordinates(power + channel.noise)
        # It is F/G where v shows the signal.
        trust = power / (power**2 + (_VISIBLE * channel.noise) ** 2)
        self.inverse = channel.wanted * channel.gain.conj() * self.psd * trust

    def weights(self, receiver: Response) -> Array:
        """Return the weights of P_v in the error, at the ordinates."""
        step = self.channel.step
        return np.asarray(np.abs(receiver.h[::step] - self.inverse[::step]) ** 2)

    def slope(self, receiver: Response) -> float:
        """Return the slope of the error in the mean of v, ∂ error / ∂ mean."""
        off = self.part.mean - (receiver.mean - self.channel.mean) * self.channel.steady
        return 2 * float(self.weights(receiver)[0]) * off

    def mse(self, receiver: Response) -> float:
        """Return the error on the model, corrected by how the part differs from what the model foresees."""
        steady = self.channel.steady
        differs = self.part.about((receiver.mean - self.channel.mean) * steady).ordinates - self.foreseen
        differs[0] -= self.part.length * ((self.mean - receiver.mean) * steady) ** 2
        return self.mse_on_model(receiver) + self.part.average(self.weights(receiver) * differs)

    def mse_on_model(self, receiver: Response) -> float:
        """Return the error where the model is right."""
        lost = self.channel.wanted - receiver.h * self.channel.gain
        bias = float(abs(lost[0])) * (receiver.mean - self.mean)
        density = self.psd * np.abs(lost) ** 2 + self.channel.noise * np.abs(receiver.h) ** 2
        return self.channel.circle.grid.mean(density) + bias**2


def _variance(data: Periodogram, at_zero: float, weights: Array, slope: float, n_segments: int) -> float:
    """Return the variance of <weights · I> over so many segments; `data` of more says how much ordinates vary.

    That at zero holds the square of the mean of v, of variance `at_zero` = P_v(0) over the samples.
    """
    squares = data.ordinates**2 / (1 + 1 / data.n_segments)  # without bias for P_v²
    squares[0] = at_zero**2
    return (2 * data.average(weights**2 * squares) + slope**2 * at_zero) / (n_segments * data.length)
