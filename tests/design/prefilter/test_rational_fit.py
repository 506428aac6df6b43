"""Rational fits: their parameters, reflection coefficients and roots; and those that start from a draft."""

import itertools
import math

import numpy as np
import pytest
from scipy import optimize

from dpfast import Filter, MarkovChain
from dpfast.design.prefilter import rational_fit
from dpfast.design.prefilter.design_problem import Problem
from dpfast.design.prefilter.objectives import shape_objective, wiener_objective
from dpfast.design.prefilter.short_fir import truncate_impulse_response
from dpfast.design.prefilter.water_filling import smoother_water_filling
from dpfast.filters.filter import MAX_POLE_RADIUS


@pytest.mark.parametrize(
    "roots",
    [[], [0.5], [0.5, -0.3], [0.5 + 0.3j, 0.5 - 0.3j], [0.9, 0.2 + 0.1j, 0.2 - 0.1j], [0.999, 0.99, -0.5], [0.0, 0.0]],
)
def test_reflection_coefficients_keep_the_roots(roots):
    found = rational_fit._section_roots(rational_fit._parameters(np.array(roots, complex)))
    np.testing.assert_allclose(np.sort_complex(found), np.sort_complex(np.array(roots, complex)), atol=1e-7)


@pytest.mark.parametrize("raw", [[3.0, -4.0], [100.0, -100.0, 5.0], [-20.0, 20.0, 20.0, 20.0]])
def test_any_parameters_are_stable(raw):
    assert (np.abs(rational_fit._section_roots(np.array(raw))) <= 1 + 1e-7).all()
    assert (np.abs(rational_fit._reflect_inside(rational_fit._section_roots(np.array(raw)))) < MAX_POLE_RADIUS).all()


def test_zeros_outside_of_the_circle_are_reflected():
    np.testing.assert_allclose(rational_fit._reflect_inside(np.array([2.0, 0.5, 2j])), [0.5, 0.5, 0.5j])


# --- fits that start from drafts --------------------------------------------------------------------

EXAMPLE, CHAIN = Filter([1, 0.995], [1, -0.995]), MarkovChain([[0.75, 0.25], [0.25, 0.75]], [-0.5, 0.5])


def wiener(lag, shape=None):
    """The objective of the example at a lag, drafted by the smoother's shape with its zero band filled, or another."""
    problem = Problem(EXAMPLE, CHAIN, 1.5)
    water = smoother_water_filling(problem)
    filled = shape or (lambda omega: water.x(omega) + 0.03)
    draft = shape_objective(problem, filled, problem.finest_detail(water.cutoffs), water.cutoffs)
    return wiener_objective(problem, lag, draft, water.cutoffs)


def best_excesses(objective, near, reached=-math.inf, orders=4):
    found = rational_fit.rational_filters(objective, objective.excess, (reached, near))
    return np.array([excess for excess, _ in itertools.islice(found, orders)]) + 1


@pytest.mark.parametrize("lag", [0, 5])
def test_slope_of_the_error_at_a_lag_is_that_of_finite_differences(lag):
    fit, start = rational_fit._Fit(*rational_fit._resolve(wiener(lag))), np.linspace(-0.5, 0.6, 6)
    numeric = optimize.approx_fprime(start, lambda x: fit(x)[0], 1e-6)
    np.testing.assert_allclose(fit(start)[1], numeric, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("lag", [0, 5])
def test_slopes_in_fewer_steps_are_those_of_the_loss(lag):
    objective, start = wiener(lag), np.linspace(-0.5, 0.6, 6)
    (_, slope), (_, rough) = (
        rational_fit._Fit(*x)(start) for x in (rational_fit._resolve(objective), objective.rough())
    )
    np.testing.assert_allclose(rough, slope, atol=1e-5 * np.abs(slope).max())


@pytest.mark.parametrize("lag", [0, 5])
def test_fits_from_drafts_are_as_good_as_those_from_every_start(lag):
    objective = wiener(lag)
    np.testing.assert_allclose(best_excesses(objective, -math.inf), best_excesses(objective, math.inf), rtol=1e-9)
    np.testing.assert_allclose(
        best_excesses(objective, math.inf), best_excesses(objective._replace(draft=None, rough=None), 0.0), rtol=1e-9
    )


def test_a_draft_that_misleads_is_left_where_the_goal_is_near():
    """It is least for the shape of a band-stop, far from what the example wants."""
    misled = wiener(5, lambda omega: 1e-3 + (omega - 1) ** 2)
    first, every = (best_excesses(misled, near) for near in (-math.inf, math.inf))
    assert (every <= first * (1 + 1e-9)).all()
    assert (every < first * (1 - 1e-3)).any()
    np.testing.assert_array_equal(best_excesses(misled, math.inf, reached=first.max() - 1), first)


@pytest.mark.parametrize("n", [2, 9, 32])
def test_few_taps_keep_their_gain_where_zeros_are_reflected(n):
    taps = np.random.default_rng(n).standard_normal(n)
    found = truncate_impulse_response(taps, n, lambda g: 0.0)[1]
    omega = np.linspace(0, np.pi, 50)
    np.testing.assert_allclose(np.abs(found.response(omega)), np.abs(Filter(taps).response(omega)), rtol=1e-8)
    assert np.abs(found.zeros).max() <= 1
