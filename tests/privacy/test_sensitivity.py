"""How much several events of one person change a filtered signal, against trying all of them."""

import functools
import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpfast import Filter, Privacy

ALTERNATING = Filter([1], [1, 0.7])
DECAYING = Filter([1], [1, -0.7])


def brute_force_sensitivity(g, m, b):
    """Largest norm of the response to m unit events of any sign with gaps of at least b, by trying all."""
    horizon = max(b, len(g))
    largest = 0.0
    for gaps in itertools.product(range(b, horizon + 1), repeat=m - 1):
        times = np.concatenate([[0], np.cumsum(gaps)]).astype(int)
        for signs in itertools.product((1, -1), repeat=m - 1):
            out = np.zeros(times[-1] + len(g))
            for t, sign in zip(times, (1, *signs), strict=True):
                out[t : t + len(g)] += sign * g
            largest = max(largest, float(np.linalg.norm(out)))
    return largest


def test_sensitivity_of_one_event_is_the_norm():
    privacy = Privacy(1, 0.05, max_change=3)
    assert privacy.sensitivity(DECAYING) == pytest.approx(3 / math.sqrt(1 - 0.49), rel=1e-12)
    assert privacy.noise_std(DECAYING) == pytest.approx(privacy.noise_multiplier * 3 / math.sqrt(1 - 0.49), rel=1e-12)


FIR = {
    "ones": [1, 1, 1],
    "alternating": [1, -1, 1, -1],
    "decaying": [1, 0.5, 0.25, 0.125],
    "two echoes": [1, 0, 0, 0.9],
    "mixed": [1, -2, 0.5, 0.3],
    "difference": [1, -1],
}


@pytest.mark.parametrize("g", FIR.values(), ids=FIR)
def test_bound_is_never_below_brute_force(g):
    wrong = {}
    for m, b in itertools.product([2, 3, 4], [1, 2, 3, 6]):
        bound = Privacy(1, 0.05, max_events=m, min_separation=b).sensitivity(Filter(g))
        if not (found := brute_force_sensitivity(np.array(g, float), m, b)) <= bound * (1 + 1e-12):
            wrong[m, b] = found, bound
    assert wrong == {}


@given(st.lists(st.floats(-2, 2), min_size=1, max_size=5), st.integers(2, 3), st.integers(1, 4))
def test_bound_is_never_below_brute_force_of_random_taps(g, m, b):
    bound = Privacy(1, 0.05, max_events=m, min_separation=b).sensitivity(Filter(g))
    assert brute_force_sensitivity(np.array(g), m, b) <= bound * (1 + 1e-9) + 1e-9


@pytest.mark.parametrize("pole", [0.7, -0.7])
@pytest.mark.parametrize("m", [2, 3])
@pytest.mark.parametrize("b", [1, 3])
def test_bound_is_never_below_brute_force_of_one_pole(pole, m, b):
    bound = Privacy(1, 0.05, max_events=m, min_separation=b).sensitivity(Filter([1], [1, -pole]))
    assert brute_force_sensitivity(pole ** np.arange(14), m, b) <= bound


@pytest.mark.parametrize("f", [DECAYING, Filter(np.ones(5)), Filter([1, 0.5, 0.25])])
def test_bound_is_exact_where_the_autocorrelation_is_non_negative_and_non_increasing(f):
    g = f.impulse(400)
    r = np.concatenate([np.correlate(g, g, "full")[399:], np.zeros(100)])
    found, expected = {}, {}
    for m, b in itertools.product([1, 2, 5], [1, 2, 4, 20]):
        found[m, b] = Privacy(1, 0.05, max_events=m, min_separation=b, max_change=2).sensitivity(f)
        expected[m, b] = 2 * math.sqrt(m * r[0] + 2 * sum((m - lag) * r[lag * b] for lag in range(1, m)))
    assert found == pytest.approx(expected, rel=1e-7)
    assert {x: (found[x], y) for x, y in expected.items() if not found[x] >= y * (1 - 1e-12)} == {}


def test_alternating_signs_are_not_taken_for_the_exact_formula():
    bound = Privacy(1, 0.05, max_events=2).sensitivity(ALTERNATING) ** 2
    assert bound == pytest.approx(2 / 0.51 + 2 * 0.7 / 0.51, rel=1e-9)
    assert bound == pytest.approx(6.667, abs=1e-3)


@functools.cache
def long_zero_forcing_prefilter():
    """The minimum-phase factor of |F|, F = (1 + .995 z⁻¹)/(1 - .995 z⁻¹), as taps of which the last is 1e-9."""
    n = 1 << 17
    z = np.exp(-1j * np.linspace(0, np.pi, n // 2 + 1))
    gain = np.abs((1 + 0.995 * z) / (1 - 0.995 * z))
    fold = np.concatenate([[0.5], np.ones(n // 2 - 1), [0.5], np.zeros(n // 2 - 1)])
    return Filter(np.fft.irfft(np.exp(np.fft.rfft(np.fft.irfft(np.log(gain)) * fold)))[:4_000])


@pytest.mark.parametrize(
    ("b", "expected"),
    [
        (200, 6.202),
        *(pytest.param(*x, marks=pytest.mark.long) for x in [(1, 8.184), (10, 7.283), (50, 6.673)]),
    ],
)
def test_two_events_through_the_zero_forcing_prefilter(b, expected):
    g = long_zero_forcing_prefilter()
    sensitivity = Privacy(1, 0.05, max_events=2, min_separation=b).sensitivity(g)
    assert sensitivity * 4.2539891749846 / g.h2_norm() == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize(
    "f",
    [DECAYING, ALTERNATING, Filter(np.ones(9)), Filter([1, 0, 0, 0, 0.9]), Filter([1, -0.995], [1, -0.5])],
)
def test_sensitivity_rises_with_events_and_falls_with_separation(f):
    def sensitivity(m, b):
        return Privacy(1, 0.05, max_events=m, min_separation=b).sensitivity(f)

    by_events = [sensitivity(m, 2) for m in (1, 2, 3, 5, 10, 100)]
    by_separation = [sensitivity(4, b) for b in (1, 2, 3, 5, 10, 100, 10_000)]
    assert (np.diff(by_events) >= -1e-12).all()
    assert (np.diff(by_separation) <= 1e-12).all()
    # far apart, responses do not overlap
    assert by_separation[-1] == pytest.approx(2 * f.h2_norm(), rel=1e-7)


@pytest.mark.parametrize(
    "f",
    [
        *(DECAYING, ALTERNATING, Filter(np.ones(9)), Filter([1], [1, -(1 - 1e-3)])),
        pytest.param(Filter([1], [1, -(1 - 2e-5)]), marks=pytest.mark.long),
    ],
)
@pytest.mark.parametrize("m", [2, 7])
def test_sensitivity_is_never_above_group_privacy(f, m):
    assert Privacy(1, 0.05, max_events=m, max_change=3).sensitivity(f) <= m * 3 * f.h2_norm() * (1 + 1e-12)


@pytest.mark.parametrize("b", [1, 2**40, 2**62, 2**64])
def test_separation_may_be_any_integer(b):
    sensitivity = Privacy(1, 0.05, max_events=5, min_separation=b).sensitivity(DECAYING)
    assert sensitivity >= math.sqrt(5) * DECAYING.h2_norm() * (1 - 1e-12)


def test_events_may_be_many():
    # ‖G‖_∞² m is what bounds a million events through one pole
    sensitivity = Privacy(1, 0.05, max_events=10**6).sensitivity(DECAYING)
    assert sensitivity == pytest.approx(1e3 / 0.3, rel=1e-5)


@pytest.mark.parametrize(
    "f",
    [
        Filter.from_zpk([], [0.9999, 0.9999], 1.0),
        Filter.from_sos([[1, 2, 3, 1, 0, 0]] * 3),
        Filter.from_zpk([], [0.9] * 6, 1.0),
    ],
)
def test_sensitivity_of_clustered_poles_is_that_of_the_response(f):
    expected = np.linalg.norm(f.impulse(800_000))
    assert Privacy(1, 0.05).sensitivity(f) == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("m", [2, 3])
def test_events_in_one_step_are_a_change_of_their_sum(m):
    """As notes of Privacy say: m events at any steps, some perhaps in one, by trying all of them with all signs."""
    g = np.array([1.0, 0.5, -0.3])
    largest = 0.0
    for times in itertools.product(range(len(g) + 1), repeat=m):
        for signs in itertools.product((1, -1), repeat=m):
            out = np.zeros(2 * len(g) + 1)
            for sign, t in zip(signs, times, strict=True):
                out[t : t + len(g)] += sign * g
            largest = max(largest, float(np.linalg.norm(out)))
    apart = Privacy(1, 0.05, max_events=m).sensitivity(Filter(g))
    assert apart < 0.95 * largest  # which are at different steps
    assert Privacy(1, 0.05, max_change=m).sensitivity(Filter(g)) == pytest.approx(largest)
