"""What systems make of several streams over time: their outputs' variances, from rest too; and sources of samples."""

from __future__ import annotations

import numpy as np

from dpfast._kernels import signal_sources
from dpfast._support.first_steps import SETTLED, distinct_steps, mean_of_first
from dpfast._support.validation import Array
from dpfast.filters.filter_matrix import FilterMatrix
from dpfast.filters.toeplitz import convolve_series
from dpfast.signals.channel_models import ChannelModels, channels_grid, passed_power
from dpfast.signals.model import autocovariance
from dpfast.signals.vector_arma import VectorARMA


def compile_sources(models: ChannelModels) -> signal_sources.ChannelSources:
    """Return the sources that the compiled simulation draws from."""
    if isinstance(models, VectorARMA):
        return models.compiled()
    return signal_sources.IndependentSources(tuple(x.compiled() for x in models))


def autocovariance_of(models: ChannelModels, n: int) -> Array:
    """Return R_0 ... R_{n-1}, R_k = E x_{t+k} x_tᵀ, of the centred streams, (m, m, n)."""
    if not isinstance(models, VectorARMA):
        return np.eye(len(models))[:, :, None] * np.stack([autocovariance(x, n) for x in models])
    observed, power = models.c, models.a  # C Aᵏ, twice as many at a time
    while len(observed) < n * len(models.c):
        observed, power = np.concatenate([observed, observed @ power]), power @ power
    later = observed.reshape(-1, *models.c.shape)[: n - 1] @ models.state_cross_covariance
    return np.moveaxis(np.concatenate([models.covariance[None], later]), 0, -1)


def channel_variances_by_step(q: Array, r: Array) -> Array:
    """Return the variances (p, n) of Σ_{k ≤ t} q_k x_{t-k} for q (p, m, n), where x has the autocovariance r (m, m, n).

    V_t - V_{t-1} = q_t R_0 q_tᵀ + 2 Σ_{k < t} q_k R_{t-k} q_tᵀ.
    """
    growth = np.zeros((len(q), q.shape[-1]))
    for j, k in zip(*np.nonzero(r.any(axis=-1)), strict=True):
        both = q[:, j].any(axis=-1) & q[:, k].any(axis=-1)
        past = 2 * convolve_series(q[both, j], r[j, k]) - r[j, k, 0] * q[both, j]
        growth[both] += past * q[both, k]
    return np.cumsum(growth, axis=-1)


def output_variances(target: FilterMatrix, models: ChannelModels, n_first: int | None = None) -> Array:
    """Return the variances (p,) of the outputs of a target, settled, or in the mean over first steps from rest."""
    if n_first is not None:
        n = distinct_steps(n_first, target.settling_time(SETTLED))
        steps = channel_variances_by_step(target.impulse(n), autocovariance_of(models, n))
        return np.array([mean_of_first(x, n_first) for x in steps])
    omega, weights = channels_grid(models, target.poles, target.order)
    return np.asarray(weights @ passed_power(models, target.response(omega), omega))
