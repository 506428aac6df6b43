"""A running sum without a horizon against what is best where the horizon is known, at every horizon."""

import math

import numpy as np
import pytest
from helpers.unbounded import jacobsen_fawaz, square_root_energies, trace_norm_bound, whole_norm

import dpfast as dp

UNIT = dp.Privacy.from_gdp(1, 1e-6)
MECHANISM = dp.unbounded_sum(UNIT)
SQUARE = MECHANISM.noise_std**2


def check_every_horizon(n):
    """Below 1.36 times the largest variance of a square root for so many steps, and falling from 2¹² on."""
    variances = MECHANISM.step_mse(n) / SQUARE
    assert (np.diff(variances) > 0).all()
    ratios = variances / square_root_energies(n) ** 2
    assert 1.3 < ratios.max() < 1.36
    assert (np.diff(ratios[2 ** np.arange(12, int(math.log2(n)) + 1) - 1]) < 0).all()
    means = np.cumsum(variances) / np.arange(1, n + 1)
    for k in range(int(math.log2(n)) + 1):
        assert 1.3 < means[2**k - 1] / trace_norm_bound(2**k) < 1.41
    return means


def test_it_is_near_to_the_best_for_every_horizon():
    means = check_every_horizon(2**16)
    for n in (2, 3, 4, 8, 16, 32, 64, 128, 256):
        best = dp.optimal_factorization(dp.running_sum(n), UNIT).predicted_mse / SQUARE
        assert trace_norm_bound(n) <= best * (1 + 1e-9)
        assert 1.28 < means[n - 1] / best < 1.36


@pytest.mark.long
def test_it_is_near_to_the_best_for_every_horizon_up_to_sixteen_million_steps():
    check_every_horizon(2**24)


def test_far_beyond_it_comes_nearer():
    """S_n = (ln n + γ + 4 ln 2)/π + O(1/n): the variance of the square root at 2⁴⁰ and 2⁵³ steps."""
    ratios = [
        MECHANISM.mse_at(2**k - 1) / SQUARE * (math.pi / ((k + 4) * math.log(2) + np.euler_gamma)) ** 2
        for k in (24, 32, 40, 53)
    ]
    assert (np.diff(ratios) < 0).all()
    assert ratios[-1] < 1.23


def test_a_privacy_for_no_gaussian_noise_is_refused():
    with pytest.raises(ValueError, match="delta must be above 0"):
        dp.unbounded_sum(dp.Privacy(1))


# --- the comparison on the page -------------------------------------------------------------------


def coefficients(gamma, n):
    """Those of (1 - z)^(-1/2) L^γ by J.C.P. Miller's recursion for the power of the series L = Σ zᵏ/(k + 1)."""
    power, j = np.append(1.0, np.zeros(n - 1)), np.arange(1.0, n)
    for k in range(1, n):
        power[k] = ((gamma * j[:k] - (k - j[:k])) / (j[:k] + 1)) @ power[k - 1 :: -1][:k] / k
    return np.convolve(np.cumprod(np.append(1.0, 1 - 0.5 / j)), power)[:n]


def test_the_twin_of_jacobsen_and_fawaz_is_a_factorization_of_the_sum():
    n, gamma = 60, -0.8
    left = coefficients(gamma, n)
    right = np.linalg.solve(
        np.array([[left[i - j] if i >= j else 0.0 for j in range(n)] for i in range(n)]), np.ones(n)
    )
    found = jacobsen_fawaz(n, gamma, 0.0) / whole_norm(gamma, 0.0)
    np.testing.assert_allclose(found, np.cumsum(right**2), rtol=1e-9)


def test_its_norm_is_that_of_its_coefficients():
    """For γ = -3 what is beyond 2¹² terms is below 1e-3: about ∫ x⁻⁶ dx/π from ln 2¹²."""
    assert np.linalg.norm(coefficients(-3.0, 2**12)) ** 2 == pytest.approx(whole_norm(-3.0, 0.0), rel=1e-3)
