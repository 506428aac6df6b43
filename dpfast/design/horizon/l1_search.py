"""Searches for strategies of bounded ℓ₁ norm, without a model or together with the receiver for one."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
from scipy import linalg

from dpfast._support import validation
from dpfast._support.validation import Array
from dpfast.design.horizon.joint_problem import FactorizationProblem
from dpfast.design.horizon.l1_descent import error_behind_any, error_behind_lower
from dpfast.design.horizon.l1_factorization import l1_strategy
from dpfast.design.horizon.l1_starts import (
    dense_starts,
    lower_triangular_starts,
    nested_blocks,
    signed_blocks,
    trees,
    with_tails,
)
from dpfast.mechanisms.least_squares import in_time
from dpfast.mechanisms.operators.convolution import Convolution

_KEPT = 2  # searches, the last ones: noise on the integers asks for those of Laplace noise, dense ones for lower ones


class UnbiasedSearch(NamedTuple):
    """A search for the strategy of a target whose first coefficient is not zero, lower triangular or of any rows."""

    coefficients: tuple[float, ...]
    lower: bool

    def target_matrix(self) -> Array:
        """Return the matrix A of the target."""
        return Convolution(np.array(self.coefficients)).matrix()

    def error_behind(self, c: Array, a: Array) -> tuple[float, Array]:
        """Return the sum of squared errors behind unit noise, and its gradient."""
        return (error_behind_lower if self.lower else error_behind_any)(c, a)

    def plain(self) -> list[Array]:
        """Return strategies of zeros and ones."""
        n = len(self.coefficients)
        return nested_blocks(n) if self.lower else [np.eye(n), *trees(n)]

    def find(self, *, progress: bool = False) -> Array:
        """Return the strategy of least error that is found; a dense one never errs more than a lower one."""
        return _find_unbiased(self, progress)


class JointSearch(NamedTuple):
    """A search for the strategy together with the receiver of a lag; a dense strategy has a smoother.

    Attributes
    ----------
    coefficients : tuple of float
    covariances : tuple of float
        Of the input, at the distances 0, 1, ...
    noise_variance : float
        Behind columns of ℓ₁ norm one.
    lag : int or None
    lower : bool
    """

    coefficients: tuple[float, ...]
    covariances: tuple[float, ...]
    noise_variance: float
    lag: int | None
    lower: bool

    def problem(self) -> FactorizationProblem:
        """Return the errors of strategies: of n rows at their steps, or of any for a smoother."""
        n, a = len(self.coefficients), Convolution(np.array(self.coefficients)).matrix()
        kept = in_time(np.arange(n), n, self.lag) if self.lower else np.ones((n, 1), bool)
        return FactorizationProblem(a, linalg.toeplitz(self.covariances), self.noise_variance, kept)

    def best_blocks(self) -> Array:
        """Return the sums of blocks of least error, of one length or with signs."""
        return _rank_blocks(self)[0]

    def find(self, *, progress: bool = False) -> Array:
        """Return the strategy of least error that is found."""
        return _find_joint(self, progress)


@functools.lru_cache(maxsize=_KEPT)
def _find_unbiased(search: UnbiasedSearch, progress: bool) -> Array:
    a, plain = search.target_matrix(), search.plain()
    starts = lower_triangular_starts(a) if search.lower else dense_starts(a)
    if not search.lower:
        below = _find_unbiased(search._replace(lower=True), progress)
        starts, plain = [*starts, with_tails(below, lower=False)], [*plain, below]
    found = l1_strategy(functools.partial(search.error_behind, a=a), starts, plain, progress=progress)
    return validation.freeze(found)


@functools.lru_cache(maxsize=_KEPT)
def _find_joint(search: JointSearch, progress: bool) -> Array:
    joint, plain = search.problem(), _rank_blocks(search)
    starts = lower_triangular_starts(joint.a) if search.lower else dense_starts(joint.a)
    starts += [with_tails(x, lower=search.lower) for x in plain]
    if not search.lower:
        below = _find_joint(search._replace(lower=True), progress)
        starts.append(with_tails(below, lower=False))
        plain = [*plain, below, *trees(len(joint.a))]
    return validation.freeze(l1_strategy(joint.error_behind, starts, plain, progress=progress))


_FOLLOWED = 3  # sums of blocks that descents start from


def _rank_blocks(search: JointSearch) -> list[Array]:
    """Return the best sums of blocks alike, the best first."""
    joint = search.problem()
    return sorted(signed_blocks(joint.a), key=lambda c: joint.error_behind(c)[0])[:_FOLLOWED]
