"""Changes that designs are made for: not so small that hiding them costs nothing, nor so large that nothing is left."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from dpfast._support.errors import DesignError
from dpfast._support.validation import Array
from dpfast.design.mimo.channel_weights import inner
from dpfast.design.mimo.joint_smoother import smoother_circle
from dpfast.filters.filter_matrix import FilterMatrix
from dpfast.privacy.privacy import Privacy
from dpfast.signals.vector_arma import VectorARMA

_NOTHING, _NOTHING_MIXED = 1e-8, 1e-5  # of what counts: an error that is lost in what certificates leave open
_HOPELESS, _HOPELESS_MIXED = 1e6, 1e3  # times the outputs: noise behind which an input tells nothing beside others
_CANCELLED = 1e-14  # of the sum of the parts of outputs: what rounding leaves
_UNRELATED = 1e-6  # of what any input shares with the outputs: one that shares less tells nothing of them


class LimitedChanges(NamedTuple):
    """The changes that a design is made for, and those that are too large for one.

    Attributes
    ----------
    raised : Privacy
        The demand with changes that are no less than what is hidden for next to nothing, as a rule the same.
    most : array, (m,)
        Changes beyond which nothing can be told of an input, or too little beside others.
    """

    raised: Privacy
    most: Array


def limit_changes(target: FilterMatrix, privacy: Privacy, model: VectorARMA, *, mixed: bool = False) -> LimitedChanges:
    """Return which changes of inputs matter.

    Where an event changes an input by 1e-20, say, and others by 1, its prefilter would be so loud that rounding is all
    that is left of others. What is designed for a larger change hides the smaller one for less: noise is of the change
    as it is. Where noise hides all inputs that tell of the outputs, others are beyond hope beside the one that it
    hides least: were all of them, nothing would be left to design for.

    Parameters
    ----------
    target : FilterMatrix
    privacy : Privacy
        The demand.
    model : VectorARMA
        Of all inputs of the target.
    mixed : bool
        Whether the prefilter mixes inputs: squares of all changes are in one matrix then, so that they must be nearer
        to one another; its certificates leave more open.

    Raises
    ------
    DesignError
        Where parts of the outputs cancel, so that these are constant.
    """
    nothing, hopeless = (_NOTHING_MIXED, _HOPELESS_MIXED) if mixed else (_NOTHING, _HOPELESS)
    changes, noise = privacy.changes(target.shape[1]), privacy.noise_multiplier * privacy.max_events
    grid = smoother_circle(target, model).grid
    responses, spectrum = target.response(grid.omega), model.psd(grid.omega)
    gains, psd = np.linalg.norm(responses, axis=1), np.einsum("wii->wi", spectrum).real
    passed: Array = grid.weights @ gains
    signals: Array = np.sqrt(grid.weights @ (gains**2 * psd))
    counts = np.minimum(noise * changes * passed, signals).max()
    told = float((signals**2).sum())
    if grid.weights @ inner(responses @ spectrum, responses) <= _CANCELLED * told:
        raise DesignError(
            "target must have an output that is not constant in the model, got outputs of which all parts cancel: they "
            "are known, and need no publication"
        )
    variances = np.maximum(grid.weights @ psd, np.finfo(float).tiny * max(1.0, told))
    sizes = np.where(passed > 0, passed, np.sqrt(told / variances))  # of others what they may tell
    raised = np.maximum(changes, nothing * counts / (noise * sizes))
    demand = privacy if (raised == changes).all() else replace(privacy, max_change=tuple(raised.tolist()))
    loud: Array = math.sqrt(told) / (noise * sizes)  # changes that take noise as loud as the outputs
    shared: Array = grid.weights @ np.abs(responses @ spectrum).max(axis=1) / np.sqrt(variances)
    least = float((raised / loud)[shared >= _UNRELATED * shared.max()].min())
    return LimitedChanges(demand, hopeless * max(1.0, least) * loud)
