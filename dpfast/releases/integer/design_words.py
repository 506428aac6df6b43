"""A design in the words of people: what is estimated, by which mechanism, how late, and what was assumed of data."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpfast.filters.filter import Filter
from dpfast.filters.filter_matrix import FilterMatrix
from dpfast.signals.model import Model
from dpfast.signals.vector_arma import VectorARMA

_MOST_COEFFICIENTS = 8


def describe_design(mechanism: Any) -> dict[str, str]:
    """Say what a mechanism estimates, which it is, and what its design assumed of the data.

    Examples
    --------
    >>> import dpfast as dp
    >>> model = dp.ARMA([1], [1, -0.5], mean=2.0)
    >>> mechanism = dp.block_sums(dp.Filter([0.25] * 4), dp.Privacy(1), model, lag=2)
    >>> describe_design(mechanism)["what is estimated"]
    'the mean of the last 4 steps'
    >>> describe_design(mechanism)["assumed of the data"]
    'a mean of 2 and a standard deviation of 1.155 (ARMA)'
    """
    late = "all of the signal" if mechanism.lag is None else _say_late(mechanism.lag)
    return {
        "what is estimated": _say_target(mechanism.target),
        "mechanism": f"{mechanism.name}; an estimate takes in {late}",
        "assumed of the data": _say_assumed(mechanism),
    }


def _say_assumed(mechanism: Any) -> str:
    if isinstance(mechanism.target, FilterMatrix):
        return _say_models(mechanism.models) if mechanism.models else "nothing"
    if mechanism.model is not None:
        return _say_model(mechanism.model)
    power = dict(mechanism.options).get("mean_square")
    return "nothing" if power is None else f"a mean square of at most {power:.4g}"


def _say_late(lag: int) -> str:
    later = f" and the {lag:,} steps after it" if lag > 1 else " and the one after it" if lag else ""
    return f"what is published until its step{later}"


def _say_target(target: Any) -> str:
    if isinstance(target, FilterMatrix):
        p, m = target.shape
        return f"{p} output{'s' * (p != 1)} of {m} groups together"
    filter = target.as_filter()
    if filter is None:
        return f"the output of {target!r}"
    return _say_filter(filter)


def _say_filter(filter: Filter) -> str:
    b, a = np.asarray(filter.b), np.asarray(filter.a)
    if len(a) == 1 and len(b) > 1 and np.allclose(b, 1 / len(b), rtol=1e-12):
        return f"the mean of the last {len(b):,} steps"
    if len(b) == 1 and len(a) == 1:
        return "the value of each step" if b[0] == 1 else f"{b[0]:.6g} times the value of each step"
    return f"the output of the filter with b = {_say_numbers(b)} and a = {_say_numbers(a)}"


def _say_numbers(values: Any) -> str:
    shown = ", ".join(f"{x:.6g}" for x in values[:_MOST_COEFFICIENTS])
    return f"[{shown}{', …' if len(values) > _MOST_COEFFICIENTS else ''}]"


def _say_models(models: Any) -> str:
    if isinstance(models, VectorARMA):
        return f"means of {_say_numbers(models.mean)} of groups that depend on one another (VectorARMA)"
    return "; ".join(dict.fromkeys(_say_model(x) for x in models))


def _say_model(model: Model) -> str:
    spread = math.sqrt(model.variance)
    return f"a mean of {model.mean:.4g} and a standard deviation of {spread:.4g} ({type(model).__name__})"
