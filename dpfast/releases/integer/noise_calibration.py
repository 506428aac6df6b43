"""Exact noise for integer taps: how far one person moves what they give, and the least σ for the guarantee."""

from __future__ import annotations

import math
from dataclasses import replace

from dpfast._support.errors import DesignError
from dpfast.mechanisms.channels_mechanism import ChannelsMechanism
from dpfast.mechanisms.mechanism import Mechanism
from dpfast.privacy.discrete_gaussian_accounting import Shift, Sigma, epsilon, smallest_sigma
from dpfast.privacy.privacy import Privacy
from dpfast.releases.integer.inputs import Inputs, Integers
from dpfast.releases.integer.integer_taps import squared_sensitivity
from dpfast.releases.integer.matrix_taps import squared_change


def privacy_shift(privacy: Privacy, inputs: Inputs, taps: Integers, sigma: Sigma) -> Shift:
    """Return how far one person can move v in all streams, and in how many numbers."""
    one = squared_sensitivity(taps, privacy.max_events, privacy.min_separation)
    square = inputs.change(privacy.max_change) ** 2 * one * inputs.streams_per_person
    return Shift(square, sigma, len(taps) * privacy.max_events * inputs.streams_per_person)


def check_epsilon(stated: float, privacy: Privacy, sigma: Sigma) -> None:
    """Refuse noise with which the guarantee states a larger epsilon than was demanded."""
    if stated > privacy.epsilon:
        raise DesignError(
            f"sigma must be so large that epsilon is at most {privacy.epsilon:g}, got {sigma.std:g}, with which it is "
            f"{stated:g}"
        )


def float_noise(mechanism: Mechanism, inputs: Inputs) -> float:
    """Return the standard deviation of the noise that the design takes for such inputs, without integers."""
    change = inputs.change(mechanism.privacy.max_change) * float(inputs.unit) / mechanism.privacy.max_change
    return float(mechanism.noise_std * change * math.sqrt(inputs.streams_per_person))


def find_sigma(privacy: Privacy, inputs: Inputs, taps: Integers) -> Sigma:
    """Return the least noise whose guarantee, computed anew and rounded outward, is not above the demanded one."""
    return sufficient_sigma(privacy, privacy_shift(privacy, inputs, taps, Sigma(1, 0)))


def sufficient_sigma(privacy: Privacy, shift: Shift) -> Sigma:
    """Return that noise for a shift, whatever noise this has."""
    sigma = smallest_sigma(privacy.noise_multiplier, shift.squared_sensitivity)
    while epsilon([shift._replace(sigma=sigma)], privacy.delta) > privacy.epsilon:
        sigma = sigma._replace(a=sigma.a + 1)
    return sigma


def channels_shift(privacy: Privacy, inputs: Inputs, taps: Integers, sigma: Sigma) -> Shift:
    """Return how far one person can move v of a matrix of taps (q, m, n), and in how many numbers.

    Several events cost their number times one (group privacy), wherever they are; of one input alone, as in one stream.
    """
    (q, m, n), events = taps.shape, privacy.max_events
    if (q, m) == (1, 1) and privacy.adjacency is None:
        return privacy_shift(privacy, inputs, taps[0, 0], sigma)
    adjacency = privacy.adjacency or "one_input"
    changes = [inputs.change(x) for x in privacy.changes(m)]
    square = events**2 * squared_change(taps, changes, adjacency)
    return Shift(square, sigma, q * n * events * (m if adjacency == "each_input" else 1))


def channels_noise(mechanism: ChannelsMechanism, inputs: Inputs) -> float:
    """Return the standard deviation of the noise that a design of several streams takes for such inputs."""
    privacy, unit = mechanism.privacy, float(inputs.unit)
    changes = [inputs.change(x) * unit for x in privacy.changes(mechanism.target.shape[1])]
    same = replace(privacy, max_change=tuple(changes) if len(changes) > 1 else changes[0])
    return same.noise_std(mechanism.prefilter)
