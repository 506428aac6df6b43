"""LMMSE of streams that may depend on one another: a prefilter for each, or given ones, and a Kalman filter."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from dpfast._support import validation
from dpfast._support.errors import DesignError
from dpfast.design.argument_checks import check_name
from dpfast.design.mimo.channel_designs import check_channels
from dpfast.design.mimo.channel_parts import channel_parts, prefilters_of
from dpfast.design.mimo.channels_lmmse import IdealColumns, design_prefilters
from dpfast.design.mimo.channels_smoother import smooth_channels
from dpfast.design.mimo.joint_smoother import smoother_bound
from dpfast.design.mimo.kalman_receiver import KalmanReceivers
from dpfast.design.mimo.limited_changes import limit_changes
from dpfast.filters.filter_matrix import FilterMatrix
from dpfast.mechanisms.base import Option
from dpfast.mechanisms.channels_mechanism import ChannelsMechanism
from dpfast.mechanisms.lags import check_lag
from dpfast.privacy.privacy import Privacy
from dpfast.signals.arma import ARMA
from dpfast.signals.channel_models import ChannelModels, check_channel_models, joint_model
from dpfast.signals.vector_arma import VectorARMA

_UNUSED = ARMA([1])  # in the place of a stream that no channel is for


def estimate_correlated(
    target: FilterMatrix,
    privacy: Privacy,
    model: VectorARMA,
    lag: Any,
    find: IdealColumns,
    tolerance: float,
    name: str | None,
) -> ChannelsMechanism:
    """Design prefilters as for streams of the same spectra that are independent, and the best receiver behind them.

    A stream that is constant needs none. What streams tell of one another is the receiver's.
    """
    check_channel_models("model", model, target.shape[1])
    delay = check_lag(lag)
    moving = [j for j in check_channels(target, privacy) if model.covariance[j, j] > 0]
    if not moving:
        raise DesignError(
            "target must use an input that is not constant in the model, got one of constant inputs: they need no "
            "publication, and their outputs are known"
        )
    alone = [model.channel(j) if j in moving else _UNUSED for j in range(model.n_channels)]
    parts, hidden = channel_parts(target, moving, "diagonal"), limit_changes(target, privacy, model).raised
    kept, prefilters, _ = design_prefilters(parts, hidden, alone, delay, find, tolerance)
    prefilter = prefilters_of(kept, prefilters, target.shape[1])
    made = _complete(target, privacy, model, prefilter, delay, (("tolerance", tolerance),), name)
    every = np.flatnonzero(np.diagonal(model.covariance) > 0).tolist()  # those that outputs do not see tell of others
    return replace(made, lower_bound_mse=smoother_bound(target, privacy, model, every))


def estimate_behind(
    target: FilterMatrix, privacy: Privacy, models: Any, lag: Any, prefilter: Any, name: str | None
) -> ChannelsMechanism:
    """Design the best receiver behind given prefilters, which may mix inputs."""
    check_channels(target, privacy)
    m, delay = target.shape[1], check_lag(lag)
    validation.instance("prefilter", prefilter, FilterMatrix, f"a FilterMatrix of {m} inputs, as the target is")
    if prefilter.shape[1] != m or not prefilter.links().any():
        raise ValueError(
            f"prefilter must have {m} inputs, as the target, and not be zero, got {prefilter!r}: it has a row for each "
            "channel that is published"
        )
    checked = check_channel_models("model", models, m)
    return _complete(target, privacy, checked, prefilter, delay, (("prefilter", "given"),), name)


def _complete(
    target: FilterMatrix,
    privacy: Privacy,
    models: ChannelModels,
    prefilter: FilterMatrix,
    delay: int | None,
    options: tuple[tuple[str, Option], ...],
    name: str | None,
) -> ChannelsMechanism:
    options = ("lag", delay), *options
    receivers = KalmanReceivers(target, joint_model(models), prefilter, privacy.noise_std(prefilter))

    def complete(late: int) -> ChannelsMechanism:
        receiver = receivers.at_lag(late)
        known = check_name(name, f"LMMSE {'smoother' if delay is None else f'lag {late}'}")
        return ChannelsMechanism(known, target, privacy, prefilter, receiver, options=options, models=models, lag=late)

    return smooth_channels(complete, receivers.excess) if delay is None else complete(delay)
