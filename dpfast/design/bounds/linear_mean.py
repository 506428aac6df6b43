"""The bound for all of which the mean is linear, and the covariance the same for every input."""

from __future__ import annotations

import numpy as np

from dpfast._support.design_calls import public_design
from dpfast._support.errors import DesignError
from dpfast.design.bounds.least_linear_mse import check_events, events_left_out, least_linear_mse
from dpfast.filters.filter import Filter
from dpfast.filters.toeplitz import Toeplitz
from dpfast.mechanisms.bound import Bound
from dpfast.mechanisms.lags import Lag
from dpfast.privacy.least_noise import least_deviation
from dpfast.privacy.privacy import Privacy
from dpfast.signals.model import Model, check_model

LINEAR_MEAN = "linear-mean bound"
_SAME = 1 + 1e-9  # a change of a level that is max_change but for rounding
_HOLDS_FOR = (
    "estimates that are linear in the input in the mean, with the same covariance for every input: randomised response "
    "with a linear receiver, and all that adds noise and filters linearly"
)
_BELOW = "receivers that are not linear, and what reacts to what was published before"


@public_design
def linear_mean_bound(target: Filter | Toeplitz, privacy: Privacy, model: Model, *, lag: Lag = 0) -> Bound:
    r"""Bound the error of every mechanism with E[ŷ|u] = K u and the same covariance of ŷ for every u.

    Randomised response with a linear receiver is of this kind, and so is all that :func:`additive_bound` is for.

    Model
    -----
    For a pair of inputs that differ by d at one time, the squared difference of the means of aᵀŷ is at most C² times
    its variance, C² = 4r/(1 - r), r = δ + (1 - δ) tanh²(ε/2): any (ε, δ)-indistinguishable pair is a post-processing of
    one pair on four outcomes (Kairouz, Oh and Viswanath 2015). From there as for :func:`additive_bound`, with
    c = d √m/C for m events.

    Parameters
    ----------
    target : Filter or Toeplitz
        F; over a horizon of at most 2048 steps. There it counts one event of a person only, so that for several it is
        further below.
    privacy : Privacy
        The guarantee of the mechanisms that are bounded.
    model : Model
        The model of u. If it has levels, d is the largest difference of two of them that is at most `max_change`: such
        a mechanism need not hide what never occurs.
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
        Where the target is zero, for a horizon of more than 2048 steps, and where no two levels are that near.

    Examples
    --------
    >>> import dpfast as dp
    >>> chain = dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[-0.5, 0.5])
    >>> round(dp.linear_mean_bound(dp.Filter([1, 0.995], [1, -0.995]), dp.Privacy(1, 1e-6), chain).rmse, 3)
    3.523
    """
    events = check_events(target, privacy)
    check_model(model)
    cost = events * (_largest_change(privacy, model) * least_deviation(privacy)) ** 2
    words = _HOLDS_FOR + events_left_out(target, privacy)
    return Bound(LINEAR_MEAN, least_linear_mse(target, model, cost, lag), words, _BELOW)


def _largest_change(privacy: Privacy, model: Model) -> float:
    """Return the largest change of an input on the levels of a model that an event makes."""
    if model.levels is None:
        return float(privacy.max_change)
    differences = np.abs(np.subtract.outer(model.levels, model.levels))
    largest = float(differences[differences <= privacy.max_change * _SAME].max())
    if largest == 0:
        raise DesignError(
            f"max_change must be at least the distance of two levels for a bound of a mechanism that knows them, got "
            f"{privacy.max_change:g}: no event changes a level then; take additive_bound, or a larger max_change"
        )
    return largest
