"""The receiver of a mechanism, designed anew behind the prefilter and the noise that run."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from dpfast.design.feedback import equalizer
from dpfast.design.wiener import optimal_mse, wiener
from dpfast.filters import Filter, ratio
from dpfast.mechanism import Mechanism, linear_mse, worst_errors
from dpfast.receivers import DecisionFeedback, LinearReceiver, Smoother

Receiver = LinearReceiver | Smoother | DecisionFeedback


class Redesigned(NamedTuple):
    """A receiver, its predicted error, and the error that decides how finely a prefilter is rounded.

    That is the predicted one, but for decision feedback, which has none: there that of the Wiener receiver.
    """

    receiver: Receiver
    mse: float | None
    criterion: float


def redesigned(mechanism: Mechanism, prefilter: Filter, noise_std: float) -> Redesigned:
    """The receiver of the mechanism's family behind another prefilter, close to its own but for a factor."""
    gain = prefilter.h2_norm()
    found = _behind(mechanism, prefilter * (1 / gain), noise_std / gain)  # of unit norm: systems are well conditioned
    return found._replace(receiver=_scaled(found.receiver, 1 / gain))


def _behind(mechanism: Mechanism, prefilter: Filter, noise_std: float) -> Redesigned:
    target, model, old = mechanism.target, mechanism.model, mechanism.receiver
    receiver: Receiver
    if mechanism.mean_square is not None:
        # it keeps its own: what is worst behind another prefilter is another input
        receiver = _scaled(old, mechanism.prefilter.h2_norm())
        assert not isinstance(receiver, DecisionFeedback)
        mse = sum(worst_errors(target, mechanism.mean_square, prefilter, noise_std, receiver))
        return Redesigned(receiver, mse, mse)
    if model is None:
        receiver = _zero_forcing(target, prefilter, old)
        mse = (noise_std * receiver.filter.h2_norm()) ** 2
        return Redesigned(receiver, mse, mse)
    if isinstance(old, DecisionFeedback):
        taps = len(old.forward), len(old.feedback)
        receiver = equalizer(target, model, prefilter, noise_std, old.lag, old.decision, *taps)
        return Redesigned(receiver, None, optimal_mse(target, model, prefilter, noise_std, old.lag))
    receiver = wiener(target, model, prefilter, noise_std, old.lag)
    mse = linear_mse(target, model, prefilter, noise_std, receiver)
    return Redesigned(receiver, mse, mse)


def _scaled(receiver: Receiver, gain: float) -> Receiver:
    """The same estimates from v that is smaller by this factor."""
    if isinstance(receiver, LinearReceiver):
        return replace(receiver, filter=receiver.filter * gain)
    if isinstance(receiver, Smoother):
        return Smoother(receiver.forward * gain, receiver.backward, receiver.target, receiver.mean)
    return replace(receiver, forward=receiver.forward * gain)


def _zero_forcing(target: Filter, prefilter: Filter, old: Receiver) -> LinearReceiver:
    """F/G, late as before."""
    lag = old.lag or 0
    inverse = ratio((target.numerator, prefilter.denominator), (prefilter.numerator, target.denominator))
    return LinearReceiver(inverse * Filter([0.0] * lag + [1.0]), target, old.mean, lag)
