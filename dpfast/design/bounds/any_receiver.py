"""The bound for every receiver, linear or not, behind Gaussian noise."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dpfast._support import validation
from dpfast._support.design_calls import public_design
from dpfast._support.errors import DesignError
from dpfast.design.argument_checks import check_filter, toeplitz_or_none
from dpfast.design.bounds.genie import equivalent_signal
from dpfast.design.bounds.least_linear_mse import least_linear_mse
from dpfast.design.prefilter.design_problem import noise_cost
from dpfast.filters.filter import Filter
from dpfast.mechanisms.bound import Bound
from dpfast.mechanisms.lags import Lag, check_lag
from dpfast.privacy.privacy import Privacy, check_privacy
from dpfast.signals.arma import ARMA
from dpfast.signals.independent_levels import IndependentLevels
from dpfast.signals.markov_chain import MarkovChain
from dpfast.signals.model import Model, check_model

GAUSSIAN = "Gaussian bound"
_SAME = 1e-9  # probabilities that are the same but for rounding
_QUIETEST = 0.1  # below so little noise, beside the distance of the levels, the genie's errors tell nothing
_HOLDS_FOR = "every receiver, linear or not, behind a filter and Gaussian noise"
_BELOW = "mechanisms with other noise, such as randomised response and block sums"


class SymmetricChain(NamedTuple):
    """Two levels, a distance apart, that change into one another with one probability."""

    span: float
    flip: float


@public_design
def gaussian_bound(target: Filter, privacy: Privacy, model: Model, *, lag: Lag = 0) -> Bound:
    r"""Bound the error of every receiver, linear or not, that sees a filtered stream with Gaussian noise.

    The stream is a symmetric chain of two levels. Decision feedback is such a receiver, and so would be the posterior
    mean. How far this is below :func:`optimal` tells how much a receiver that is not linear could gain at the most.

    Model
    -----
    A genie tells of each input all others; by Cauchy and Schwarz the MSE is at least what the errors that it leaves
    tell of the output. For every G of norm 1 that is at least the error of the joint optimum for a Gaussian signal of a
    smaller spectrum and a noise that is a little less. Both are found from series of Hermite coefficients, whose
    rest is bounded.

    Parameters
    ----------
    target : Filter
        F, whose output should be published.
    privacy : Privacy
        With a delta above 0.
    model : MarkovChain or IndependentLevels
        A model of two levels, each as likely as the other.
    lag : int or "smoother"
        D, by how many samples the estimate is late.

    Returns
    -------
    Bound
        About 1 % below the joint optimum where the noise is as large as the distance of the levels and the chain
        changes often, and far below it for chains that change rarely; 0 for noise of less than a tenth of that.

    Raises
    ------
    ValueError
        For lag < 0, and without a delta.
    DesignError
        Where the target is zero, and for any other model.

    Examples
    --------
    >>> import dpfast as dp
    >>> chain = dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[-0.5, 0.5])
    >>> target, privacy = dp.Filter([1, 0.995], [1, -0.995]), dp.Privacy(math.log(3), 0.05, calibration="paper")
    >>> round(dp.gaussian_bound(target, privacy, chain, lag=5).rmse, 2)
    5.03
    >>> round(dp.optimal(target, privacy, chain, lag=5).ideal_rmse, 2)
    5.09
    """
    if toeplitz_or_none(target) is not None:
        raise validation.fail("target", "a Filter for this bound (for a Toeplitz take additive_bound)", target)
    check_filter("target", target)
    check_privacy(privacy)
    check_model(model)
    delay = check_lag(lag)
    chain = symmetric_chain(model)
    if chain is None:
        raise DesignError(
            "model must be a MarkovChain or IndependentLevels of two levels, as likely as each other, for a bound of "
            f"every receiver, got {_words(model)}: additive_bound is for linear receivers and any model"
        )
    kappa = math.sqrt(noise_cost(privacy, None)) / chain.span
    if kappa < _QUIETEST:
        return Bound(GAUSSIAN, 0.0, _HOLDS_FOR, _BELOW)
    signal = equivalent_signal(chain.flip, kappa)
    equivalent = ARMA(signal.b, signal.a)
    mse = chain.span**2 * least_linear_mse(target, equivalent, signal.noise_variance, delay)
    return Bound(GAUSSIAN, mse, _HOLDS_FOR, _BELOW)


def _words(model: Model) -> str:
    levels = "no levels" if model.levels is None else f"the levels {model.levels.tolist()}"
    chances = "" if model.probabilities is None else f" of probabilities {model.probabilities.round(6).tolist()}"
    return f"{type(model).__name__} with {levels}{chances}"


def symmetric_chain(model: Model) -> SymmetricChain | None:
    """Return what a model is as such a chain; None where it is none."""
    if model.levels is None or len(model.levels) != 2:
        return None
    flip = None
    if isinstance(model, MarkovChain) and len(model.states) == 2:
        flip = model.transition[0, 1], model.transition[1, 0]
    elif isinstance(model, IndependentLevels):
        flip = tuple(model.probabilities)
    if flip is None or not np.isclose(*flip, rtol=_SAME, atol=0.0):
        return None
    return SymmetricChain(float(np.diff(model.levels)[0]), float(sum(flip)) / 2)
