"""The variance of the true output, and how much of it an estimate explains."""

from __future__ import annotations

import numpy as np

from dpfast._support.first_steps import SETTLED, distinct_steps, mean_of_first
from dpfast._support.validation import Array
from dpfast.filters.endless_sum import EndlessSum
from dpfast.filters.filter import Filter
from dpfast.filters.quadrature import graded_grid
from dpfast.filters.toeplitz import Toeplitz, convolve_series
from dpfast.signals.model import Model, autocovariance


def explained_share(mse: float | None, variance: float | None) -> float | None:
    """Return 1 - MSE/variance: 1 without error, 0 for the mean, below 0 for what is worse than that.

    None where one of them is not known, and where the true output does not vary.

    Examples
    --------
    >>> explained_share(1.0, 4.0)
    0.75
    """
    return 1 - mse / variance if mse is not None and variance else None


def output_variance(target: Filter | Toeplitz | EndlessSum, model: Model, n_first: int | None = None) -> float:
    r"""Return the variance <P_u \|F\|²> of the target's output under a model; over a horizon the mean over its steps.

    Parameters
    ----------
    target : Filter, Toeplitz or EndlessSum
    model : Model
    n_first : int, optional
        Of a target that starts from rest, the mean over so many first steps.

    Examples
    --------
    >>> from dpfast.signals.independent_levels import IndependentLevels
    >>> output_variance(Filter([1, 1]), IndependentLevels([0, 1], [0.5, 0.5]))
    0.5
    """
    filter = target.as_filter()
    if filter is None or n_first is not None:
        steps = target.horizon if n_first is None else n_first
        assert steps is not None, "there is a filter, or a horizon"
        settled = steps if filter is None else max(len(filter.factors[0]), filter.settling_time(SETTLED))
        return mean_of_first(step_variances(target, model, distinct_steps(steps, settled)), steps)
    poles = np.concatenate([filter.poles, model.shaping.poles])
    grid = graded_grid(poles, degree=len(filter.b) + len(model.shaping.b))
    return grid.mean(model.psd(grid.omega) * np.abs(filter.response(grid.omega)) ** 2)


def step_variances(target: Filter | Toeplitz | EndlessSum, model: Model, n: int | None = None) -> Array:
    """Return the variance of the target's output at each of n steps from the start, or of its horizon."""
    f = target.impulse((target.horizon or 0) if n is None else n)
    return variances_by_step(f, autocovariance(model, len(f)))


def variances_by_step(q: Array, r: Array) -> Array:
    """Return the variances of Σ_{k ≤ t} q_k u_{t-k} for t = 0, 1, ..., where u has the autocovariance r."""
    past = convolve_series(q, r) - r[0] * q
    return np.cumsum(q * (r[0] * q + 2 * past))
