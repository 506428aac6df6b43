"""Find a strategy together with the linear receiver behind it that has the least mean error."""

from __future__ import annotations

import numpy as np

from dpfast._support.validation import Array
from dpfast.design.horizon.joint_bound import factorization_lower_bound
from dpfast.design.horizon.joint_problem import FactorizationProblem, single
from dpfast.design.horizon.limited_memory_descent import StepMemory, descend
from dpfast.design.horizon.unbiased_factorization import (
    Factorization,
    lower_triangular_root,
    scale_to_unit_diagonal,
    symmetric_root,
)

LARGEST_JOINT_GAP = 1e-2  # relative, between an optimum with a receiver and its bound
_DECREASE = 1.5e-7  # of the error, relative, in the last steps of a search
_CHEAPEST = 0.1  # beside the largest cost of a column
_SEEN = 1e-3  # of the noise beside the norm of the covariance, or the other way round, is seen in single precision


def joint_factorization(
    joint: FactorizationProblem, start: Array | None = None, decrease: float = _DECREASE
) -> Factorization:
    """Search for the best strategy by L-BFGS, until two steps in a row gain less than `decrease` each, relatively.

    All but the last steps are in single precision, where noise and signal are both to be seen in it.
    """
    own, memory = joint.in_own_units(), StepMemory()
    entries = (first_strategy(own) if start is None else start)[own.places]
    power = float(np.abs(own.covariance).sum(axis=0).max())
    if _SEEN * power < own.noise_variance < power / _SEEN:
        entries = descend(own.in_single_precision().error, single(entries), decrease, memory).astype(np.float64)
    c, _ = own.strategy(descend(own.error, entries, decrease, memory))
    return Factorization(c, joint.best_receiver(c).receiver, factorization_lower_bound(joint, c))


def first_strategy(joint: FactorizationProblem) -> Array:
    """Return what is halfway between the identity and the first step towards the unbiased optimum: C of full rank.

    A column divided by its norm curves the less, the longer it is: a length of the root of what its sensitivity costs,
    diag(Kᵀ (A - K) R), makes the error curve alike along all of them, and steps fewer.
    """
    n = len(joint.a)
    first = scale_to_unit_diagonal(symmetric_root(joint.a.T @ joint.a, np.ones(n))[0])
    c = lower_triangular_root((first + np.eye(n)) / 2)
    best = joint.best_receiver(c)
    costs = np.einsum("ij,ij->j", best.through, best.residual)
    if not costs.max() > 0:  # with hardly any noise they are rounding
        return c
    costs = np.maximum(costs, _CHEAPEST * costs.max())
    return np.asarray(c * np.sqrt(costs / costs.mean()))
