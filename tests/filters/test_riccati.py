"""Stationary Kalman predictors, against scipy's Riccati equation and spectral factors by hand."""

import numpy as np
import pytest
from scipy import linalg

from dpfast.filters.riccati import find_innovation, find_predictor
from dpfast.filters.state_space import gramian_root


@pytest.mark.parametrize("seed", range(10))
def test_it_is_that_of_scipys_equation(seed):
    rng = np.random.default_rng(seed)
    n, k, q = rng.integers(1, 6, 3)
    a = rng.standard_normal((n, n))
    a *= 0.95 / np.abs(np.linalg.eigvals(a)).max()
    b, c, d = rng.standard_normal((n, k)), rng.standard_normal((q, n)), rng.standard_normal((q, k))
    found = find_predictor(a, b, c, d, 0.3)
    r = d @ d.T + 0.3 * np.eye(q)
    wanted = linalg.solve_discrete_are(a.T, c.T, b @ b.T, r, s=b @ d.T)
    np.testing.assert_allclose(found.covariance, wanted, atol=1e-10 * np.abs(wanted).max())
    np.testing.assert_allclose(found.innovation, c @ wanted @ c.T + r, rtol=1e-9, atol=1e-9)
    gain = (a @ wanted @ c.T + b @ d.T) @ np.linalg.inv(c @ wanted @ c.T + r)
    np.testing.assert_allclose(found.gain, gain, atol=1e-9 * np.abs(gain).max())


@pytest.mark.parametrize("variance", [1e-4, 1e-8, 1e-12])
def test_zeros_outside_the_circle_are_mirrored_however_little_noise_there_is(variance):
    """1 + 2 z⁻¹ has the power of 2 + z⁻¹, up to the noise."""
    found = find_predictor(np.zeros((1, 1)), np.ones((1, 1)), np.full((1, 1), 2.0), np.ones((1, 1)), variance)
    total = 5 + variance
    innovation = (total + np.sqrt(total**2 - 16)) / 2  # S + 4/S is the power at time zero
    assert found.innovation.item() == pytest.approx(innovation, rel=1e-13)
    assert found.gain.item() == pytest.approx(1 / innovation, rel=1e-12)


def test_more_noises_than_states_and_no_states():
    found = find_predictor(np.zeros((1, 1)), np.ones((1, 4)), np.ones((1, 1)), np.zeros((1, 4)), 1.0)
    assert (found.covariance.item(), found.innovation.item(), found.gain.item()) == (4, 5, 0)
    none = find_predictor(np.zeros((0, 0)), np.zeros((0, 2)), np.zeros((1, 0)), np.ones((1, 2)), 1.0)
    assert none.innovation.item() == 3
    assert none.gain.shape == (0, 1)


def test_nothing_need_be_noise_in_what_is_seen():
    """Of 1 + 2 z⁻¹ the innovation is 4; one that comes a sample later is the same, and of a sum of two it is known."""
    zero, one = np.zeros((1, 1)), np.ones((1, 1))
    found = find_innovation(zero, one, 2 * one / np.sqrt(5), one / np.sqrt(5))
    assert 5 * found.innovation.item() == pytest.approx(4, rel=1e-14)
    assert found.gain.item() == pytest.approx(np.sqrt(5) / 4, rel=1e-14)
    late = find_innovation(np.array([[0, 1.0], [0, 0]]), np.array([[2.0], [1.0]]), np.array([[1.0, 0.0]]), zero)
    assert late.innovation.item() == pytest.approx(4, rel=1e-13)
    both = find_innovation(np.diag([0.5, -0.5]), np.eye(2), np.ones((1, 2)), np.zeros((1, 2)))
    # |1 + z/2|² + |1 - z/2|² = 2.5: white, times 1/|1 - z²/4|²
    assert both.innovation.item() == pytest.approx(2.5, rel=1e-13)


@pytest.mark.parametrize("a", [[[1.0]], [[1.001]], [[0.5, 1e3], [0.0, -1.01]]])
def test_systems_that_are_not_stable_have_no_covariance(a):
    with pytest.raises(np.linalg.LinAlgError, match="not stable"):
        gramian_root(np.array(a), np.eye(len(a)))


def test_powers_may_grow_before_they_fall():
    a = np.array([[0.5, 1e30], [0.0, 0.5]])
    root = gramian_root(a, np.eye(2))
    powers = [np.linalg.matrix_power(a, k) for k in range(200)]
    np.testing.assert_allclose(root.T @ root, sum(x @ x.T for x in powers), rtol=1e-9)
