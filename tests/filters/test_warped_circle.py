"""The warped circle: means, causal parts and minimum-phase factors against closed forms."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpfast import Filter
from dpfast.filters.warped_circle import allpass, choose_circle, choose_warp, make_circle, warped_angles

WARPS = [0.0, 0.5, -0.5, 0.9, -0.97]
every_warp = pytest.mark.parametrize("warp", WARPS)


def pole(p, z):
    return 1 / (1 - p / z)


@every_warp
def test_mean_of_a_one_pole_spectrum(warp):
    circle = make_circle(warp, 4096)
    assert circle.grid.mean(np.ones(len(circle.z))) == pytest.approx(1, rel=1e-13)
    near = pole(math.copysign(0.8, warp), circle.z)
    assert circle.grid.mean(np.abs(near) ** 2) == pytest.approx(1 / 0.36, rel=1e-12)
    assert circle.grid.mean(np.cos(3 * circle.grid.omega)) == pytest.approx(0, abs=1e-13)


@every_warp
def test_nodes_are_angles_from_0_to_pi(warp):
    circle = make_circle(warp, 256)
    assert circle.size == 256
    assert circle.grid.omega[0] == 0
    assert circle.grid.omega[-1] == pytest.approx(np.pi, rel=1e-15)
    assert (np.diff(circle.grid.omega) > 0).all()
    np.testing.assert_allclose(np.exp(1j * circle.grid.omega), circle.z, rtol=1e-13)
    np.testing.assert_allclose(circle.warped_angle(circle.grid.omega), np.linspace(0, np.pi, 129), atol=1e-9)


@every_warp
def test_minimum_phase_factor_of_a_rational_spectrum(warp):
    circle = make_circle(warp, 8192)
    factor = (1 + 0.5 / circle.z) * pole(0.7, circle.z)
    np.testing.assert_allclose(circle.outer_factor(np.abs(factor) ** 2), factor, rtol=1e-10)


@every_warp
def test_causal_part_of_a_two_sided_response(warp):
    circle = make_circle(warp, 8192)
    causal = 2 + pole(0.6, circle.z) / circle.z
    anticausal = circle.z * pole(-0.4, circle.z).conj()  # times -1, -2, ...
    np.testing.assert_allclose(circle.causal_part(causal + anticausal), causal, rtol=1e-10)


@every_warp
def test_a_constant_is_causal_and_its_advance_is_not(warp):
    circle = make_circle(warp, 4096)
    np.testing.assert_allclose(circle.causal_part(np.ones_like(circle.z)), 1, rtol=1e-12)
    np.testing.assert_allclose(circle.causal_part(circle.z), 0, atol=1e-12)


@every_warp
@given(poles=st.tuples(st.floats(-0.8, 0.8), st.floats(-0.8, 0.8)), change=st.floats(-0.8, 0.8))
def test_change_of_a_minimum_phase_filter_by_its_magnitude(warp, poles, change):
    """Re<T d ln G> = <S d ln|G|²> for d ln G = 1/(1 - change/z), whose real part is half of d ln|G|².

    Angles: a pole of .8 has a radius of .9966 on the circle that is warped the other way, and .9966ⁿ is to be nothing.
    """
    circle = make_circle(warp, 8192)
    t = pole(poles[0], circle.z) * pole(poles[1], circle.z).conj()
    step = pole(change, circle.z)
    left = circle.grid.mean((t * step).real)
    right = circle.grid.mean(circle.along_outer(t) * 2 * step.real)
    assert right == pytest.approx(left, rel=1e-8, abs=1e-10)


@every_warp
def test_interpolation_is_exact_at_nodes_and_near_between(warp):
    circle = make_circle(warp, 2**14)
    p = math.copysign(0.9, warp)
    values = np.abs(pole(p, circle.z)) ** 2
    np.testing.assert_allclose(circle.interpolate(values, circle.grid.omega), values, rtol=1e-9)
    omega = np.linspace(0.1, 3.0, 77)
    np.testing.assert_allclose(
        circle.interpolate(values, omega), np.abs(Filter([1], [1, -p]).response(omega)) ** 2, rtol=1e-3
    )


@pytest.mark.parametrize(
    ("poles", "lag", "end"),
    [([0.9999], 0, 1), ([-0.9999, 0.3], 5, -1), ([0.5], 0, 0), ([0.9, -0.9], 3000, 0), ([], 0, 0)],
)
def test_the_warp_is_towards_the_slow_poles(poles, lag, end):
    circle = choose_circle(poles, lag)
    assert np.sign(round(circle.warp, 2)) == end
    assert 4096 <= circle.size <= 2**16
    assert circle.size >= 8 * lag


def test_a_slow_pole_is_resolved_in_a_few_thousand_steps():
    circle = choose_circle([1 - 2e-5])
    assert circle.size <= 2**14
    exact = 1 / (1 - (1 - 2e-5) ** 2)
    assert circle.grid.mean(np.abs(pole(1 - 2e-5, circle.z)) ** 2) == pytest.approx(exact, rel=1e-9)


@given(st.complex_numbers(max_magnitude=0.999, allow_nan=False), st.floats(-0.99, 0.99))
def test_allpass_keeps_the_disk_and_minus_warp_inverts_it(z, warp):
    moved = allpass(z, warp)
    assert abs(moved) < 1
    assert abs(allpass(moved, -warp) - z) <= 1e-9


@given(st.floats(0, math.pi), st.floats(-0.9, 0.9))
def test_warped_angles_are_those_of_the_allpass(nu, warp):
    omega = warped_angles(np.array([nu]), warp)[0]
    assert 0 <= omega <= math.pi
    assert abs(np.exp(1j * omega) - allpass(np.exp(1j * nu), warp)) <= 1e-9


@pytest.mark.parametrize("distance", [1e-6, 1e-4, 0.01, 0.5, 1.0, 2.0])
def test_warp_brings_detail_to_the_square_root_of_its_distance(distance):
    moved = 1 - allpass(1 - min(distance, 1.0), -choose_warp(distance)).real
    assert math.sqrt(distance) / 2.1 <= moved <= 2.1 * math.sqrt(distance)
