"""The lasso against its conditions of optimality, a cone solver, closed forms, and hard cases."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpfast import ConvergenceWarning
from dpfast.mechanisms.operators.lasso import lasso, relative_gap


def solved(dictionary, v, penalty, tolerance=1e-11, max_iterations=2000):
    return lasso(dictionary, v, penalty, tolerance, max_iterations)


def objective(dictionary, x, v, penalty):
    return ((dictionary @ x - v) ** 2).sum() / 2 + penalty * np.abs(x).sum()


def by_descent(dictionary, v, penalty, n_sweeps):
    """Naive coordinate descent."""
    x = np.zeros(dictionary.shape[1])
    for _ in range(n_sweeps):
        for j, column in enumerate(dictionary.T):
            wanted = column @ (v - dictionary @ x + column * x[j])
            x[j] = np.sign(wanted) * max(abs(wanted) - penalty, 0) / (column @ column)
    return x


@given(
    m=st.integers(1, 30),
    n=st.integers(1, 60),
    penalty=st.floats(1e-3, 100),
    size=st.sampled_from([1e-6, 1.0, 1e8]),
    seed=st.integers(0, 2**32),
)
def test_conditions_of_optimality(m, n, penalty, size, seed):
    """|Dᵀr| ≤ λ everywhere, and Dᵀr = λ sign(x) where x is not zero; also when everything is scaled."""
    rng = np.random.default_rng(seed)
    dictionary, v, penalty = rng.normal(size=(m, n)), 10 * rng.normal(size=m) * size, penalty * size
    x = solved(dictionary, v, penalty)
    correlation = (v - dictionary @ x) @ dictionary
    near = 1e-4 * penalty
    assert np.abs(correlation).max() <= penalty + near
    weights = np.abs(x) / max(np.abs(x).max(), np.finfo(float).tiny)
    used = weights > 1e-6
    np.testing.assert_allclose(correlation[used], penalty * np.sign(x[used]), atol=near)


def test_an_orthonormal_dictionary_is_a_soft_threshold():
    rng = np.random.default_rng(1)
    dictionary = np.linalg.qr(rng.normal(size=(20, 20)))[0]
    v = 3 * rng.normal(size=20)
    y = v @ dictionary
    np.testing.assert_allclose(solved(dictionary, v, 1.5), np.sign(y) * np.maximum(np.abs(y) - 1.5, 0), atol=1e-8)


def test_a_second_solver_agrees():
    rng = np.random.default_rng(2)
    dictionary = rng.normal(size=(25, 15))
    v = 3 * rng.normal(size=25)
    np.testing.assert_allclose(solved(dictionary, v, 6.0), by_descent(dictionary, v, 6.0, 2000), atol=1e-8)


@pytest.mark.parametrize("tolerance", [1e-2, 1e-4, 1e-6, 1e-9])
def test_the_tolerance_is_kept(tolerance):
    rng = np.random.default_rng(3)
    dictionary, v = rng.normal(size=(64, 256)) / 8, rng.normal(size=64)
    best = objective(dictionary, solved(dictionary, v, 0.05), v, 0.05)
    x = solved(dictionary, v, 0.05, tolerance)
    assert best * (1 - 1e-10) <= objective(dictionary, x, v, 0.05) <= best * (1 + 1.02 * tolerance)
    assert 0 <= relative_gap(dictionary, x / 0.05, v / 0.05) <= tolerance


def test_the_gap_bounds_what_is_lost():
    rng = np.random.default_rng(4)
    dictionary, v = rng.normal(size=(10, 30)), rng.normal(size=10) * 5
    best = objective(dictionary, solved(dictionary, v, 1.0), v, 1.0)
    for _ in range(50):
        x = rng.normal(size=30) * rng.integers(0, 2, 30)
        value = objective(dictionary, x, v, 1.0)
        assert value - relative_gap(dictionary, x, v) * value <= best * (1 + 1e-10)


@pytest.mark.parametrize(
    "dictionary",
    [
        np.ones((1, 5)),  # any split of the coefficient is as good
        np.tile(np.array([[1.0, -1.0], [1.0, 1.0]]), 6),
        np.array([[1.0, 1.0 + 1e-9], [0.0, 1e-9]]),
        np.zeros((3, 4)),
        np.vander(np.linspace(0, 1, 12), 30),
    ],
    ids=["equal columns", "repeated columns", "nearly equal columns", "zeros", "nearly dependent columns"],
)
@pytest.mark.parametrize("penalty", [1e-3, 1.0, 1e3])
def test_dependent_columns_do_no_harm(dictionary, penalty):
    v = np.arange(1.0, len(dictionary) + 1) * 7
    x = solved(dictionary, v, penalty, 1e-8)
    assert relative_gap(dictionary, x / penalty, v / penalty) <= 1.0001e-8


def test_a_penalty_above_all_correlations_gives_zeros():
    rng = np.random.default_rng(5)
    dictionary, v = rng.normal(size=(5, 9)), rng.normal(size=5)
    largest = np.abs(v @ dictionary).max()
    assert (solved(dictionary, v, largest * 1.0001) == 0).all()
    assert (solved(dictionary, v, largest * 0.99) != 0).sum() == 1
    assert (solved(dictionary, np.zeros(5), 1.0) == 0).all()


def test_iterations_that_are_used_up_are_told():
    rng = np.random.default_rng(6)
    dictionary, v = rng.normal(size=(20, 50)), rng.normal(size=20)
    with pytest.warns(ConvergenceWarning, match="the lasso stopped after 4 iterations at a relative"):
        solved(dictionary, v, 1e-3, max_iterations=4)
