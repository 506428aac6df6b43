"""Autoregressions of several streams from their sample autocovariances, by the Yule-Walker equations."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dpfast._support import validation
from dpfast._support.dataframes import unwrap
from dpfast._support.validation import Array

Observations = ArrayLike | Any  # or a table with labels
_INSIDE = 1 - 1e-6  # of the largest radius: poles that were moved there are found again with rounding
_SINGULAR = 1e-10  # of correlations: channels that determine one another


class VectorAutoregression(NamedTuple):
    """Matrices (order, m, m), the covariance of the innovations, and the mean of the channels."""

    autoregression: Array
    innovation_covariance: Array
    mean: Array


def fit_autoregression(u: Observations, order: int, largest_radius: float) -> VectorAutoregression:
    r"""Solve :math:`R_j = \sum_k A_k R_{j-k}`, j = 1 ... order, of the biased autocovariances R_k = E[x_t x_{t-k}ᵀ].

    These are of a stationary stream, a finite one, so that the solution is stable (Whittle 1963); what rounding leaves
    beyond the radius is moved there.

    Parameters
    ----------
    u : array_like, (m, time) or (streams, m, time), or a table
    order : int
    largest_radius : float
        That poles may have, below 1.
    """
    x = _check_observations(u, order)
    mean = x.mean(axis=(0, 2))
    x = x - mean[:, None]
    size = np.sqrt((x**2).mean(axis=(0, 2)))
    r = _autocovariances(x / size[:, None], order)
    m = len(size)
    if np.linalg.eigvalsh(r[0])[0] < _SINGULAR:
        raise ValueError("u must not have channels that determine one another: leave out what others add up to")
    blocks = [[r[i - j] if i >= j else r[j - i].T for i in range(order)] for j in range(order)]
    right = r[1:].transpose(1, 0, 2).reshape(m, order * m)
    flat = np.linalg.solve(np.block(blocks).T, right.T).T if order else right
    ar = np.asarray(flat, dtype=np.float64).reshape(m, order, m).transpose(1, 0, 2)
    innovation = r[0] - np.einsum("kij,klj->il", ar, r[1:])
    ar, innovation = _limit_poles(ar, (innovation + innovation.T) / 2, largest_radius)
    return VectorAutoregression(ar * np.divide.outer(size, size), innovation * np.outer(size, size), mean)


def _check_observations(u: Observations, order: int) -> Array:
    x = validation.array("u", unwrap("u", u)[0], empty=False)
    x = x[None] if x.ndim == 2 else x
    if x.ndim != 3 or x.shape[2] <= order:
        raise ValueError(
            f"u must be (m, time) or (streams, m, time) with more than {order} samples, got {np.shape(u)}: fit a lower "
            "order"
        )
    if x.shape[0] * x.shape[2] <= x.shape[1]:
        raise ValueError(f"u must have more samples than channels, got {x.shape[1]} channels: is time the last axis?")
    spread = np.ptp(x, axis=(0, 2))
    if spread.min() < validation.SMALLEST:
        raise ValueError(
            f"u must vary by more than {validation.SMALLEST:g} in every channel, and channel {int(spread.argmin())} "
            "does not: a constant stream needs no publication"
        )
    return x


def _autocovariances(x: Array, order: int) -> Array:
    """Return the biased R_0 ... R_order (order + 1, m, m) of centred observations (streams, m, time)."""
    streams, _, n = x.shape
    products = [np.einsum("sit,sjt->ij", x[..., k:], x[..., : n - k]) for k in range(order + 1)]
    return np.asarray(np.stack(products) / (streams * n), dtype=np.float64)


def _limit_poles(ar: Array, innovation: Array, largest_radius: float) -> tuple[Array, Array]:
    order, m = ar.shape[:2]
    if order == 0:
        return ar, innovation
    companion = np.eye(order * m, k=-m)
    companion[:m] = ar.transpose(1, 0, 2).reshape(m, order * m)
    slowest = float(np.abs(np.linalg.eigvals(companion)).max(initial=0.0))
    if slowest <= largest_radius:
        return ar, innovation
    shrink = largest_radius * _INSIDE / slowest
    return ar * shrink ** np.arange(1, order + 1)[:, None, None], innovation
