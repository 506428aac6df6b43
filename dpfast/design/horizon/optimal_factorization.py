"""The matrix mechanism with the least mean error over a horizon: unbiased, or together with its receiver."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Literal, get_args

import numpy as np
from scipy import linalg

from dpfast._support import validation
from dpfast._support.design_calls import public_design
from dpfast._support.errors import ConvergenceWarning, DesignError, warn
from dpfast.design.argument_checks import Target, check_name, target_over_horizon
from dpfast.design.horizon.joint_factorization import LARGEST_JOINT_GAP, joint_factorization
from dpfast.design.horizon.joint_problem import FactorizationProblem
from dpfast.design.horizon.pure_factorization import (
    PureDesign,
    check_strategy_unit,
    joint_pure_factorization,
    unbiased_pure_factorization,
)
from dpfast.design.horizon.unbiased_factorization import LARGEST_UNBIASED_GAP, factorize_after_delay
from dpfast.filters.toeplitz import Toeplitz
from dpfast.mechanisms.lags import Lag, check_lag
from dpfast.mechanisms.least_squares import in_time
from dpfast.mechanisms.matrix_mechanism import MatrixMechanism
from dpfast.mechanisms.operators.convolution import Convolution
from dpfast.mechanisms.operators.dense import Dense
from dpfast.privacy.privacy import Privacy
from dpfast.signals.model import Model, autocovariance, check_model

StrategyNoise = Literal["gaussian", "laplace", "geometric"]
LONGEST = 2048  # steps, as all matrices are dense


@public_design
def optimal_factorization(
    target: Target,
    privacy: Privacy,
    model: Model | None = None,
    *,
    horizon: int | None = None,
    lag: Lag = 0,
    noise: StrategyNoise = "gaussian",
    strategy: Literal["lower", "dense"] = "lower",
    strategy_unit: float | None = None,
    progress: bool = False,
    name: str | None = None,
) -> MatrixMechanism:
    r"""Design the matrix mechanism with the least mean square error over a horizon.

    Model
    -----
    v = C (u - centre) + n with C lower triangular, its columns of norm one; ŷ = B v + A centre.

    Without a model: B C = A, and C minimises the mean ‖B‖_F²/n, a convex problem in X = CᵀC. With the fixed point
    v = diag (V^{1/2} AᵀA V^{1/2})^{1/2} of its dual, X = V^{-1/2} (V^{1/2} AᵀA V^{1/2})^{1/2} V^{-1/2} (Denisov,
    McMahan, Rush, Smith and Thakurta 2022).

    With a model: C and the linear receiver of this lag with the least mean square error, together. Behind C that error
    is [tr(A R Aᵀ) - ‖M ∘ W‖²]/n with W = A R Cᵀ L⁻ᵀ, L Lᵀ = C R Cᵀ + σ² I, R the covariance of u and M the mask of what
    is there t + D steps after the start; it is minimised over C by L-BFGS. It is the least over K = B C of the convex
    ‖(A - K) R^{1/2}‖² + σ² max_v ‖K V^{1/2}‖_*² (v ≥ 0, Σv = 1, nuclear norm), which gives the lower bound: what
    :func:`optimal` does for all time, over a horizon, where a target such as the running sum is allowed.

    *Pure ε.* With Laplace noise of scale d/ε the columns of C have the ℓ₁ norm one. The error 2 d²/ε² ‖A C⁺‖_F²/n, or
    that behind the receiver, is not convex. L-BFGS descends it in X, C = X|X| with columns divided by their norms, so
    that entries can vanish, from several starts: blocks, blocks within blocks, windows that overlap, entries of a fixed
    seed. What is found is a local optimum, never above a start, the identity, or, with a model, sums of blocks alike;
    a dense C never above a lower-triangular one with the same options. Of a running sum of 1024 steps at ε = 1 the RMSE
    is 14.1, of a dense C 9.7, where :func:`tree` has 15.1 and 10.9.

    Parameters
    ----------
    target : Filter, Toeplitz or sequence of float
        A, as its impulse response. It may have zeros anywhere, and begin with a delay.
    privacy : Privacy
        C is that for one event a person; the noise is for all of them.
    model : Model, optional
        Mean and spectrum of u, stationary from step 0; the guarantee does not depend on their being right, the error
        does. Without one the error is the same for every input.
    horizon : int, optional
        Steps, at most 2048: time grows as their third power. At 1024 steps a core takes three seconds without a model
        and six to ten with one. By default those of the target; it must be given for a Filter.
    lag : int or "smoother"
        D: the estimate of y_t uses what is published up to t + D; that of the smoother, or None, all of it. Without
        a model it must be 0, as an unbiased receiver gains nothing by waiting.
    noise : {"gaussian", "laplace", "geometric"}
        Laplace noise: pure ε, δ is not used. Geometric noise: pure ε for inputs that are integers; C is rounded to
        multiples of a unit, its multiples are published, and the rate is that of the largest ℓ₁ norm of a column
        of the rounded matrix. On a C that is not of integers it would show their fractional parts.
    strategy : {"lower", "dense"}
        Lower triangular: online, and for inputs that react to what was published before. Dense, for noise other than
        Gaussian: less error, but for a batch, nothing is published before the last input is there; with a model a
        smoother is behind it, whatever the lag. (A theorem would allow more for the unbiased reading, at pure ε, of
        which the package makes no use: docs/explanation/beyond-blocks.md.)
    strategy_unit : float, optional
        With geometric noise, the public unit that entries of C, which are at most 1, are rounded to; by default that of
        the least predicted error, of 1, 1/2, 1/4, ..., 2⁻¹². With 1, which is often the best with a model, C consists
        of zeros and ones: sums of blocks, of lengths of their own.
    progress : bool
        Show a bar (tqdm, extra ``progress``) of a descent for Laplace or geometric noise.
    name : str, optional
        What tables and pictures call it; by default its family.

    Returns
    -------
    MatrixMechanism
        With Gaussian noise ``predicted_mse`` is at most 1e-6 above ``lower_bound_mse``, relatively, without a model.
        With one the search ends 1e-6 to 1e-5 above the optimum, and the bound is mostly less than 1e-4 below; more,
        mostly less than 1e-2, for targets with no stable inverse and a memory as long as the horizon. The bound holds,
        to rounding, for all lower-triangular strategies with linear receivers of this lag; without a model for those
        with B C = A. With other noise it is that of columns of ℓ₂ norm one, as the ℓ₂ norm is never above the ℓ₁ norm:
        it holds for all strategies with such noise, dense ones too without a model or where one is asked for, but is
        far below, a half of the RMSE of a dense strategy over 256 steps.

    Raises
    ------
    ValueError
        For lag < 0, a lag without a model, and other noise or strategies than these.
    DesignError
        For a horizon of more than 2048 steps.

    Warns
    -----
    ConvergenceWarning
        Where the gap is larger; the bound still holds. For several events, which it does not account for, there
        is no warning.

    Notes
    -----
    *Privacy.* The noise is that of the sensitivity of C as it is, to as many events as `privacy` says. The model must
    not be fitted to the data that are to be released.

    Examples
    --------
    >>> import math
    >>> import dpfast as dp
    >>> mechanism = dp.optimal_factorization(dp.running_sum(64), dp.Privacy.from_gdp(1, 1e-6))
    >>> round(mechanism.predicted_rmse, 4), round(math.sqrt(mechanism.lower_bound_mse), 4)
    (2.0999, 2.0999)
    """
    y = target_over_horizon(target, privacy, horizon)
    delay = check_lag(lag)
    validation.choice("noise", noise, get_args(StrategyNoise))
    validation.choice("strategy", strategy, ("lower", "dense"))
    validation.instance("progress", progress, bool, "True or False")
    unit = check_strategy_unit(strategy_unit, noise)
    if noise == "gaussian" and strategy == "dense":
        raise ValueError(
            "strategy must be 'lower' with gaussian noise, got 'dense': it errs no less, as rotated noise is alike"
        )
    if y.horizon > LONGEST:
        raise DesignError(
            f"horizon must be at most {LONGEST} steps here, where all is dense, got {y.horizon}: take a shorter one, "
            "or square_root or buffered_toeplitz"
        )
    if model is not None:
        check_model(model)
    elif delay != 0:
        raise ValueError(f"lag must be 0 without a model, got {lag!r}: an unbiased receiver gains nothing by waiting")
    if noise != "gaussian":
        lower = strategy == "lower"
        design = PureDesign(noise, lower, unit, check_name(name, _pure_name(noise, lower, delay, model)), progress)
        if model is None:
            return unbiased_pure_factorization(y, privacy, design)
        return joint_pure_factorization(y, privacy, model, delay, design)
    if model is not None:
        return _joint_mechanism(y, privacy, model, delay, name)
    return _unbiased_mechanism(y, privacy, name)


def _pure_name(noise: str, lower: bool, lag: int | None, model: Model | None) -> str:
    words = "smoother" if not lower or lag is None else f"lag {lag}"
    noises = {"laplace": "Laplace", "geometric": "geometric"}[noise]
    return f"optimal factorization{'' if model is None else ' ' + words} ({noises}{'' if lower else ', dense'})"


def _unbiased_mechanism(target: Toeplitz, privacy: Privacy, name: str | None) -> MatrixMechanism:
    best = factorize_after_delay(target)
    strategy, receiver = (Dense(validation.freeze(x)) for x in (best.strategy, best.receiver))
    found = MatrixMechanism(check_name(name, "optimal factorization"), target, privacy, strategy, receiver)
    return _with_lower_bound(found, best.lower_bound * _noise_variance(privacy), LARGEST_UNBIASED_GAP)


def _joint_mechanism(
    target: Toeplitz, privacy: Privacy, model: Model, lag: int | None, name: str | None
) -> MatrixMechanism:
    name = check_name(name, f"optimal factorization {'smoother' if lag is None else f'lag {lag}'}")
    n, a = target.horizon, Convolution(target.coefficients).matrix()
    kept = in_time(np.arange(n), n, lag)
    joint = FactorizationProblem(a, linalg.toeplitz(autocovariance(model, n)), _noise_variance(privacy), kept)
    best = joint_factorization(joint)
    strategy, silent = Dense(validation.freeze(best.strategy)), Dense(np.zeros((n, n)))
    found = MatrixMechanism(name, target, privacy, strategy, silent, unbiased=False)
    # the receiver for the noise that it really has, which several events make larger
    return _with_lower_bound(found.with_receiver(model, lag=lag, name=name), best.lower_bound, LARGEST_JOINT_GAP)


def _noise_variance(privacy: Privacy) -> float:
    """Return the variance of the noise behind columns of norm one, for one event."""
    return float((privacy.noise_multiplier * privacy.max_change) ** 2)


def _with_lower_bound(found: MatrixMechanism, bound: float, largest: float) -> MatrixMechanism:
    """Attach a bound on the sum of squared errors; warn if, for one event, it is further off than usual."""
    bound /= found.horizon
    mse = found.predicted_mse
    if found.privacy.max_events == 1 and mse is not None and mse > bound * (1 + largest):
        gap = mse / bound - 1 if bound > 0 else math.inf
        warn(
            f"the optimum is certified to a relative gap of {gap:.1e} only, {largest:g} is usual: it is at "
            "least lower_bound_mse, and may be near to what was found; take a model with more power where it has least",
            ConvergenceWarning,
        )
    return replace(found, lower_bound_mse=bound)
