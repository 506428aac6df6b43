"""Orthonormal rational functions, and the filters that they become."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpfast as dp
from dpfast.design.prefilter import rational_basis
from dpfast.design.prefilter.design_problem import Problem
from dpfast.design.prefilter.rational_basis import Basis, basis_for
from dpfast.filters.quadrature import graded_grid

radius = st.floats(-0.98, 0.98)
pair = st.one_of(
    st.tuples(radius, radius).map(lambda p: (-(p[0] + p[1]), p[0] * p[1])),
    st.tuples(st.floats(0, 0.98), st.floats(0.1, 3.0)).map(lambda p: (-2 * p[0] * np.cos(p[1]), p[0] ** 2)),
)
bases = st.builds(
    lambda taps, pairs: Basis(taps, np.array(pairs)), st.integers(1, 5), st.lists(pair, min_size=1, max_size=6)
)

SLOW = Basis(4, np.array([(-(p + q), p * q) for p, q in (1 - np.geomspace(1e-4, 1, 20)).reshape(-1, 2)]))
CHAIN = dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[-0.5, 0.5])


def direct(basis, omega):
    """The functions as the formula writes them."""
    w = np.exp(-1j * omega)
    columns, before = [w**k for k in range(basis.taps)], w**basis.taps
    for c1, c2 in basis.pairs:
        d = 1 + c1 * w + c2 * w**2
        columns += [before * np.sqrt((1 - c2) * (1 + s * c1 + c2) / 2) * (1 + s * w) / d for s in (1, -1)]
        before = before * (c2 + c1 * w + w**2) / d
    return np.column_stack(columns)


@given(bases)
def test_functions_are_orthonormal(basis):
    grid = graded_grid(basis.poles, degree=2 * basis.size)
    values = basis.response(grid.omega)
    assert values.shape == (len(grid.omega), basis.size)
    np.testing.assert_allclose((values.conj().T * grid.weights @ values).real, np.eye(basis.size), atol=1e-9)
    np.testing.assert_allclose(values, direct(basis, grid.omega), atol=1e-8 * np.abs(values).max())


@given(bases)
def test_state_space_has_the_functions_as_its_states(basis):
    a, b = basis.state_space()
    np.testing.assert_allclose(a @ a.T + np.outer(b, b), np.eye(len(a)), atol=1e-12)
    z = np.exp(0.7j)
    states = np.linalg.solve(z * np.eye(len(a)) - a, b)
    np.testing.assert_allclose(
        states * z ** (1 - basis.taps), direct(basis, np.array([0.7]))[0, basis.taps :], atol=1e-8
    )


@given(bases, st.integers(0, 2**32))
def test_a_filter_has_the_response_of_its_coefficients(basis, seed):
    coefficients = np.random.default_rng(seed).standard_normal(basis.size)
    omega = np.linspace(0, np.pi, 500)
    wanted = direct(basis, omega) @ coefficients
    found = basis.filter(coefficients).response(omega)
    np.testing.assert_allclose(found, wanted, atol=2e-6 * np.abs(wanted).max())


def test_slow_poles_in_a_cluster_keep_their_digits_and_need_few_states():
    grid = graded_grid(SLOW.poles)
    wanted = SLOW.response(grid.omega) @ (0.5 ** np.arange(SLOW.size))
    filter = SLOW.filter(0.5 ** np.arange(SLOW.size))
    np.testing.assert_allclose(filter.response(grid.omega), wanted, atol=1.1e-8 * np.abs(wanted).max())
    single = Basis(1, np.array([*SLOW.pairs[:1], *SLOW.pairs[1:]])).with_poles(np.array([0.3]))
    assert len(single.filter(np.eye(single.size)[1]).poles) <= 2


@pytest.mark.parametrize("root", [0.9, -0.5, 0.6 + 0.7j])
def test_a_pole_of_the_basis_is_in_its_span(root):
    basis = Basis(1, np.empty((0, 2))).with_poles(np.array([root] if np.isreal(root) else [root, np.conj(root)]))
    grid = graded_grid([root], degree=8)
    wanted = 1 / (1 - root * np.exp(-1j * grid.omega))
    wanted = wanted + 1 / (1 - np.conj(root) * np.exp(-1j * grid.omega))
    values = basis.response(grid.omega)
    coefficients = (values.conj() * wanted[:, None]).real.T @ grid.weights
    np.testing.assert_allclose(values @ coefficients, wanted, rtol=1e-9)


def test_taps_alone_are_an_fir():
    assert Basis(3, np.empty((0, 2))).filter(np.array([1.0, 2.0, 3.0])) == dp.Filter([1, 2, 3])


def test_a_filter_that_is_far_off_is_refused(monkeypatch):
    monkeypatch.setattr(rational_basis, "_INACCURATE", -1.0)
    with pytest.raises(dp.DesignError, match=r"target and model must have a filter of few states .* give a larger tol"):
        SLOW.filter(np.ones(SLOW.size))


@given(bases, st.integers(0, 2**32))
def test_the_root_of_a_positive_real_part(basis, seed):
    coefficients = np.random.default_rng(seed).standard_normal(basis.size)
    grid = graded_grid(basis.poles, degree=2 * basis.size)
    power = direct(basis, grid.omega).real @ coefficients
    coefficients[0] += 0.1 * np.abs(power).max() - power.min()
    root = basis.root_filter(coefficients)
    power = direct(basis, grid.omega).real @ coefficients
    np.testing.assert_allclose(np.abs(root.response(grid.omega)) ** 2, power, atol=1e-7 * power.max())
    assert np.abs(root.zeros).max(initial=0) < 1


def test_functions_are_chosen_for_target_spectrum_and_lag():
    problem = Problem(dp.Filter([1, 0.2], [1, -1.140303389447398, 0.9409]), dp.ARMA([0.4], [1, -1.2, 0.72]), 1.0)
    basis = basis_for(problem, 3)
    for root in np.concatenate([problem.target.poles, problem.model.shaping.poles]):
        # on its ladder, as far from the circle as itself, up to a factor of 2
        near = basis.poles[np.abs(np.angle(basis.poles / root)) < 1 - abs(root)]
        assert np.abs(np.log2((1 - np.abs(near)) / (1 - abs(root)))).min() < 1
    assert basis_for(problem, 10).taps == basis.taps + 7
    assert basis_for(problem, 3, richness=2).size > 1.5 * basis.size
    assert basis_for(problem, 3, kinks=(2.0,)).size > basis.size
    assert np.abs(basis_for(Problem(dp.Filter([1, -1]), CHAIN, 1.0), 0).poles).max() < 0.6
