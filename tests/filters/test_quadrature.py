"""Integrals over the circle, against closed forms."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpfast.filters.quadrature import graded_grid


def factor(roots, omega):
    """Π |1 - root e^{-iω}|."""
    return np.prod([np.abs(1 - root * np.exp(-1j * omega)) for root in (*roots, 0)], axis=0)


@pytest.mark.parametrize("r", [0.0, 0.5, 0.9, 0.99, 0.995, 0.999, 0.9999, 1 - 2e-5])
@pytest.mark.parametrize("sign", [1, -1])
def test_energy_of_one_pole(r, sign):
    grid = graded_grid([sign * r])
    # near π a double resolves ω to 4e-16: so much of the distance to the pole is lost
    digits = 2e-12 if sign > 0 else max(2e-12, 1e-15 / (1 - r))
    assert grid.mean(factor([sign * r], grid.omega) ** -2) * (1 - r * r) == pytest.approx(1, rel=digits)


@pytest.mark.parametrize("r", [0.9, 0.999, 0.9999])
@pytest.mark.parametrize("angle", [0.01, 1.0, 3.0])
def test_energy_of_a_resonator(r, angle):
    roots = r * np.exp([1j * angle, -1j * angle])
    a1, a2 = -2 * r * math.cos(angle), r * r
    expected = (1 + a2) / ((1 - a2) * ((1 + a2) ** 2 - a1**2))
    grid = graded_grid(roots)
    assert grid.mean(factor(roots, grid.omega) ** -2) == pytest.approx(expected, rel=1e-11)


@pytest.mark.parametrize("r", [0.5, 0.99, 0.9999])
def test_mean_gain_of_one_pole_is_an_elliptic_integral(r):
    grid = graded_grid([r])
    # <1/|1 - r z|> = (2/π) K(r), <|1 - r z|> = (2/π)(1 + r) E(4r/(1 + r)²), with the moduli squared
    expected = float(2 / mpmath.pi * mpmath.ellipk(mpmath.mpf(r) ** 2))
    assert grid.mean(1 / factor([r], grid.omega)) == pytest.approx(expected, rel=1e-12)
    expected = float(2 / mpmath.pi * (1 + r) * mpmath.ellipe(4 * mpmath.mpf(r) / (1 + mpmath.mpf(r)) ** 2))
    assert grid.mean(factor([r], grid.omega)) == pytest.approx(expected, rel=1e-12)


def test_mean_gain_of_the_example():
    grid = graded_grid([0.995, -0.995])
    assert grid.mean(factor([-0.995], grid.omega) / factor([0.995], grid.omega)) == pytest.approx(4.2539891749846)


@pytest.mark.parametrize("sign", [1, -1])
def test_kink_of_a_real_zero_on_the_circle(sign):
    grid = graded_grid(kinks=[sign])
    assert grid.mean(factor([sign], grid.omega)) == pytest.approx(4 / math.pi, rel=1e-12)


@pytest.mark.parametrize("angle", [0.1, 1.0, 2.0])
def test_kink_of_complex_zeros_on_the_circle(angle):
    grid = graded_grid(kinks=[np.exp(1j * angle)])
    # <2 |cos ω - cos θ|>
    expected = 2 / math.pi * (2 * math.sin(angle) + (math.pi - 2 * angle) * math.cos(angle))
    assert grid.mean(np.abs(2 * np.cos(grid.omega) - 2 * math.cos(angle))) == pytest.approx(expected, rel=1e-12)


def test_breaks_are_kinks_too():
    grid = graded_grid(breaks=[0.7])
    expected = (0.7**2 + (math.pi - 0.7) ** 2) / (2 * math.pi)
    assert grid.mean(np.abs(grid.omega - 0.7)) == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("root", [0.5, 0.9999, 1 - 1e-7, 1 - 1e-10, 1.0, -1.0, np.exp(1j), np.exp(2.5j)])
def test_mean_logarithm_is_zero(root):
    roots = [root] if np.isreal(root) else [root, np.conj(root)]
    grid = graded_grid([root])
    assert grid.mean(np.log(factor(roots, grid.omega))) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("degree", [1, 2, 7, 50, 333, 2000])
def test_oscillations_up_to_the_degree(degree):
    grid = graded_grid(degree=degree)
    for k in {1, degree // 2, degree}:
        assert grid.mean(np.cos(k * grid.omega)) == pytest.approx(float(k == 0), abs=1e-12)
    assert grid.mean(np.ones_like(grid.omega)) == pytest.approx(1, rel=1e-13)


@pytest.mark.parametrize("degree", [50, 333, 2000])
def test_oscillations_beside_a_pole(degree):
    grid = graded_grid([0.9], degree=degree)
    # the lags of 1/|1 - r z|² are r^k/(1 - r²)
    kernel = factor([0.9], grid.omega) ** -2
    for k in (3, degree // 2, degree):
        assert grid.mean(np.cos(k * grid.omega) * kernel) == pytest.approx(0.9**k / 0.19, abs=1e-12)


@given(st.lists(st.complex_numbers(max_magnitude=1.5, allow_nan=False), max_size=5), st.lists(st.floats(-1, 4)))
def test_weights_are_positive_and_sum_to_one(roots, breaks):
    grid = graded_grid(roots, breaks=breaks)
    assert (grid.weights > 0).all()
    assert grid.weights.sum() == pytest.approx(1, rel=1e-12)
    assert (np.diff(grid.omega) >= 0).all()
    assert 0 < grid.omega[0]
    assert grid.omega[-1] <= np.pi
