"""Unbiased factorizations against a general solver."""

import cvxpy
import numpy as np
import pytest

from dpfast.design.horizon.unbiased_factorization import unbiased_factorization


def test_the_unbiased_optimum_is_that_of_a_general_solver():
    n = 12
    a = np.tril(np.ones((n, n)))
    x, s = cvxpy.Variable((n, n), symmetric=True), cvxpy.Variable((n, n), symmetric=True)
    program = cvxpy.Problem(cvxpy.Minimize(cvxpy.trace(s)), [cvxpy.bmat([[x, a.T], [a, s]]) >> 0, cvxpy.diag(x) <= 1])
    program.solve(solver=cvxpy.CLARABEL)
    best = unbiased_factorization(a)
    assert (best.receiver**2).sum() == pytest.approx(program.value, rel=1e-5)
    np.testing.assert_allclose(best.strategy.T @ best.strategy, x.value, atol=1e-3)
