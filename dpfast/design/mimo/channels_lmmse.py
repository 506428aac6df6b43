"""LMMSE of several independent streams: a prefilter for each, and Wiener receivers for every output behind them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from dpfast._support import validation
from dpfast.design.argument_checks import check_name
from dpfast.design.mimo.channel_designs import check_channels, realize_column
from dpfast.design.mimo.channel_parts import (
    ChannelPart,
    PrefilterForm,
    channel_parts,
    prefilters_of,
    reached_together,
    receivers_of,
    scaled,
)
from dpfast.design.mimo.channels_smoother import smooth_channels
from dpfast.design.mimo.column_gains import column_gain
from dpfast.design.mimo.kalman_receiver import KalmanReceivers
from dpfast.design.mimo.limited_changes import limit_changes
from dpfast.design.prefilter.design_problem import Problem
from dpfast.design.prefilter.ideal_mechanism import Ideal
from dpfast.design.prefilter.noise_shares import NOTHING, with_share
from dpfast.design.wiener import wiener_receiver
from dpfast.filters.filter import Filter
from dpfast.filters.filter_matrix import FilterMatrix
from dpfast.mechanisms.channels_mechanism import ChannelsMechanism
from dpfast.mechanisms.lags import check_lag
from dpfast.privacy.privacy import Privacy
from dpfast.signals.channel_models import check_independent, joint_model
from dpfast.signals.model import Model
from dpfast.signals.vector_arma import VectorARMA

_UNEQUAL = 1e6  # times the least change beside its stream: a larger one leaves it a share that is nothing
_LEFT_OPEN = 1e-6  # of a bound: what raised changes may cost
_MOST_TOGETHER = 200  # states of streams, prefilters and target, of which errors of all lags take no time
_STILL = 1e-300  # in the place of a variance that is zero


class ColumnIdeals(NamedTuple):
    """The ideal prefilters of inputs that one person may reach together, or of one.

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


class DesignedPrefilters(NamedTuple):
    """The channels that are published, a prefilter of each, and what was best for those reached together."""

    kept: list[ChannelPart]
    prefilters: list[Filter]
    found: list[ColumnIdeals]


IdealColumns = Callable[[Sequence[Problem], int | None], ColumnIdeals]  # the inputs of one person, and the lag


def estimate_channels(
    target: FilterMatrix,
    privacy: Privacy,
    models: Any,
    lag: Any,
    find: IdealColumns,
    tolerance: float,
    name: str | None,
    family: str,
    form: PrefilterForm = "diagonal",
) -> ChannelsMechanism:
    r"""Design a prefilter for each channel and the Wiener receivers behind them; `find` says what is best.

    Streams are independent, so that the error of an output is the sum of those of its inputs. Channels that one event
    of a person reaches share what it may change: channel k has the noise c_k² = κ²d_i²/α_k of a share α_k.
    """
    used = check_channels(target, privacy)
    checked, delay = check_models(models, target.shape[1]), check_lag(lag)
    parts = channel_parts(target, used, form)
    hidden = _limited(target, privacy, checked)
    kept, prefilters, found = design_prefilters(parts, hidden, checked, delay, find, tolerance)
    matrix = prefilters_of(kept, prefilters, target.shape[1])
    std = privacy.noise_std(matrix)
    errors = [x.mse for x in found if x.mse is not None]
    bound = sum(x.lower_bound for x in found) * (1.0 if hidden is privacy else 1 - _LEFT_OPEN)

    def complete(late: int) -> ChannelsMechanism:
        receivers = [
            {i: _receiver(entry, checked[part.column], g, std, late) for i, entry in part.entries.items()}
            for part, g in zip(kept, prefilters, strict=True)
        ]
        return ChannelsMechanism(
            check_name(name, f"{family} {'smoother' if delay is None else f'lag {late}'}"),
            target,
            privacy,
            matrix,
            receivers_of(receivers, target.shape[0]),
            ideal_mse=sum(errors) if errors else None,
            lower_bound_mse=bound,
            options=(("lag", delay), ("prefilter", form), ("tolerance", tolerance)),
            models=checked,
            lag=late,
        )

    if delay is not None:
        return complete(delay)
    together = KalmanReceivers(target, joint_model(checked), matrix, std)
    return smooth_channels(complete, together.excess if together.n_states <= _MOST_TOGETHER else lambda late: 0.0)


def _limited(target: FilterMatrix, privacy: Privacy, models: tuple[Model, ...]) -> Privacy:
    """Return a demand without changes so small beside others that a share of the sensitivity would be nothing."""
    sizes = privacy.changes(len(models)) / np.sqrt([max(x.variance, _STILL) for x in models])
    if (privacy.adjacency or "one_input") == "one_input" or sizes.max() < _UNEQUAL * sizes.min():
        return privacy
    return limit_changes(target, privacy, joint_model(models)).raised


def design_prefilters(
    parts: Sequence[ChannelPart],
    privacy: Privacy,
    models: Sequence[Model],
    lag: int | None,
    find: IdealColumns,
    tolerance: float,
) -> DesignedPrefilters:
    """Design a prefilter for each channel; a channel that is nothing beside the noise is left out."""
    changes = privacy.changes(len(models))[[part.column for part in parts]].tolist()
    noise = privacy.noise_multiplier * privacy.max_events
    problems = [_problem(part, models[part.column], (noise * d) ** 2) for part, d in zip(parts, changes, strict=True)]
    made = DesignedPrefilters([], [], [])
    for group in reached_together(parts, privacy):
        made.found.append(best := find([problems[k] for k in group], lag))
        ideals = iter(best.ideals)
        for k, share in zip(group, best.shares, strict=True):
            if share > NOTHING:
                g = realize_column(with_share(problems[k], share), next(ideals), tolerance)
                made.prefilters.append(scaled(g, share, changes[k]))
                made.kept.append(parts[k])
    return made


def _problem(part: ChannelPart, model: Model, cost: float) -> Problem:
    """Return the problem of one channel: all outputs that it serves."""
    entries = tuple(part.entries.values())
    return Problem(column_gain(part.target, 0), model, cost, entries=entries if len(entries) > 1 else ())


def check_lag_of_channels(lag: Any) -> int:
    """Return the lag of a design of several streams; refuse a smoother."""
    if lag is None or isinstance(lag, str):
        raise ValueError(
            f"lag must be a number of samples for a FilterMatrix, got {lag!r}: lmmse and optimal have a smoother of "
            "several streams, and a longer lag comes as near to its error as one likes"
        )
    return validation.lag(lag)


def check_models(models: Any, m: int) -> tuple[Model, ...]:
    """Return a model for each input; refuse another number of them."""
    if isinstance(models, VectorARMA):
        raise ValueError(
            "model must be a sequence of models of independent streams here, got a VectorARMA: lmmse and optimal take "
            "it, with a prefilter for each input or one that mixes them, or give [model.channel(i) for i in "
            "range(model.n_channels)], which leaves out how streams depend on one another"
        )
    return check_independent("model", models, m, f"a sequence of {m} models for a FilterMatrix of {m} inputs")


def _receiver(entry: Filter, model: Model, prefilter: Filter, std: float, lag: int) -> Filter:
    (found,) = wiener_receiver(entry, model, prefilter, std, lag).filters()
    return found
