"""The least mean square error of linear mechanisms at a given variance of noise, from below."""

from __future__ import annotations

import numpy as np
from scipy import linalg

from dpfast._support.errors import DesignError
from dpfast.design.argument_checks import check_target, filter_or_none, toeplitz_or_none
from dpfast.design.horizon.joint_factorization import joint_factorization
from dpfast.design.horizon.joint_problem import FactorizationProblem
from dpfast.design.horizon.optimal_factorization import LONGEST
from dpfast.design.horizon.unbiased_factorization import factorize_after_delay
from dpfast.design.prefilter.design_problem import Problem
from dpfast.design.prefilter.majorization import joint_optimum
from dpfast.design.prefilter.water_filling import smoother_water_filling, zero_forcing_mse
from dpfast.filters.filter import Filter
from dpfast.filters.toeplitz import Toeplitz
from dpfast.mechanisms.lags import Lag, check_lag
from dpfast.mechanisms.least_squares import in_time
from dpfast.mechanisms.operators.convolution import Convolution
from dpfast.privacy.privacy import Privacy, check_privacy
from dpfast.signals.model import Model, autocovariance, check_model
from dpfast.signals.output_variance import output_variance

_LOST = 1e-27  # of the variance of the output
_LONG_LAG = 10  # beyond it so small a gap may take seconds
_GAPS = (1e-6, 1e-3)  # of a certificate, relative: up to a long lag, and beyond
_DECREASE = 1e-6  # relative, of the error in the last step of a search over a horizon
ROUNDING = 1e-9  # relative, taken off: of quadrature and of floating point


def least_linear_mse(target: Filter | Toeplitz, model: Model | None, cost: float, lag: Lag) -> float:
    """Return a bound of the least MSE of K and noise with cost · <|K|>², of causal K of a lag; K = F without a model.

    Over a horizon it is that of K and noise of which cost · k_τᵀ S⁻¹ k_τ ≤ 1 for every column of K, S its covariance.

    Parameters
    ----------
    target : Filter or Toeplitz
    model : Model or None
    cost : float
        The least variance of noise that hides an event, with the size of the event.
    lag : int or "smoother"
    """
    delay = check_lag(lag)
    if model is not None:
        check_model(model)
    finite, endless = toeplitz_or_none(target), filter_or_none(target)
    if finite is not None:
        least = _over_horizon(finite, model, cost, delay)
    else:
        assert endless is not None
        least = _without_end(endless, model, cost, delay)
    return max(0.0, least * (1 - ROUNDING))


def _bound_by_circulants(target: Toeplitz) -> float:
    """Bound the sum of the squared errors of an unbiased factorization for noise of variance one, of any length.

    It is at least ‖A‖_*²/n, and ‖A‖_* at least <A, Φ> for every contraction Φ, such as a corner of a unitary circulant.
    Its eigenvalues are the phases of those of Σ (n - k) f_k z^{-k}, which makes <A, Φ> the largest that there is.
    """
    n = target.horizon
    size = 3 * n // 2
    found = np.abs(np.fft.rfft((n - np.arange(n)) * target.coefficients, size))
    total = 2 * found.sum() - found[0] - (0.0 if size % 2 else found[-1])
    return float((total / size) ** 2 / n)


def is_too_long(target: Filter | Toeplitz) -> bool:
    """Tell whether a target has too long a horizon for a bound with a model, in which all is dense."""
    return target.horizon is not None and target.horizon > LONGEST


def events_left_out(target: Filter | Toeplitz, privacy: Privacy) -> str:
    """Say that a bound over a horizon counts one event of a person only, where there are several."""
    if toeplitz_or_none(target) is None or privacy.max_events == 1:
        return ""
    return f", counting one event only of the {privacy.max_events} that a person may have"


def check_events(target: Filter | Toeplitz, privacy: Privacy) -> int:
    """Check target and privacy, and return how many events of a person a bound counts: over a horizon one."""
    check_target(target)
    check_privacy(privacy)
    return privacy.max_events if toeplitz_or_none(target) is None else 1


def _without_end(target: Filter, model: Model | None, cost: float, lag: int | None) -> float:
    problem = Problem(target, model, cost)
    forcing = zero_forcing_mse(problem)
    if model is None:
        return forcing
    if lag is None:
        least = smoother_water_filling(problem).mse
    else:
        least = joint_optimum(problem, lag, _GAPS[lag > _LONG_LAG]).lower_bound
    # with hardly any noise a least distortion of 0 is rounding, relative to the output
    return min(forcing, least - _LOST * output_variance(target, model))


def _over_horizon(target: Toeplitz, model: Model | None, cost: float, lag: int | None) -> float:
    n = target.horizon
    if model is None:
        dense = n <= LONGEST
        return cost / n * (factorize_after_delay(target).lower_bound if dense else _bound_by_circulants(target))
    if is_too_long(target):
        raise DesignError(
            f"horizon must be at most {LONGEST} steps for a bound with a model, where all is dense, got {n}: leave the "
            "model out, for a bound of what does not distort"
        )
    a, kept = Convolution(target.coefficients).matrix(), in_time(np.arange(n), n, lag)
    joint = FactorizationProblem(a, linalg.toeplitz(autocovariance(model, n)), cost, kept)
    return joint_factorization(joint, decrease=_DECREASE).lower_bound / n
