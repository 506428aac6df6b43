"""The Fourier perturbation algorithm: what it publishes, what it costs, what it refuses."""

import math

import numpy as np
import pytest
from helpers.horizons import CHAIN, PRIVACY, TARGETS, dense

from dpfast import DesignError, Filter, MarkovChain, Privacy
from dpfast.design.horizon.fourier import fourier_perturbation
from dpfast.design.horizon.transform_matrices import fourier_basis
from dpfast.filters.toeplitz import running_sum


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("k", [1, 2, 5, 16])
def test_fourier_is_the_first_coefficients_of_the_output(target, k):
    n = target.horizon
    mechanism = fourier_perturbation(target, PRIVACY, n_coefficients=k)
    basis = fourier_basis(n, n)[:k]
    np.testing.assert_allclose(mechanism.strategy.matrix(), basis @ dense(target), atol=1e-12)
    np.testing.assert_allclose(mechanism.reconstruction.matrix(), basis.T, atol=1e-15)
    assert mechanism.lag is None
    assert mechanism.noise == "laplace"
    assert mechanism.unbiased == (k == n)
    assert dict(mechanism.options) == {"n_coefficients": k}
    assert "n_coefficients" in mechanism.sources


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("k", [1, 3, 16])
def test_the_scale_of_laplace_noise_is_exact_and_within_the_source_s(target, k):
    mechanism = fourier_perturbation(target, PRIVACY, n_coefficients=k)
    exact = np.abs(fourier_basis(target.horizon, k) @ dense(target)).sum(axis=0).max()
    assert mechanism.sensitivity == pytest.approx(exact, rel=1e-12)
    source = math.sqrt(k) * target.h2_norm()
    assert mechanism.sensitivity <= source * (1 + 1e-12)
    assert mechanism.noise_std == pytest.approx(math.sqrt(2) * exact / PRIVACY.epsilon, rel=1e-8)


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_all_coefficients_distort_nothing(noise):
    for n in (1, 2, 15, 16):
        mechanism = fourier_perturbation(running_sum(n), PRIVACY, n_coefficients=n, noise=noise)
        # the noise is turned, so that every step has that of a coefficient
        np.testing.assert_allclose(mechanism.step_mse(), mechanism.noise_std**2, rtol=1e-12)


def test_the_predicted_error_is_the_noise_and_what_is_left_out():
    target, n, k = running_sum(32), 32, 5
    mechanism = fourier_perturbation(target, PRIVACY, n_coefficients=k)
    assert mechanism.predicted_mse is None  # without a model of the input
    basis = fourier_basis(n, k)
    left_out = (np.eye(n) - basis.T @ basis) @ dense(target)
    covariance = 0.25 * 0.8 ** np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    distortion = np.trace(left_out @ covariance @ left_out.T) / n
    noise = k / n * mechanism.noise_std**2
    assert mechanism.predict(CHAIN) == pytest.approx(noise + distortion, rel=1e-10)
    # a mean of one half, which the receiver does not know of
    shifted = MarkovChain([[0.9, 0.1], [0.1, 0.9]], levels=[0, 1])
    bias = (left_out.sum(axis=1) ** 2).mean() / 4
    assert mechanism.predict(shifted) == pytest.approx(noise + distortion + bias, rel=1e-10)


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_simulated_errors_are_the_predicted_ones(noise):
    """Averages of 5,000 streams; 6 standard errors: 2e-9 false alarms a figure, 33 figures a case."""
    mechanism = fourier_perturbation(running_sum(32), PRIVACY, n_coefficients=5, noise=noise)
    u = CHAIN.sample(5000, 32, seed=1)
    squares = (mechanism.simulate(u, seed=2).estimate - mechanism.target.apply(u)) ** 2
    assert np.abs(squares.mean() - mechanism.predict(CHAIN)) <= 6 * squares.mean(axis=1).std() / math.sqrt(len(u))
    error = np.abs(squares.mean(axis=0) - mechanism.step_mse(CHAIN))
    assert (error <= 6 * squares.std(axis=0) / math.sqrt(len(u))).all()


def test_the_best_number_of_coefficients_is_between_the_extremes():
    mse = [fourier_perturbation(running_sum(256), PRIVACY, n_coefficients=k).predict(CHAIN) for k in (1, 5, 256)]
    assert mse[1] < mse[0] < mse[2]


def test_a_filter_needs_a_horizon():
    target = Filter([1.0], [1, -0.9])
    with pytest.raises(ValueError, match="horizon must be given for a Filter"):
        fourier_perturbation(target, PRIVACY, n_coefficients=3)
    mechanism = fourier_perturbation(target, PRIVACY, horizon=24, n_coefficients=3)
    np.testing.assert_allclose(mechanism.target.coefficients, 0.9 ** np.arange(24))
    assert fourier_perturbation([1.0, 0.5], PRIVACY, n_coefficients=2).horizon == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_coefficients": 0}, "n_coefficients must be an integer, at least 1 and at most 16, got 0"),
        ({"n_coefficients": 17}, "n_coefficients must be an integer, at least 1 and at most 16, got 17"),
        ({"n_coefficients": 2.5}, "n_coefficients must be an integer"),
        ({"n_coefficients": 2, "noise": "uniform"}, "noise must be one of 'gaussian', 'laplace', got 'uniform'"),
        ({"n_coefficients": 2, "horizon": 17}, "horizon must be at most that of the target, 16, got 17"),
    ],
)
def test_fourier_refuses(arguments, message):
    with pytest.raises(ValueError, match=message):
        fourier_perturbation(running_sum(16), PRIVACY, **arguments)


def test_what_is_no_guarantee_and_long_horizons_are_refused():
    with pytest.raises(ValueError, match=r"privacy must be a Privacy, got 1\.0"):
        fourier_perturbation(running_sum(24), 1.0, n_coefficients=3)
    with pytest.raises(DesignError, match="to 4096 steps for a transform of the whole series, got 4097"):
        fourier_perturbation(running_sum(4097), PRIVACY, n_coefficients=3)


def test_several_events_cost_more():
    twice = Privacy(1.0, 1e-5, max_events=2, min_separation=5)
    for noise in ("laplace", "gaussian"):
        one, two = (
            fourier_perturbation(running_sum(32), p, n_coefficients=4, noise=noise).sensitivity
            for p in (PRIVACY, twice)
        )
        assert one < two <= 2 * one
