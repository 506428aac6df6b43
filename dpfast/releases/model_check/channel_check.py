"""The check of a mechanism of filters: mean and spectrum of v against the model, and the error that v tells."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from dpfast._support.validation import Array
from dpfast.filters.fft_grid import circle_response, fft_angles
from dpfast.filters.filter import Filter
from dpfast.mechanisms.linear_channel import LinearChannel
from dpfast.releases.model_check.error_from_v import ErrorFromV, estimate_error
from dpfast.releases.model_check.fourth_moments import excess_kurtosis
from dpfast.releases.model_check.simulated_chances import WhiteValues, compare_first
from dpfast.releases.model_check.verdict import NOTHING_TO_TEST, Judgement, judge_whiteness
from dpfast.releases.model_check.whiteness_tests import Excess
from dpfast.releases.model_check.whitening import covariance_from_start, covariance_when_settled, whiten
from dpfast.signals.model import Model

_PREDICTED_FROM = 512  # earlier values that tell the next one
_TRANSIENT = 1e-3  # of G's impulse response: what is left of it when v counts as stationary
_ANGLES = 2**13  # of a circle, at the least
NOT_LINEAR = (
    "No error is estimated from what was published: the receiver is not linear, and the power of what was published "
    "does not tell how it errs."
)
Publish = Callable[[Array, np.random.Generator], Array]
TOO_SHORT = (
    "No error is estimated from what was published: there are too few steps behind the transient of the prefilter."
)


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
    publish : callable
        Gives of signals about `mean` (rows, time), and a generator of random numbers, what would be published: the like
        of `centred`.
    noise_kurtosis : float
        Excess of it over that of normal noise.
    """

    model: Model | None
    prefilter: Filter
    noise_std: float
    mean: float
    centred: Array
    channel: LinearChannel | None
    publish: Publish
    noise_kurtosis: float = 0.0

    @property
    def steps(self) -> int:
        """Count the steps of each stream."""
        return len(self.centred.T)

    def until(self, steps: int) -> FilteredValues:
        """Return the first steps alone."""
        return self._replace(centred=self.centred[:, :steps])

    def judge(self, level: float) -> Judgement:
        """Test whether v agrees with the model, with this chance of a false alarm at most."""
        model = self.model
        if model is None:
            return NOTHING_TO_TEST
        found = compare_first(self.steps, lambda steps: self.until(steps)._whiten(model), level)
        return NOTHING_TO_TEST if found is None else judge_whiteness(found, model.mean, level)

    def estimate_error(self, *, contradicted: bool) -> ErrorFromV | str:
        """Estimate the error, by a fitted spectrum where the model is contradicted; or say why there is none."""
        if self.channel is None:
            return NOT_LINEAR
        return estimate_error(self.channel, self.centred, self.model, contradicted=contradicted) or TOO_SHORT

    def _whiten(self, model: Model) -> WhiteValues:
        """Make v white by the model, and say how v of the model are drawn and made white."""
        taps, variance, time = self.prefilter.b, self.noise_std**2, self.steps
        transient = self.prefilter.settling_time(_TRANSIENT)
        n = min(time, _PREDICTED_FROM)
        if n < time and transient <= time // 2:
            begin, n = transient, min(n, time - transient)
            covariance = covariance_when_settled(model, taps, variance, n)
        else:  # the prefilter has not settled: only the first values have a covariance that is known
            begin, time = 0, n
            covariance = covariance_from_start(model, taps, variance, n)
        rise = np.cumsum(np.pad(taps, (0, max(0, time - len(taps))))[:time])  # of a mean, through taps
        above = (model.mean - self.mean) * rise

        def draw(rows: int, rng: np.random.Generator) -> Array:
            centred = self.publish(model.sample(rows, time, seed=rng) - self.mean, rng)
            return whiten((centred - above)[:, begin:], covariance)

        both = np.concatenate([self.centred[:, :time] - above, rise[np.newaxis]])
        z = whiten(both[:, begin:], covariance)
        angles = max(_ANGLES, 1 << (2 * len(taps)).bit_length())
        signal = model.psd(fft_angles(angles)) * np.abs(circle_response(self.prefilter, angles)) ** 2
        excess = Excess(excess_kurtosis(model), self.noise_kurtosis)
        return WhiteValues(z[:-1], z[-1], signal / (signal + variance), excess, draw, len(z[:-1]) * time)


def filter_with_normal_noise(prefilter: Filter, noise_std: float) -> Publish:
    """Return what publishes signals about the mean through taps, with normal noise."""

    def publish(about: Array, rng: np.random.Generator) -> Array:
        time = about.shape[1]
        size = 1 << (time + len(prefilter.b)).bit_length()
        passed = np.fft.irfft(np.fft.rfft(about, size) * np.fft.rfft(prefilter.b, size), size)[:, :time]
        return passed + rng.normal(0, noise_std, about.shape)

    return publish
