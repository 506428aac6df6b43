"""What is simulated of block sums of any kind: shapes, and where nothing is released."""

import numpy as np
import pytest

import dpfast as dp

CHAIN = dp.MarkovChain([[0.9, 0.1], [0.1, 0.9]], [0.0, 1.0])
TARGET = dp.Filter([0.1], [1, -0.9])
PURE = dp.Privacy(2)
U = CHAIN.sample(6, 24, seed=1).reshape(2, 3, 24)


def test_each_level_is_released_at_the_ends_of_its_blocks():
    mechanism = dp.block_sums(TARGET, PURE, CHAIN, length=(2, 6), phase=1)
    found = mechanism.simulate(U, seed=3)
    assert found.estimate.shape == U.shape
    assert found.privatized.shape == (2, *U.shape)
    passed = np.arange(1, 25) + 1
    for sums, length in zip(found.privatized, (2, 6), strict=True):
        np.testing.assert_array_equal(np.isnan(sums), np.broadcast_to(passed % length != 0, U.shape))


def test_signed_sums_are_released_at_their_own_steps():
    weights = [[1, 0], [0, 1], [-1, 0], [0, -1]]
    mechanism = dp.block_sums(TARGET, PURE, CHAIN, weights=weights, releases=(3, 4))
    found = mechanism.simulate(U, seed=3).privatized
    for sums, first in zip(found, (3, 4), strict=True):
        np.testing.assert_array_equal(np.flatnonzero(~np.isnan(sums[0, 0])) + 1, np.arange(first, 25, 4))


@pytest.mark.parametrize(
    "mechanism",
    [
        dp.block_sums(TARGET, PURE, CHAIN, length=3),
        dp.block_sums(TARGET, PURE, CHAIN, length=3, group=2, slack=1),
        dp.adaptive_blocks(TARGET, PURE, CHAIN, threshold=0.3),
    ],
    ids=["one level", "shared", "adaptive"],
)
def test_sums_of_one_level_have_the_shape_of_the_input(mechanism):
    found = mechanism.simulate(U, seed=3)
    assert found.privatized.shape == found.estimate.shape == U.shape
    released = ~np.isnan(found.privatized)
    assert 0 < released.sum() < U.size
    np.testing.assert_array_equal(mechanism.simulate(U[0, 0], seed=3).privatized, found.privatized[0, 0])


@pytest.mark.parametrize("design", [dp.block_sums, dp.adaptive_blocks])
def test_over_a_horizon_the_input_has_its_steps(design):
    options = {"length": 3} if design is dp.block_sums else {"threshold": 0.3}
    mechanism = design(dp.running_sum(12), PURE, CHAIN, **options)
    assert mechanism.simulate(U[..., :12], seed=1).estimate.shape == (2, 3, 12)
    with pytest.raises(ValueError, match="u must have the horizon's 12 steps along its last axis, got 24"):
        mechanism.simulate(U, seed=1)
