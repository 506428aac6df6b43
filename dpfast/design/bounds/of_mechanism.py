"""The bounds that hold for a mechanism."""

from __future__ import annotations

from typing import Any

from dpfast._support import validation
from dpfast._support.design_calls import public_design
from dpfast._support.errors import DesignError
from dpfast.design.argument_checks import filter_or_none
from dpfast.design.bounds.additive import additive_bound, additive_bound_on_worst_input
from dpfast.design.bounds.any_receiver import gaussian_bound, symmetric_chain
from dpfast.design.bounds.least_linear_mse import events_left_out, is_too_long
from dpfast.design.bounds.linear_mean import linear_mean_bound
from dpfast.design.bounds.unbiased import unbiased_bound
from dpfast.mechanisms.base import MechanismBase
from dpfast.mechanisms.bound import Bound, BoundTerms, additive_bound_of
from dpfast.mechanisms.mechanism_kinds import refuse_channels

FAMILY = "bound of its family"
_HOLDS_FOR = "linear mechanisms of its kind, with noise of the same law and this lag"
_BELOW = "mechanisms with noise of another law, and receivers that are not linear"


@public_design
def bounds_of(mechanism: Any) -> tuple[Bound, ...]:
    """Return all bounds that hold for the error of a mechanism, each with the class of mechanisms for which it holds.

    They are `lower_bound_mse` of its family, where it has one; :func:`additive_bound` for linear receivers behind
    additive noise, without a model for those that do not distort; :func:`linear_mean_bound` for randomised response
    with a linear receiver; :func:`unbiased_bound` for what does not distort; and :func:`gaussian_bound` for every
    receiver behind Gaussian noise, on symmetric chains of two levels. None is known for receivers that are not linear
    behind other noise.

    Parameters
    ----------
    mechanism : Mechanism, BlockMechanism, MatrixMechanism or Constant
        With a model and a horizon of more than 2048 steps there are none, nor for the constant, which sees no data.

    Returns
    -------
    tuple of Bound
        The largest first. They are for the figures of the mechanism: its `predicted_mse`, and what a study simulates on
        the model of its design.

    Examples
    --------
    >>> import dpfast as dp
    >>> chain = dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[-0.5, 0.5])
    >>> response = dp.randomized_response(dp.Filter([1, -2]), dp.Privacy(1), chain)
    >>> [(x.name, round(x.rmse, 3)) for x in dp.bounds_of(response)], round(response.predicted_rmse, 3)
    ([('linear-mean bound', 0.768)], 0.778)
    """
    refuse_channels(mechanism, "bounds are of one stream; it has its own in lower_bound_mse, or none")
    if isinstance(mechanism, type) or not hasattr(mechanism, "sees_data"):
        raise validation.fail("mechanism", "a mechanism, as the functions that design one return it", mechanism)
    if not mechanism.sees_data:
        return ()
    found = [*_of_family(mechanism), *_of_class(mechanism)]
    return tuple(sorted(found, key=lambda x: -x.mse))


def _of_family(mechanism: Any) -> list[Bound]:
    mse = mechanism.lower_bound_mse
    if mse is None:
        return []
    return [Bound(FAMILY, mse, _HOLDS_FOR + events_left_out(mechanism.target, mechanism.privacy), _BELOW)]


def _of_class(mechanism: Any) -> list[Bound]:
    target, privacy, model = mechanism.target, mechanism.privacy, mechanism.model
    if is_too_long(target) and model is not None:
        return []
    terms, found = mechanism.bound_terms(), []
    if _has_additive_bound(mechanism, terms):
        found.append(_additive_bound(mechanism, terms))
    elif terms.linear_mean and model is not None:
        found.append(linear_mean_bound(target, privacy, model, lag=terms.lag))
    if terms.undistorted:
        found.append(unbiased_bound(target, privacy))
    if terms.gaussian and filter_or_none(target) and model is not None and symmetric_chain(model) is not None:
        found.append(gaussian_bound(target, privacy, model, lag=terms.lag))
    return found


def _has_additive_bound(mechanism: Any, terms: BoundTerms) -> bool:
    known = terms.undistorted or mechanism.model is not None or mechanism.mean_square is not None
    return terms.additive and known


def _additive_bound(mechanism: Any, terms: BoundTerms) -> Bound:
    target, privacy = mechanism.target, mechanism.privacy
    if mechanism.mean_square is not None:
        return additive_bound_on_worst_input(target, privacy, mechanism.mean_square)
    return additive_bound(target, privacy, None if terms.undistorted else mechanism.model, lag=terms.lag)


@additive_bound_of.register(MechanismBase)
def _(mechanism: Any) -> Bound:
    terms = mechanism.bound_terms()
    if _has_additive_bound(mechanism, terms):
        return _additive_bound(mechanism, terms)
    if terms.additive:
        raise DesignError(
            f"mechanism must have a model for a bound of its error, as it distorts, got {mechanism.full_name}: design "
            "it for one, or take additive_bound with the model of the input"
        )
    others = ", ".join(x.name for x in bounds_of(mechanism)) or "no other is known"
    raise DesignError(
        f"mechanism must add noise to a linear function of its input for an additive bound, got {mechanism.full_name}; "
        f"bounds_of has what holds for it: {others}"
    )
