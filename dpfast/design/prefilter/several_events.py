r"""Design for persons who contribute several events: their least favourable times weigh the noise.

The squared sensitivity to m events, b apart, is at most d² max <xΦ>, Φ = m + 2 Σ_{l<m} (m - l) s_l cos ωτ_l, over all
τ_l ≥ lb and signs s_l (exact for m = 2). It is convex in x = |G|². With r(τ) = <x cos ωτ> it is a sum of suprema of
|r|. For a mixture λ of such Φ the least noise with |K| given is <|K|√Φ_λ>², at x = |K|/√Φ_λ; its largest value over λ
is the least noise for the worst case (minimax theorem), and every λ gives a lower bound. For m > 2 such Φ may be more
than any choice of times does: then only events far apart, Φ = m, bound what mechanisms can reach.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dpfast._support.validation import Array
from dpfast.filters.fft_grid import fft_angles
from dpfast.filters.quadrature import QuadratureGrid, graded_grid
from dpfast.filters.spectral_factor import Spectrum
from dpfast.privacy.privacy import Privacy

_SMALLEST = 1e-4  # the least Φ/m: the events of a person cancel so far at most
_DENSER = 8  # steps of the table of Φ for one of the circle
_REST = 1e-2  # of the mass, beyond the longest lag that grids resolve
_STEP = 4.0  # exponent of a multiplicative step, of which 1 is sure to ascend
_DECAY = 1e-3  # of the first mixture, per sample
_MOST_PAIRS = 50  # pairs of events that are mixed
_RESOLVED = 16  # a function that changes over fewer steps is averaged


class Contributions(NamedTuple):
    """The way in which the events of a person count in the noise: a mixture of their times.

    Attributes
    ----------
    phi : array
        Φ/m = 1 + Σ coefficients cos(ω lags) at uniform angles from 0 to π, much denser than the lags need.
    longest : int
        The lag below which nearly all of the mixture is.
    """

    phi: Array
    longest: int

    def weight(self, omega: Array) -> Array:
        """Return ψ = √(Φ/m) at some angles."""
        return np.sqrt(np.interp(omega, _uniform_angles(len(self.phi)), self.phi))


@functools.lru_cache(maxsize=2)
def _uniform_angles(n: int) -> Array:
    """Return n angles from 0 to π: a search asks for the same ones ten thousand times."""
    return np.linspace(0, np.pi, n)


ONE_EVENT = Contributions(np.ones(2), 0)


class Mixture:
    """Probabilities of τ_l and s_l for every l, ascending by multiplicative steps to the least favourable one.

    Parameters
    ----------
    privacy : Privacy
        With `max_events` > 1.
    size : int
        Steps of the uniform circle on which spectra are given; lags up to a quarter of it are mixed.
    """

    def __init__(self, privacy: Privacy, size: int) -> None:
        self.size, longest = size, size // 4
        events, apart = privacy.max_events, min(privacy.min_separation, longest)
        pairs = np.arange(1, min(events - 1, longest // apart) + 1)
        self.first = pairs * apart
        self.share = 2 * (1 - pairs / events)
        lags = np.arange(longest + 1)
        start = np.exp(-_DECAY * lags) * (lags >= self.first[:_MOST_PAIRS, None])
        start /= 2 * start.sum(axis=1, keepdims=True)
        self.probabilities = np.stack([start, start])  # of a sign, an l and a lag
        weights = np.full(size // 2 + 1, 2.0 / size)
        weights[[0, -1]] = 1.0 / size
        self.grid = QuadratureGrid(fft_angles(size), weights)

    def contributions(self) -> Contributions:
        """Return the weights of the present mixture."""
        mass = np.cumsum(self.probabilities.sum(axis=(0, 1)))
        longest = int(np.searchsorted(mass, (1 - _REST) * mass[-1]))
        return Contributions(self._phi(_DENSER * self.size), longest)

    def _phi(self, size: int) -> Array:
        """Return Φ/m at uniform angles; opposite signs are mixed in until it is nowhere negative."""
        coefficients = self.share[:_MOST_PAIRS] @ (self.probabilities[0] - self.probabilities[1])
        even = np.zeros(size)
        even[: len(coefficients)] = coefficients / 2
        even[-(len(coefficients) - 1) :] += coefficients[:0:-1] / 2
        change = np.fft.rfft(even).real
        return np.asarray(1 + change * min(1.0, (1 - _SMALLEST) / max(-change.min(), _SMALLEST)))

    def sample(self, function: Spectrum, roots: ArrayLike) -> Array:
        """Evaluate a function at the nodes; beside roots nearer to the circle than some steps, average over a step.

        So a band narrower than a step, in which nothing passes, counts with its width, not with a step or not at all.
        """
        values, step = np.array(function(self.grid.omega)), 2 * np.pi / self.size
        near = np.atleast_1d(np.asarray(roots, dtype=np.complex128))
        near = near[-np.log(np.abs(near)) < _RESOLVED * step]
        below = np.floor(np.abs(np.angle(near)) / step)
        nodes = np.unique(np.minimum(np.concatenate([below, below + 1]), self.size // 2)).astype(int)
        low, high = np.maximum((nodes - 0.5) * step, 0.0), np.minimum((nodes + 0.5) * step, np.pi)
        grid = graded_grid(near, breaks=[*low, *high])
        for node, left, right in zip(nodes, low, high, strict=True):
            inside = (grid.omega > left) & (grid.omega < right)
            weights = grid.weights[inside]
            values[node] = weights @ function(grid.omega[inside]) / weights.sum()
        return values

    def squared_sensitivity(self, x: Array) -> float:
        """Return the square of the sensitivity over d²m: the largest <xΦ>/m, or the largest x if that is less."""
        r = np.fft.irfft(x)[: self.size // 2]
        beyond = np.maximum.accumulate(np.abs(r)[::-1])[::-1]
        return min(float(r[0] + self.share @ beyond[self.first]), float(x.max()))

    def ascend(self, size: Array, stride: float) -> None:
        """Take so many steps, or a part of one, towards the mixture that is least favourable for a given |K|."""
        for _ in range(math.ceil(stride)):
            r = np.fft.irfft(size / np.sqrt(self._phi(self.size)))[: self.size // 4 + 1]
            gain = np.maximum(np.stack([1 + r / r[0], 1 - r / r[0]]), 0.0)[:, None, :]
            moved = self.probabilities * gain ** (_STEP * stride / math.ceil(stride))
            self.probabilities = moved / moved.sum(axis=(0, 2), keepdims=True)
