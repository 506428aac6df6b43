"""Square roots of the target: published errors, exact coefficients, and what is refused."""

from fractions import Fraction

import numpy as np
import pytest
from helpers.horizons import EXAMPLE, UNIT, unit_errors
from hypothesis import given
from hypothesis import strategies as st

import dpfast as dp
from dpfast.design.horizon.square_root import square_root
from dpfast.mechanisms.operators.convolution import Convolution


@pytest.mark.parametrize(
    ("power", "largest", "mean"),
    [
        (8, 2.8311, 2.6688),
        (10, 3.2726, 3.1098),
        (12, 3.7139, 3.5513),
        (14, 4.1552, 3.9929),
        pytest.param(16, 4.5964, 4.4344, marks=pytest.mark.long),
    ],
)
def test_square_roots_of_running_sums_have_the_published_errors(power, largest, mean):
    assert unit_errors(square_root(dp.running_sum(2**power), UNIT)) == pytest.approx((largest, mean), abs=5.1e-5)


@pytest.mark.parametrize(
    ("power", "largest", "mean"),
    [
        (8, 4.239358, 4.123326),
        (10, 4.253987, 4.222870),
        (12, 4.253989, 4.246231),
        (14, 4.253989, 4.252051),
    ],
)
def test_square_roots_of_the_example_have_the_published_errors(power, largest, mean):
    found = square_root(EXAMPLE, UNIT, horizon=2**power)
    assert unit_errors(found) == pytest.approx((largest, mean), abs=6e-7)


def test_square_roots_tend_to_zero_forcing():
    stationary = dp.zero_forcing(EXAMPLE, UNIT).ideal_rmse / UNIT.noise_multiplier
    assert unit_errors(square_root(EXAMPLE, UNIT, horizon=2**13))[0] == pytest.approx(stationary, rel=1e-7)


@pytest.mark.parametrize(("n", "largest"), [(8, "9.6"), (16, "3.9e+04"), (32, "1.7e+13")])
def test_square_roots_are_useless_off_minimum_phase(n, largest):
    assert f"{unit_errors(square_root([1, -2], UNIT, horizon=n))[0]:.2g}" == largest


@pytest.mark.parametrize("n", [36, 64, 2048])
def test_square_roots_that_rounding_would_spoil_are_refused(n):
    with pytest.raises(dp.DesignError, match=f"target must have a square root .* got {n} steps: .*use zero_forcing"):
        square_root([1, -2], UNIT, horizon=n)


def test_the_root_of_a_running_sum_has_central_binomial_coefficients():
    c, exact = square_root(dp.running_sum(40), UNIT).strategy.coefficients, Fraction(1)
    for k in range(40):
        assert c[k] == pytest.approx(float(exact), rel=1e-12)
        exact *= 1 - Fraction(1, 2 * (k + 1))


@pytest.mark.parametrize("step", [1.0, -1.0, 2.5, 1e-9, 1e30])
def test_roots_of_running_sums_are_checked_without_a_transform(step, monkeypatch):
    monkeypatch.setattr(dp.Toeplitz, "apply", None)  # which the check on one input needs
    found = square_root(dp.Toeplitz(np.full(2**16, step)), UNIT)
    assert (found.reconstruction.coefficients == np.sign(step) * found.strategy.coefficients).all()


@pytest.mark.parametrize("wrong", [0, 1, 700, 999])
@pytest.mark.parametrize("both", [True, False])
def test_what_is_nearly_the_root_of_a_running_sum_is_refused(wrong, both):
    target = dp.running_sum(1000)
    root = np.array(square_root(target, UNIT).strategy.coefficients)
    other = root.copy()
    other[wrong] *= 1.0001
    with pytest.raises(ValueError, match="the reconstruction of the strategy is not the target"):
        dp.MatrixMechanism("wrong", target, UNIT, Convolution(other), Convolution(other if both else root))


@given(st.integers(0, 10**6), st.integers(0, 3), st.sampled_from([1.0, -1.0]))
def test_the_root_of_a_square_is_found_and_delay_and_sign_left_to_the_reconstruction(seed, delay, sign):
    rng = np.random.default_rng(seed)
    c = np.concatenate([[1.0], 0.3 * rng.normal(size=4)])
    n = 9 + delay
    found = square_root(dp.Toeplitz(np.concatenate([np.zeros(delay), sign * np.convolve(c, c)])), UNIT)
    np.testing.assert_allclose(found.strategy.coefficients[:9], [*c, 0, 0, 0, 0], atol=1e-9)
    assert not found.strategy.coefficients[n - delay :].any()
    np.testing.assert_allclose(found.reconstruction.coefficients, [*np.zeros(delay), *sign * c, 0, 0, 0, 0], atol=1e-9)
