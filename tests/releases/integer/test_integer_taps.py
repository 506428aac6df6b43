"""Integer taps and their sensitivity, against brute force over all ways to place the events."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpfast as dp
from dpfast.releases.integer.integer_taps import MAX_BITS, MAX_TAPS, _squared_peak, integer_taps, squared_sensitivity

TAPS = st.lists(st.integers(-9, 9), min_size=1, max_size=5).filter(any)


def brute_force(taps, max_events, min_separation, horizon):
    """The largest energy over all places and signs of the events; changes of one unit, up or down, are extreme."""
    worst = 0
    for count in range(1, max_events + 1):
        for places in itertools.combinations(range(horizon), count):
            if any(b - a < min_separation for a, b in itertools.pairwise(places)):
                continue
            for signs in itertools.product((-1, 1), repeat=count):
                e = np.zeros(horizon, int)
                e[list(places)] = signs
                worst = max(worst, int((np.convolve(taps, e) ** 2).sum()))
    return worst


@given(TAPS, st.integers(1, 3), st.integers(1, 4))
def test_no_placement_of_events_moves_more(taps, max_events, min_separation):
    bound = squared_sensitivity(np.array(taps), max_events, min_separation)
    assert isinstance(bound, int)
    assert brute_force(taps, max_events, min_separation, 8) <= bound


@given(TAPS)
def test_one_event_moves_the_energy_exactly(taps):
    assert squared_sensitivity(np.array(taps), 1, 1) == sum(x * x for x in taps) == brute_force(taps, 1, 1, 1)


@given(st.lists(st.integers(1, 9), min_size=1, max_size=5), st.integers(2, 4), st.integers(1, 3))
def test_falling_autocorrelations_make_it_exact(taps, max_events, min_separation):
    taps = sorted(taps, reverse=True)  # non-negative taps that fall have autocorrelations that fall
    r = np.correlate(taps, taps, "full")[len(taps) - 1 :].tolist() + [0] * 20
    m, b = max_events, min_separation
    exact = m * r[0] + 2 * sum((m - lag) * r[lag * b] for lag in range(1, m))
    assert squared_sensitivity(np.array(taps), m, b) == min(exact, m * m * r[0])


def test_alternating_taps_are_not_taken_for_falling_ones():
    """g = (-.7)^k, m = 2, b = 1: the formula for falling autocorrelations gives 1.176, the truth is 6.667."""
    g = np.rint(2.0**12 * (-0.7) ** np.arange(40)).astype(np.int64)
    assert squared_sensitivity(g, 2, 1) / 2.0**24 == pytest.approx(6.667, abs=0.01)


def test_many_events_meet_the_peak_of_the_gain():
    taps = np.array([3, -2, 4, 1])
    many = squared_sensitivity(taps, 10**9, 1)
    peak = (np.abs(np.polyval(taps, np.exp(1j * np.linspace(0, np.pi, 100_001)))) ** 2).max()
    assert peak * 10**9 <= many <= math.ceil(peak * 1.002) * 10**9


@given(st.lists(st.integers(-1000, 1000), min_size=1, max_size=12).filter(any))
def test_the_peak_is_bounded_from_above(taps):
    omega = np.linspace(0, np.pi, 20_001)
    assert (np.abs(np.polyval(taps, np.exp(1j * omega))) ** 2).max() <= _squared_peak(np.array(taps))


def test_the_longest_and_finest_taps_do_not_overflow():
    taps = np.full(MAX_TAPS, round(2**MAX_BITS / math.sqrt(MAX_TAPS)))
    assert squared_sensitivity(taps, 1, 1) == MAX_TAPS * int(taps[0]) ** 2
    assert squared_sensitivity(taps[:2000], 2, 1) == 2 * (2000 + 1999) * int(taps[0]) ** 2


def test_taps_are_the_scaled_impulse_response_without_its_zeros():
    g = dp.Filter([0, 3], [1, -0.5])
    taps = integer_taps(g, 40, 8)
    expected = 2**8 * g.impulse(40) / g.h2_norm()
    assert np.abs(taps - expected[: len(taps)]).max() <= 0.5
    assert (np.abs(expected[len(taps) :]) <= 0.5).all()
    assert taps[0] == 0
    assert taps[-1] != 0
