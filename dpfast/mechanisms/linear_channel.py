"""What stands between a signal and its linear receiver: all that a fit to privatized values has to know."""

from __future__ import annotations

from typing import NamedTuple

from dpfast.filters.filter import Filter
from dpfast.filters.undoing import can_undo
from dpfast.mechanisms.receivers.base import LinearMap
from dpfast.signals.model import Model


class LinearChannel(NamedTuple):
    """A target F, v = G (u - mean) + n of white noise n, and the linear receiver of v; with the name of the design.

    Attributes
    ----------
    name : str
    target : Filter
        F.
    model : Model or None
        That of the design.
    prefilter : Filter
        G, as it runs.
    noise_std : float
        Standard deviation of n, as it is drawn.
    receiver : LinearReceiver or Smoother
        Its mean is subtracted from u.
    """

    name: str
    target: Filter
    model: Model | None
    prefilter: Filter
    noise_std: float
    receiver: LinearMap


def undoing_hindrance(target: Filter, prefilter: Filter) -> str:
    """Say why nothing undoes rounded taps of a prefilter, and what to do; nothing where a stable filter does."""
    if can_undo(target, prefilter):
        return ""
    return (
        "without a model the receiver must undo rounded taps of the prefilter, whose inverse is not stable: design it "
        "by zero_forcing, or with a model"
    )
