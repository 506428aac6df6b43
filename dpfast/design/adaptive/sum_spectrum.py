r"""Spectra fitted to published sums of blocks: the power of the input, as sums show it.

The n sums of a cycle of C steps are a stationary series of vectors s + noise, of the spectrum

    S(θ) = (1/C) Σ_a P_u(ω_a) W(ω_a) W(ω_a)* + N,    ω_a = (θ + 2πa)/C,

with the response W of each sum to the input: C frequencies of the input are seen together. Whittle's likelihood of the
periodogram of the sums is that of independent ordinates, and autoregressions P_u maximise it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.polynomial.polynomial import polyval
from numpy.typing import NDArray

from dpfast._support.validation import Array, Complex
from dpfast.filters.fft_grid import circle_mean

MAX_LENGTH = 2**12  # cycles of a segment
_FINER = 4  # points of the circle an ordinate
HIGHEST = 2  # order of fits: sums hardly tell higher ones from their aliases
_MOST_STEPS = 60
_CONVERGED = 1e-3  # of the log-likelihood that a step should gain
_DIFFERENCE = 1e-5
_LARGEST = 5.0  # argument of a tanh
_LOUDEST = 30.0  # range of ln(variance) about that of white inputs
_DAMPING = 1e-3, 1e8  # at the start; where it is given up
_SCALES = np.geomspace(1e-3, 1e3, 283)  # of a spectrum of a given shape, five percent apart


class SumPeriodogram(NamedTuple):
    """Hold the periodogram of sums, averaged over segments of so many cycles of all streams.

    Attributes
    ----------
    ordinates : array, (length // 2 + 1, n, n)
        E[I] = S apart from leakage; that at angle 0 is about a mean of zero.
    mean : array, (n,)
    length : int
        Cycles of a segment; even.
    n_segments : int
    """

    ordinates: Complex
    mean: Array
    length: int
    n_segments: int

    @classmethod
    def of(cls, sums: Array) -> SumPeriodogram:
        """Compute it from sums (streams, cycles, n); a rest is left out at the start."""
        streams, n_cycles, n = sums.shape
        n_pieces = -(-n_cycles // MAX_LENGTH)
        length = n_cycles // n_pieces // 2 * 2
        segments = sums[:, n_cycles - n_pieces * length :].reshape(-1, length, n)
        total = np.zeros((length // 2 + 1, n, n), np.complex128)
        for x in segments:
            z = np.fft.rfft(x, axis=0)
            total += z[:, :, np.newaxis] * z[:, np.newaxis, :].conj()
        return cls(total / (len(segments) * length), segments.mean(axis=(0, 1)), length, streams * n_pieces)

    @classmethod
    def in_time(cls, sums: Array, n_parts: int) -> tuple[SumPeriodogram, ...]:
        """Compute those of consecutive equal parts in time."""
        length = sums.shape[1] // n_parts
        last = sums[:, sums.shape[1] - n_parts * length :]
        return tuple(cls.of(last[:, i * length : (i + 1) * length]) for i in range(n_parts))

    @classmethod
    def join(cls, parts: tuple[SumPeriodogram, ...]) -> SumPeriodogram:
        """Average those of parts with equally many segments."""
        ordinates = np.mean([x.ordinates for x in parts], axis=0)
        mean, n_segments = np.mean([x.mean for x in parts], axis=0), sum(x.n_segments for x in parts)
        return cls(ordinates, mean, parts[0].length, n_segments)

    def average(self, values: Array) -> float:
        """Average values at the angles over the circle."""
        return float(circle_mean(values))


class SumCircle(NamedTuple):
    """Say what sums show of the input at the angles of a circle, of `finer` points for each of `length` ordinates.

    Attributes
    ----------
    weights : array, (n, taps)
        Of the inputs in each sum of a cycle, the latest first.
    length : int
        Ordinates, of a periodogram of so many cycles.
    finer : int
    cycle : int
        C.
    response : array, (finer · length // 2 + 1, n, C)
        W at the frequencies that are seen together.
    noise : array, (length // 2 + 1, n, n)
        N.
    rise : array, (n,)
        What a mean of one comes to in the sums.
    """

    weights: Array
    length: int
    finer: int
    cycle: int
    response: Complex
    noise: Complex
    rise: Array

    @classmethod
    def of(
        cls, weights: Array, cycle: int, noise_variances: Array, rounding: float, length: int, reach: int
    ) -> SumCircle:
        """Make it fine enough for filters that reach so many steps back."""
        finer = max(_FINER, -(-2 * reach // (length * cycle)))
        empty = np.empty(0, np.complex128)
        here = cls(weights, length, finer, cycle, empty, empty, weights.sum(axis=1))
        places, n = here._places(), here.n_angles
        half = np.fft.rfft(weights, n).T[np.minimum(places, n - places)].transpose(0, 2, 1)
        behind = (places > n // 2)[:, np.newaxis, :]  # the other half of the circle
        shown = here._replace(response=np.where(behind, half.conj(), half))
        white = shown.expect(np.full(n // 2 + 1, rounding))
        return shown._replace(noise=white + np.diag(noise_variances))

    @property
    def n_angles(self) -> int:
        """Count the angles of the whole circle of the input."""
        return self.length * self.finer * self.cycle

    @property
    def omega(self) -> Array:
        """Return the angles of the input, from 0 to π."""
        return np.linspace(0, np.pi, self.n_angles // 2 + 1)

    def _places(self) -> NDArray[np.int64]:
        """Return the places on the whole circle of the input that are seen together (points, C)."""
        circle = self.finer * self.length
        return np.asarray(np.arange(circle // 2 + 1)[:, np.newaxis] + circle * np.arange(self.cycle))

    def fold(self, values: Array) -> Array:
        """Arrange even values at the angles of the input (angles, …) by what is seen together (points, C, …)."""
        places = self._places()
        return np.asarray(values[np.minimum(places, self.n_angles - places)])

    def mean(self, values: Array) -> float:
        """Average values at the angles of the input over the whole circle."""
        return float(circle_mean(values))

    def expect(self, psd: Array) -> Complex:
        """Return what a spectrum of the input makes of E[I] at the ordinates, with what leaks between them."""
        power = self.fold(psd)[:, np.newaxis, :] / self.cycle
        spectrum = (self.response * power) @ self.response.conj().transpose(0, 2, 1)
        lags = np.fft.irfft(spectrum, self.finer * self.length, axis=0)
        fading = (1 - np.arange(self.length) / self.length)[:, np.newaxis, np.newaxis]
        both = lags[: self.length] * fading
        both[1:] += lags[-self.length + 1 :] * (1 - fading[1:])
        return np.asarray(np.fft.rfft(both, axis=0))


class SumFit(NamedTuple):
    """Hold a fitted spectrum: an autoregression, or that of a model times a factor.

    Attributes
    ----------
    psd : array
        At the angles of the circle.
    mean : float
        Of the input, less that which was subtracted; 0 where sums do not show it.
    score : float
        Log-likelihood less what the parameters cost (Schwarz 1978).
    a : array or None
        A in powers of z⁻¹; None for a given shape.
    innovation_std : float
    parameters : array
        ln s², and tanh⁻¹ of the reflection coefficients; empty for a given shape.
    """

    psd: Array
    mean: float
    score: float
    a: Array | None
    innovation_std: float
    parameters: Array

    @property
    def order(self) -> int:
        """Return the order of an autoregression."""
        return len(self.parameters) - 1


class SumLikelihood:
    """Compute Whittle's likelihood of the periodogram of sums."""

    def __init__(self, circle: SumCircle, data: SumPeriodogram) -> None:
        self.circle, self.data = circle, data
        self.noise, self.ordinates = circle.noise[1:], data.ordinates[1:]
        self.weights = np.full(len(self.ordinates), float(data.n_segments))
        self.weights[-1] /= 2
        self.waves = np.exp(-1j * circle.omega)
        self.radius = 1 - 1 / (data.length * circle.cycle)

    def penalty(self, n_parameters: int) -> float:
        """Return what parameters cost: half of ln(samples) each."""
        return n_parameters / 2 * math.log(self.data.n_segments * self.data.length * len(self.circle.rise))

    def of_psd(self, psd: Array) -> float:
        """Return the log-likelihood of a spectrum of the input."""
        return self._of(self.circle.expect(psd)[1:])

    def _of(self, signal: Complex) -> float:
        spectrum = signal + self.noise
        fit = np.linalg.solve(spectrum, self.ordinates).trace(axis1=1, axis2=2).real
        return -float(self.weights @ (np.linalg.slogdet(spectrum)[1] + fit))

    def fit(self, shape: Array | None) -> SumFit:
        """Fit autoregressions of several orders, and the scale of a given shape; return what explains sums best."""
        best = max(self.fit_orders(HIGHEST), key=lambda x: x.score)
        if shape is not None and (scaled := self._fit_scale(shape)).score >= best.score:
            best = scaled
        return best._replace(mean=self.find_mean(best.psd))

    def fit_orders(self, highest: int) -> list[SumFit]:
        """Fit autoregressions of the orders 0 … highest, each from the one before; their means are left at 0."""
        found = [self.refit(np.array([math.log(self._white_variance())]))]
        for _ in range(highest):
            found.append(self.refit(np.append(found[-1].parameters, 0.0)))
        return found

    def refit(self, start: Array) -> SumFit:
        """Fit an autoregression from given parameters on."""
        theta, value = self._maximize(start)
        a, innovation = self._polynomial(theta), math.exp(theta[0] / 2)
        return SumFit(self._psd(theta), 0.0, value - self.penalty(len(theta)), a, innovation, theta)

    def find_mean(self, psd: Array) -> float:
        """Return by how much the mean differs from what was subtracted, less what chance alone would give (Stein)."""
        mean, variance = self.measure_mean(psd)
        return max(0.0, 1 - variance / mean**2) * mean if mean else 0.0

    def measure_mean(self, psd: Array) -> tuple[float, float]:
        """Return by how much the mean differs from what was subtracted, and the variance of that; 0 if unseen."""
        inverse = np.linalg.inv(self.circle.expect(psd)[0].real + self.circle.noise[0].real)
        rise = self.circle.rise
        weight = float(rise @ inverse @ rise)
        if weight <= np.finfo(float).tiny:
            return 0.0, math.inf
        return float(rise @ inverse @ self.data.mean) / weight, 1 / (self.data.n_segments * self.data.length * weight)

    def _fit_scale(self, shape: Array) -> SumFit:
        """Fit the factor of a spectrum."""
        signal = self.circle.expect(shape)[1:]
        values = [self._of(x * signal) for x in _SCALES[::6]]
        near = 6 * int(np.argmax(values))
        fine = _SCALES[max(0, near - 6) : near + 7]
        likelihoods = [self._of(x * signal) for x in fine]
        best = int(np.argmax(likelihoods))
        return SumFit(fine[best] * shape, 0.0, likelihoods[best] - self.penalty(1), None, 0.0, np.empty(0))

    def _white_variance(self) -> float:
        """Find the variance of white inputs by least squares, kept above what is surely invisible."""
        signal = self.circle.expect(np.ones(len(self.circle.omega)))[1:]
        excess = np.einsum("kij,kji->k", signal, self.ordinates - self.noise).real @ self.weights
        power = float(np.einsum("kij,kji->k", signal, signal).real @ self.weights)
        least = 1e-3 * float(np.einsum("kij,kji->k", signal, self.noise).real @ self.weights)
        return max(float(excess), least) / power

    def _maximize(self, start: Array) -> tuple[Array, float]:
        """Find the maximum near given parameters, by damped scoring; return them with the likelihood and its prior."""
        theta, damping, middle = start, _DAMPING[0], float(start[0])
        signal = self._signal(theta)
        value = self._of(signal) - _prior(theta)
        for _ in range(_MOST_STEPS):
            score, information = self._score(theta, signal)
            while damping < _DAMPING[1]:
                damped = information + damping * (np.diag(np.diag(information)) + 1e-12 * np.eye(len(theta)))
                step = np.linalg.solve(damped, score)
                trial = np.clip(theta + np.clip(step, -2, 2), -_LARGEST, _LARGEST)
                trial[0] = min(max(theta[0] + min(max(step[0], -2), 2), middle - _LOUDEST), middle + _LOUDEST)
                here = self._signal(trial)
                gained = self._of(here) - _prior(trial) - value
                if gained >= 0:
                    break
                damping *= 10
            else:
                break
            theta, signal, value, damping = trial, here, value + gained, damping / 10
            if score @ step < _CONVERGED:
                break
        return theta, value

    def _score(self, theta: Array, signal: Complex) -> tuple[Array, Array]:
        """Return the slope of the likelihood and its prior, and its information."""
        inverse = np.linalg.inv(signal + self.noise)
        slopes = [inverse @ x for x in self._slopes(theta, signal)]
        rest = inverse @ self.ordinates - np.eye(inverse.shape[1])

        def along(x: Complex, y: Complex) -> float:
            return float(self.weights @ np.einsum("kij,kji->k", x, y).real)

        held = np.append(0.0, np.ones(len(theta) - 1))
        score = np.array([along(x, rest) for x in slopes]) - held * theta
        return score, np.array([[along(x, y) for x in slopes] for y in slopes]) + np.diag(held)

    def _polynomial(self, theta: Array) -> Array:
        """Make A from its reflection coefficients, its roots drawn inwards."""
        a = np.ones(1)
        for k in np.tanh(theta[1:]):
            a = np.append(a, 0.0)
            a = a + k * a[::-1]
        return np.asarray(a * self.radius ** np.arange(len(a)))

    def _psd(self, theta: Array) -> Array:
        return np.asarray(math.exp(theta[0]) / np.abs(polyval(self.waves, self._polynomial(theta))) ** 2)

    def _signal(self, theta: Array) -> Complex:
        return self.circle.expect(self._psd(theta))[1:]

    def _slopes(self, theta: Array, signal: Complex) -> list[Complex]:
        """Return how what is expected changes with each parameter."""
        found = [signal]
        for k in range(1, len(theta)):
            there = theta.copy()
            there[k] += _DIFFERENCE
            found.append((self._signal(there) - signal) / _DIFFERENCE)
        return found


def _prior(theta: Array) -> float:
    """Return what a weak prior holds against reflections, tanh⁻¹ of which are standard normal."""
    return float(theta[1:] @ theta[1:]) / 2
