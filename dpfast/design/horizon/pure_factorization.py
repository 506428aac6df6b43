"""Matrix mechanisms of pure ε: descent on strategies of bounded ℓ₁ norm, with Laplace or geometric noise."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy import linalg

from dpfast._support import validation
from dpfast._support.errors import DesignError
from dpfast._support.validation import Array
from dpfast.design.horizon.joint_factorization import FactorizationProblem, joint_factorization
from dpfast.design.horizon.l1_descent import error_behind_any, error_behind_lower
from dpfast.design.horizon.l1_factorization import l1_strategy, least_squares_receiver
from dpfast.design.horizon.unbiased_factorization import unbiased_factorization
from dpfast.filters.toeplitz import Toeplitz
from dpfast.mechanisms.least_squares import in_time
from dpfast.mechanisms.matrix_mechanism import MatrixMechanism, OnInput
from dpfast.mechanisms.operators.convolution import Convolution
from dpfast.mechanisms.operators.dense import Dense
from dpfast.mechanisms.operators.sparse import Sparse
from dpfast.privacy.integer_noise.choice import integer_noise
from dpfast.privacy.lattice import find_lattice
from dpfast.privacy.privacy import Privacy
from dpfast.signals.model import Model, autocovariance

_UNITS = tuple(2.0**-k for k in (0, 1, 2, 3, 4, 6, 8, 12))  # of entries, which are at most 1, where none is given
_BLOCK_LENGTHS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 40, 48, 64, 80, 96, 128)
_FINEST = 2.0**-40


class PureDesign(NamedTuple):
    """What a design of pure ε is to be: its noise, the kind of its strategy, and what it is called."""

    noise: OnInput
    lower: bool
    strategy_unit: float | None
    name: str
    progress: bool

    def publishable(self, c: Array) -> Iterator[tuple[Array, tuple[tuple[str, float | str], ...]]]:
        """Give the strategies that may be published for C, each with the options that a mechanism keeps of it."""
        kind = ("strategy", "lower" if self.lower else "dense")
        if self.noise == "laplace":
            yield c, (kind,)
            return
        for unit in _UNITS if self.strategy_unit is None else (self.strategy_unit,):
            yield _without_zeros(np.rint(c / unit)), (kind, ("strategy_unit", unit))

    def blocks(self, joint: FactorizationProblem) -> Iterator[tuple[Array, tuple[tuple[str, float | str], ...]]]:
        """Give the best sums of blocks alike, for which geometric noise is least: descents know it only as variance."""
        if self.noise == "geometric" and self.strategy_unit in (None, 1.0):
            n = len(joint.a)
            several = [_blocks(n, length) for length in _BLOCK_LENGTHS if length <= n]
            best = min(several, key=lambda c: joint.error_behind(c)[0])
            yield _without_zeros(best), (("strategy", "lower" if self.lower else "dense"), ("strategy_unit", 1.0))


def _without_zeros(rows: Array) -> Array:
    return np.asarray(rows[rows.any(axis=1)])


def _blocks(n: int, length: int) -> Array:
    """Return the sums of so many steps each, in the rows of their last steps."""
    steps, rows = np.arange(n), np.zeros((n, n))
    rows[np.minimum(steps // length * length + length, n) - 1, steps] = 1.0
    return rows


def unbiased_pure_factorization(target: Toeplitz, privacy: Privacy, design: PureDesign) -> MatrixMechanism:
    """Design the strategy of a descent, with its least-squares receiver; the target may begin with a delay."""
    least = least_variance(privacy, design.noise)  # an error here, and not after a minute
    delay = int(np.flatnonzero(target.coefficients)[0])
    a = Convolution(target.coefficients[delay:]).matrix()
    error_behind = functools.partial(error_behind_lower if design.lower else error_behind_any, a=a)
    c = l1_strategy(a, error_behind, lower=design.lower, progress=design.progress)
    found = [
        MatrixMechanism(
            design.name,
            target,
            privacy,
            Sparse.of(np.pad(rows, ((0, 0), (0, delay)))),
            Dense(np.pad(least_squares_receiver(rows, a, lower=design.lower), ((delay, 0), (0, 0)))),
            noise=design.noise,
            lag=0 if design.lower else None,
            options=options,
        )
        for rows, options in design.publishable(c)
        if design.noise == "laplace" or np.linalg.matrix_rank(rows) == len(a)
    ]
    if not found:
        raise DesignError(
            f"strategy_unit must be finer, got {design.strategy_unit:g}: rounded to it, inputs cannot be told apart"
        )
    return _least(found, least * unbiased_factorization(a).lower_bound)


def joint_pure_factorization(
    target: Toeplitz, privacy: Privacy, model: Model, lag: int | None, design: PureDesign
) -> MatrixMechanism:
    """Design the strategy of a descent together with the linear receiver of a lag; a dense one has a smoother."""
    n, a = target.horizon, Convolution(target.coefficients).matrix()
    kept = in_time(np.arange(n), n, lag) if design.lower else np.ones((n, 1), bool)
    covariance = linalg.toeplitz(autocovariance(model, n))
    joint = FactorizationProblem(a, covariance, least_variance(privacy, design.noise), kept)
    c = l1_strategy(a, joint.error_behind, lower=design.lower, progress=design.progress)
    found = []
    for rows, options in [*design.publishable(c), *design.blocks(joint)]:
        strategy, silent = Sparse.of(rows), Dense(np.zeros(rows.shape[::-1]))
        made = MatrixMechanism(
            design.name, target, privacy, strategy, silent, noise=design.noise, unbiased=False, options=options
        )
        found.append(made.with_receiver(model, lag=lag, name=design.name))
    return _least(found, joint_factorization(joint).lower_bound)


def _least(found: list[MatrixMechanism], bound: float) -> MatrixMechanism:
    """Return the mechanism of least predicted error, with a bound on its sum over the horizon."""
    best = min(found, key=lambda x: math.inf if x.predicted_mse is None else x.predicted_mse)
    return replace(best, lower_bound_mse=bound / best.horizon)


def least_variance(privacy: Privacy, noise: OnInput) -> float:
    """Return the least variance of the noise on a row, for one event and columns of ℓ₁ norm one, or of integers."""
    if noise == "laplace":
        return 2 * (privacy.max_change / privacy.epsilon) ** 2
    one = replace(privacy, max_events=1, min_separation=1)
    return integer_noise("geometric", one, find_lattice(privacy, None, None).steps).variance


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
