"""What is known of several streams together: a model for each, which are independent then, or one model of all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dpfast._support import validation
from dpfast._support.validation import Array, Complex
from dpfast.filters.quadrature import QuadratureGrid, graded_grid
from dpfast.signals.model import Model, check_model
from dpfast.signals.vector_arma import VectorARMA

ChannelModels = tuple[Model, ...] | VectorARMA


def check_channel_models(name: str, models: Any, m: int) -> ChannelModels:
    """Return a model for each of m inputs, or one of all of them; refuse another number of channels."""
    wanted = f"a sequence of {m} models, one for each input, or a VectorARMA of {m} channels"
    if isinstance(models, VectorARMA):
        if models.n_channels != m:
            raise ValueError(f"{name} must be {wanted}, got a VectorARMA of {models.n_channels} channels")
        return models
    return check_independent(name, models, m, wanted)


def check_independent(name: str, models: Any, m: int, wanted: str) -> tuple[Model, ...]:
    """Return a model for each of m inputs, where one input may have its model alone; say what is wanted instead."""
    given = (models,) if m == 1 and isinstance(models, Model) else models
    if isinstance(given, str) or not isinstance(given, Sequence) or len(given) != m:
        raise validation.fail(name, wanted, models)
    for each in given:
        check_model(each)
    return tuple(given)


def without_others(models: Any) -> Any:
    """Return a VectorARMA of one stream, which has no others to depend on, as the one model of it; others as they are.

    So that it has all designs of independent streams, which are those of one stream.
    """
    alone = isinstance(models, VectorARMA) and models.n_channels == 1 and models.covariance.item() > 0
    return (models.channel(0),) if alone else models


def channel_means(models: ChannelModels) -> Array:
    """Return the mean of each stream, (m,)."""
    return models.mean if isinstance(models, VectorARMA) else np.array([x.mean for x in models])


def joint_model(models: ChannelModels) -> VectorARMA:
    """Return one model of all streams, in state space."""
    return models if isinstance(models, VectorARMA) else VectorARMA.independent(models)


def passed_power(models: ChannelModels, response: Complex, omega: Array) -> Array:
    """Return the spectra (..., p) of each output of a system with the responses (..., p, m) at angles (...).

    They are the diagonal of R P R*, as a sum of squares.
    """
    if isinstance(models, VectorARMA):
        return np.asarray((np.abs(response @ models.response(omega)) ** 2).sum(axis=-1))
    spectra = np.stack([x.psd(omega) for x in models], axis=-1)
    return np.asarray((np.abs(response) ** 2 @ spectra[..., None])[..., 0])


def spectral_root(models: ChannelModels, omega: Array) -> Complex:
    """Return B (..., m, k) of angles (...), with BB* the matrix of spectra."""
    if isinstance(models, VectorARMA):
        return models.response(omega)
    return np.asarray(np.sqrt(np.stack([x.psd(omega) for x in models], axis=-1))[..., None] * np.eye(len(models)) + 0j)


def channels_grid(models: ChannelModels, poles: Complex, degree: int) -> QuadratureGrid:
    """Return a quadrature grid that resolves these spectra, and other systems of given poles and degree."""
    if isinstance(models, VectorARMA):
        every, most = [poles, models.poles], len(models.a)
    else:
        every, most = [poles, *(x.shaping.poles for x in models)], max((x.shaping.order for x in models), default=0)
    return graded_grid(np.concatenate(every), degree=max(degree, most))
