"""From a prefilter and a receiver to integer taps: as few and as small as the error allows."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import NamedTuple

from dpfast.errors import DesignError, ToleranceWarning, UnstableFilterError
from dpfast.filters import Filter
from dpfast.mechanism import Mechanism
from dpfast.privacy import Privacy
from dpfast.receivers import DecisionFeedback, LinearReceiver, Smoother
from dpfast.release.accountant import Shift, Sigma, epsilon, smallest_sigma
from dpfast.release.inputs import Inputs, Integers
from dpfast.release.prefilter import MAX_BITS, MAX_TAPS, integer_taps, squared_sensitivity
from dpfast.release.redesign import Redesigned, redesigned

_FEWEST_BITS = 2
_FOR_TAPS = 0.7  # share of the tolerance that cutting the impulse response may take
_SETTLED = 1e-12
_CLOSE = 1.03  # a few taps more than needed do not matter


class Rounded(NamedTuple):
    """Integer taps, exact noise, and the receiver behind them."""

    taps: Integers
    sigma: Sigma
    receiver: LinearReceiver | Smoother | DecisionFeedback


class _Trial(NamedTuple):
    taps: Integers
    sigma: Sigma
    found: Redesigned | None
    criterion: float


def rounded(mechanism: Mechanism, inputs: Inputs, tolerance: float) -> Rounded:
    """The fewest taps, and of these the fewest bits, whose error is within the tolerance of the mechanism's.

    Its error is measured with the noise that the declared inputs take: a person may be in several streams.

    Raises
    ------
    DesignError
        Where 65,536 taps are not enough.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ToleranceWarning)  # what a receiver loses is in the error that decides
        ideal = redesigned(mechanism, mechanism.prefilter, _float_noise(mechanism, inputs)).criterion

        def trial(n_taps: int, bits: int) -> _Trial:
            return _tried(mechanism, inputs, integer_taps(mechanism.prefilter, n_taps, bits))

        enough = min(MAX_TAPS, mechanism.prefilter.settling_time(_SETTLED))
        for_taps, allowed = ideal * (1 + _FOR_TAPS * tolerance), ideal * (1 + tolerance)
        n_taps = _least(1, enough, _CLOSE, lambda n: trial(n, MAX_BITS).criterion <= for_taps)
        bits = _least(_FEWEST_BITS, MAX_BITS, 1.0, lambda m: trial(n_taps, m).criterion <= allowed)
        best = trial(n_taps, bits)
    if best.found is None or best.criterion > allowed:
        raise DesignError(
            f"tolerance must be at least {best.criterion / ideal - 1:.2g} for this mechanism, got {tolerance:g}: with "
            f"at most {MAX_TAPS:,} integer taps its slow prefilter costs more; allow it, or design faster poles"
        )
    return Rounded(best.taps, best.sigma, best.found.receiver)


def _tried(mechanism: Mechanism, inputs: Inputs, taps: Integers) -> _Trial:
    if len(taps) == 0:  # too few bits
        return _Trial(taps, Sigma(1, 0), None, math.inf)
    sigma = _sigma(mechanism.privacy, inputs, taps)
    try:
        found = redesigned(mechanism, on_signal(taps, inputs), sigma.std)
    except UnstableFilterError:  # too few taps or bits for a stable inverse
        return _Trial(taps, sigma, None, math.inf)
    return _Trial(taps, sigma, found, found.criterion)


def _least(low: int, high: int, close: float, good: Callable[[int], bool]) -> int:
    """The least number, up to a factor, that is good, as all above it are; the highest where none is."""
    if good(low):
        return low
    while high - low > 1 and high > close * low:
        middle = max(low + 1, min(high - 1, round(math.sqrt(low * high))))
        low, high = (low, middle) if good(middle) else (middle, high)
    return high


def on_signal(taps: Integers, inputs: Inputs) -> Filter:
    """The integer taps as a filter of the signal in its own units."""
    return Filter(taps / float(inputs.unit))


def shift_of(privacy: Privacy, inputs: Inputs, taps: Integers, sigma: Sigma) -> Shift:
    """How far one person can move v in all streams, and in how many numbers."""
    one = squared_sensitivity(taps, privacy.max_events, privacy.min_separation)
    square = inputs.change(privacy.max_change) ** 2 * one * inputs.streams_per_person
    return Shift(square, sigma, len(taps) * privacy.max_events * inputs.streams_per_person)


def _float_noise(mechanism: Mechanism, inputs: Inputs) -> float:
    """Standard deviation of the noise that the design takes for such inputs, without integers."""
    change = inputs.change(mechanism.privacy.max_change) * float(inputs.unit) / mechanism.privacy.max_change
    return mechanism.noise_std * change * math.sqrt(inputs.streams_per_person)


def _sigma(privacy: Privacy, inputs: Inputs, taps: Integers) -> Sigma:
    """The least noise whose guarantee, computed anew and rounded outward, is not above the demanded one."""
    shift = shift_of(privacy, inputs, taps, Sigma(1, 0))
    sigma = smallest_sigma(privacy.noise_multiplier, shift.squared_sensitivity)
    while epsilon([shift._replace(sigma=sigma)], privacy.delta) > privacy.epsilon:
        sigma = sigma._replace(a=sigma.a + 1)
    return sigma
