"""The Fourier perturbation algorithm and the compressive mechanism: what they are, what they cost, what they refuse."""

import math

import numpy as np
import pytest

from dpfast import DesignError, Filter, MarkovChain, Privacy
from dpfast.design.horizon.compressive import compressive
from dpfast.design.horizon.fourier import fourier_perturbation
from dpfast.design.horizon.transforms import fourier_basis, random_signs
from dpfast.filters.toeplitz import Toeplitz, polynomial_decay, running_sum
from dpfast.mechanisms.operators.sparse_decoder import synthesis

PRIVACY = Privacy(1.0, 1e-5)
CHAIN = MarkovChain([[0.9, 0.1], [0.1, 0.9]], levels=[-0.5, 0.5])
TARGETS = [running_sum(32), polynomial_decay(1, 20), Toeplitz([1.0, -2.0, 0.5], 16)]


def dense(target):
    f = target.coefficients
    return np.array([[f[t - s] if t >= s else 0.0 for s in range(len(f))] for t in range(len(f))])


# --- Fourier --------------------------------------------------------------------------------------


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
    """Averages of 20,000 streams; 6 standard errors: 2e-9 false alarms a figure, 33 figures a case."""
    mechanism = fourier_perturbation(running_sum(32), PRIVACY, n_coefficients=5, noise=noise)
    u = CHAIN.sample(20_000, 32, seed=1)
    squares = (mechanism.simulate(u, seed=2).estimate - mechanism.target.apply(u)) ** 2
    assert np.abs(squares.mean() - mechanism.predict(CHAIN)) <= 6 * squares.mean(axis=1).std() / math.sqrt(20_000)
    error = np.abs(squares.mean(axis=0) - mechanism.step_mse(CHAIN))
    assert (error <= 6 * squares.std(axis=0) / math.sqrt(20_000)).all()


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


# --- compressive ----------------------------------------------------------------------------------


@pytest.mark.parametrize("target", TARGETS[:2])
@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_compressive_is_random_projections_of_the_output(target, noise):
    n, m = target.horizon, 8
    mechanism = compressive(target, PRIVACY, n_measurements=m, noise=noise, phi_seed=5)
    phi = random_signs(m, n, 5)
    np.testing.assert_allclose(mechanism.strategy.matrix(), phi @ dense(target), atol=1e-12)
    columns = np.abs(phi @ dense(target)) if noise == "laplace" else (phi @ dense(target)) ** 2
    exact = columns.sum(axis=0).max()
    assert mechanism.sensitivity == pytest.approx(exact if noise == "laplace" else math.sqrt(exact), rel=1e-12)
    decoder = mechanism.reconstruction
    np.testing.assert_array_equal(decoder.projection, phi)
    assert decoder.penalty == pytest.approx(mechanism.noise_std * math.sqrt(2 * math.log(n)), rel=1e-12)
    assert mechanism.lag is None
    assert dict(mechanism.options) == {"n_measurements": m, "basis": "dct", "phi_seed": 5}


def test_the_sensitivity_of_projected_data_is_that_of_the_source():
    for m in (1, 4, 30):
        mechanism = compressive([1.0], PRIVACY, horizon=64, n_measurements=m)
        assert mechanism.sensitivity == pytest.approx(math.sqrt(m), rel=1e-12)


def test_only_simulation_tells_the_error():
    mechanism = compressive(running_sum(16), PRIVACY, n_measurements=4)
    assert mechanism.step_mse() is None
    assert mechanism.predicted_mse is None
    assert mechanism.max_mse is None
    assert mechanism.predict(CHAIN) is None
    assert "predicted RMSE  - " in mechanism.summary()


@pytest.mark.parametrize("basis", ["dct", "haar"])
def test_a_sparse_series_of_a_long_horizon_has_less_error_than_noise_on_every_step(basis):
    """Two coefficients of 1000 under 64 projections: about 2 (λ² + σ²) over the horizon, against 2/ε² a step."""
    mse = {}
    for n in (128, 4096):
        x = np.zeros((4, n))
        x[:, 3], x[:, 77] = 1000, -1000
        u = synthesis(basis, x)
        mechanism = compressive([1.0], PRIVACY, horizon=n, n_measurements=64, basis=basis)
        mse[n] = ((mechanism.simulate(u, seed=4).estimate - u) ** 2).mean()
        expected = 2 * mechanism.noise_std**2 * (2 * math.log(n) + 1) / n
        assert 0.5 * expected < mse[n] < 2 * expected
    assert mse[4096] < 2 / PRIVACY.epsilon**2 < mse[128]


def test_simulated_streams_do_not_depend_on_those_beside_them():
    mechanism = compressive(running_sum(64), PRIVACY, n_measurements=16, basis="haar")
    u = CHAIN.sample(11, 64, seed=1)
    together = mechanism.simulate(u, seed=2)
    np.testing.assert_array_equal(mechanism.simulate(u[:3], seed=2).estimate, together.estimate[:3])
    np.testing.assert_array_equal(mechanism.simulate(u[0], seed=2).estimate, together.estimate[0])


# --- arguments ------------------------------------------------------------------------------------


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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_measurements": 0}, "n_measurements must be an integer, at least 1 and at most 24, got 0"),
        ({"n_measurements": 25}, "n_measurements must be an integer, at least 1 and at most 24, got 25"),
        ({"n_measurements": 3, "basis": "fourier"}, "basis must be one of 'dct', 'haar', got 'fourier'"),
        ({"n_measurements": 3, "basis": "haar"}, "horizon must be a power of two for basis='haar', got 24"),
        ({"n_measurements": 3, "phi_seed": -1}, "phi_seed must be an integer, at least 0, got -1"),
        ({"n_measurements": 3, "phi_seed": np.random.default_rng(1)}, "phi_seed must be an integer"),
        ({"n_measurements": 1, "horizon": 1}, "horizon must be from 2 to 4096 steps .*, got 1"),
        ({"n_measurements": 3, "noise": None}, "noise must be one of 'gaussian', 'laplace', got None"),
    ],
)
def test_compressive_refuses(arguments, message):
    with pytest.raises(ValueError, match=message):
        compressive(running_sum(24), PRIVACY, **arguments)


@pytest.mark.parametrize(
    ("design", "argument"), [(fourier_perturbation, "n_coefficients"), (compressive, "n_measurements")]
)
def test_both_refuse_what_is_no_guarantee_and_long_horizons(design, argument):
    with pytest.raises(ValueError, match=r"privacy must be a Privacy, got 1\.0"):
        design(running_sum(24), 1.0, **{argument: 3})
    with pytest.raises(DesignError, match="to 4096 steps for a transform of the whole series, got 4097"):
        design(running_sum(4097), PRIVACY, **{argument: 3})


def test_several_events_cost_more():
    twice = Privacy(1.0, 1e-5, max_events=2, min_separation=5)
    for noise in ("laplace", "gaussian"):
        one, two = (
            fourier_perturbation(running_sum(32), p, n_coefficients=4, noise=noise).sensitivity
            for p in (PRIVACY, twice)
        )
        assert one < two <= 2 * one
