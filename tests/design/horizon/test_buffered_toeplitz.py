"""Fits of few exponentials: gradients against differences, and published errors."""

import math

import numpy as np
import pytest
from helpers.covers import long_but
from helpers.designs import designed
from helpers.horizons import UNIT, unit_errors
from helpers.reference import direct_form
from hypothesis import given
from hypothesis import strategies as st

import dpfast as dp
from dpfast.design.horizon.buffered_toeplitz import FitProblem, buffered_toeplitz, fit_strategy
from dpfast.mechanisms.operators.buffered_toeplitz import BufferedToeplitz, cascade


def errors(strategy, f):
    """Largest and mean error of unit noise over the steps, root mean square."""
    c = direct_form(np.poly(strategy.zeros), np.poly(strategy.poles), np.eye(1, len(f))[0])
    b = direct_form(np.poly(strategy.poles), np.poly(strategy.zeros), f)
    steps = (c @ c) * np.cumsum(b**2)
    return math.sqrt(steps[-1]), math.sqrt(steps.mean())


@given(st.integers(0, 10**6), st.sampled_from(["mean", "max"]))
def test_the_loss_is_the_error_and_its_gradient_the_limit_of_differences(seed, error):
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(1, 700)), int(rng.integers(1, 4))
    f = rng.normal(size=n)
    x = rng.normal(size=2 * m)
    problem = FitProblem.from_target(f, error)
    loss, gradient = problem.loss(x)
    roots = np.tanh(x) * (1 - 2e-5)
    largest, mean = errors(BufferedToeplitz(roots[1::2], roots[0::2], n), f)
    assert math.exp(loss / 2) * np.abs(f).max() == pytest.approx(largest if error == "max" else mean, rel=1e-8)
    for i, direction in enumerate(np.eye(2 * m)):
        step = 1e-5 * direction
        difference = (problem.loss(x + step)[0] - problem.loss(x - step)[0]) / 2e-5
        assert gradient[i] == pytest.approx(difference, rel=1e-5, abs=1e-7)


@pytest.mark.parametrize(
    ("n", "n_buffers", "published"),
    [
        (2**8, 3, 2.8318),
        (2**10, 3, 3.2776),
        pytest.param(2**12, 3, 3.7324, marks=pytest.mark.long),
        pytest.param(2**14, 4, 4.1629, marks=pytest.mark.long),
        pytest.param(2**16, 4, 4.6171, marks=pytest.mark.long),
    ],
)
def test_the_largest_error_of_a_running_sum_is_the_published_one(n, n_buffers, published):
    f = np.ones(n)
    C = fit_strategy(f, "max", n_buffers)
    c, b = C.coefficients, cascade(C.poles, C.zeros, f)
    assert math.sqrt(c @ c * (b @ b)) <= published + 1e-4
    assert len(C.poles) == n_buffers
    assert (c >= 0).all()
    assert (np.diff(c) <= 0).all()


def test_buffers_are_added_while_they_gain_one_percent():
    f = np.ones(2**8)
    squares = [errors(fit_strategy(f, "max", m), f)[0] ** 2 for m in (1, 2, 3, 4)]
    assert len(designed(buffered_toeplitz, dp.running_sum(2**8), UNIT, error="max").strategy.poles) == 3
    assert squares[2] < 0.99 * squares[1] < 0.99**2 * squares[0]
    assert squares[3] > 0.99 * squares[2]


SLOW_ENDS = {
    "at 1": np.array([1.0, *(1.99 * 0.995 ** np.arange(511))]),
    "at -1": (-0.995) ** np.arange(512),
    "at both": np.where(np.arange(512) % 2, 0, 0.98 ** (np.arange(512) / 2)),
    "at none": 1 / np.arange(1, 513.0),
}


@pytest.mark.parametrize("f", long_but(SLOW_ENDS, ["at both"]))
def test_other_targets_come_near_to_their_square_root(f):
    """Slow poles at either end of the axis, at both, and at none."""
    c = np.zeros(len(f))
    for k in range(len(f)):
        c[k] = (f[k] - c[1:k] @ c[k - 1 : 0 : -1]) / (2 * c[0]) if k else math.sqrt(f[0])
    assert errors(fit_strategy(f, "mean", 4), f)[1] < 1.002 * math.sqrt((c @ c) * np.cumsum(c**2).mean())


@pytest.mark.parametrize("f", [[1.0, -2.0, 0.0, 0.0], [0.0, 0.0, 1.0], [1.0], [0.0, -3.0], [1e-40, 0.0]])
def test_targets_that_are_short_delayed_or_not_of_minimum_phase(f):
    f = np.array(f)
    for error, which in (("max", 0), ("mean", 1)):
        C = fit_strategy(f, error, 2)
        assert np.abs([*C.poles, *C.zeros]).max() < 1
        assert errors(C, f)[which] <= np.linalg.norm(f) * (1 + 1e-9)


@pytest.mark.parametrize(("n", "published"), long_but([(2**8, 2.8318), (2**10, 3.2776)], [(2**8, 2.8318)]))
def test_blts_have_the_published_errors(n, published):
    assert unit_errors(designed(buffered_toeplitz, dp.running_sum(n), UNIT, error="max"))[0] <= published + 1e-4


def test_a_blt_runs_as_a_filter_of_few_states():
    mechanism = buffered_toeplitz(dp.running_sum(500), UNIT, n_buffers=3, error="max")
    assert isinstance(mechanism.strategy, BufferedToeplitz)
    assert mechanism.options == (("n_buffers", 3), ("error", "max"))
    u = np.random.default_rng(3).normal(size=500)
    np.testing.assert_allclose(mechanism.strategy.filter().filter(u).y, mechanism.strategy.apply(u), atol=1e-10)


def test_a_bad_argument_is_named():
    target = dp.running_sum(4)
    with pytest.raises(ValueError, match="error must be one of 'mean', 'max'"):
        buffered_toeplitz(target, UNIT, error="median")
    for n_buffers in (0, 13, 2.5, True):
        with pytest.raises(ValueError, match="n_buffers must be an integer, at least 1 and at most 12"):
            buffered_toeplitz(target, UNIT, n_buffers=n_buffers)
