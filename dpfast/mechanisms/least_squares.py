"""Linear least squares over a horizon: the best estimate of a target from what a strategy and its noise give."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from dpfast._support.validation import Array
from dpfast.filters.toeplitz import Toeplitz
from dpfast.mechanisms.operators.convolution import Convolution
from dpfast.signals.model import Model, autocovariance


class Innovations(NamedTuple):
    """The innovations of v = C u + n, of covariance L Lᵀ, and their covariances with u and y = A u.

    Attributes
    ----------
    root : array, (rows, rows)
        L, lower triangular: the innovations L⁻¹ v are white.
    signal : array, (rows, n)
        L⁻¹ C R, their covariances with u.
    gains : array, (n, rows)
        W = A (L⁻¹ C R)ᵀ, those of y with them.
    """

    root: Array
    signal: Array
    gains: Array

    def receiver(self, kept: NDArray[np.bool_]) -> Array:
        """Return B with the estimates B v that use the kept innovations: those of the first so many rows of v."""
        return np.asarray(linalg.solve_triangular(self.root, (self.gains * kept).T, lower=True, trans=1).T)


def innovations(strategy: Array, covariance: Array, noise: float | Array, a: Array) -> Innovations:
    """Find the innovations of v from C, R, the variance of n or its covariance matrix, and A."""
    seen = strategy @ covariance
    power = seen @ strategy.T
    power += noise if isinstance(noise, np.ndarray) else noise * np.eye(len(power))
    root = linalg.cholesky(power, lower=True, check_finite=False)
    signal = linalg.solve_triangular(root, seen, lower=True, check_finite=False)
    return Innovations(root, signal, a @ signal.T)


def in_time(ready: NDArray[np.intp], horizon: int, lag: int | None) -> NDArray[np.bool_]:
    """Tell which rows of v, ready at those steps, an estimate of y_t that comes at t + lag can use: (horizon, rows)."""
    latest = np.full(horizon, horizon) if lag is None else np.arange(horizon) + lag
    return np.asarray(ready[None, :] <= latest[:, None])


def lmmse_receiver(strategy: Array, target: Toeplitz, model: Model, noise: Array, lag: int | None) -> Array:
    r"""Design the linear estimate with the least mean square error behind any strategy C (rows, n): its B (n, rows).

    It estimates y_t - E y_t from v = C (u - mean) + n. A row of v counts from the step of the last input that it has:
    an estimate of y_t with lag D uses the rows that are complete at t + D, and all of them without a lag. Where v has
    the covariance C R Cᵀ + Σ = L Lᵀ, in the order in which the rows are complete, the innovations L⁻¹ v are white,
    and B = (M ∘ A R Cᵀ L⁻ᵀ) L⁻¹ with M the mask of what is complete in time (Kailath 1968).

    Parameters
    ----------
    strategy : array, (rows, n)
        With exact zeros where a row does not hold an input.
    target : Toeplitz
    model : Model
        Of the input, stationary from step 0.
    noise : array, (rows, rows)
        Σ, the covariance of n.
    lag : int or None

    Examples
    --------
    >>> from dpfast.signals.arma import ARMA
    >>> lmmse_receiver(np.eye(2), Toeplitz([1.0, 1.0]), ARMA([1.0]), np.eye(2), 0)
    array([[0.5, 0. ],
           [0.5, 0.5]])
    """
    n = target.horizon
    ready = np.where(strategy.any(axis=1), n - 1 - np.argmax(strategy[:, ::-1] != 0, axis=1), 0)
    order = np.argsort(ready, kind="stable")
    rows = strategy[order]
    covariance = linalg.toeplitz(autocovariance(model, n))
    found = innovations(rows, covariance, noise[np.ix_(order, order)], Convolution(target.coefficients).matrix())
    receiver = np.empty((n, len(rows)))
    receiver[:, order] = found.receiver(in_time(ready[order], n, lag))
    return receiver
