"""The check of a mechanism of filters: mean and spectrum of v against the model, and the error that v tells."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import linalg

from dpfast._support.validation import Array
from dpfast.filters.fft_grid import circle_response, fft_angles
from dpfast.filters.filter import Filter
from dpfast.mechanisms.linear_channel import LinearChannel
from dpfast.releases.model_check.error_from_v import ErrorFromV, estimate_error
from dpfast.releases.model_check.verdict import NOTHING_TO_TEST, Judgement, judge_whiteness
from dpfast.releases.model_check.whiteness_tests import Whiteness, find_departures
from dpfast.releases.model_check.whitening import covariance_from_start, covariance_when_settled, whiten
from dpfast.signals.markov_chain import MarkovChain
from dpfast.signals.model import Model, autocovariance

_PREDICTED_FROM = 512  # earlier values that tell the next one
_TRANSIENT = 1e-3  # of G's impulse response: what is left of it when v counts as stationary
_ANGLES = 2**13  # of a circle, at the least
NOT_LINEAR = "No error is estimated from v: the receiver decides, and the power of v does not determine its errors."
TOO_SHORT = "No error is estimated from v: there are too few steps behind the transient of the prefilter."


class FilteredValues(NamedTuple):
    """Hold what was published by filters, as far as a check needs it.

    Attributes
    ----------
    model : Model or None
        That of the design.
    prefilter : Filter
        G, as it runs; of taps alone.
    noise_std : float
    mean : float
        That was subtracted from u in `centred`.
    centred : array, (streams, time)
        G (u - mean) + n from the first step on.
    channel : LinearChannel or None
        With the receiver; None for one that is not linear.
    """

    model: Model | None
    prefilter: Filter
    noise_std: float
    mean: float
    centred: Array
    channel: LinearChannel | None

    @property
    def steps(self) -> int:
        """Count the steps of each stream."""
        return len(self.centred.T)

    def until(self, steps: int) -> FilteredValues:
        """Return the first steps alone."""
        return self._replace(centred=self.centred[:, :steps])

    def judge(self, level: float) -> Judgement:
        """Test whether v agrees with the model, with this chance of a false alarm at most."""
        if self.model is None or not self.steps:
            return NOTHING_TO_TEST
        return judge_whiteness(self._compare(self.model), self.model.mean, level)

    def estimate_error(self, *, contradicted: bool) -> ErrorFromV | str:
        """Estimate the error, by a fitted spectrum where the model is contradicted; or say why there is none."""
        if self.channel is None:
            return NOT_LINEAR
        return estimate_error(self.channel, self.centred, self.model, contradicted=contradicted) or TOO_SHORT

    def _compare(self, model: Model) -> Whiteness:
        """Make v white by the model, and test whether it is."""
        taps, variance, time = self.prefilter.b, self.noise_std**2, self.steps
        rise = np.cumsum(np.pad(taps, (0, max(0, time - len(taps))))[:time])  # of a mean, through taps
        about = self.centred - (model.mean - self.mean) * rise
        transient = self.prefilter.settling_time(_TRANSIENT)
        n = min(time, _PREDICTED_FROM)
        if n < time and transient <= time // 2:
            about, rise = about[:, transient:], rise[transient:]
            n = min(n, about.shape[1])
            covariance = covariance_when_settled(model, taps, variance, n)
        else:  # the prefilter has not settled: only the first values have a covariance that is known
            about, rise = about[:, :n], rise[:n]
            covariance = covariance_from_start(model, taps, variance, n)
        z = whiten(np.concatenate([about, rise[np.newaxis]]), covariance)
        angles = max(_ANGLES, 1 << (2 * len(taps)).bit_length())
        signal = model.psd(fft_angles(angles)) * np.abs(circle_response(self.prefilter, angles)) ** 2
        return find_departures(z[:-1], z[-1], signal / (signal + variance), excess_kurtosis(model))


def excess_kurtosis(model: Model) -> float:
    """Return by how much a few levels widen the variance of powers, as a kurtosis of the innovations; at least 0.

    It is Σ_k cum(u_0, u_0, u_k, u_k) / R_0², which of a linear process is that kurtosis.
    """
    levels, probabilities = model.levels, model.probabilities
    if levels is None or probabilities is None:
        return 0.0
    squares = (levels - model.mean) ** 2
    squares = squares - probabilities @ squares
    summed = squares
    if isinstance(model, MarkovChain):
        ones = np.outer(np.ones(len(levels)), probabilities)
        summed = 2 * linalg.solve(np.eye(len(levels)) - model.transition + ones, squares) - squares
        normal = autocovariance(model, model.shaping.settling_time(1e-9) + 1)
    else:
        normal = np.array([model.variance])
    of_normal = 2 * (2 * float(normal @ normal) - normal[0] ** 2)
    excess: float = float(probabilities @ (squares * summed)) - of_normal
    return max(0.0, excess / float(model.variance) ** 2)
