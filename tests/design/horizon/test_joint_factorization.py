"""Strategies with their receivers: gradients, conditional means, a general solver, and bounds."""

import cvxpy
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import linalg, optimize

from dpfast.design.horizon.joint_bound import factorization_lower_bound
from dpfast.design.horizon.joint_factorization import first_strategy, joint_factorization
from dpfast.design.horizon.joint_problem import FactorizationProblem
from dpfast.mechanisms.least_squares import in_time

LAGS = pytest.mark.parametrize("lag", [0, 3, None])


def joint(n, lag, noise=1.5, f=None, correlation=0.5):
    a = linalg.toeplitz(np.ones(n) if f is None else f, np.zeros(n))
    return FactorizationProblem(
        a, linalg.toeplitz(0.25 * correlation ** np.arange(n)), noise, in_time(np.arange(n), n, lag)
    )


@LAGS
def test_the_gradient_is_that_of_differences(lag):
    problem = joint(9, lag)
    rng = np.random.default_rng(0)
    x, step = rng.normal(size=45), 1e-6
    slope = problem.error(x)[1]
    for direction in rng.normal(size=(5, 45)):
        ahead, behind = (problem.error(x + sign * step * direction)[0] for sign in (1, -1))
        assert slope @ direction == pytest.approx((ahead - behind) / (2 * step), rel=1e-6)


@LAGS
def test_the_error_is_that_of_conditional_means(lag):
    """Of Gaussians, by the covariance of each output with what is there in time."""
    n, problem = 8, joint(8, lag)
    c, _ = problem.strategy(np.random.default_rng(3).normal(size=36))
    r, a, noise = problem.covariance, problem.a, problem.noise_variance
    total = 0.0
    for t in range(n):
        seen = c[: n if lag is None else min(n, t + lag + 1)]
        cross = a[t] @ r @ seen.T
        total += a[t] @ r @ a[t] - cross @ np.linalg.solve(seen @ r @ seen.T + noise * np.eye(len(seen)), cross)
    assert problem.error(c[problem.places])[0] == pytest.approx(total)


@LAGS
@pytest.mark.parametrize("noise", [0.01, 1.5])
def test_joint_optima_are_certified(lag, noise):
    problem = joint(64, lag, noise)
    best = joint_factorization(problem)
    error = problem.error(best.strategy[problem.places])[0]
    # about 1e-6 here; how near the bound comes depends on directions that hardly matter, and so on rounding
    assert best.lower_bound <= error <= best.lower_bound * (1 + 3e-3)
    # from elsewhere it comes to the same
    other = joint_factorization(problem, np.eye(64))
    assert problem.error(other.strategy[problem.places])[0] == pytest.approx(error, rel=1e-5)


@given(st.integers(0, 10**6), st.sampled_from([0, 1, 4, None]), st.floats(0.01, 50), st.floats(-0.9, 0.95))
@settings(max_examples=10)
def test_the_bound_is_below_every_strategy(seed, lag, noise, correlation):
    n, rng = 7, np.random.default_rng(seed)
    problem = joint(n, lag, noise, rng.normal(size=n), correlation)
    c, _ = problem.strategy(rng.normal(size=28))
    bound = factorization_lower_bound(problem, c)
    tries = [problem.error(rng.normal(size=28))[0] for _ in range(3)]
    best = optimize.minimize(problem.error, c[problem.places], jac=True).fun
    assert 0 <= bound <= min(best, *tries) * (1 + 1e-9)


@LAGS
def test_the_joint_optimum_is_that_of_a_general_solver(lag):
    """Of the convex problem in K = B C, which reaches as far as the lag, and X = CᵀC."""
    n, noise = 8, 0.7
    problem = joint(n, lag, noise)
    root = np.linalg.cholesky(problem.covariance)
    k, x, s = cvxpy.Variable((n, n)), cvxpy.Variable((n, n), symmetric=True), cvxpy.Variable((n, n), symmetric=True)
    error = cvxpy.sum_squares((problem.a - k) @ root) + noise * cvxpy.trace(s)
    constraints = [cvxpy.bmat([[x, k.T], [k, s]]) >> 0, cvxpy.diag(x) <= 1]
    constraints += [] if lag is None else [cvxpy.multiply(k, np.triu(np.ones((n, n)), lag + 1)) == 0]
    program = cvxpy.Problem(cvxpy.Minimize(error), constraints)
    program.solve(solver=cvxpy.CLARABEL)
    best = joint_factorization(problem)
    assert problem.error(best.strategy[problem.places])[0] == pytest.approx(program.value, rel=1e-5)
    assert best.lower_bound == pytest.approx(program.value, rel=1e-3)


@pytest.mark.parametrize("lag", [0, 3, 170, None])
@pytest.mark.parametrize("n", [5, 64, 300])
def test_blocks_give_the_error_of_whole_products(n, lag):
    a = np.tril(np.ones((n, n))) + np.tril(np.random.default_rng(n).standard_normal((n, n)), -1)
    problem = FactorizationProblem(a, linalg.toeplitz(0.7 ** np.arange(n)), 0.5, in_time(np.arange(n), n, lag))
    c = np.tril(np.random.default_rng(0).standard_normal((n, n)))
    error, slope = problem.error_behind(c)
    in_blocks, block_slope = problem.error_behind_lower(c)
    assert in_blocks == pytest.approx(error, rel=1e-12)
    np.testing.assert_allclose(np.tril(block_slope), np.tril(slope), rtol=1e-9, atol=1e-9 * np.abs(slope).max())
    best, receiver = problem.best_receiver(c), problem.innovations(c).receiver(problem.kept)
    np.testing.assert_allclose(best.receiver, receiver, atol=1e-9 * np.abs(receiver).max())
    np.testing.assert_allclose(best.through, receiver @ c, atol=1e-9 * np.abs(receiver @ c).max())


def test_single_precision_has_its_digits():
    problem = joint(150, 3)
    entries = np.tril(np.random.default_rng(1).normal(size=(150, 150)))[problem.places]
    error, slope = problem.error(entries)
    rough, rough_slope = problem.in_single_precision().error(entries.astype(np.float32))
    assert rough_slope.dtype == np.float32
    assert rough == pytest.approx(error, rel=1e-5)
    np.testing.assert_allclose(rough_slope, slope, atol=1e-4 * np.abs(slope).max())


@LAGS
@pytest.mark.parametrize("noise", [1e-6, 1e4])
def test_what_single_precision_does_not_see_takes_double_alone(lag, noise, monkeypatch):
    monkeypatch.setattr(FactorizationProblem, "in_single_precision", None)
    problem = joint(64, lag, noise)
    best = joint_factorization(problem)
    error = problem.error(best.strategy[problem.places])[0]
    assert best.lower_bound <= error <= best.lower_bound * (1 + 1e-3)


def test_the_start_has_columns_as_long_as_their_costs_have_it():
    """Diag(Kᵀ (A - K) R), from receivers of whole products; that of the least is a tenth of the largest or more."""
    problem = joint(48, 0)
    start = first_strategy(problem)
    c = start / np.linalg.norm(start, axis=0)
    k = problem.innovations(c).receiver(problem.kept) @ c
    costs = (k * ((problem.a - k) @ problem.covariance)).sum(axis=0)
    lengths = np.maximum(costs, 0.1 * costs.max()) ** 0.5
    np.testing.assert_allclose(np.linalg.norm(start, axis=0) / lengths, np.mean(lengths**2) ** -0.5, rtol=1e-9)
    assert costs.min() < 0.1 * costs.max()


@pytest.mark.parametrize("lag", [0, 3])
def test_the_start_is_taken_in_fewer_steps_than_without_lengths(lag, monkeypatch):
    calls = []
    error = FactorizationProblem.error
    monkeypatch.setattr(FactorizationProblem, "error", lambda self, x: calls.append(len(x)) or error(self, x))
    problem = joint(200, lag, 22.0)
    start = first_strategy(problem)
    joint_factorization(problem)
    with_lengths = len(calls)
    joint_factorization(problem, start / np.linalg.norm(start, axis=0))
    assert with_lengths < len(calls) - with_lengths


@pytest.mark.parametrize(("gain", "scale"), [(2.0**160, 1.0), (2.0**-160, 2.0**-160), (1.0, 2.0**160)])
def test_units_change_nothing(gain, scale):
    """They are powers of two here, as single precision ends at 2¹²⁸: strategies have the same bits."""
    one = joint(40, 2)
    other = FactorizationProblem(gain * one.a, scale * one.covariance, scale * one.noise_variance, one.kept)
    expected, found = joint_factorization(one), joint_factorization(other)
    np.testing.assert_array_equal(found.strategy, expected.strategy)
    assert found.lower_bound == pytest.approx(gain**2 * scale * expected.lower_bound, rel=1e-6)
