"""The law of noise of trees of groups, against listing in exact rationals, and laws that are known."""

import itertools
import math

import numpy as np
import pytest
from helpers import nested_law as twin

from dpfast.privacy.integer_noise.geometric import TwoSidedGeometric
from dpfast.privacy.integer_noise.nested import NestedGeometric
from dpfast.privacy.integer_noise.shared import SharedGeometric


@pytest.mark.parametrize(
    ("branches", "slacks", "odds", "seen"),
    [((3,), (2,), 20, 10), ((2, 2), (1, 2), 50, 6), ((2, 2), (3, 1), 99, 6), ((2, 3), (1, 2), 3000, 3)],
)
def test_moments_and_probabilities_are_those_of_all_noises_listed(branches, slacks, odds, seen):
    law = NestedGeometric(math.log(odds), branches, slacks)
    total, moments = twin.moments(branches, slacks, odds, seen)
    missing = 99 * float(odds) ** (sum(slacks) / 2 - seen - 1)  # of what is not listed: it costs no less
    np.testing.assert_allclose(law.covariances, moments, rtol=1e-8 + missing, atol=1e-9 + missing)
    x = np.random.default_rng(1).integers(-3, 4, (50, law.n_values))
    expected = [-twin.size(tuple(row), branches, slacks) * math.log(odds) - math.log(total) for row in x.tolist()]
    np.testing.assert_allclose(law.log_probability(x), expected, atol=1e-8 + missing)


def test_sizes_are_those_of_the_nodes_one_by_one():
    law = NestedGeometric(1.0, (3, 2, 2), (2, 5, 1))
    x = np.random.default_rng(2).integers(-6, 7, (5, 40, 12))
    expected = [[twin.size(tuple(row), law.branches, law.slacks) for row in rows] for rows in x.tolist()]
    np.testing.assert_array_equal(law.size(x), expected)


@pytest.mark.parametrize(("group", "slack", "epsilon"), [(2, 3, 1.0), (6, 6, 1.0), (12, 4, 3.0), (16, 30, 0.5)])
def test_one_level_is_the_noise_of_a_group(group, slack, epsilon):
    law, shared = NestedGeometric(epsilon, (group,), (slack,), 2), SharedGeometric(epsilon, group, slack, 2)
    np.testing.assert_allclose(law.covariances, (shared.variance, shared.covariance), rtol=1e-8)
    x = np.random.default_rng(3).integers(-9, 10, (20, group))
    np.testing.assert_allclose(law.log_probability(x), shared.log_probability(x), rtol=1e-8)
    tails, others = law.tails()[0], shared.tails()[0]
    n = min(len(tails), len(others))
    np.testing.assert_allclose(tails[:n], others[:n], atol=1e-10)


def test_without_slack_noises_are_independent():
    law = NestedGeometric(1.0, (3, 4, 2), (0, 0, 0))
    alone = TwoSidedGeometric(1.0)
    np.testing.assert_allclose(law.covariances, [alone.variance, 0, 0, 0], atol=1e-9)
    x = np.random.default_rng(4).integers(-5, 6, (10, 24))
    np.testing.assert_allclose(law.log_probability(x), alone.log_probability(x).sum(axis=-1), rtol=1e-9)


def test_larger_parts_have_less_noise_than_independent_values():
    """The figures of a tree over 1024 steps, by another code: convolutions of (s, φ) cut off, marked for squares."""
    law = NestedGeometric(1.0, (6, 6, 6, 5), (14, 22, 26, 16))
    expected = [14.120643890370733, -2.3277989607388156, -0.06841201753372549, -0.0019513067692473163]
    np.testing.assert_allclose(law.covariances[:4], expected, rtol=3e-6)  # what that code leaves out
    assert _row_sum(law) < 0.01 * law.variance


@pytest.mark.parametrize(("branches", "slacks"), [((2, 2), (1, 2)), ((3, 2), (4, 3)), ((2, 2, 2), (3, 2, 5))])
def test_no_change_of_one_value_costs_more_than_it_says(branches, slacks):
    law = NestedGeometric(1.5, branches, slacks, steps=3)
    x = np.random.default_rng(5).integers(-8, 9, (400, law.n_values))
    largest = 0.0
    for place, change in itertools.product(range(law.n_values), (1, 2, -3)):
        other = x.copy()
        other[:, place] += change
        cost = np.abs(law.log_probability(other) - law.log_probability(x)).max()
        assert cost <= law.guarantee(abs(change))[0] + 1e-12
        largest = max(largest, cost / law.guarantee(abs(change))[0])
    assert largest == pytest.approx(1.0)
    assert law.guarantee(3) == (1.5, 0.0)


def test_tables_are_the_law():
    """What the tables of a level add up to is the law of its nodes; of all children, the root."""
    law = NestedGeometric(1.0, (3, 2), (4, 3))
    levels, root = law.tables()
    assert root.sum() == pytest.approx(1.0)
    size = np.arange(len(root))
    assert root.sum(axis=1) @ size**2 == pytest.approx(law.n_values * _row_sum(law), rel=1e-6)
    for (powers, parts), k in zip(levels, law.branches, strict=True):
        assert powers.shape == (k, *parts.shape)
        assert (powers >= 0).all()
        assert powers[0].shape == parts.shape


def _row_sum(law):
    """Σ of a row of the covariance matrix."""
    total, size = law.covariances[0], 1
    for k, gamma in zip(law.branches, law.covariances[1:], strict=True):
        total += (k - 1) * size * gamma
        size *= k
    return total


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"branches": (1, 2)}, "branches must be"),
        ({"branches": 4}, "branches must be a tuple"),
        ({"branches": ()}, "branches must be a tuple"),
        ({"slacks": (1,)}, "slacks must be as many as branches, 2, got 1"),
        ({"slacks": (1, -1)}, "slacks must be"),
        ({"branches": (5000, 5000)}, "branches must make at most"),
        ({"steps": 0}, "steps must be"),
        ({"epsilon": 0.0}, "epsilon must be"),
        (
            {"epsilon": 0.001},
            r"branches must be fewer or slacks others, got \(2, 2\) and \(1, 1\) at an epsilon of 0\.001",
        ),
        ({"branches": (100, 100), "slacks": (0, 0)}, "branches must be fewer or slacks others"),
    ],
)
def test_what_makes_no_law_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        NestedGeometric(**({"epsilon": 1.0, "branches": (2, 2), "slacks": (1, 1)} | arguments))


def test_other_noises_than_whole_ones_are_refused():
    law = NestedGeometric(1.0, (2, 2), (1, 1))
    with pytest.raises(ValueError, match="x must be 4 integers along its last axis"):
        law.size([1, 2, 3])
    with pytest.raises(ValueError, match="x must be integers"):
        law.log_probability([1.5, 2, 3, 4])
