"""LMMSE of several independent streams: a prefilter for each, and Wiener receivers for every output behind them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from dpfast._support import validation
from dpfast.design.mimo.channel_designs import check_channels, realize_column
from dpfast.design.mimo.column_gains import column_gain
from dpfast.design.prefilter.design_problem import Problem
from dpfast.design.prefilter.ideal_mechanism import Ideal
from dpfast.design.prefilter.noise_shares import NOTHING, with_share
from dpfast.design.wiener import wiener_receiver
from dpfast.filters.filter import Filter
from dpfast.filters.filter_matrix import FilterMatrix
from dpfast.mechanisms.channels_mechanism import ChannelsMechanism
from dpfast.privacy.privacy import Privacy
from dpfast.signals.model import Model, check_model


class ColumnIdeals(NamedTuple):
    """What is best for inputs that one person may reach together, or for one.

    Attributes
    ----------
    shares : list of float
        Of the squared sensitivity.
    ideals : list of Ideal
        Of each input with its share; of those that have one.
    mse, lower_bound : float or None
        Of all of them together.
    """

    shares: list[float]
    ideals: list[Ideal]
    mse: float | None
    lower_bound: float


IdealColumns = Callable[[Sequence[Problem], int], ColumnIdeals]  # the inputs of one person, and the lag


def estimate_channels(
    target: FilterMatrix,
    privacy: Privacy,
    models: Any,
    lag: Any,
    find: IdealColumns,
    tolerance: float,
    name: str | None,
    family: str,
) -> ChannelsMechanism:
    r"""Design a prefilter for each input and the Wiener receivers behind them; `find` says what is best.

    Streams are independent, so that the error of an output is the sum of those of its inputs. Where one event is at one
    input there are as many problems of one input. Where it may be at all, channel i has the noise c_i² = κ²d_i²/α_i of
    a share α_i.
    """
    used = check_channels(target, privacy)
    checked, delay = check_models(models, target.shape[1]), check_lag_of_channels(lag)
    changes = privacy.changes(target.shape[1])
    noise = privacy.noise_multiplier * privacy.max_events
    problems = [_column_problem(target, j, checked[j], (noise * float(changes[j])) ** 2) for j in used]
    is_shared = (privacy.adjacency or "one_input") != "one_input"
    found = [find(group, delay) for group in ([problems] if is_shared else [[x] for x in problems])]
    shares = [share for x in found for share in x.shares]
    ideals = (ideal for x in found for ideal in x.ideals)
    prefilters = {}
    for j, problem, share in zip(used, problems, shares, strict=True):
        if share > NOTHING:
            best = realize_column(with_share(problem, share), next(ideals), tolerance)
            prefilters[j] = best * (math.sqrt(share) / float(changes[j]))
    zero = Filter([0.0])
    g = FilterMatrix([[prefilters[i] if i == j else zero for j in range(target.shape[1])] for i in prefilters])
    std = privacy.noise_std(g)
    receiver = [
        [_receiver(row[j], checked[j], prefilter, std, delay) for j, prefilter in prefilters.items()]
        for row in target.rows
    ]
    errors = [x.mse for x in found if x.mse is not None]
    return ChannelsMechanism(
        name or f"{family} lag {delay}",
        target,
        privacy,
        g,
        FilterMatrix(receiver),
        ideal_mse=sum(errors) if errors else None,
        lower_bound_mse=sum(x.lower_bound for x in found),
        options=(("lag", delay), ("tolerance", tolerance)),
        models=checked,
        lag=delay,
    )


def _column_problem(target: FilterMatrix, j: int, model: Model, cost: float) -> Problem:
    """Return the problem of one input: all outputs that it reaches."""
    entries = tuple(row[j] for row in target.rows if row[j].b.any())
    return Problem(column_gain(target, j), model, cost, entries=entries if len(entries) > 1 else ())


def check_lag_of_channels(lag: Any) -> int:
    """Return the lag of a design of several streams; refuse a smoother."""
    if lag is None or isinstance(lag, str):
        raise ValueError(
            f"lag must be a number of samples for a FilterMatrix, got {lag!r}: there is no smoother of several streams "
            "yet; a longer lag comes as near to it as one likes, and lower_bound_mse is its error"
        )
    return validation.lag(lag)


def check_models(models: Any, m: int) -> tuple[Model, ...]:
    """Return a model for each input; refuse another number of them."""
    if isinstance(models, str) or not isinstance(models, Sequence) or len(models) != m:
        raise validation.fail("model", f"a sequence of {m} models for a FilterMatrix of {m} inputs", models)
    for each in models:
        check_model(each)
    return tuple(models)


def _receiver(entry: Filter, model: Model, prefilter: Filter, std: float, lag: int) -> Filter:
    if not entry.b.any():
        return entry
    (found,) = wiener_receiver(entry, model, prefilter, std, lag).filters()
    return found
