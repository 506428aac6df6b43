"""Integer taps for a prefilter, and how much one person can move what they give: integers, exactly."""

from __future__ import annotations

import math

import numpy as np

from dpfast._support.errors import DesignError
from dpfast._support.safe_rounding import round_up
from dpfast.filters.filter import Filter
from dpfast.privacy.discrete_gaussian_accounting import Sigma
from dpfast.privacy.sensitivity import several_events
from dpfast.releases.integer.inputs import Inputs, Integers

MAX_TAPS = 65_536
MAX_BITS = 22
_ANGLES_PER_TAP = 32
_LARGEST_SUM = 2**62
_LARGEST_NOISE = 30  # standard deviations, beyond which the sampler never goes


def integer_taps(prefilter: Filter, n_taps: int, bits: int) -> Integers:
    """Return round(2^bits · g) of the first samples g of the response at unit H2 norm, without zeros at the end.

    The scale of a prefilter is that of its noise, and has no other meaning.
    """
    g = np.rint(2.0**bits / prefilter.h2_norm() * prefilter.impulse(n_taps)).astype(np.int64)
    return np.trim_zeros(g, "b")


def squared_sensitivity(taps: Integers, max_events: int, min_separation: int) -> int:
    """Bound Σ_t (Σ_k g_k e_{t-k})² for the events e of one person, each of which is a change by one unit.

    There are `max_events` of them, at least `min_separation` samples apart. The bounds are those of
    :meth:`Privacy.sensitivity`, with integer autocorrelations instead of those of the ideal filter.

    Examples
    --------
    >>> squared_sensitivity(np.array([3, 4]), 1, 1), squared_sensitivity(np.array([3, 4]), 2, 1)
    (25, 74)
    """
    exact = taps.astype(object)  # Python's integers: no sum overflows
    energy = int(exact @ exact)
    if max_events == 1:
        return energy
    r = np.abs(np.correlate(taps, taps, "full")[len(taps) - 1 :])  # at most the energy, which MAX_BITS keeps small
    largest = np.maximum.accumulate(r[::-1])[::-1].astype(object)
    peak = min(int(np.abs(exact).sum()) ** 2, math.ceil(_squared_peak(taps)))
    return int(several_events(max_events, min_separation, largest, 0, energy, peak))


def _squared_peak(taps: Integers) -> float:
    r"""Bound ‖G‖_∞² from above, by a grid of N angles.

    |G|² is a trigonometric polynomial of degree n = len(taps) - 1, and its largest value is at most that on the grid
    over cos(πn/N) (Ehlich and Zeller 1964).
    """
    size = _ANGLES_PER_TAP * (1 << (len(taps) - 1).bit_length())
    on_grid = float((np.abs(np.fft.rfft(taps.astype(np.float64), size)) ** 2).max())
    return round_up(on_grid / math.cos(math.pi * (len(taps) - 1) / size))


def check_sizes(taps: Integers, inputs: Inputs, sigma: Sigma) -> None:
    """Refuse taps of channels (channels, ...) whose sums of inputs and noise, or squares, do not fit into 64 bits.

    Raises
    ------
    DesignError
        Saying what must be smaller.
    """
    exact = np.abs(taps.astype(object))  # Python's integers: no sum overflows
    largest = max(map(abs, inputs.range)) * max(int(row.sum()) for row in exact)
    if largest + math.ceil(_LARGEST_NOISE * sigma.std) > _LARGEST_SUM:
        raise DesignError(
            "inputs must have a smaller range or a larger unit: sums of this prefilter must stay below 2**62"
        )
    if not 0 < int((exact**2).sum()) < _LARGEST_SUM:  # beyond it correlations of 64 bits would overflow
        raise DesignError("taps must have squares that sum to 1 at least, and to less than 2**62: make them by exact")


def filter_of_signal(taps: Integers, inputs: Inputs) -> Filter:
    """Return the integer taps as a filter of the signal in its own units."""
    return Filter(taps / float(inputs.unit))
