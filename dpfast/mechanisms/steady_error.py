"""The mean squared error of a linear receiver, once everything has settled."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfast._support.validation import Array
from dpfast.filters.filter import Filter
from dpfast.filters.peak_gain import fft_points, hinf_norm
from dpfast.filters.quadrature import QuadratureGrid, graded_grid
from dpfast.signals.model import Model


class HasResponse(Protocol):
    """A linear receiver, as far as the stationary errors ask for it."""

    @property
    def lag(self) -> int | None:
        """Samples by which the estimate is late; None for a smoother."""

    def filters(self) -> tuple[Filter, ...]:
        """Return the filters inside, whose poles and taps a grid has to resolve."""

    def response(self, omega: ArrayLike) -> NDArray[np.complex128]:
        """Return the frequency response H(ω) of the receiver."""


class Errors(NamedTuple):
    """The two parts of a stationary MSE."""

    noise: float
    distortion: float


def linear_errors(target: Filter, model: Model, prefilter: Filter, noise_std: float, receiver: HasResponse) -> Errors:
    """Return the stationary errors where the mean is known: σ² <|H|²> and <P_u |e^{-iωD} F - H G|²>."""
    grid = steady_grid(target, prefilter, *receiver.filters(), model.shaping)
    omega, h = grid.omega, receiver.response(grid.omega)
    wanted = target.response(omega) * np.exp(-1j * (receiver.lag or 0) * omega)
    distortion = model.psd(omega) * np.abs(wanted - h * prefilter.response(omega)) ** 2
    return Errors(noise_std**2 * grid.mean(np.abs(h) ** 2), grid.mean(distortion))


def linear_mse(target: Filter, model: Model, prefilter: Filter, noise_std: float, receiver: HasResponse) -> float:
    """Return the sum of both stationary errors where the mean is known."""
    return sum(linear_errors(target, model, prefilter, noise_std, receiver))


def worst_errors(
    target: Filter, mean_square: float, prefilter: Filter, noise_std: float, receiver: HasResponse
) -> Errors:
    """Return the stationary errors on the worst input: σ² <|H|²> and mean_square · ‖e^{-iωD} F - H G‖∞², rounded up."""
    filters, lag = (target, prefilter, *receiver.filters()), receiver.lag or 0

    def distortion(omega: Array) -> Array:
        wanted = target.response(omega) * np.exp(-1j * lag * omega)
        return np.asarray(np.abs(wanted - receiver.response(omega) * prefilter.response(omega)))

    uniform = distortion(np.linspace(0, np.pi, fft_points(lag + sum(x.order for x in filters)) // 2 + 1))
    worst = hinf_norm(distortion, np.concatenate([x.poles for x in filters]), uniform)
    grid = steady_grid(*filters)
    return Errors(noise_std**2 * grid.mean(np.abs(receiver.response(grid.omega)) ** 2), mean_square * worst**2)


def steady_grid(*filters: Filter) -> QuadratureGrid:
    """Return a quadrature grid that resolves the poles and taps of all filters together."""
    return graded_grid(np.concatenate([x.poles for x in filters]), degree=sum(len(x.b) for x in filters))
