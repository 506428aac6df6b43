"""The unit circle in uniform steps of a warped angle: causal parts and minimum-phase factors by FFT.

Slow poles near z = 1 or -1 would need a million steps. An allpass map of the disk onto itself
(:func:`allpass`) spreads their neighbourhood out; it keeps causality and minimum phase, and with the weight
(1 - w²)/|1 + w e^{-iν}|² inner products too, so that all is done in the warped angle with a few thousand steps.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dpfast._support.validation import Array, Complex
from dpfast.filters.fft_grid import MAX_FFT, fft_angles
from dpfast.filters.quadrature import QuadratureGrid
from dpfast.filters.spectral_factor import minimum_phase

_DECAY = 28.0  # of the slowest mode over the steps, in powers of e
_STEPS_PER_LAG = 8
SHORTEST = 4096
_ENDS = (1.0, -1.0)


class WarpedCircle(NamedTuple):
    """Nodes at half the circle, in uniform steps of the warped angle, to compute causal parts and factors at.

    Attributes
    ----------
    warp : float
        Between -1 and 1; 0 leaves the angle as it is.
    z : array of complex
        The nodes e^{iω}, ω from 0 to π.
    unit : array of complex
        The outer function whose squared magnitude is dω/dν.
    grid : Grid
        Their angles, and the weights of the mean over the circle.
    """

    warp: float
    z: Complex
    unit: Complex
    grid: QuadratureGrid

    @property
    def size(self) -> int:
        """The number of steps of the whole circle."""
        return 2 * (len(self.z) - 1)

    def outer_factor(self, power: Array) -> Complex:
        """Compute the minimum-phase function with this squared magnitude, positive at infinity."""
        return minimum_phase(power)

    def causal_part(self, values: Complex) -> Complex:
        """Compute the part of a function that is causal, or of each of several (..., nodes)."""
        h = np.fft.irfft(values * self.unit)
        h[..., h.shape[-1] // 2 :] = 0
        return np.asarray(np.fft.rfft(h) / self.unit)

    def along_outer(self, values: Complex) -> Array:
        """Compute the real S with Re<T d ln G> = <S d ln|G|²> for every change of a minimum-phase G, from T."""
        density = np.abs(self.unit) ** 2
        taps = np.fft.irfft(values * density)
        anticausal = np.roll(taps[::-1], 1)[: len(self.z)]  # at times 0, -1, -2, ...
        even = np.concatenate([anticausal, anticausal[-2:0:-1]]) / 2
        return np.asarray(np.fft.rfft(even).real / density)

    def warped_angle(self, omega: ArrayLike) -> Array:
        """Return the angles at which the nodes are uniform: from 0 to π as ω is."""
        return np.abs(np.angle(allpass(np.exp(1j * np.asarray(omega)), -self.warp)))

    def interpolate(self, values: Array, omega: ArrayLike) -> Array:
        """Interpolate positive values at the nodes: piecewise exponential in the warped angle."""
        nodes = fft_angles(self.size)
        return np.asarray(np.exp(np.interp(self.warped_angle(omega), nodes, np.log(values))))


def make_circle(warp: float, size: int) -> WarpedCircle:
    """Make the circle in so many steps; a power of two."""
    point = np.exp(1j * fft_angles(size))
    unit = math.sqrt(1 - warp * warp) / (1 + warp / point)
    weights = np.full(len(point), 2.0 / size)
    weights[[0, -1]] = 1.0 / size
    z = allpass(point, warp)
    return WarpedCircle(warp, z, unit, QuadratureGrid(np.abs(np.angle(z)), weights * np.abs(unit) ** 2))


def choose_circle(poles: ArrayLike, lag: int = 0, *, size: int = SHORTEST) -> WarpedCircle:
    """Make the circle of :func:`choose_steps`."""
    return make_circle(*choose_steps(poles, lag, size=size))


def choose_steps(poles: ArrayLike, lag: int = 0, *, size: int = SHORTEST) -> tuple[float, int]:
    """Choose the warp that resolves poles and a lag in the fewest steps, and how many; not fewer than `size`.

    Parameters
    ----------
    poles : array_like of complex
        Inside the circle.
    lag : int
        Or a number of taps.
    """
    inside = np.atleast_1d(np.asarray(poles, dtype=np.complex128))
    steps, warp = min((_steps(inside, lag, warp), warp) for warp in _warps(inside))
    return warp, min(MAX_FFT, max(size, 1 << math.ceil(math.log2(steps))))


def _warps(poles: Complex) -> Iterator[float]:
    """Yield no warp, and one for the detail nearest to either end, and half as far."""
    yield 0.0
    for end in _ENDS:
        distance = float(np.abs(end - poles).min(initial=1.0))
        for share in (1.0, 4.0, 16.0):
            yield end * choose_warp(min(1.0, share * distance))


def _steps(poles: Complex, lag: int, warp: float) -> float:
    slowest = float(np.abs(allpass(poles, -warp)).max(initial=0.5))
    stretch = (1 + abs(warp)) / (1 - abs(warp))
    return max(_DECAY / -math.log(slowest), _STEPS_PER_LAG * lag * min(stretch, 2.0))


def allpass(points: ArrayLike, warp: float) -> Complex:
    """Evaluate (z + warp)/(1 + warp z): it maps the disk onto itself, and keeps orders, stability and minimum phase.

    With warp > 0 it sends a neighbourhood of 1 of size near 1 to one of size (1 - warp)/(1 + warp); -warp inverts it.
    """
    z = np.asarray(points, dtype=np.complex128)
    return (z + warp) / (1 + warp * z)


def warped_angles(nu: Array, warp: float) -> Array:
    """Return the angles in [0, π] to which :func:`allpass` sends the angles nu."""
    return np.abs(np.angle(allpass(np.exp(1j * nu), warp)))


def choose_warp(distance: float) -> float:
    """Choose the warp that brings detail at a distance from z = 1 to the square root of that distance."""
    root = math.sqrt(min(distance, 1.0))
    return (1 - root) / (1 + root)
