import dataclasses
import functools
import itertools
import math

import mpmath
import numpy as np
import pytest
from dp_accounting import gaussian_mechanism
from hypothesis import given
from hypothesis import strategies as st

from dpfast import Filter, Privacy
from dpfast.privacy import gaussian

EPSILONS = [1e-6, 1e-4, 0.01, 0.1, math.log(2), math.log(3), 1, 3, 10, 50, 100, 300, 700]
DELTAS = [1e-300, 1e-200, 1e-100, 1e-50, 1e-20, 1e-12, 1e-6, 1e-3, 0.05, 0.2, 0.5, 0.9]
ALTERNATING = Filter([1], [1, 0.7])
DECAYING = Filter([1], [1, -0.7])
DIGITS = 100  # of which differences of probabilities, each to a relative error, take some twenty


def true_delta(kappa, epsilon):
    """δ of a Gaussian mechanism (Balle and Wang 2018, Theorem 8), in mpmath's precision."""
    kappa, epsilon = mpmath.mpf(kappa), mpmath.mpf(epsilon)
    half, middle = 1 / (2 * kappa), epsilon * kappa
    return mpmath.ncdf(half - middle) - mpmath.exp(epsilon) * mpmath.ncdf(-half - middle)


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


# --- calibration ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("epsilon", "delta", "calibration", "expected"),
    [
        (math.log(2), 0.05, "paper", 2.645674),
        (math.log(3), 0.05, "paper", 1.75633987311476),
        (math.log(3), 0.05, "exact", 1.25592366548677),
        (100, 1e-300, "exact", 0.38279839749776),
    ],
)
def test_noise_multiplier_of_reference_values(epsilon, delta, calibration, expected):
    kappa = Privacy(epsilon, delta, calibration=calibration).noise_multiplier
    digits = 1e-6 if expected == 2.645674 else 2e-9
    assert kappa == pytest.approx(expected, rel=digits)


@mpmath.workdps(DIGITS)
def test_exact_calibration_is_never_below_the_root_and_at_most_3e_9_above():
    wrong = []
    for epsilon, delta in itertools.product(EPSILONS, DELTAS):
        kappa = Privacy(epsilon, delta).noise_multiplier
        least = kappa / (1 + mpmath.mpf("3e-9"))
        if not true_delta(kappa, epsilon) <= mpmath.mpf(delta) <= true_delta(least, epsilon):
            wrong.append((epsilon, delta, kappa))
    assert wrong == []


@pytest.mark.parametrize("epsilon", [1e-8, 1e-9, 1e-10, 1e-12])
@pytest.mark.parametrize("delta", [1e-300, 1e-20, 1e-10])
def test_exact_calibration_is_sound_at_tiny_epsilon(epsilon, delta):
    kappa = Privacy(epsilon, delta).noise_multiplier
    with mpmath.workdps(DIGITS):
        assert true_delta(kappa, epsilon) <= mpmath.mpf(delta)
        assert true_delta(kappa * 0.999, epsilon) >= mpmath.mpf(delta)


@pytest.mark.parametrize("mu", [1e-30, 1e-6, 0.01, 0.5, 0.999, 1.001, 3, 30, 1e3, 4e4])
def test_log_delta_is_right_to_1e_13_on_both_sides_of_each_of_its_branches(mu):
    for threshold in [-9, -3, -1.0001, -0.9999, -0.4, 0, 1, 5, 12, 19.4, 19.6, 19.99, 20.01, 30, 38.2]:
        if threshold < -mu / 2:
            continue
        with mpmath.workdps(DIGITS + 2 * int(abs(math.log10(mu)))):
            x, x_1 = mpmath.mpf(threshold) / mpmath.sqrt(2), (mpmath.mpf(threshold) + mpmath.mpf(mu)) / mpmath.sqrt(2)
            beyond = mpmath.erfc(x_1) * mpmath.exp(x_1**2 - x**2)
            truth = mpmath.log((mpmath.erfc(x) - beyond) / 2)
            assert abs(gaussian.log_delta_beyond(threshold, mu) / truth - 1) < 1e-13


@pytest.mark.parametrize("kappa", [0.01, 0.3, 1, 10, 1e4])
@pytest.mark.parametrize("delta", [1e-300, 1e-85, 1e-6, 0.05, 0.9, 0.999])
def test_epsilon_is_never_below_the_truth_nor_far_above(kappa, delta):
    with mpmath.workdps(DIGITS):
        if true_delta(kappa, 0) <= delta:
            with pytest.raises(ValueError, match="delta must be smaller"):
                gaussian.gaussian_epsilon(kappa, delta)
            return
        epsilon = gaussian.gaussian_epsilon(kappa, delta)
        assert true_delta(kappa, epsilon) <= mpmath.mpf(delta)
        assert true_delta(kappa, epsilon * (1 - 3e-9) - 1e-9 / kappa) >= mpmath.mpf(delta)


def test_epsilon_next_to_0_is_not_below_the_truth():
    kappa, delta = 398942.20000000007, 1e-6  # δ(0) is 1e-6 but for a few parts in 1e7
    with mpmath.workdps(60):
        assert true_delta(kappa, gaussian.gaussian_epsilon(kappa, delta)) <= mpmath.mpf(delta)


@pytest.mark.parametrize("epsilon", [0.01, 0.1, math.log(3), 3, 10])
@pytest.mark.parametrize("delta", [1e-12, 1e-6, 1e-3, 0.05, 0.4])
def test_exact_calibration_is_that_of_dp_accounting(epsilon, delta):
    kappa = Privacy(epsilon, delta).noise_multiplier
    assert kappa == pytest.approx(gaussian_mechanism.get_sigma_gaussian(epsilon, delta), rel=1e-7)
    assert epsilon == pytest.approx(gaussian_mechanism.get_epsilon_gaussian(kappa, delta), rel=1e-6)


@pytest.mark.parametrize("epsilon", [0.1, 1, 10])
@pytest.mark.parametrize("delta", [1e-10, 0.05, 0.4])
def test_paper_calibration_is_sound_and_never_below_the_exact_one(epsilon, delta):
    paper = Privacy(epsilon, delta, calibration="paper").noise_multiplier
    assert paper >= Privacy(epsilon, delta).noise_multiplier
    with mpmath.workdps(60):
        k = mpmath.sqrt(2) * mpmath.erfinv(1 - 2 * mpmath.mpf(delta))
        assert paper == pytest.approx(float((k + mpmath.sqrt(k**2 + 2 * epsilon)) / (2 * epsilon)), rel=1e-12)


@given(st.floats(1e-3, 100), st.floats(1e-3, 100), st.floats(1e-100, 0.9), st.floats(1e-100, 0.9))
def test_noise_multiplier_falls_with_epsilon_and_with_delta(e1, e2, d1, d2):
    low, high = sorted([e1, e2])
    small, large = sorted([d1, d2])
    assert Privacy(low, small).noise_multiplier >= Privacy(high, small).noise_multiplier * (1 - 1e-9)
    assert Privacy(low, small).noise_multiplier >= Privacy(low, large).noise_multiplier * (1 - 1e-9)


@given(st.floats(0.01, 20), st.floats(1e-100, 1e-3))
def test_gdp_and_zcdp_come_back(mu, delta):
    from_gdp = Privacy.from_gdp(mu, delta)
    assert from_gdp.gdp_mu == pytest.approx(mu, rel=5e-9)
    assert from_gdp.noise_multiplier == pytest.approx(1 / mu, rel=5e-9)
    assert from_gdp.delta == delta
    from_zcdp = Privacy.from_zcdp(mu * mu / 2, delta, max_change=3)
    assert from_zcdp.zcdp_rho == pytest.approx(mu * mu / 2, rel=1e-8)
    assert from_zcdp.max_change == 3


@pytest.mark.parametrize("mu", [0.1, 1, 5])
@pytest.mark.parametrize("delta", [1e-12, 1e-6, 0.01])
def test_epsilon_of_gdp_is_that_of_dp_accounting(mu, delta):
    assert Privacy.from_gdp(mu, delta).epsilon == pytest.approx(
        gaussian_mechanism.get_epsilon_gaussian(1 / mu, delta), rel=1e-6
    )


def test_gdp_that_every_epsilon_satisfies_is_refused():
    with pytest.raises(ValueError, match="delta must be smaller"):
        Privacy.from_gdp(1e-3, 0.1)


# --- sensitivity ----------------------------------------------------------------------------------


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
@pytest.mark.parametrize("m", [2, 3, 4])
@pytest.mark.parametrize("b", [1, 2, 3, 6])
def test_bound_is_never_below_brute_force(g, m, b):
    bound = Privacy(1, 0.05, max_events=m, min_separation=b).sensitivity(Filter(g))
    assert brute_force_sensitivity(np.array(g, float), m, b) <= bound * (1 + 1e-12)


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
@pytest.mark.parametrize("m", [1, 2, 5])
@pytest.mark.parametrize("b", [1, 2, 4, 20])
def test_bound_is_exact_where_the_autocorrelation_is_non_negative_and_non_increasing(f, m, b):
    g = f.impulse(400)
    r = np.concatenate([np.correlate(g, g, "full")[399:], np.zeros(100)])
    expected = math.sqrt(m * r[0] + 2 * sum((m - lag) * r[lag * b] for lag in range(1, m)))
    sensitivity = Privacy(1, 0.05, max_events=m, min_separation=b, max_change=2).sensitivity(f)
    assert sensitivity == pytest.approx(2 * expected, rel=1e-7)
    assert sensitivity >= 2 * expected * (1 - 1e-12)


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
        *[(1, 8.184), (200, 6.202)],
        *(pytest.param(*x, marks=pytest.mark.long) for x in [(10, 7.283), (50, 6.673)]),
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


@pytest.mark.parametrize("f", [DECAYING, ALTERNATING, Filter(np.ones(9)), Filter([1], [1, -(1 - 2e-5)])])
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


# --- arguments ------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [0, -1, math.nan, math.inf, "1", None, True, np.True_, 1j, [1.0], np.array([1.0])])
@pytest.mark.parametrize("name", ["epsilon", "delta", "max_change"])
def test_numbers_out_of_range_are_refused_by_name(name, value):
    with pytest.raises(ValueError, match=f"^{name} must be a .*number.*, got "):
        Privacy(**{"epsilon": 1, "delta": 0.05, name: value})


@pytest.mark.parametrize("delta", [1, 1.5, 0, -0.1])
def test_delta_is_strictly_between_0_and_1(delta):
    with pytest.raises(ValueError, match=rf"^delta must be a number strictly between 0 and 1, got {delta}$"):
        Privacy(1, delta)


@pytest.mark.parametrize("value", [0, -1, 1.5, 2.0, "2", None, True, math.nan])
@pytest.mark.parametrize("name", ["max_events", "min_separation"])
def test_counts_are_integers_of_at_least_one(name, value):
    with pytest.raises(ValueError, match=rf"^{name} must be an integer, at least 1( and at most 1000000000)?, got "):
        Privacy(1, 0.05, **{name: value})


@pytest.mark.parametrize("value", ["Exact", "papr", "", None, 1])
def test_calibration_is_one_of_two_words(value):
    with pytest.raises(ValueError, match=f"^calibration must be one of 'exact', 'paper', got {value!r}"):
        Privacy(1, 0.05, calibration=value)


@pytest.mark.parametrize("delta", [0.5, 0.7])
def test_paper_calibration_ends_at_one_half(delta):
    with pytest.raises(ValueError, match=rf"^delta must be below 0\.5 with calibration='paper', got {delta}"):
        Privacy(1, delta, calibration="paper")


@pytest.mark.parametrize("make", [Privacy.from_gdp, Privacy.from_zcdp])
@pytest.mark.parametrize("arguments", [(0, 0.05), (-1, 0.05), (math.nan, 0.05), (1, 0), (1, 1), ("1", 0.05)])
def test_named_constructors_check_too(make, arguments):
    with pytest.raises(ValueError, match=r"^(mu|rho|delta) must be"):
        make(*arguments)


@pytest.mark.parametrize("prefilter", [[1, 2], None, 1.0])
def test_a_prefilter_that_is_no_filter_is_refused_by_name(prefilter):
    with pytest.raises((TypeError, ValueError), match="prefilter must be"):
        Privacy(1, 0.05).sensitivity(prefilter)


def test_frozen_hashable_and_equal():
    privacy = Privacy(1, 0.05)
    assert privacy.noise_multiplier > 0
    assert privacy == Privacy(1.0, np.float64(0.05))
    assert hash(privacy) == hash(Privacy(np.int64(1), 0.05))
    assert privacy != Privacy(1, 0.05, calibration="paper")
    with pytest.raises(dataclasses.FrozenInstanceError):
        privacy.epsilon = 2
