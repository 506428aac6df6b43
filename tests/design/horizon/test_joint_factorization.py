"""Strategies with their receivers: gradients, conditional means, a general solver, and bounds."""

import cvxpy
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import linalg, optimize

from dpfast.design.horizon.joint_factorization import (
    FactorizationProblem,
    factorization_lower_bound,
    joint_factorization,
)
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
    bound = factorization_lower_bound(problem, c, problem.innovations(c).receiver(problem.kept))
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


@pytest.mark.parametrize("lag", [0, 3, 70, None])
@pytest.mark.parametrize("n", [5, 64, 150])
def test_strips_give_the_error_of_whole_products(n, lag):
    a = np.tril(np.ones((n, n))) + np.tril(np.random.default_rng(n).standard_normal((n, n)), -1)
    problem = FactorizationProblem(a, linalg.toeplitz(0.7 ** np.arange(n)), 0.5, in_time(np.arange(n), n, lag))
    c = np.tril(np.random.default_rng(0).standard_normal((n, n)))
    error, slope = problem.error_behind(c)
    in_strips, strip_slope = problem.error_behind_lower(c)
    assert in_strips == pytest.approx(error, rel=1e-12)
    np.testing.assert_allclose(np.tril(strip_slope), np.tril(slope), rtol=1e-9, atol=1e-9 * np.abs(slope).max())
