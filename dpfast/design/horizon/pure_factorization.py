"""Matrix mechanisms of pure ε: descent on strategies of bounded ℓ₁ norm, with Laplace or geometric noise."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from dpfast._support import validation
from dpfast._support.validation import Array
from dpfast.design.horizon.joint_factorization import joint_factorization
from dpfast.design.horizon.l1_factorization import least_squares_receiver
from dpfast.design.horizon.l1_search import JointSearch, UnbiasedSearch
from dpfast.design.horizon.unbiased_factorization import unbiased_factorization
from dpfast.filters.toeplitz import Toeplitz
from dpfast.mechanisms.base import Option
from dpfast.mechanisms.matrix_mechanism import MatrixMechanism, OnInput
from dpfast.mechanisms.operators.convolution import Convolution
from dpfast.mechanisms.operators.dense import Dense
from dpfast.mechanisms.operators.sparse import Sparse
from dpfast.privacy.integer_noise.choice import integer_noise
from dpfast.privacy.lattice import TAKE_LAPLACE, find_lattice
from dpfast.privacy.privacy import Privacy
from dpfast.signals.model import Model, autocovariance

_UNITS = tuple(2.0**-k for k in (0, 1, 2, 3, 4, 6, 8, 12))  # of entries, which are at most 1, where none is given
_FINEST = 2.0**-40
Publishable = tuple[Array, dict[str, Option]]  # the rows of a strategy, and the options that a mechanism keeps of it


class PureDesign(NamedTuple):
    """It says what a design of pure ε is to be: its noise, the kind of its strategy, and what it is called."""

    noise: OnInput
    lower: bool
    strategy_unit: float | None
    name: str
    progress: bool

    def publishable(self, c: Array, plain: Array) -> Iterator[Publishable]:
        """Give what may be published for the strategy of a search, and with geometric noise for a plain one.

        A search knows geometric noise as that of a fine unit; it is less on a plain strategy, of small integers.
        """
        kind: dict[str, Option] = {"strategy": "lower" if self.lower else "dense"}
        if self.noise == "laplace":
            yield _without_zeros(c), kind
            return
        given = () if self.strategy_unit is None else (self.strategy_unit,)
        largest = np.abs(plain).sum(axis=0).max()
        for unit in given or _UNITS:
            yield _without_zeros(np.rint(c / unit)), kind | {"strategy_unit": unit}
        for unit in given or (1 / largest,):
            yield _without_zeros(np.rint(plain / largest / unit)), kind | {"strategy_unit": unit}

    def variance(self, privacy: Privacy, horizon: int, norm: float = 1.0) -> float:
        """Return the variance of the noise behind columns of an ℓ₁ norm, an integer for geometric noise."""
        if self.noise == "laplace":
            fitting = min(privacy.max_events, 1 + (horizon - 1) // privacy.min_separation)
            return float(2 * (fitting * norm * privacy.max_change / privacy.epsilon) ** 2)
        return integer_noise(
            "geometric", privacy, round(norm) * find_lattice(privacy, None, None, TAKE_LAPLACE).steps
        ).variance


def _without_zeros(rows: Array) -> Array:
    return np.asarray(rows[rows.any(axis=1)])


def _of_one_event(privacy: Privacy) -> Privacy:
    return replace(privacy, max_events=1, min_separation=1)


def unbiased_pure_factorization(target: Toeplitz, privacy: Privacy, design: PureDesign) -> MatrixMechanism:
    """Design the strategy of a descent, with its least-squares receiver; the target may begin with a delay."""
    least = design.variance(_of_one_event(privacy), 1)  # an error here, and not after a minute
    found = _least(_unbiased_mechanisms(target, privacy, design))
    delay = int(np.flatnonzero(target.coefficients)[0])
    bound = unbiased_factorization(Convolution(target.coefficients[delay:]).matrix()).lower_bound
    return replace(found, lower_bound_mse=least * bound / target.horizon)


def _unbiased_mechanisms(target: Toeplitz, privacy: Privacy, design: PureDesign) -> Iterator[MatrixMechanism]:
    """Make all that may be published; a dense strategy may be the lower-triangular one of the same options."""
    delay, lower = int(np.flatnonzero(target.coefficients)[0]), design.lower
    search = UnbiasedSearch(tuple(target.coefficients[delay:].tolist()), lower)
    a, n = search.target_matrix(), target.horizon

    def plain_error(k: Array) -> float:
        return design.variance(privacy, n, np.abs(k).sum(axis=0).max()) * search.error_behind(k, a)[0]

    plain = min(search.plain(), key=plain_error)
    several = [*design.publishable(search.find(progress=design.progress), plain)]
    if not lower:
        below = _least(_unbiased_mechanisms(target, privacy, design._replace(lower=True)))
        several.append((below.strategy.matrix()[:, delay:], dict(below.options) | {"strategy": "dense"}))
    for rows, options in several:
        if np.linalg.matrix_rank(rows) == len(a):
            yield MatrixMechanism(
                design.name,
                target,
                privacy,
                Sparse.of(np.pad(rows, ((0, 0), (0, delay)))),
                Dense(np.pad(least_squares_receiver(rows, a, lower=lower), ((delay, 0), (0, 0)))),
                noise=design.noise,
                lag=0 if lower else None,
                options=tuple(options.items()),
            )


def joint_pure_factorization(
    target: Toeplitz, privacy: Privacy, model: Model, lag: int | None, design: PureDesign
) -> MatrixMechanism:
    """Design the strategy of a descent together with the linear receiver of a lag; a dense one has a smoother."""
    least = design.variance(_of_one_event(privacy), 1)
    found = _least(_joint_mechanisms(target, privacy, model, lag, design))
    joint = _joint_search(target, model, lag, design.lower, least).problem()
    return replace(found, lower_bound_mse=joint_factorization(joint).lower_bound / target.horizon)


def _joint_search(target: Toeplitz, model: Model, lag: int | None, lower: bool, variance: float) -> JointSearch:
    covariances = autocovariance(model, target.horizon)
    return JointSearch(tuple(target.coefficients.tolist()), tuple(covariances.tolist()), variance, lag, lower)


def _joint_mechanisms(
    target: Toeplitz, privacy: Privacy, model: Model, lag: int | None, design: PureDesign
) -> Iterator[MatrixMechanism]:
    """Make all that may be published, likewise."""
    search = _joint_search(target, model, lag, design.lower, design.variance(privacy, target.horizon))
    several = [*design.publishable(search.find(progress=design.progress), search.best_blocks())]
    if not design.lower:
        below = _least(_joint_mechanisms(target, privacy, model, lag, design._replace(lower=True)))
        several.append((below.strategy.matrix(), dict(below.options) | {"strategy": "dense"}))
    for rows, options in several:
        made = MatrixMechanism(
            design.name,
            target,
            privacy,
            Sparse.of(rows),
            Dense(np.zeros(rows.shape[::-1])),
            noise=design.noise,
            unbiased=False,
            options=tuple(options.items()),
        )
        yield made.with_receiver(model, lag=lag if design.lower else None, name=design.name)


def _least(found: Iterator[MatrixMechanism]) -> MatrixMechanism:
    """Return the mechanism of least predicted error."""
    return min(found, key=lambda x: math.inf if x.predicted_mse is None else x.predicted_mse)


def check_strategy_unit(unit: float | None, noise: str) -> float | None:
    """Refuse a unit of the strategy that is none, or that nothing is rounded to."""
    if unit is None:
        return None
    if noise != "geometric":
        raise ValueError(f"strategy_unit must be None with {noise} noise, got {unit!r}: only geometric noise needs one")
    unit = validation.number("strategy_unit", unit)
    if not _FINEST <= unit <= 1:
        raise ValueError(f"strategy_unit must be from 2**-40, so that sums stay below 2**53, to 1, got {unit:g}")
    return unit
