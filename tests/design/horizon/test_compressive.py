"""The compressive mechanism: what it publishes, what it costs, what it refuses."""

import math

import numpy as np
import pytest
from helpers.horizons import CHAIN, PRIVACY, TARGETS, dense

from dpfast import DesignError
from dpfast.design.horizon.compressive import compressive
from dpfast.design.horizon.transform_matrices import random_signs
from dpfast.filters.toeplitz import running_sum
from dpfast.mechanisms.operators.sparse_decoder import synthesis


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


def test_what_is_no_guarantee_and_long_horizons_are_refused():
    with pytest.raises(ValueError, match=r"privacy must be a Privacy, got 1\.0"):
        compressive(running_sum(24), 1.0, n_measurements=3)
    with pytest.raises(DesignError, match="to 4096 steps for a transform of the whole series, got 4097"):
        compressive(running_sum(4097), PRIVACY, n_measurements=3)
