"""The best linear receiver behind any strategy, against conditional means of Gaussians."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import linalg

import dpfast as dp
from dpfast.mechanisms.least_squares import lmmse_receiver
from dpfast.mechanisms.operators.convolution import Convolution
from dpfast.mechanisms.operators.dense import Dense

PRIVACY = dp.Privacy(math.log(3), 0.05)
MODEL = dp.ARMA([1, 0.4], [1, -0.6], mean=1.5)
N = 6


def covariance(n):
    h = np.r_[1, 0.6 ** np.arange(200)]  # (1 + 0.4 z⁻¹)/(1 - 0.6 z⁻¹)
    return linalg.toeplitz([h[: len(h) - k] @ h[k:] for k in range(n)])


def conditional(strategy, f, noise_std, lag):
    """Rows of B by normal equations, one step after the other, on the rows of v whose inputs have come."""
    n = len(f)
    a, r, b = linalg.toeplitz(f, np.zeros(n)), covariance(n), np.zeros((n, len(strategy)))
    for t in range(n):
        last = n - 1 if lag is None else t + lag
        there = [i for i, row in enumerate(strategy) if not row[last + 1 :].any()]
        c = strategy[there]
        b[t, there] = np.linalg.solve(c @ r @ c.T + noise_std**2 * np.eye(len(c)), c @ r @ a[t])
    return b


TREE = np.array([[1, 1, 1, 1, 0, 0], [1, 0, 0, 0, 0, 0], [1, 1, 0, 0, 0, 0], [0, 0, 1, 1, 0, 0], [0, 0, 0, 0, 1, 1.0]])


@given(st.integers(0, 10**6), st.sampled_from([0, 1, 4, None]), st.floats(0.1, 10))
def test_receivers_are_conditional_means(seed, lag, noise_std):
    rng = np.random.default_rng(seed)
    f = rng.normal(size=N)
    for strategy in (TREE, np.tril(rng.normal(size=(N, N))), rng.normal(size=(3, N)), TREE[::-1] * (TREE[::-1] > 0)):
        found = lmmse_receiver(strategy, dp.Toeplitz(f), MODEL, noise_std**2 * np.eye(len(strategy)), lag)
        np.testing.assert_allclose(found, conditional(strategy, f, noise_std, lag), atol=1e-9 * np.abs(f).max())


def test_a_row_without_inputs_tells_nothing():
    strategy = np.vstack([np.eye(N), np.zeros(N)])
    found = lmmse_receiver(strategy, dp.running_sum(N), MODEL, np.eye(N + 1), 0)
    np.testing.assert_allclose(found[:, -1], 0, atol=1e-15)
    np.testing.assert_allclose(
        found[:, :-1], lmmse_receiver(np.eye(N), dp.running_sum(N), MODEL, np.eye(N), 0), atol=1e-12
    )


def test_nothing_comes_before_it_is_there():
    strategy = np.random.default_rng(0).normal(size=(3, N))  # every row holds the last input
    found = lmmse_receiver(strategy, dp.running_sum(N), MODEL, np.eye(3), 2)
    np.testing.assert_array_equal(found[: N - 3], 0)
    assert np.abs(found[N - 3 :]).min() > 0


@pytest.mark.parametrize("lag", [0, 2, None])
@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_mechanisms_with_another_receiver(lag, noise):
    target = dp.running_sum(N)
    plain = dp.MatrixMechanism(
        "plain", target, PRIVACY, Convolution(np.eye(N)[0]), Convolution(np.ones(N)), noise=noise, options=(("x", 1),)
    )
    found = plain.with_receiver(MODEL, lag=lag)
    assert found.name == f"plain, LMMSE {'smoother' if lag is None else f'lag {lag}'}"
    assert plain.with_receiver(MODEL, name="mine").name == "mine"
    assert (found.lag, found.model, found.centre, found.unbiased) == (lag, MODEL, 1.5, False)
    assert found.options == (("x", 1), ("lag", lag))
    assert found.noise_std == plain.noise_std
    assert found.strategy is plain.strategy
    expected = conditional(np.eye(N), np.ones(N), plain.noise_std, lag)
    np.testing.assert_allclose(found.reconstruction.matrix(), expected, atol=1e-12)
    assert found.predicted_mse < plain.predicted_mse
    # no other receiver that has the same rows in time does better
    rng, b = np.random.default_rng(1), found.reconstruction.matrix()
    for _ in range(5):
        other = Dense(b + 1e-2 * rng.normal(size=b.shape) * (b != 0))
        changed = dp.MatrixMechanism(
            "other", target, PRIVACY, plain.strategy, other, noise=noise, model=MODEL, centre=1.5, unbiased=False
        )
        assert changed.predicted_mse > found.predicted_mse


def test_arguments_are_checked():
    plain = dp.MatrixMechanism("plain", dp.running_sum(N), PRIVACY, Convolution(np.eye(N)[0]), Convolution(np.ones(N)))
    with pytest.raises(ValueError, match="model must be"):
        plain.with_receiver("white")
    with pytest.raises(ValueError, match="lag must be an integer"):
        plain.with_receiver(MODEL, lag=-1)
