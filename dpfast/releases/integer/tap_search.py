"""Rounding of a prefilter to integer taps: as few and as small as the error allows."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from dpfast._support.errors import DesignError, ToleranceWarning, UnstableFilterError
from dpfast.design.catalogue import redesign_receiver
from dpfast.design.wiener import innovations_factor, wiener_mse
from dpfast.filters.filter import Filter
from dpfast.mechanisms.mechanism import Mechanism
from dpfast.mechanisms.receivers.base import Receiver
from dpfast.privacy.discrete_gaussian_accounting import Sigma
from dpfast.releases.integer.fft_error import LONG, FftCircle, predicted_mse
from dpfast.releases.integer.inputs import Inputs, Integers
from dpfast.releases.integer.integer_taps import MAX_BITS, MAX_TAPS, filter_of_signal, integer_taps
from dpfast.releases.integer.noise_calibration import find_sigma, float_noise

_FEWEST_BITS = 2
FOR_TAPS = 0.7  # share of the tolerance that cutting the impulse response may take
SETTLED = 1e-12
_LARGEST_STD = 39  # bits of the noise, below what the sampler can draw
_CLOSE = 1.03  # a few taps more than needed do not matter


class RoundedMechanism(NamedTuple):
    """The result of rounding a mechanism: integer taps, exact noise, and the receiver behind them."""

    taps: Integers
    sigma: Sigma
    receiver: Receiver


def round_to_integers(mechanism: Mechanism, inputs: Inputs, tolerance: float) -> RoundedMechanism:
    """Return the fewest taps, and of these the fewest bits, whose error is within the tolerance of the mechanism's.

    Both errors are those with the noise that the declared inputs take: a person may be in several streams.

    Raises
    ------
    DesignError
        Where 65,536 taps are not enough.
    """
    settled = mechanism.prefilter.settling_time(SETTLED)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ToleranceWarning)  # what a receiver loses is in the error that decides
        for most_taps in (LONG, MAX_TAPS):
            found = fewest_taps(_Search(mechanism, inputs, min(most_taps, settled), tolerance))
            if found is not None:
                rounded: RoundedMechanism = found
                return rounded
    raise DesignError(
        f"tolerance must be larger for this mechanism, got {tolerance:g}: with {MAX_TAPS:,} integer taps of "
        f"{MAX_BITS} bits its prefilter costs more; allow that, or design one with faster poles"
    )


class TapSearch(Protocol):
    """Say what is good enough, for :func:`fewest_taps`."""

    most_taps: int
    most_bits: int
    for_taps: float
    allowed: float

    def taps(self, n: int, bits: int) -> Integers:
        """Return n taps of so many bits."""

    def error(self, taps: Integers) -> float:
        """Return the error behind them: `for_taps` is what cutting may come to, `allowed` what all of it may."""

    def realize(self, taps: Integers) -> Any:
        """Return what runs with them; None where it is not good enough."""


def fewest_taps(search: TapSearch) -> Any:
    """Return what runs with the fewest taps, and of these the fewest bits, that are good enough; None without any."""
    if search.error(search.taps(search.most_taps, search.most_bits)) > search.allowed:
        return None

    def enough(n: int) -> bool:
        return search.error(search.taps(n, search.most_bits)) <= search.for_taps

    n = _find_least(1, search.most_taps, _CLOSE, enough)
    bits = _find_least(_FEWEST_BITS, search.most_bits, 1.0, lambda m: search.error(search.taps(n, m)) <= search.allowed)
    for m in range(bits, search.most_bits + 1):
        found = search.realize(search.taps(n, m))
        if found is not None:
            return found
    return None


def bits_below(noise: float, size: float) -> int:
    """Return the most bits of taps with which noise for a prefilter of some size can still be drawn."""
    return min(MAX_BITS, max(_FEWEST_BITS, math.floor(_LARGEST_STD - math.log2(noise / size))))


class _Search:
    """A search among integer taps up to a number.

    The receiver is designed for the integer taps; where they may be many it is that of the prefilter that they are
    rounded from, as design takes long: then it takes more taps to come as close. That of zero forcing is always their
    inverse.
    """

    def __init__(self, mechanism: Mechanism, inputs: Inputs, most_taps: int, tolerance: float) -> None:
        noise = float_noise(mechanism, inputs)
        self.mechanism, self.inputs, self.most_taps = mechanism, inputs, most_taps
        self.receiver = redesign_receiver(mechanism, mechanism.prefilter, noise)
        linear, robust = self.receiver.as_linear(), mechanism.mean_square is not None
        long = most_taps > LONG and mechanism.model is not None
        self.kept = linear if robust or long else None
        self.most_bits = bits_below(noise, mechanism.prefilter.h2_norm() * float(inputs.unit))
        model = None if robust else mechanism.model
        # receivers, which undo the spectrum of v, are as slow as its factor is
        least = 1 if model is None else len(innovations_factor(model, mechanism.prefilter, noise)) - 1
        self.circle = FftCircle.of(mechanism.target, model, most_taps, least)
        ideal = predicted_mse(mechanism, mechanism.prefilter, noise, self.receiver)
        if ideal is None:
            assert mechanism.model is not None
            assert self.receiver.lag is not None
            # decision feedback has no prediction: that of the linear receiver behind the same v stands for it
            lag = self.receiver.lag
            ideal = wiener_mse(mechanism.target, mechanism.model, mechanism.prefilter, noise, lag)
        self.for_taps, self.allowed = (ideal * (1 + x * tolerance) for x in (FOR_TAPS, 1.0))

    def taps(self, n: int, bits: int) -> Integers:
        return integer_taps(self.mechanism.prefilter, n, bits)

    def error(self, taps: Integers) -> float:
        """Return the error of the ideal receiver behind these taps, or of that which is kept."""
        if len(taps) == 0:
            return math.inf
        sigma, on = self.sigma(taps), filter_of_signal(taps, self.inputs)
        if self.kept is not None:
            receiver = self.kept.scaled(self.gain_ratio(on))
            return self.circle.mse(on.b, sigma.std, receiver, self.mechanism.mean_square)
        return self.circle.best_mse(on.b, sigma.std, self.receiver.lag)

    def realize(self, taps: Integers) -> RoundedMechanism | None:
        """Return the taps with a receiver that runs; None where its error is not within the tolerance."""
        sigma, on = self.sigma(taps), filter_of_signal(taps, self.inputs)
        try:
            if self.kept is None:
                receiver = redesign_receiver(self.mechanism, on, sigma.std)
            else:
                receiver = self.kept.scaled(self.gain_ratio(on))
        except UnstableFilterError:  # rounding has moved a zero out of the circle
            return None
        mse = predicted_mse(self.mechanism, on, sigma.std, receiver)
        return None if mse is not None and mse > self.allowed else RoundedMechanism(taps, sigma, receiver)

    def gain_ratio(self, on: Filter) -> float:
        """Return by how much a kept receiver must be larger behind smaller taps."""
        return self.mechanism.prefilter.h2_norm() / on.h2_norm()

    def sigma(self, taps: Integers) -> Sigma:
        return find_sigma(self.mechanism.privacy, self.inputs, taps)


def _find_least(low: int, high: int, close: float, good: Callable[[int], bool]) -> int:
    """Return the least number, up to a factor, that is good, as all above it are; the highest where none is."""
    if good(low):
        return low
    while high - low > 1 and high > close * low:
        middle = max(low + 1, min(high - 1, round(math.sqrt(low * high))))
        low, high = (low, middle) if good(middle) else (middle, high)
    return high
