"""Binary trees: published errors, closed forms, and what is refused."""

import math

import numpy as np
import pytest
from helpers.horizons import EXAMPLE, UNIT, unit_errors
from hypothesis import example, given
from hypothesis import strategies as st

import dpfast as dp
from dpfast.design.horizon.binary_tree import binary_tree, mean_prefix_variance
from dpfast.mechanisms.operators.trees import TreeEstimator, honaker_variances, n_levels


@given(st.integers(1, 3000))
@example(1)
@example(2**11)
@example(2**11 - 1)
def test_the_mean_variance_of_a_prefix_in_closed_form(n):
    plain, honaker = np.ones(n_levels(n)), honaker_variances(n)
    assert mean_prefix_variance(plain, n) == pytest.approx(np.mean([t.bit_count() for t in range(1, n + 1)]), rel=1e-12)
    assert mean_prefix_variance(honaker, n) == pytest.approx(TreeEstimator(n, 1.0).squared_rows().mean(), rel=1e-12)


@pytest.mark.parametrize(
    ("power", "largest", "mean"),
    [
        (8, 8.485, 6.003),
        (10, 10.488, 7.417),
        (12, 12.490, 8.832),
        (14, 14.491, 10.247),
        pytest.param(16, 16.492, 11.662, marks=pytest.mark.long),
    ],
)
def test_plain_trees_have_the_published_errors(power, largest, mean):
    found = binary_tree(dp.running_sum(2**power), UNIT, estimator="plain")
    assert unit_errors(found) == pytest.approx((largest, mean), abs=5.1e-4)
    assert unit_errors(found)[0] == pytest.approx(math.sqrt(power * (power + 1)), rel=1e-6)


def test_laplace_noise_is_private_without_delta():
    n = 100
    found = binary_tree(dp.running_sum(n), dp.Privacy(0.5, 1e-9, max_change=3.0), estimator="plain", noise="laplace")
    assert found.sensitivity == 3 * 7  # 7 levels: nodes of 1, 2, ..., 64 steps
    assert found.noise_std == pytest.approx(math.sqrt(2) * 21 / 0.5, rel=1e-8)
    assert found.predicted_mse == pytest.approx(
        2 * (21 / 0.5) ** 2 * np.mean([t.bit_count() for t in range(1, n + 1)]), rel=1e-8
    )


def test_honakers_estimator_is_better_than_the_plain_one_at_every_step():
    plain, honaker = (binary_tree(dp.running_sum(300), UNIT, estimator=x).step_mse() for x in ("plain", "honaker"))
    assert (honaker <= plain * (1 + 1e-12)).all()
    assert honaker.mean() < 0.65 * plain.mean()


def test_trees_are_for_running_sums():
    with pytest.raises(dp.DesignError, match=r"target must be a running sum.*use decayed_sum"):
        binary_tree(EXAMPLE, UNIT, horizon=10)
    assert binary_tree([2.0, 2.0], UNIT).name == "binary tree (honaker)"
    assert binary_tree([2.0, 2.0], UNIT, estimator="plain", noise="laplace").name == "binary tree (plain, Laplace)"


def test_a_bad_estimator_is_named():
    with pytest.raises(ValueError, match="estimator must be one of 'honaker', 'plain'"):
        binary_tree(dp.running_sum(4), UNIT, estimator="best")
