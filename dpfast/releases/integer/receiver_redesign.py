"""The receiver of a mechanism, designed anew behind the prefilter and the noise that run, and its error."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dpfast.design.decision_feedback import design_equalizer
from dpfast.design.wiener import wiener_receiver
from dpfast.filters.filter import Filter, ratio
from dpfast.mechanisms.mechanism import Mechanism
from dpfast.mechanisms.receivers import DecisionFeedback, LinearReceiver, Smoother
from dpfast.mechanisms.steady_error import linear_mse, worst_errors
from dpfast.releases.integer.fft_error import Circle

Receiver = LinearReceiver | Smoother | DecisionFeedback
LONG = 1024  # taps, beyond which quadrature takes long


def designed_for(mechanism: Mechanism, prefilter: Filter, noise_std: float) -> Receiver:
    """The receiver of the mechanism's family behind another prefilter.

    Raises
    ------
    UnstableFilterError
        For zero forcing, where the prefilter has no stable inverse.
    """
    gain = prefilter.h2_norm()
    unit = prefilter * (1 / gain)  # systems are then well conditioned
    return scaled(_designed_for(mechanism, unit, noise_std / gain), 1 / gain)


def _designed_for(mechanism: Mechanism, prefilter: Filter, noise_std: float) -> Receiver:
    target, model, old = mechanism.target, mechanism.model, mechanism.receiver
    if mechanism.mean_square is not None:
        # it keeps its own: what is worst behind another prefilter is another input
        return scaled(old, mechanism.prefilter.h2_norm())
    if model is None:
        inverse = ratio((target.numerator, prefilter.denominator), (prefilter.numerator, target.denominator))
        return LinearReceiver(inverse * Filter([0.0] * (old.lag or 0) + [1.0]), target, old.mean, old.lag or 0)
    if isinstance(old, DecisionFeedback):
        taps = len(old.forward), len(old.feedback)
        return design_equalizer(target, model, prefilter, noise_std, old.lag, old.decision, *taps)
    return wiener_receiver(target, model, prefilter, noise_std, old.lag)


def scaled(receiver: Receiver, gain: float) -> Receiver:
    """The same estimates, from v that is smaller by this factor."""
    if isinstance(receiver, LinearReceiver):
        return replace(receiver, filter=receiver.filter * gain)
    if isinstance(receiver, Smoother):
        return Smoother(receiver.forward * gain, receiver.backward, receiver.target, receiver.mean)
    return replace(receiver, forward=receiver.forward * gain)


def predicted_mse(mechanism: Mechanism, prefilter: Filter, noise_std: float, receiver: Receiver) -> float | None:
    """The stationary error of what runs, as that of a mechanism; None where only simulation tells."""
    target, model, worst = mechanism.target, mechanism.model, mechanism.mean_square
    if isinstance(receiver, DecisionFeedback):
        return None
    if worst is None and model is None:
        return noise_std**2 * Circle.of(target).mean(np.abs(receiver.response(Circle.of(target).omega)) ** 2)
    if len(prefilter.b) > LONG:
        return Circle.of(target, model, len(prefilter.b)).mse(prefilter.b, noise_std, receiver, worst)
    if worst is not None:
        return sum(worst_errors(target, worst, prefilter, noise_std, receiver))
    assert model is not None
    return linear_mse(target, model, prefilter, noise_std, receiver)
