r"""Spectra fitted to privatized signals: autoregressions behind a known prefilter, in white noise of known size.

v = G (u - mean) + n has the spectrum P_v = P_u |G|² + σ². Whittle's likelihood of its periodogram I,

    ℓ = -Σ_j (ln P_v(ω_j) + I(ω_j) / P_v(ω_j)),

is that of independent exponential ordinates: exact for white Gaussian v, asymptotic otherwise (Whittle 1953). What
leaks between ordinates because G is coloured is known beforehand, and taken into account. Where v hardly shows the
shape of P_u, a weak prior holds it flat: tanh⁻¹ of a reflection coefficient is standard normal.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.polynomial.polynomial import polyval

from dpfast._support.validation import Array, Complex
from dpfast.filters.fft_grid import circle_mean
from dpfast.filters.filter import Filter

MAX_LENGTH = 2**14  # of a segment: resolves what changes within 4e-4 radians
_MOST_STEPS = 200
_CONVERGED = 1e-4  # of the log-likelihood that a step should gain: far below its chance
_DIFFERENCE = 1e-6
_LARGEST = 10.0  # argument of a tanh: reflections within 1e-8 of one
_LOUDEST = 60.0  # range of ln(variance) about σ² of v
_DAMPING = 1e-3, 1e12  # at the start; where it is given up


class Periodogram(NamedTuple):
    """A periodogram, averaged over equally long segments of all streams, at the angles of an FFT.

    Attributes
    ----------
    ordinates : array, (length // 2 + 1,)
        E[I] = P_v apart from leakage; that at angle 0 is about a mean of zero.
    mean : float
        Of the samples.
    length : int
        Of a segment; even.
    n_segments : int
    """

    ordinates: Array
    mean: float
    length: int
    n_segments: int

    @classmethod
    def from_parts(cls, v: Array, n_parts: int) -> tuple[Periodogram, ...]:
        """Compute those of consecutive equal parts in time of v (streams, time); a rest is left out at the start."""
        time = v.shape[1] // n_parts
        n_pieces = -(-time // MAX_LENGTH)
        length = time // n_pieces // 2 * 2
        last = v[:, v.shape[1] - n_parts * n_pieces * length :]
        parts = last.reshape(len(v), n_parts, n_pieces, length).transpose(1, 0, 2, 3).reshape(n_parts, -1, length)
        return tuple(map(cls._from_segments, parts))

    @classmethod
    def _from_segments(cls, segments: Array) -> Periodogram:
        n, length = segments.shape
        total = np.zeros(length // 2 + 1)
        for x in segments:  # one at a time: they stay in the cache
            total += np.abs(np.fft.rfft(x)) ** 2
        return cls(total / (n * length), float(segments.mean()), length, n)

    def about(self, mean: float) -> Periodogram:
        """Return the periodogram of v - mean."""
        ordinates = self.ordinates.copy()
        ordinates[0] += self.length * mean * (mean - 2 * self.mean)
        return self._replace(ordinates=ordinates, mean=self.mean - mean)

    @property
    def angles(self) -> Array:
        """The angles of the ordinates."""
        return np.linspace(0, np.pi, self.length // 2 + 1)

    def average(self, values: Array) -> float:
        """Average values at the angles over the circle."""
        return float(circle_mean(values))


def join_periodograms(parts: tuple[Periodogram, ...]) -> Periodogram:
    """Average the periodograms of parts with equally many segments."""
    ordinates = np.mean([x.ordinates for x in parts], axis=0)
    mean, n_segments = float(np.mean([x.mean for x in parts])), sum(x.n_segments for x in parts)
    return Periodogram(ordinates, mean, parts[0].length, n_segments)


def expected_periodogram(psd: Array, length: int) -> Array:
    """Compute E[I] of segments of a length: the spectrum smoothed by Fejér's kernel.

    Parameters
    ----------
    psd : array, (n // 2 + 1,)
        At the angles of an FFT of length n, at least 2 · length; what the covariance is beyond n - length is lost.
    length : int
    """
    lags = np.fft.irfft(psd)[:length] * (1 - np.arange(length) / length)
    both = np.concatenate([lags, [0.0], lags[:0:-1]])
    return np.asarray(np.fft.rfft(both).real[::2])


class Fit(NamedTuple):
    """A fitted model u = mean + s/A(z) w, w white of variance one; s = 0 where no signal was found.

    Attributes
    ----------
    a : array, (order + 1,)
        A in powers of z⁻¹, minimum phase.
    innovation_std : float
        s.
    log_likelihood : float
        ℓ times the number of segments, and the logarithm of the prior; ordinate 0, which takes the mean, is left out.
    parameters : array
        ln s², and tanh⁻¹ of the reflection coefficients.
    """

    a: Array
    innovation_std: float
    log_likelihood: float
    parameters: Array

    @property
    def order(self) -> int:
        """The number of past samples in the regression."""
        return len(self.a) - 1

    @property
    def shaping(self) -> Filter:
        """The filter s/A that shapes white noise to the fitted spectrum."""
        return Filter([self.innovation_std], self.a)


class Whittle:
    """The likelihood of a periodogram behind a prefilter, to be maximised over autoregressions.

    Parameters
    ----------
    gain : array, (length // 2 + 1,)
        |G|² at the angles of the data, smoothed by :func:`expected_periodogram`. (G alone: u is flatter.)
    noise : float
        σ², above 0.
    data : Periodogram
    """

    def __init__(self, gain: Array, noise: float, data: Periodogram) -> None:
        self.noise, self.data = noise, data
        self.gain, self.ordinates = gain[1:], data.ordinates[1:]
        self.weights = np.full(len(self.ordinates), float(data.n_segments))
        self.weights[-1] /= 2
        self.radius = 1 - 1 / data.length  # lines that are narrower are not resolved
        self.waves = np.exp(-1j * data.angles[1:])

    def fit_orders(self, highest: int) -> list[Fit]:
        """Fit the orders 0 … highest, each from the one before."""
        found = [self.maximize(np.array([math.log(self._white_variance())]))]
        for _ in range(highest):
            found.append(self.maximize(np.append(found[-1].parameters, 0.0)))
        return found

    def log_likelihood(self, parameters: Array) -> float:
        """Return the log-likelihood of given parameters, as of a :class:`Fit`."""
        shape = parameters[1:]
        return self._spectrum_likelihood(self._signal(parameters) + self.noise) - float(shape @ shape) / 2

    def signal_log_likelihood(self, signal: Array) -> float:
        """Return ℓ of a P_u |G|² that was not fitted, smoothed by :func:`expected_periodogram`."""
        return self._spectrum_likelihood(signal[1:] + self.noise)

    def score(self, fit: Fit) -> float:
        """Return ℓ less what its parameters cost, to be compared with that of what was not fitted."""
        return fit.log_likelihood - self.penalty(len(fit.parameters))

    def penalty(self, n_parameters: int) -> float:
        """Return what parameters cost: half of ln(samples) each (Schwarz 1978)."""
        return n_parameters / 2 * math.log(self.data.n_segments * self.data.length)

    def _white_variance(self) -> float:
        """Find the variance of white u by least squares, kept above what is surely invisible."""
        least = float((self.gain * (self.ordinates - self.noise)) @ self.weights / (self.gain**2 @ self.weights))
        return max(least, 1e-3 * self.noise / float(self.gain.max()))

    def maximize(self, start: Array) -> Fit:
        """Find the maximum near the given parameters: Fisher's scoring, damped as by Levenberg and Marquardt."""
        theta, damping = start, _DAMPING[0]
        signal, value = self._signal(theta), self.log_likelihood(theta)
        prior = np.append(0.0, np.ones(len(theta) - 1))
        for _ in range(_MOST_STEPS):
            psd = signal + self.noise
            slopes = self._slopes(theta) * (signal / psd)
            score = slopes @ (self.weights * (self.ordinates / psd - 1)) - prior * theta
            information = (slopes * self.weights) @ slopes.T + np.diag(prior)
            while damping < _DAMPING[1]:
                damped = information + damping * (np.diag(np.diag(information)) + 1e-12 * np.eye(len(theta)))
                step = np.linalg.solve(damped, score)
                trial = self._bound(theta + np.clip(step, -2, 2))
                gained = self.log_likelihood(trial) - value
                if gained >= 0:
                    break
                damping *= 10
            else:
                break
            theta, signal, value, damping = trial, self._signal(trial), value + gained, damping / 10
            if score @ step < _CONVERGED:
                break
        a, innovation = self._polynomial(theta), math.exp(theta[0] / 2)
        return Fit(a, innovation, value, theta)

    def _bound(self, theta: Array) -> Array:
        middle = math.log(self.noise / float(self.gain.max()))
        result = np.clip(theta, -_LARGEST, _LARGEST)
        result[0] = min(max(theta[0], middle - _LOUDEST / 2), middle + _LOUDEST)
        return result

    def _spectrum_likelihood(self, psd: Array) -> float:
        return -float(self.weights @ (np.log(psd) + self.ordinates / psd))

    def _polynomial(self, theta: Array) -> Array:
        """Make A from its reflection coefficients, its roots drawn inwards."""
        a = np.ones(1)
        for k in np.tanh(theta[1:]):
            a = np.append(a, 0.0)
            a = a + k * a[::-1]
        return np.asarray(a * self.radius ** np.arange(len(a)))

    def _response(self, theta: Array) -> Complex:
        return np.asarray(polyval(self.waves, self._polynomial(theta)))

    def _signal(self, theta: Array) -> Array:
        """Return P_u |G|², what the prefilter passes of the input's spectrum."""
        return np.asarray(math.exp(theta[0]) * self.gain / np.abs(self._response(theta)) ** 2)

    def _slopes(self, theta: Array) -> Array:
        """Return ∂ ln P_u / ∂θ, (parameters, ordinates)."""
        here, a = self._response(theta), self._polynomial(theta)
        rows = [np.ones(len(here))]
        for k in range(1, len(theta)):
            there = theta.copy()
            there[k] += _DIFFERENCE
            change = (self._polynomial(there) - a) / _DIFFERENCE
            rows.append(-2 * (polyval(self.waves, change) / here).real)
        return np.array(rows)
