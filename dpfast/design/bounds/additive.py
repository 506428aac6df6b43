"""The bound for all that adds noise, and filters linearly."""

from __future__ import annotations

from dpfast._support.design_calls import public_design
from dpfast.design.bounds.least_linear_mse import ROUNDING, check_events, events_left_out, least_linear_mse
from dpfast.design.prefilter.design_problem import Problem
from dpfast.design.prefilter.water_filling import robust_filling
from dpfast.filters.filter import Filter
from dpfast.filters.toeplitz import Toeplitz
from dpfast.mechanisms.bound import Bound
from dpfast.mechanisms.lags import Lag
from dpfast.privacy.least_noise import least_variance
from dpfast.privacy.privacy import Privacy
from dpfast.signals.model import Model

ADDITIVE = "additive bound"
_HOLDS_FOR = (
    "linear receivers behind noise that does not depend on the input, whatever its law, and whatever linear filter, "
    "sums or strategy stand in front of it"
)
_BELOW = (
    "receivers that are not linear, randomised response, inputs that are clamped first, and noise or sums that react "
    "to what was published"
)


@public_design
def additive_bound(target: Filter | Toeplitz, privacy: Privacy, model: Model | None = None, *, lag: Lag = 0) -> Bound:
    r"""Bound the error of every mechanism ŷ = K u + e, e independent of u with any law: nothing of the kind errs less.

    Gaussian filters, block sums, matrix mechanisms and integer noise with linear receivers are of this kind.

    Model
    -----
    K is linear, time-invariant or periodic, and causal but for the lag; e may be coloured. For a vector a, aᵀe hides a
    shift of d aᵀk_τ, so that Cov e ⪰ d² V_* k_τ k_τᵀ with V_* the least variance of real noise that hides a shift of 1.
    As kᵀ S⁻¹ k is jointly convex, the mean over shifts is a stationary pair (K, S) with d² V_* <|K|²/S> ≤ 1, and
    by Cauchy and Schwarz <S> ≥ d² V_* <|K|>². So the mean MSE is at least the joint optimum of Gaussian noise with
    c = d √V_*, of which the certificate is taken. m events of a person may come with any signs: the mean over these
    makes it c = d √(m V_*).

    Parameters
    ----------
    target : Filter or Toeplitz
        F; over a horizon the same holds with the strategies of :func:`optimal_factorization`, of at most 2048 steps
        with a model. Without one the bound is some per cent less tight beyond that. Over a horizon it counts one event
        of a person only, so that for several it is further below.
    privacy : Privacy
        The guarantee of the mechanisms that are bounded.
    model : Model, optional
        The model of u. Without one the bound is for unbiased mechanisms, K = F.
    lag : int or "smoother"
        D, by how many samples the estimate is late.

    Returns
    -------
    Bound

    Raises
    ------
    ValueError
        For lag < 0.
    DesignError
        Where the target is zero, and for a horizon of more than 2048 steps with a model.

    Notes
    -----
    It is reached for F = 1 and a loud input. For a max_change of several units there may be a
    larger one, as only changes of d are used. *Privacy.* A figure: nothing is published.

    Examples
    --------
    >>> import dpfast as dp
    >>> chain = dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[-0.5, 0.5])
    >>> round(dp.additive_bound(dp.Filter([1, 0.995], [1, -0.995]), dp.Privacy(1, 1e-6), chain).rmse, 4)
    4.6428
    """
    cost = _cost(target, privacy)
    kind = " that leaves the target undistorted" if model is None else ""
    words = _HOLDS_FOR + kind + events_left_out(target, privacy)
    return Bound(ADDITIVE, least_linear_mse(target, model, cost, lag), words, _BELOW)


def additive_bound_on_worst_input(target: Filter, privacy: Privacy, mean_square: float) -> Bound:
    """Return the bound on the worst input of a mean square, that of the best smoother for it."""
    filling = robust_filling(Problem(target, None, _cost(target, privacy)), mean_square)
    return Bound(ADDITIVE, filling.mse * (1 - ROUNDING), f"the worst input of a mean square, of {_HOLDS_FOR}", _BELOW)


def _cost(target: Filter | Toeplitz, privacy: Privacy) -> float:
    """Return the least variance of noise that hides a person's events, times the squares of their sizes."""
    return float(check_events(target, privacy) * privacy.max_change**2 * least_variance(privacy))
