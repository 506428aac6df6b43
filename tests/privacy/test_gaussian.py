"""The noise of a Gaussian mechanism, against references in many digits."""

import itertools
import math

import mpmath
import pytest
from dp_accounting import gaussian_mechanism
from hypothesis import given
from hypothesis import strategies as st

from dpfast import Privacy
from dpfast.privacy import gaussian

EPSILONS = [1e-6, 1e-4, 0.01, 0.1, math.log(2), math.log(3), 1, 3, 10, 50, 100, 300, 700]
DELTAS = [1e-300, 1e-200, 1e-100, 1e-50, 1e-20, 1e-12, 1e-6, 1e-3, 0.05, 0.2, 0.5, 0.9]
DIGITS = 100  # of which differences of probabilities, each to a relative error, take some twenty


def true_delta(kappa, epsilon):
    """δ of a Gaussian mechanism (Balle and Wang 2018, Theorem 8), in mpmath's precision."""
    kappa, epsilon = mpmath.mpf(kappa), mpmath.mpf(epsilon)
    half, middle = 1 / (2 * kappa), epsilon * kappa
    return mpmath.ncdf(half - middle) - mpmath.exp(epsilon) * mpmath.ncdf(-half - middle)


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
