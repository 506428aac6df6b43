"""The bound for all unbiased mechanisms, without a model."""

from __future__ import annotations

from dpfast._support.design_calls import public_design
from dpfast.design.bounds.least_linear_mse import check_events, events_left_out, least_linear_mse
from dpfast.filters.filter import Filter
from dpfast.filters.toeplitz import Toeplitz
from dpfast.mechanisms.bound import Bound
from dpfast.privacy.least_noise import least_deviation
from dpfast.privacy.privacy import Privacy

UNBIASED = "unbiased bound"
_HOLDS_FOR = (
    "the worst input of every mechanism, linear or not, that estimates the output without bias whatever the integer "
    "inputs are"
)
_BELOW = "mechanisms with a bias, such as those that use a model of the input, or bounds of it"


@public_design
def unbiased_bound(target: Filter | Toeplitz, privacy: Privacy) -> Bound:
    r"""Bound the error of every mechanism with E[ŷ|u] = F u for all integer inputs, linear or not, on its worst one.

    Model
    -----
    sup_u RMSE ≥ d <|F|>/C, the mean over a long time, with C of :func:`linear_mean_bound`: its inequality holds for the
    mean over u in a large box of integers and over the pairs u, u + d e_τ, in which each covariance occurs twice but at
    the edges. For m events of a person it is √m larger. Over a horizon <|F|> is the least error of an unbiased
    factorization.

    Parameters
    ----------
    target : Filter or Toeplitz
        F; over a horizon it counts one event of a person only, so that for several it is further below.
    privacy : Privacy
        With a max_change that is an integer, or on real inputs any.

    Returns
    -------
    Bound

    Raises
    ------
    DesignError
        Where the target is zero.

    Examples
    --------
    >>> import dpfast as dp
    >>> target, privacy = dp.Filter([1, 0.995], [1, -0.995]), dp.Privacy(1, 1e-6)
    >>> round(dp.zero_forcing(target, privacy).ideal_rmse / dp.unbiased_bound(target, privacy).rmse, 2)
    4.4
    """
    events = check_events(target, privacy)
    cost = events * (privacy.max_change * least_deviation(privacy)) ** 2
    words = _HOLDS_FOR + events_left_out(target, privacy)
    return Bound(UNBIASED, least_linear_mse(target, None, cost, 0), words, _BELOW)
