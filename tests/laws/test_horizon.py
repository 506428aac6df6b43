"""Mechanisms over a horizon distort nothing and err as the dense matrices of small ones say."""

import itertools
import math

import numpy as np
import pytest
from helpers.horizons import EXAMPLE, UNIT
from hypothesis import given, settings
from hypothesis import strategies as st

import dpfast as dp
from dpfast.design.horizon.binary_tree import binary_tree
from dpfast.design.horizon.buffered_toeplitz import buffered_toeplitz
from dpfast.design.horizon.decayed_sum import decayed_sum
from dpfast.design.horizon.square_root import square_root

SEEDS = st.integers(0, 10**6)
DESIGNS = {
    "square root": square_root,
    "BLT": lambda target, privacy: buffered_toeplitz(target, privacy, n_buffers=1),
    "tree": lambda target, privacy: binary_tree(target, privacy, estimator="plain"),
    "Honaker": binary_tree,
    "Laplace tree": lambda target, privacy: binary_tree(target, privacy, noise="laplace"),
    "decayed": decayed_sum,
    "Laplace decayed": lambda target, privacy: decayed_sum(target, privacy, noise="laplace"),
}


def lower(f):
    return np.array([[f[t - k] if k <= t else 0.0 for k in range(len(f))] for t in range(len(f))])


def largest_change(matrix, privacy, order):
    """By trying all events of a person, at all times, with both signs."""
    found = 0.0
    for m in range(1, privacy.max_events + 1):
        for times in itertools.combinations(range(matrix.shape[1]), m):
            if all(b - a >= privacy.min_separation for a, b in itertools.pairwise(times)):
                for signs in itertools.product([-1, 1], repeat=m):
                    found = max(found, np.linalg.norm(matrix[:, times] @ signs, order))
    return privacy.max_change * found


@pytest.mark.parametrize("design", DESIGNS)
@given(st.integers(1, 24), st.sampled_from([1.0, -2.5]))
@settings(max_examples=10)
def test_errors_are_those_of_the_dense_matrices(design, n, gain):
    privacy = dp.Privacy(0.7, 0.01, max_change=3.0)
    mechanism = DESIGNS[design](dp.Toeplitz(gain * np.ones(n)), privacy)
    C, B = mechanism.strategy.matrix(), mechanism.reconstruction.matrix()
    np.testing.assert_allclose(B @ C, gain * np.tri(n), atol=1e-10)
    if mechanism.noise == "laplace":
        variance = 2 * (largest_change(C, privacy, 1) / 0.7) ** 2
    else:
        variance = (privacy.noise_multiplier * largest_change(C, privacy, 2)) ** 2
    np.testing.assert_allclose(mechanism.step_mse(), variance * (B**2).sum(axis=1), rtol=1e-8)
    if mechanism.ideal_mse is not None:
        assert mechanism.ideal_mse == pytest.approx(mechanism.predicted_mse, rel=1e-10)


@pytest.mark.parametrize("design", ["square root", "BLT", "decayed", "Laplace decayed"])
@given(SEEDS)
@settings(max_examples=12)
def test_any_target_is_reconstructed_without_bias(design, seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 30))
    f = rng.normal(size=n) * 0.7 ** np.arange(n)
    f[: rng.integers(n)] = 0.0
    f[np.argmax(f != 0)] = rng.choice([-3.0, 3.0])  # so that a root does not grow
    mechanism = DESIGNS[design](list(f), UNIT)
    assert mechanism.lag == 0
    assert mechanism.unbiased
    B, C = mechanism.reconstruction.matrix(), mechanism.strategy.matrix()
    np.testing.assert_allclose(B @ C, lower(f), atol=1e-8 if design == "square root" else 1e-10)


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize(("m", "b"), [(1, 1), (2, 1), (3, 2)])
def test_the_noise_is_enough_for_all_events_of_a_person(design, m, b):
    n = 9
    privacy = dp.Privacy(1.0, 0.05, max_events=m, min_separation=b, max_change=2.0)
    mechanism = DESIGNS[design](dp.running_sum(n), privacy)
    order = 1 if mechanism.noise == "laplace" else 2
    truth = largest_change(mechanism.strategy.matrix(), privacy, order)
    assert mechanism.sensitivity >= truth * (1 - 1e-12)
    if design in {"square root", "BLT"} or m == 1:  # non-negative and non-increasing
        assert mechanism.sensitivity == pytest.approx(truth, rel=1e-9)


@pytest.mark.parametrize("design", DESIGNS)
def test_simulated_errors_have_the_predicted_mean(design):
    n, streams = 48, 2000
    mechanism = DESIGNS[design](dp.running_sum(n), UNIT)
    u = np.random.default_rng(1).normal(size=(streams, n))
    paths = mechanism.simulate(u, seed=7)
    squares = ((paths.estimate - np.cumsum(u, axis=1)) ** 2).mean(axis=1)
    # 5 standard errors of the mean of 2000 streams: a false alarm in less than 1e-6 of runs
    assert abs(squares.mean() - mechanism.predicted_mse) < 5 * squares.std() / math.sqrt(streams)
    np.testing.assert_allclose(
        paths.estimate, paths.privatized @ mechanism.reconstruction.matrix().T, rtol=1e-9, atol=1e-8
    )


@pytest.mark.parametrize(
    ("target", "n"),
    [
        ([1.0, 0.5, 0.2], 64),
        pytest.param(EXAMPLE, 64, marks=pytest.mark.long),
        *(pytest.param(x, 256, marks=pytest.mark.long) for x in (EXAMPLE, dp.Filter([1], [1, -0.9]), [1.0, 0.5, 0.2])),
    ],
)
def test_no_factorisation_here_is_worse_than_noise_on_the_input(target, n):
    found = [design(target, UNIT, horizon=n).predicted_mse for design in (square_root, buffered_toeplitz)]
    f = dp.Toeplitz.of(target, n).coefficients
    assert max(found) < UNIT.noise_multiplier**2 * np.cumsum(f**2).mean() * (1 + 1e-9)


@pytest.mark.parametrize("design", [square_root, buffered_toeplitz, binary_tree, decayed_sum])
def test_inputs_are_checked(design):
    with pytest.raises(ValueError, match="privacy must be a Privacy"):
        design(dp.running_sum(4), 1.0)
    with pytest.raises(ValueError, match="horizon must be given for a Filter"):
        design(EXAMPLE, UNIT)
    with pytest.raises(ValueError, match="horizon must be at most that of the target, 4, got 5"):
        design(dp.running_sum(4), UNIT, horizon=5)
    with pytest.raises(ValueError, match="target must be a Filter"):
        design("running-sum", UNIT)
    assert design(dp.running_sum(8), UNIT, horizon=4, name="mine").name == "mine"
    assert design(dp.running_sum(8), UNIT, horizon=4).horizon == 4


@pytest.mark.parametrize("design", [binary_tree, decayed_sum])
def test_a_bad_noise_is_named(design):
    with pytest.raises(ValueError, match="noise must be one of 'gaussian', 'laplace'"):
        design(dp.running_sum(4), UNIT, noise="uniform")
