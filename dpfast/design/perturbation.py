"""Put noise on the input or on the output: the two mechanisms that need no design."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args, overload

import numpy as np

from dpfast._support import validation
from dpfast.design.argument_checks import check_inputs, toeplitz_or_none
from dpfast.filters.filter import Filter
from dpfast.filters.toeplitz import Toeplitz
from dpfast.mechanisms.matrix_mechanism import MatrixMechanism, Noise
from dpfast.mechanisms.mechanism import Mechanism
from dpfast.mechanisms.operators.convolution import Convolution
from dpfast.mechanisms.receivers.linear import LinearReceiver
from dpfast.privacy.privacy import Privacy


@overload
def input_perturbation(target: Filter, privacy: Privacy, *, name: str = ...) -> Mechanism: ...


@overload
def input_perturbation(
    target: Toeplitz, privacy: Privacy, *, noise: Noise = ..., name: str = ...
) -> MatrixMechanism: ...


def input_perturbation(
    target: Filter | Toeplitz, privacy: Privacy, *, noise: Noise = "gaussian", name: str = "input perturbation"
) -> Mechanism | MatrixMechanism:
    """Put noise on the input and filter it: G = 1, H = F, MSE c²‖F‖₂² (Le Ny 2013, Section III).

    Over a horizon: C = 1, B = A.

    Parameters
    ----------
    target : Filter or Toeplitz
        F, or A.
    privacy : Privacy
    noise : {"gaussian", "laplace"}
        Laplace noise is for a Toeplitz target alone. It gives pure ε, without δ, and is the lesser where δ is small.
    name : str

    Returns
    -------
    Mechanism or MatrixMechanism
        A MatrixMechanism for a Toeplitz target.

    Notes
    -----
    *Privacy.* The noise is that of the sensitivity of G, by which all that follows is private.

    Examples
    --------
    >>> import dpfast as dp
    >>> round(dp.input_perturbation(dp.Filter([1, 1]), dp.Privacy.from_gdp(1, 1e-6)).predicted_mse, 6)
    2.0
    """
    if (series := toeplitz_or_none(target)) is not None:
        strategy, reconstruction = _identity(series), Convolution(series.coefficients)
        return _perturbation_over_horizon(name, series, privacy, strategy, reconstruction, noise)
    filter = check_inputs(target, privacy)
    _check_gaussian(noise)
    return _perturbation(name, filter, privacy, Filter([1.0]), filter)


@overload
def output_perturbation(target: Filter, privacy: Privacy, *, name: str = ...) -> Mechanism: ...


@overload
def output_perturbation(
    target: Toeplitz, privacy: Privacy, *, noise: Noise = ..., name: str = ...
) -> MatrixMechanism: ...


def output_perturbation(
    target: Filter | Toeplitz, privacy: Privacy, *, noise: Noise = "gaussian", name: str = "output perturbation"
) -> Mechanism | MatrixMechanism:
    """Filter the input and put noise on the output: G = F, H = 1, MSE c²‖F‖₂² (Le Ny 2013, Section III).

    Over a horizon: C = A, B = 1.

    Parameters
    ----------
    target : Filter or Toeplitz
        F, or A.
    privacy : Privacy
    noise : {"gaussian", "laplace"}
        Laplace noise is for a Toeplitz target alone. It gives pure ε, without δ.
    name : str

    Returns
    -------
    Mechanism or MatrixMechanism
        A MatrixMechanism for a Toeplitz target.

    Notes
    -----
    *Privacy.* The noise is that of the sensitivity of G, by which all that follows is private.

    Examples
    --------
    >>> import dpfast as dp
    >>> round(dp.output_perturbation(dp.Filter([1, 1]), dp.Privacy.from_gdp(1, 1e-6)).noise_std ** 2, 6)
    2.0
    """
    if (series := toeplitz_or_none(target)) is not None:
        strategy, reconstruction = Convolution(series.coefficients), _identity(series)
        return _perturbation_over_horizon(name, series, privacy, strategy, reconstruction, noise)
    filter = check_inputs(target, privacy)
    _check_gaussian(noise)
    return _perturbation(name, filter, privacy, filter, Filter([1.0]))


def _perturbation(name: str, target: Filter, privacy: Privacy, prefilter: Filter, post: Filter) -> Mechanism:
    receiver = LinearReceiver(post, target, 0.0, 0)
    ideal = (privacy.noise_std(prefilter) * post.h2_norm()) ** 2
    return Mechanism(name, target, privacy, None, prefilter, receiver, ideal)


def _perturbation_over_horizon(
    name: str, target: Toeplitz, privacy: Privacy, strategy: Convolution, reconstruction: Convolution, noise: Noise
) -> MatrixMechanism:
    validation.instance("privacy", privacy, Privacy, "a Privacy")
    mechanism = MatrixMechanism(name, target, privacy, strategy, reconstruction, noise=noise)
    return replace(mechanism, ideal_mse=mechanism.predicted_mse)


def _check_gaussian(noise: Noise) -> None:
    if validation.choice("noise", noise, get_args(Noise)) != "gaussian":
        raise ValueError(
            f"noise must be 'gaussian' for a Filter, got {noise!r}: give a horizon, by target=Toeplitz.of(target, n)"
        )


def _identity(target: Toeplitz) -> Convolution:
    return Convolution(np.eye(1, target.horizon)[0])
