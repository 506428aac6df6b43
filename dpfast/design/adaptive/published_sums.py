"""Published sums of whole cycles of blocks, with all that a fit and an estimate of errors have to know of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dpfast._support.validation import Array
from dpfast.design.adaptive.sum_errors import SumErrors
from dpfast.design.adaptive.sum_spectrum import SumCircle, SumFit, SumLikelihood, SumPeriodogram
from dpfast.signals.model import Model

SHORTEST = 8  # cycles, to which a spectrum can be fitted


class PublishedSums(NamedTuple):
    """Hold sums of all streams, less what a mean comes to in them.

    Attributes
    ----------
    values : array, (streams, cycles, n)
    weights : array, (n, taps)
        Of the inputs in each sum of a cycle, the latest first.
    cycle : int
        Its steps.
    noise_variances : array, (n,)
        Of the noise on each sum.
    rounding : float
        The variance of what rounding adds to an input.
    mean : float
        That was subtracted from the input.
    reach : int
        Steps back that filters reach whose errors are asked for.
    """

    values: Array
    weights: Array
    cycle: int
    noise_variances: Array
    rounding: float
    mean: float
    reach: int

    def about(self, mean: float) -> PublishedSums:
        """Return the same with another mean subtracted from the input."""
        return self._replace(values=self.values - (mean - self.mean) * self.weights.sum(axis=1), mean=mean)

    def in_time(self, n_parts: int) -> tuple[SumPeriodogram, ...]:
        """Return the periodograms of consecutive equal parts."""
        return SumPeriodogram.in_time(self.values, n_parts)

    def circle(self, length: int) -> SumCircle:
        """Return what the sums show, for a periodogram of so many cycles."""
        return SumCircle.of(self.weights, self.cycle, self.noise_variances, self.rounding, length, self.reach)

    def foresee(self, circle: SumCircle, data: SumPeriodogram, model: Model | None, shape: Model | None) -> SumFit:
        """Return the spectrum and the mean of a model or, without one, those that are fitted.

        A fit takes the spectrum of `shape`, times a factor, where that explains the sums as well.
        """
        if model is not None:
            return SumFit(model.psd(circle.omega), model.mean - self.mean, 0.0, None, 0.0, np.empty(0))
        return SumLikelihood(circle, data).fit(None if shape is None else shape.psd(circle.omega))

    def errors(self, circle: SumCircle, fit: SumFit) -> SumErrors:
        """Return what estimates errors from a periodogram of all that there is."""
        streams, n_cycles, n = self.values.shape
        return SumErrors(circle, fit.psd, fit.mean, streams * n_cycles * n)
