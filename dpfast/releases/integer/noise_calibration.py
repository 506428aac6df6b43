"""Exact noise for integer taps: how far one person moves what they give, and the least σ for the guarantee."""

from __future__ import annotations

import math

from dpfast.mechanisms.mechanism import Mechanism
from dpfast.privacy.discrete_gaussian_accounting import Shift, Sigma, epsilon, smallest_sigma
from dpfast.privacy.privacy import Privacy
from dpfast.releases.integer.inputs import Inputs, Integers
from dpfast.releases.integer.integer_taps import squared_sensitivity


def privacy_shift(privacy: Privacy, inputs: Inputs, taps: Integers, sigma: Sigma) -> Shift:
    """Return how far one person can move v in all streams, and in how many numbers."""
    one = squared_sensitivity(taps, privacy.max_events, privacy.min_separation)
    square = inputs.change(privacy.max_change) ** 2 * one * inputs.streams_per_person
    return Shift(square, sigma, len(taps) * privacy.max_events * inputs.streams_per_person)


def float_noise(mechanism: Mechanism, inputs: Inputs) -> float:
    """Return the standard deviation of the noise that the design takes for such inputs, without integers."""
    change = inputs.change(mechanism.privacy.max_change) * float(inputs.unit) / mechanism.privacy.max_change
    return float(mechanism.noise_std * change * math.sqrt(inputs.streams_per_person))


def find_sigma(privacy: Privacy, inputs: Inputs, taps: Integers) -> Sigma:
    """Return the least noise whose guarantee, computed anew and rounded outward, is not above the demanded one."""
    shift = privacy_shift(privacy, inputs, taps, Sigma(1, 0))
    sigma = smallest_sigma(privacy.noise_multiplier, shift.squared_sensitivity)
    while epsilon([shift._replace(sigma=sigma)], privacy.delta) > privacy.epsilon:
        sigma = sigma._replace(a=sigma.a + 1)
    return sigma
