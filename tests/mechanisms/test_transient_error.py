"""Step errors against dense matrices, simulations and the stationary error."""

import math

import numpy as np
import pytest
from helpers.designs import MadeOnce
from scipy import linalg, signal, stats

import dpfast as dp
from dpfast.mechanisms.receivers.smoother import Smoother

ALARM = 1e-7  # of one of the statistical tests
FILTER = dp.Filter([1, 0.9], [1, -0.9])
PRIVACY = dp.Privacy(math.log(3), 0.05)
CHAIN = dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[-0.5, 0.5])
OTHER = dp.ARMA([1, 0.5, -0.2], [1, -0.8, 0.3], mean=0.7)
MECHANISMS = MadeOnce(
    {
        "zero forcing": lambda: dp.zero_forcing(FILTER, PRIVACY, tolerance=0.1),
        "lag 0": lambda: dp.lmmse(FILTER, PRIVACY, CHAIN, lag=0, tolerance=0.1),
        "lag 5": lambda: dp.optimal(FILTER, PRIVACY, CHAIN, lag=5, tolerance=0.1),
        "smoother": lambda: dp.lmmse(FILTER, PRIVACY, CHAIN, tolerance=0.1),
        "output": lambda: dp.output_perturbation(FILTER, PRIVACY),
    }
)
EVERY = pytest.mark.parametrize("mechanism", MECHANISMS, indirect=True)


@pytest.fixture
def mechanism(request):
    return MECHANISMS[request.param]


def lower(filter_, n):
    """Of the impulse response by scipy."""
    return linalg.toeplitz(signal.lfilter(filter_.b, filter_.a, np.eye(1, n)[0]), np.zeros(n))


def covariance(model, n):
    """From a long impulse response of scipy's."""
    h = signal.lfilter(model.shaping.b, model.shaping.a, np.eye(1, 4000)[0])
    return linalg.toeplitz([h[: len(h) - k] @ h[k:] for k in range(n)])


def naive(mechanism, model, n, beyond=300):
    """All of it as matrices on more steps than are asked for, on which a smoother can look ahead."""
    size, receiver = n + beyond, mechanism.receiver
    if isinstance(receiver, Smoother):
        h = lower(receiver.backward, size).T @ lower(receiver.forward, size)
    else:
        h = np.roll(lower(receiver.filter, size), -receiver.lag, axis=0)
    residual = h @ lower(mechanism.prefilter, size) - lower(mechanism.target, size)
    noise = mechanism.noise_std**2 * (h**2).sum(axis=1)
    bias = residual.sum(axis=1) * (model.mean - receiver.mean)
    return (noise + np.einsum("ij,ij->i", residual @ covariance(model, size), residual) + bias**2)[:n]


@EVERY
@pytest.mark.parametrize("model", [CHAIN, OTHER], ids=["chain", "another mean"])
def test_step_errors_are_those_of_matrices(mechanism, model):
    np.testing.assert_allclose(mechanism.step_mse(40, model), naive(mechanism, model, 40), rtol=1e-8)


@EVERY
def test_step_errors_tend_to_the_stationary_error(mechanism):
    last = mechanism.step_mse(2000, OTHER)[-1]
    assert last == pytest.approx(mechanism.predict(OTHER), rel=1e-8)


@EVERY
def test_a_study_without_burn_in_has_their_mean(mechanism):
    n = 8
    study = dp.monte_carlo(mechanism, CHAIN, n_streams=8000, n_samples=n, seed=11, burn_in=0)
    errors = next(iter(study)).stream_mse

    def off(expected):
        return abs(errors.mean() - expected) / (errors.std() / math.sqrt(len(errors)))

    assert off(mechanism.step_mse(n, CHAIN).mean()) < stats.norm.isf(ALARM / 2)
    if mechanism.name != "output perturbation":  # whose error is stationary from the first step
        assert off(mechanism.predict(CHAIN)) > stats.norm.isf(ALARM / 2)


def test_shorter_is_the_beginning_of_longer():
    for mechanism in MECHANISMS.values():
        np.testing.assert_allclose(mechanism.step_mse(7), mechanism.step_mse(300)[:7], rtol=1e-9)


def test_an_unbiased_mechanism_needs_no_model():
    mechanism = MECHANISMS["zero forcing"]
    np.testing.assert_allclose(mechanism.step_mse(50), mechanism.step_mse(50, OTHER), rtol=1e-9)
    assert dp.robust(FILTER, PRIVACY, mean_square=0.25, lag=None, tolerance=0.1).step_mse(5) is None


def test_a_long_lag_and_a_short_horizon():
    mechanism = dp.lmmse(FILTER, PRIVACY, CHAIN, lag=20, tolerance=0.1)
    np.testing.assert_allclose(mechanism.step_mse(3), naive(mechanism, CHAIN, 3, 200), rtol=1e-8)


def test_decisions_have_no_formula():
    assert dp.decision_feedback(FILTER, PRIVACY, CHAIN, prefilter=FILTER).step_mse(5) is None


@pytest.mark.parametrize("n", [0, 1.5, "5"])
def test_the_number_of_steps_is_checked(n):
    with pytest.raises(ValueError, match="n must be an integer, at least 1"):
        MECHANISMS["output"].step_mse(n)


def test_the_model_is_checked():
    with pytest.raises(ValueError, match="model must be"):
        MECHANISMS["output"].step_mse(3, "white")
