"""The check of several streams behind a matrix of filters: means, spectra and dependence against their models."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dpfast._support.validation import Array
from dpfast.releases.model_check.fourth_moments import excess_kurtosis
from dpfast.releases.model_check.joint_verdict import NO_ERROR, Names, judge_channels
from dpfast.releases.model_check.joint_whiteness import WhiteChannels
from dpfast.releases.model_check.joint_whitening import (
    filter_channels,
    whitening_from_start,
    whitening_when_settled,
)
from dpfast.releases.model_check.simulated_chances import compare_first
from dpfast.releases.model_check.verdict import NOTHING_TO_TEST, Judgement
from dpfast.releases.model_check.whiteness_tests import Excess
from dpfast.signals.channel_models import ChannelModels, channel_means
from dpfast.signals.channel_outputs import autocovariance_of
from dpfast.signals.vector_arma import VectorARMA

_PREDICTED_FROM = 512  # earlier steps that tell the next one, at the most
_VALUES = 1536  # of all channels in these steps, whose covariance is factored
_FEWEST = 64  # steps of them, however many channels there are
_TRANSIENT = 1e-3  # of an impulse response: what is left of it when v counts as stationary
_ANGLES = 2**12 + 1  # from 0 to π


class FilteredChannels(NamedTuple):
    """Hold what was published of several streams by a matrix of filters, as far as a check needs it.

    Attributes
    ----------
    model : tuple of Model, VectorARMA or None
        Those of the design.
    taps : array, (q, m, n)
        G, in the units of the streams.
    noise_std : float
        On each channel.
    means : array, (m,)
        That were subtracted from the streams in `centred`.
    centred : array, (q, time)
        G (u - means) + n from the first step on.
    names : Names
        Of channels and streams, for words.
    """

    model: ChannelModels | None
    taps: Array
    noise_std: float
    means: Array
    centred: Array
    names: Names

    @property
    def steps(self) -> int:
        """Count the steps of each channel."""
        return len(self.centred.T)

    def until(self, steps: int) -> FilteredChannels:
        """Return the first steps alone."""
        return self._replace(centred=self.centred[:, :steps])

    def judge(self, level: float) -> Judgement:
        """Test whether v agrees with the models, with this chance of a false alarm at most, over all channels."""
        models = self.model
        if models is None:
            return NOTHING_TO_TEST
        found = compare_first(self.steps, lambda steps: self.until(steps)._whiten(models), level)
        if found is None:
            return NOTHING_TO_TEST
        independent = not isinstance(models, VectorARMA)
        return judge_channels(found, channel_means(models), self.names, level, independent=independent)

    def estimate_error(self, *, contradicted: bool) -> str:
        """Say that there is none."""
        return NO_ERROR

    def _whiten(self, models: ChannelModels) -> WhiteChannels:
        """Make v white by the models, and say how v of the models are drawn and made white."""
        taps, variance, time = self.taps, self.noise_std**2, self.steps
        transient = _settle(taps)
        n = min(time, _PREDICTED_FROM, max(_FEWEST, _VALUES // len(taps)))
        if n < time and transient <= time // 2:
            begin, n = transient, min(n, time - transient)
            covariances = autocovariance_of(models, n + taps.shape[-1])
            whitening = whitening_when_settled(covariances, taps, variance, n)
        else:  # the prefilter has not settled: only the first values have a covariance that is known
            begin, time = 0, n
            whitening = whitening_from_start(autocovariance_of(models, n), taps, variance, n)
        rises = np.cumsum(np.pad(taps, ((0, 0), (0, 0), (0, max(0, time - taps.shape[-1]))))[..., :time], axis=-1)
        rises = rises.swapaxes(0, 1)  # of each mean, through taps
        above = np.tensordot(channel_means(models) - self.means, rises, 1)

        def draw(many: int, rng: np.random.Generator) -> Array:
            about = _sample(models, many, time, rng) - self.means[:, np.newaxis]
            v = filter_channels(taps, about) + rng.normal(0, self.noise_std, (many, len(taps), time))
            return whitening.whiten((v - above)[..., begin:])

        both = np.concatenate([rises, (self.centred[:, :time] - above)[np.newaxis]])
        white = whitening.whiten(both[..., begin:])
        shares = np.clip(1 - variance * whitening.noise_gain(_ANGLES), 0.0, 1.0)
        return WhiteChannels(white[-1], white[:-1], shares, _excess(models), draw, len(taps) * time)


def _settle(taps: Array) -> int:
    """Count the steps after which each impulse response stays small beside its largest value."""
    size = np.abs(taps)
    there = size > _TRANSIENT * size.max(axis=-1, keepdims=True)
    return 1 + int(np.flatnonzero(there.any(axis=(0, 1))).max(initial=0))


def _excess(models: ChannelModels) -> Excess:
    """Return by how much fourth moments exceed those of normal values, in the stream where they do most."""
    of_each = [] if isinstance(models, VectorARMA) else [excess_kurtosis(x) for x in models]
    return Excess(max(of_each, default=0.0), 0.0)


def _sample(models: ChannelModels, many: int, time: int, rng: np.random.Generator) -> Array:
    """Draw sets of streams (many, m, time)."""
    if isinstance(models, VectorARMA):
        return models.sample(many, time, seed=rng)
    return np.stack([x.sample(many, time, seed=rng) for x in models], axis=1)
