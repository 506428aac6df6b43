"""Put noise on the input or on the output: the two mechanisms that need no design."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, get_args, overload

import numpy as np

from dpfast._support import validation
from dpfast._support.design_calls import public_design
from dpfast.design.argument_checks import check_inputs, check_real_noise, toeplitz_or_none
from dpfast.design.mimo.channel_designs import perturb_channels, perturb_outputs
from dpfast.filters.filter import Filter
from dpfast.filters.filter_matrix import FilterMatrix
from dpfast.filters.toeplitz import Toeplitz
from dpfast.mechanisms.base import Option
from dpfast.mechanisms.channels_mechanism import ChannelsMechanism
from dpfast.mechanisms.input_noise import InputNoise
from dpfast.mechanisms.matrix_mechanism import MatrixMechanism, Noise, OnInput
from dpfast.mechanisms.mechanism import Mechanism
from dpfast.mechanisms.operators.convolution import Convolution
from dpfast.mechanisms.receivers.linear import LinearReceiver
from dpfast.privacy.integer_noise.choice import integer_noise
from dpfast.privacy.integer_noise.law import IntegerKind
from dpfast.privacy.lattice import find_lattice
from dpfast.privacy.privacy import Privacy, check_privacy

InputNoiseKind = Literal["gaussian", "laplace", "best", "geometric", "canonical", "staircase"]


@overload
def input_perturbation(
    target: Filter, privacy: Privacy, *, noise: InputNoiseKind = ..., unit: float | None = ..., name: str = ...
) -> Mechanism: ...


@overload
def input_perturbation(
    target: Toeplitz, privacy: Privacy, *, noise: InputNoiseKind = ..., unit: float | None = ..., name: str = ...
) -> MatrixMechanism: ...


@overload
def input_perturbation(
    target: FilterMatrix, privacy: Privacy, *, noise: InputNoiseKind = ..., unit: float | None = ..., name: str = ...
) -> ChannelsMechanism: ...


@public_design
def input_perturbation(
    target: Filter | Toeplitz | FilterMatrix,
    privacy: Privacy,
    *,
    noise: InputNoiseKind = "gaussian",
    unit: float | None = None,
    name: str = "input perturbation",
) -> Mechanism | MatrixMechanism | ChannelsMechanism:
    """Put noise on the input and filter it: G = 1, H = F, MSE (variance of the noise)·‖F‖₂² (Le Ny 2013, Section III).

    Over a horizon: C = 1, B = A. Of several streams each input has as much noise as is best, all of it Gaussian.

    Parameters
    ----------
    target : Filter, Toeplitz or FilterMatrix
        F, whose output should be published; over a horizon A.
    privacy : Privacy
        The guarantee that is asked for; for several inputs with an adjacency.
    noise : {"gaussian", "laplace", "best", "geometric", "canonical", "staircase"}
        All but Gaussian and canonical noise give pure ε, without δ, and are the lesser where δ is small. The last four
        are on the integers: "best" is the law of least variance that serves.
    unit : float, optional
        For noise on the integers, the unit whose multiples real inputs are rounded to; their sensitivity is then the
        integer part of max_change/unit, and one more. Without it inputs are counts, which are integers. What is
        predicted takes the error of rounding for white noise of variance unit²/12, as it nearly is where the part of an
        input that its past does not tell has a standard deviation of at least half a unit: ``predict`` warns elsewhere.
    name : str
        What tables and pictures call it.

    Returns
    -------
    Mechanism, MatrixMechanism or ChannelsMechanism
        A MatrixMechanism for a Toeplitz target, a ChannelsMechanism for a FilterMatrix.

    Notes
    -----
    *Privacy.* The noise is that of the sensitivity of G, by which all that follows is private.

    Examples
    --------
    >>> import dpfast as dp
    >>> round(dp.input_perturbation(dp.Filter([1, 1]), dp.Privacy.from_gdp(1, 1e-6)).predicted_mse, 6)
    2.0
    >>> round(dp.input_perturbation(dp.Filter([1, 1]), dp.Privacy(1), noise="geometric").predicted_mse, 4)
    3.6827
    """
    validation.choice("noise", noise, get_args(InputNoiseKind))
    if unit is not None and noise in get_args(Noise):
        raise ValueError(
            f"unit must not be given with {noise} noise, which rounds no inputs, got {unit!r}: leave it out"
        )
    if isinstance(target, FilterMatrix):
        _check_gaussian(noise)
        return perturb_channels(target, privacy, name)
    check_privacy(privacy)
    kind: Noise | IntegerKind = noise if noise == "gaussian" or noise == "laplace" else _find_kind(noise, privacy, unit)
    if (series := toeplitz_or_none(target)) is not None:
        strategy, reconstruction = _identity(series), Convolution(series.coefficients)
        options = () if noise in get_args(Noise) else _noise_options(noise, unit)
        made = _perturbation_over_horizon(name, series, privacy, strategy, reconstruction, kind, unit)
        return replace(made, options=options)
    filter = check_inputs(target, privacy)
    if kind == "gaussian":
        return _perturbation(name, filter, privacy, Filter([1.0]), filter)
    made_of_filters = _perturbation(name, filter, privacy, Filter([1.0]), filter, InputNoise(kind, unit))
    return replace(made_of_filters, options=_noise_options(noise, unit))


def _check_gaussian(noise: str) -> None:
    if noise != "gaussian":
        raise ValueError(f"noise must be 'gaussian' for a FilterMatrix, got {noise!r}: there is no other for it yet")


def _noise_options(noise: InputNoiseKind, unit: float | None) -> tuple[tuple[str, Option], ...]:
    """Return what a design with other noise was given, for its sources; those before had none of it."""
    return (("noise", noise), *(() if unit is None else (("unit", unit),)))


def _find_kind(noise: IntegerKind | Literal["best"], privacy: Privacy, unit: float | None) -> IntegerKind:
    """Return the kind of noise on the integers, of the best one too."""
    return integer_noise(noise, privacy, find_lattice(privacy, None, unit).steps).kind


@overload
def output_perturbation(target: Filter, privacy: Privacy, *, name: str = ...) -> Mechanism: ...


@overload
def output_perturbation(
    target: Toeplitz, privacy: Privacy, *, noise: Noise = ..., name: str = ...
) -> MatrixMechanism: ...


@overload
def output_perturbation(
    target: FilterMatrix, privacy: Privacy, *, noise: Noise = ..., name: str = ...
) -> ChannelsMechanism: ...


@public_design
def output_perturbation(
    target: Filter | Toeplitz | FilterMatrix,
    privacy: Privacy,
    *,
    noise: Noise = "gaussian",
    name: str = "output perturbation",
) -> Mechanism | MatrixMechanism | ChannelsMechanism:
    """Filter the input and put noise on the output: G = F, H = 1, MSE c²‖F‖₂² (Le Ny 2013, Section III).

    Over a horizon: C = A, B = 1. Of several streams all outputs have the same noise.

    Parameters
    ----------
    target : Filter, Toeplitz or FilterMatrix
        F, whose output should be published; over a horizon A.
    privacy : Privacy
        The guarantee that is asked for; for several inputs with an adjacency.
    noise : {"gaussian", "laplace"}
        Laplace noise is for a Toeplitz target alone. It gives pure ε, without δ.
    name : str
        What tables and pictures call it.

    Returns
    -------
    Mechanism, MatrixMechanism or ChannelsMechanism
        A MatrixMechanism for a Toeplitz target, a ChannelsMechanism for a FilterMatrix.

    Notes
    -----
    *Privacy.* The noise is that of the sensitivity of G, by which all that follows is private.

    Examples
    --------
    >>> import dpfast as dp
    >>> round(dp.output_perturbation(dp.Filter([1, 1]), dp.Privacy.from_gdp(1, 1e-6)).noise_std ** 2, 6)
    2.0
    """
    check_real_noise(noise)
    if isinstance(target, FilterMatrix):
        _check_gaussian(noise)
        return perturb_outputs(target, privacy, name)
    if (series := toeplitz_or_none(target)) is not None:
        strategy, reconstruction = Convolution(series.coefficients), _identity(series)
        return _perturbation_over_horizon(name, series, privacy, strategy, reconstruction, noise)
    filter = check_inputs(target, privacy)
    if noise != "gaussian":
        raise ValueError(
            f"noise must be 'gaussian' for a Filter, got {noise!r}: give a horizon, by target=Toeplitz.of(target, n)"
        )
    return _perturbation(name, filter, privacy, filter, Filter([1.0]))


def _perturbation(
    name: str, target: Filter, privacy: Privacy, prefilter: Filter, post: Filter, noise: InputNoise | None = None
) -> Mechanism:
    mechanism = Mechanism(name, target, privacy, None, prefilter, LinearReceiver(post, target, 0.0, 0), noise=noise)
    return replace(mechanism, ideal_mse=(mechanism.noise_std * post.h2_norm()) ** 2)


def _perturbation_over_horizon(
    name: str,
    target: Toeplitz,
    privacy: Privacy,
    strategy: Convolution,
    reconstruction: Convolution,
    noise: OnInput,
    unit: float | None = None,
) -> MatrixMechanism:
    check_privacy(privacy)
    mechanism = MatrixMechanism(name, target, privacy, strategy, reconstruction, noise=noise, unit=unit)
    return replace(mechanism, ideal_mse=mechanism.predicted_mse)


def _identity(target: Toeplitz) -> Convolution:
    return Convolution(np.eye(1, target.horizon)[0])
