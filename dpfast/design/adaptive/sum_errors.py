r"""The error of what estimates from published sums, told by these sums alone, whatever the spectrum of the input.

Behind sums the error at a step of the cycle is h (u - mean) + noise, h the response of the error to the input. On
average over a cycle its square is noise + <P_u D>, D the mean of |h|² over the steps. A spectrum foresees it; how the
periodogram of the sums differs from what that spectrum foresees corrects it, as far as sums show P_u: what differs is
ascribed to the frequencies that are seen together by the squares of what each was foreseen to have.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dpfast._support.validation import Array, Complex
from dpfast.design.adaptive.sum_spectrum import SumCircle, SumPeriodogram

_VISIBLE = 0.01  # of the noise: for signals below it the spectrum stands in, however long v is
_NOISY = 5.0  # over the root of the samples: the same for few sums


class ErrorResponses(NamedTuple):
    """Hold how what estimates from sums errs.

    Attributes
    ----------
    lost : array, (steps of a cycle, taps)
        The error to inputs so many steps before, at each step.
    noise : float
        The mean squared error that the noise makes.
    """

    lost: Array
    noise: float

    @property
    def reach(self) -> int:
        """Return how many steps back they reach."""
        return int(self.lost.shape[1])

    def distortion(self, n: int) -> Array:
        """Return D at n // 2 + 1 angles from 0 to π; n even."""
        total = np.zeros(n // 2 + 1)
        for row in self.lost:
            folded = np.bincount(np.arange(len(row)) % n, row, n)
            total += np.abs(np.fft.rfft(folded)) ** 2
        return np.asarray(total / len(self.lost))


class SumError(NamedTuple):
    """Say what the mean squared error is, as sums tell it.

    Attributes
    ----------
    mse : float
    variance : float
        Of `mse`: asymptotic, as if sums were normal.
    hidden : float
        The part that rests on the spectrum that stands in.
    least : float
        What no correction goes below.
    """

    mse: float
    variance: float
    hidden: float
    least: float


class SumErrors:
    """Estimate errors under a spectrum that stands in: of one response, or of the difference of two.

    Parameters
    ----------
    circle : SumCircle
    psd : array
        Of the input, at the angles of the circle.
    bias : float
        The mean of the input less that which was subtracted.
    samples : int
        Sums of all streams that there are.
    """

    def __init__(self, circle: SumCircle, psd: Array, bias: float, samples: int) -> None:
        self.circle, self.psd, self.bias = circle, psd, bias
        self.visible = max(_VISIBLE, _NOISY / math.sqrt(samples))
        self.random = circle.expect(psd) + circle.noise  # about the true mean
        self.expected = self.random.copy()
        self.expected[0] += circle.length * bias**2 * np.outer(circle.rise, circle.rise)
        self.power = circle.fold(psd)[:: circle.finer].copy()  # at the ordinates, of what is seen together
        self.power[0, 0] += circle.length * circle.cycle * bias**2
        self.response = circle.response[:: circle.finer]

    def weigh(self, distortion: Array) -> tuple[Complex, Array]:
        """Return the weights of the periodogram in the mean of a distortion, and how far sums tell P_u."""
        power, response, cycle = self.power, self.response, self.circle.cycle
        wanted = self.circle.fold(distortion)[:: self.circle.finer] / cycle
        inverse = np.linalg.inv(self.random)
        seen = (response * (wanted * power**2)[:, np.newaxis, :]) @ response.conj().transpose(0, 2, 1) / cycle
        direction = inverse @ seen @ inverse
        # what each of the frequencies adds to the statistic, and what the noise alone may hide
        each = np.einsum("kia,kij,kja->ka", response.conj(), direction, response).real / cycle
        hides = self.visible * np.einsum("kij,kji->k", direction, self.circle.noise).real
        square = (power**2 * each**2).sum(axis=1) + hides**2
        factor = (wanted * power**2 * each).sum(axis=1) / np.maximum(square, np.finfo(float).tiny)
        trust = power**2 * each**2 / np.maximum(square, np.finfo(float).tiny)[:, np.newaxis]
        return factor[:, np.newaxis, np.newaxis] * direction, trust

    def foresee(self, distortion: Array) -> float:
        """Return the mean of a distortion that the spectrum and the bias foresee."""
        return self.circle.mean(self.psd * distortion) + float(distortion[0]) * self.bias**2

    def correct(self, weights: Complex, data: SumPeriodogram) -> float:
        """Return by how much a periodogram corrects that."""
        return data.average(np.einsum("kij,kji->k", weights, data.ordinates - self.expected).real)

    def foresee_error(self, responses: ErrorResponses) -> float:
        """Return the error that the spectrum and the bias foresee."""
        return responses.noise + self.foresee(responses.distortion(self.circle.n_angles))

    def tell(self, responses: ErrorResponses, data: SumPeriodogram) -> tuple[float, Complex]:
        """Return the error that a periodogram tells, with its weights in it; it may be below what noise makes."""
        weights, _ = self.weigh(responses.distortion(self.circle.n_angles))
        return self.foresee_error(responses) + self.correct(weights, data), weights

    def variance(self, weights: Complex, data: SumPeriodogram, of_bias: Complex | None = None) -> float:
        """Return the variance of the correction; the bias comes in by weights of its own, if there are such."""
        spread = weights @ self.random
        squares = np.einsum("kij,kji->k", spread, spread).real
        means = spread.trace(axis1=1, axis2=2).real
        found = np.einsum("kij,kji->k", weights, data.ordinates).real
        # squares of what was found, less what chance adds to them
        relative = found[1:] ** 2 / np.maximum(means[1:] ** 2 + squares[1:] / data.n_segments, np.finfo(float).tiny)
        own = squares.copy()
        own[1:] *= relative
        at_zero, rise = (weights if of_bias is None else of_bias)[0].real, self.circle.rise
        slope = 4 * self.bias**2 * float(rise @ at_zero @ self.random[0].real @ at_zero @ rise)
        return (2 * data.average(own) + slope) / (data.n_segments * data.length)

    def estimate(self, responses: ErrorResponses, data: SumPeriodogram) -> tuple[SumError, Complex]:
        """Estimate the error of one response; return the weights of the periodogram too."""
        distortion = responses.distortion(self.circle.n_angles)
        weights, trust = self.weigh(distortion)
        here = self.circle.fold(distortion)[:: self.circle.finer] * self.power / self.circle.cycle
        hidden = data.average(((1 - trust) * here).sum(axis=1))
        least = responses.noise + hidden
        mse = max(responses.noise + self.foresee(distortion) + self.correct(weights, data), least)
        return SumError(mse, self.variance(weights, data), hidden, least), weights
