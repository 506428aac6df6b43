"""Unbiased factorizations against a general solver."""

import cvxpy
import numpy as np
import pytest

from dpfast import Filter
from dpfast.design.horizon import unbiased_factorization as unbiased
from dpfast.design.horizon.unbiased_factorization import unbiased_factorization
from dpfast.mechanisms.operators.convolution import Convolution


def test_the_unbiased_optimum_is_that_of_a_general_solver():
    n = 12
    a = np.tril(np.ones((n, n)))
    x, s = cvxpy.Variable((n, n), symmetric=True), cvxpy.Variable((n, n), symmetric=True)
    program = cvxpy.Problem(cvxpy.Minimize(cvxpy.trace(s)), [cvxpy.bmat([[x, a.T], [a, s]]) >> 0, cvxpy.diag(x) <= 1])
    program.solve(solver=cvxpy.CLARABEL)
    best = unbiased_factorization(a)
    assert (best.receiver**2).sum() == pytest.approx(program.value, rel=1e-5)
    np.testing.assert_allclose(best.strategy.T @ best.strategy, x.value, atol=1e-3)


@pytest.mark.parametrize(
    ("coefficients", "most"), [(np.ones(64), 8), (Filter([1, 0.995], [1, -0.995]).impulse(64), 12)]
)
def test_extrapolated_steps_are_few(monkeypatch, coefficients, most):
    """Plain ones take 14 and 24."""
    steps, root = [], unbiased.symmetric_root
    monkeypatch.setattr(unbiased, "symmetric_root", lambda *x: steps.append(1) or root(*x))
    best = unbiased_factorization(Convolution(coefficients).matrix())
    assert len(steps) <= most
    assert best.lower_bound <= (best.receiver**2).sum() <= best.lower_bound * (1 + unbiased.LARGEST_UNBIASED_GAP)


def test_an_extrapolation_that_goes_too_far_is_left(monkeypatch):
    """Whatever it gives, plain steps from there reach the optimum."""
    a = np.tril(np.ones((16, 16)))
    optimum = unbiased_factorization(a).lower_bound
    extrapolate, random = unbiased._extrapolate, np.random.default_rng(0)
    wrong = iter([True, True, False, True] + 300 * [False])
    monkeypatch.setattr(
        unbiased, "_extrapolate", lambda past: extrapolate(past) + next(wrong) * random.standard_normal(16)
    )
    assert unbiased_factorization(a).lower_bound == pytest.approx(optimum, rel=1e-6)
