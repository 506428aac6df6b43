r"""The error of a linear receiver, estimated from v alone, whatever the spectrum of the input.

Behind v = G (u - mean) + n the error of H is σ² <|H|²> + <P_u |F - H G|²> with the power P_u of u about the mean of the
receiver, which includes an error of the mean, a cycle and a shift as lines. The noise is known, and
P_v - σ² = P_u |G|² tells P_u where G lets the signal through: the periodogram of v corrects what a spectrum foresees.
Where v hardly shows the signal that spectrum stands in: the model's where v agrees with it, else a fitted one.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.polynomial.polynomial import polyval

from dpfast._support.validation import Array, Complex
from dpfast.design.adaptive.input_spectrum import Periodogram, Whittle, expected_periodogram
from dpfast.filters.fft_grid import circle_mean, circle_response, fft_angles, fft_length
from dpfast.mechanisms.linear_channel import LinearChannel
from dpfast.signals.model import Model

SHORTEST = 8  # steps behind the transient, to which a spectrum can be fitted
_HIGHEST = 4  # order of the fit
_FINER = 8  # steps of the circle an ordinate
_TRANSIENT = 0.01  # of G's impulse response: what is left of it when v counts as stationary
_VISIBLE = 0.01  # of the noise: for signals below it the spectrum stands in, however long v is
_NOISY = 5.0  # over the root of the samples: the same for short v


class ErrorFromV(NamedTuple):
    """Say what the mean squared error of estimates is, as v tells it.

    Attributes
    ----------
    mse : float
        Over all streams.
    standard_error : float
        Of `mse`: asymptotic, as if v were Gaussian.
    noise : float
        The part that the noise makes, which is known.
    hidden : float
        The part that rests on the spectrum that stands in, as v does not show it.
    of_streams : array, (streams,)
        `mse` of each stream, drawn together as far as chance alone explains that they differ.
    """

    mse: float
    standard_error: float
    noise: float
    hidden: float
    of_streams: Array


def estimate_error(
    channel: LinearChannel, centred: Array, model: Model | None, *, contradicted: bool
) -> ErrorFromV | None:
    """Estimate the error from G (u - mean) + n, the mean that of the receiver; None where v is too short.

    Parameters
    ----------
    channel : LinearChannel
    centred : array, (streams, time)
        From the first step on.
    model : Model or None
        That of the design.
    contradicted : bool
        Whether v contradicts it, so that a spectrum and a mean are fitted; without a model they are.
    """
    settled = centred[:, min(channel.prefilter.settling_time(_TRANSIENT), centred.shape[1] // 2) :]
    if settled.shape[1] < SHORTEST:
        return None
    (data,) = Periodogram.from_parts(settled, 1)
    circle, mean = _Circle.of(channel, data.length), channel.receiver.mean
    psd = None if model is None else model.psd(circle.omega)
    if model is None or psd is None or contradicted:
        foreseen = _fit(circle, data, psd)
    else:
        foreseen = _Foreseen(psd, model.mean - mean)
    return _estimate(circle, data, settled, foreseen)


class _Foreseen(NamedTuple):
    """A spectrum of u on the circle, and by how much its mean is above that of the receiver."""

    psd: Array
    bias: float


class _Circle(NamedTuple):
    """The responses of a channel on a circle that is finer than the ordinates by a whole factor."""

    step: int
    length: int
    omega: Array
    gain: Complex
    receiver: Complex
    lost: Complex  # F - H G
    noise: float

    @classmethod
    def of(cls, channel: LinearChannel, length: int) -> _Circle:
        filters = (channel.target, channel.prefilter, *channel.receiver.filters())
        slowest = max(float(np.abs(x.poles).max(initial=0.0)) for x in filters)
        step = max(_FINER, math.ceil(max(fft_length(slowest), 2 * len(channel.prefilter.b)) / length))
        n = step * length
        omega, gain = fft_angles(n), circle_response(channel.prefilter, n)
        receiver = channel.receiver.response_on_circle(n)
        wanted = circle_response(channel.target, n) * np.exp(-1j * (channel.receiver.lag or 0) * omega)
        return cls(step, length, omega, gain, receiver, wanted - receiver * gain, channel.noise_std**2)

    def mean(self, values: Array) -> float:
        """Average over the whole circle."""
        return float(circle_mean(values))


def _fit(circle: _Circle, data: Periodogram, shape: Array | None) -> _Foreseen:
    """Fit an autoregression to the periodogram, or a spectrum of a given shape where that explains v as well.

    What v does not show is then told by a shape that somebody has assumed. The mean is fitted where G shows it, less
    what chance alone would give (Stein).
    """
    whittle = Whittle(expected_periodogram(np.abs(circle.gain) ** 2, circle.length), circle.noise, data)
    fit = max(whittle.fit_orders(_HIGHEST), key=whittle.score)
    psd = fit.innovation_std**2 / np.abs(polyval(np.exp(-1j * circle.omega), fit.a)) ** 2
    if shape is not None:
        scale, likelihood = _fit_scale(circle, whittle, shape)
        if likelihood - whittle.penalty(1) >= whittle.score(fit):
            psd = scale * shape
    steady, bias = float(circle.gain[0].real), 0.0
    if abs(data.mean * steady) > np.finfo(float).tiny:
        chance = (float(psd[0]) * steady**2 + circle.noise) / (data.n_segments * data.length * data.mean**2)
        bias = max(0.0, 1 - chance) * data.mean / steady
    return _Foreseen(psd, bias)


def _fit_scale(circle: _Circle, whittle: Whittle, shape: Array) -> tuple[float, float]:
    """Return the most likely factor of a spectrum, of a grid of five percent, and its likelihood."""
    signal = expected_periodogram(shape * np.abs(circle.gain) ** 2, circle.length)
    scales = np.geomspace(1e-3, 1e3, 283)
    values = [whittle.signal_log_likelihood(x * signal) for x in scales[::6]]
    near = 6 * int(np.argmax(values))
    fine = scales[max(0, near - 6) : near + 7]
    likelihoods = [whittle.signal_log_likelihood(x * signal) for x in fine]
    best = int(np.argmax(likelihoods))
    return float(fine[best]), likelihoods[best]


def _estimate(circle: _Circle, data: Periodogram, settled: Array, given: _Foreseen) -> ErrorFromV:
    """Correct what is foreseen by how the periodograms differ from it."""
    psd, bias, steady = given.psd, given.bias, float(circle.gain[0].real)
    noise = circle.noise * circle.mean(np.abs(circle.receiver) ** 2)
    foreseen = circle.mean(psd * np.abs(circle.lost) ** 2) + abs(circle.lost[0]) ** 2 * bias**2
    ordinates = expected_periodogram(psd * np.abs(circle.gain) ** 2 + circle.noise, circle.length)
    ordinates[0] += circle.length * (bias * steady) ** 2
    power = psd[:: circle.step].copy()
    power[0] += circle.length * bias**2
    samples = data.n_segments * data.length
    weights, trust = _weights(circle, power, max(_VISIBLE, _NOISY / math.sqrt(samples)))
    distortion = np.abs(circle.lost[:: circle.step]) ** 2 * power
    hidden = data.average((1 - trust) * distortion)
    least = noise + hidden
    correction = data.average(weights * (data.ordinates - ordinates))
    mse = max(noise + foreseen + correction, least)
    squares = data.ordinates**2 / (1 + 1 / data.n_segments)
    squares[0] = (ordinates[0] - circle.length * (bias * steady) ** 2) ** 2
    slope = 2 * float(weights[0]) * bias * steady
    variance = (2 * data.average(weights**2 * squares) + slope**2 * math.sqrt(squares[0])) / samples
    each = [
        noise + foreseen + x.average(weights * (x.ordinates - ordinates))
        for x in (Periodogram.from_parts(row[np.newaxis], 1)[0] for row in settled)
    ]
    of_streams = np.maximum(draw_together(np.array(each), variance * len(each)), least)
    return ErrorFromV(mse, math.sqrt(variance), noise, hidden, of_streams)


def _weights(circle: _Circle, power: Array, visible: float) -> tuple[Array, Array]:
    """Return the weights of P_v in the error at the ordinates, and how far v, not the spectrum, tells P_u there."""
    gain = np.abs(circle.gain[:: circle.step]) ** 2
    signal = power * gain
    seen = signal**2 + (visible * circle.noise) ** 2
    return np.abs(circle.lost[:: circle.step]) ** 2 * power**2 * gain / seen, signal**2 / seen


def draw_together(each: Array, variance: float) -> Array:
    """Draw figures of equal variance towards their mean, by as much as chance explains that they differ (Stein)."""
    middle = each.mean()
    spread = float(((each - middle) ** 2).sum())
    if spread == 0:
        return each
    return np.asarray(middle + max(0.0, 1 - variance * (len(each) - 1) / spread) * (each - middle))
