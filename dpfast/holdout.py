r"""The error of receivers, estimated from privatized signals alone, and from those that they were not designed for.

E|z^{-D} F u - H v|² = <P_u |F|²> + <P_v |H|²> - 2 Re<H* z^{-D} (F/G) (P_v - σ²)> is, but for what is the same for all
receivers, linear in P_v, so the periodogram of v estimates it without bias and without a model. Where G lets so
little through that F/G would be all noise, a fitted spectrum stands in.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dpfast._validate import Array
from dpfast.design.wiener import wiener
from dpfast.filters import Filter
from dpfast.mechanism import linear_mse
from dpfast.models import ARMA
from dpfast.receivers import LinearReceiver, Smoother
from dpfast.whittle import Fit, Periodogram, Whittle, expected, fine_angles, joined

Linear = LinearReceiver | Smoother
_VISIBLE = 0.01  # of the noise: signals below it are mostly the model's


class Channel(NamedTuple):
    """What v went through, and the receiver behind it: v = G (u - receiver.mean) + n."""

    target: Filter
    prefilter: Filter
    noise_std: float
    receiver: Linear

    @property
    def steady(self) -> float:
        """G(0)."""
        return float(self.prefilter.response(0.0).real)

    def model(self, data: Periodogram, fit: Fit) -> ARMA:
        """The fitted spectrum, and the receiver's mean moved towards that of v."""
        mean = self.receiver.mean + self._drift(data, fit)
        return ARMA.from_shaping(fit.shaping, mean=mean, source="public", fitted_order=fit.order)

    def _drift(self, data: Periodogram, fit: Fit) -> float:
        """Of the mean: what v says, less the share that is expected to be chance (Stein's positive part)."""
        if abs(data.mean * self.steady) < np.finfo(float).tiny:
            return 0.0
        chance = self.power_at_zero(fit) / (data.n_segments * data.length * data.mean**2)
        return max(0.0, 1 - chance) * data.mean / self.steady

    def power_at_zero(self, fit: Fit) -> float:
        """P_v(0)."""
        return (fit.innovation_std * self.steady / float(fit.a.sum())) ** 2 + self.noise_std**2

    def redesigned(self, model: ARMA) -> Linear:
        """The best receiver of the same lag for a model."""
        return wiener(self.target, model, self.prefilter, self.noise_std, self.receiver.lag)

    def mse(self, model: ARMA, receiver: Linear) -> float:
        """Predicted on a model."""
        lost = float(self.target.response(0.0).real) - float(receiver.response(0.0).real) * self.steady
        bias = lost * (receiver.mean - model.mean)
        return linear_mse(self.target, model, self.prefilter, self.noise_std, receiver) + bias**2


class Gain(NamedTuple):
    """MSE that another receiver saves on parts of v that it was not designed for, relative to that of the given one.

    Attributes
    ----------
    relative : float
    standard_error : float
        Asymptotic, as if v were Gaussian.
    of_parts : tuple of float
        `relative` is their average.
    """

    relative: float
    standard_error: float
    of_parts: tuple[float, ...]


def cross_validated(channel: Channel, parts: tuple[Periodogram, ...], fit: Fit) -> Gain:
    """Each part is held out once, from a fit of this order to the others."""
    whole = joined(parts)
    given, saved, variance = [], [], []
    for i, part in enumerate(parts):
        rest = joined(parts[:i] + parts[i + 1 :])
        refit = Whittle(channel.prefilter, channel.noise_std, rest).maximum(fit.parameters)
        trial = _Trial(channel, part, channel.model(rest, refit))
        adapted = channel.redesigned(trial.model)
        given.append(trial.mse(channel.receiver))
        saved.append(given[-1] - trial.mse(adapted))
        variance.append(_variance(whole, trial.weights(channel.receiver) - trial.weights(adapted), part.n_segments))
    # the noise that passes is known, and a bound from below
    passed = channel.noise_std**2 * whole.average(np.abs(channel.receiver.response(whole.angles)) ** 2)
    scale = max(float(np.mean(given)), passed)
    standard_error = math.sqrt(sum(variance)) / len(parts) / scale
    return Gain(float(np.mean(saved)) / scale, standard_error, tuple(x / scale for x in saved))


class _Trial:
    """A part of v, and a model that it is compared with."""

    def __init__(self, channel: Channel, part: Periodogram, model: ARMA) -> None:
        self.channel, self.part, self.model = channel, part, model
        omega, fine = part.angles, fine_angles(part.length)
        f = channel.target.response(omega) * np.exp(-1j * (channel.receiver.lag or 0) * omega)
        g = channel.prefilter.response(omega)
        psd, visible = model.psd(omega), _VISIBLE * channel.noise_std**2
        self.wanted = psd * f * g.conj() / (psd * np.abs(g) ** 2 + visible)  # F/G where v shows the signal
        spectrum = model.psd(fine) * np.abs(channel.prefilter.response(fine)) ** 2
        self.expected = expected(spectrum + channel.noise_std**2)

    def weights(self, receiver: Linear) -> Array:
        """Of P_v in the error."""
        return np.asarray(np.abs(receiver.response(self.part.angles) - self.wanted) ** 2)

    def mse(self, receiver: Linear) -> float:
        """That on the model, corrected by what the part differs from it."""
        steady, mean = self.channel.steady, self.channel.receiver.mean
        seen = self.part.about((receiver.mean - mean) * steady).ordinates
        foreseen = self.expected.copy()
        foreseen[0] += self.part.length * ((self.model.mean - receiver.mean) * steady) ** 2
        return self.channel.mse(self.model, receiver) + self.part.average(self.weights(receiver) * (seen - foreseen))


def _variance(data: Periodogram, weights: Array, n_segments: int) -> float:
    """Of <weights · I> over so many segments; `data` of more says how much ordinates vary."""
    squares = data.ordinates**2 / (1 + 1 / data.n_segments)  # without bias for P_v²
    return 2 * data.average(weights**2 * squares) / (n_segments * data.length)
