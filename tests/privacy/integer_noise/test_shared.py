"""The law of noise that values share, in groups and trees of groups, against listing in exact rationals."""

import itertools
import math

import numpy as np
import pytest
from helpers import shared_law as twin

from dpfast.privacy.integer_noise import shared, tree_sums
from dpfast.privacy.integer_noise.geometric import TwoSidedGeometric
from dpfast.privacy.integer_noise.shared import LARGEST_GROUP, SharedGeometric

GROUPS = [((2,), (0,), 9, 14), ((2,), (1,), 9, 14), ((2,), (3,), 9, 14), ((3,), (2,), 20, 10)]
TREES = [((2, 2), (1, 2), 50, 6), ((2, 2), (3, 1), 99, 6), ((2, 3), (1, 2), 3000, 3)]


@pytest.mark.parametrize(("branches", "slacks", "odds", "seen"), GROUPS + TREES)
def test_moments_and_probabilities_are_those_of_all_noises_listed(branches, slacks, odds, seen):
    law = SharedGeometric(math.log(odds), branches, slacks)
    total, moments = twin.moments(branches, slacks, odds, seen)
    missing = 99 * float(odds) ** (sum(slacks) / 2 - seen - 1)  # of what is not listed: it costs no less
    rounding = 1e-9 if law.is_group else 1e-8  # of Fourier transforms
    np.testing.assert_allclose(law.covariances, moments, rtol=rounding + missing, atol=rounding + missing)
    x = np.random.default_rng(1).integers(-3, 4, (50, law.n_values))
    expected = -twin.sizes(x, branches, slacks) * math.log(odds) - math.log(total)
    np.testing.assert_allclose(law.log_probability(x), expected, atol=rounding + missing)


@pytest.mark.parametrize(("branches", "slacks"), [((5,), (3,)), ((3, 3), (2, 4))])
def test_covariances_of_one_rate_and_tree_are_found_once(monkeypatch, branches, slacks):
    """As designs of several targets and lags come by the same ones, whatever the steps of their lattices."""
    rate = 0.7654321  # of no other test
    first = SharedGeometric(rate, branches, slacks).covariances
    for module in (shared.group_sums, shared.tree_sums):
        monkeypatch.setattr(module, "solve", lambda *_: pytest.fail("found again"))
    assert SharedGeometric(2 * rate, branches, slacks, steps=2).covariances == first
    with pytest.raises(pytest.fail.Exception):
        _ = SharedGeometric(0.9 * rate, branches, slacks).covariances


def test_sizes_are_those_of_the_nodes_one_by_one():
    for branches, slacks in (((3, 2, 2), (2, 5, 1)), ((12,), (5,))):
        law = SharedGeometric(1.0, branches, slacks)
        x = np.random.default_rng(2).integers(-6, 7, (5, 40, 12))
        np.testing.assert_array_equal(law.size(x), twin.sizes(x, branches, slacks))


@pytest.mark.parametrize(("group", "slack", "rate"), [(2, 3, 0.5), (6, 6, 0.5), (12, 4, 1.5), (16, 30, 0.25)])
def test_a_group_is_a_tree_of_one_level(group, slack, rate):
    """Two ways to add up the same law: by what is above and below zero, and by convolutions of (s, φ)."""
    law, tree = SharedGeometric(rate, (group,), (slack,)), tree_sums.solve(rate, (group,), (slack,))
    np.testing.assert_allclose(tree.covariances(), law.covariances, rtol=1e-8)
    x = np.random.default_rng(3).integers(-9, 10, (20, group))
    np.testing.assert_allclose(-rate * law.size(x) - tree.log_total, law.log_probability(x), rtol=1e-8)
    tails, others = law.tails()[0], tree.tails()
    n = min(len(tails), len(others))
    np.testing.assert_allclose(others[:n], tails[:n], atol=1e-10)


@pytest.mark.parametrize(("branches", "rtol"), [((4,), 1e-12), ((3, 4, 2), 1e-9)])
def test_without_slack_noises_are_independent(branches, rtol):
    law, alone = SharedGeometric(1.0, branches, (0,) * len(branches)), TwoSidedGeometric(1.0)
    np.testing.assert_allclose(law.covariances, [alone.variance, *(0,) * len(branches)], rtol=rtol, atol=rtol)
    x = np.random.default_rng(4).integers(-5, 6, (10, law.n_values))
    np.testing.assert_allclose(law.log_probability(x), alone.log_probability(x).sum(axis=-1), rtol=rtol)
    np.testing.assert_allclose(law.tails()[0][:9], alone.tail(np.arange(1, 10)), rtol=rtol)


@pytest.mark.parametrize(
    ("branches", "slacks"),
    [((2,), (1,)), ((2,), (4,)), ((3,), (2,)), ((4,), (3,)), ((2, 2), (1, 2)), ((3, 2), (4, 3)), ((2,) * 3, (3, 2, 5))],
)
def test_a_change_of_one_value_by_k_steps_costs_k_times_the_rate_and_no_more(branches, slacks):
    law = SharedGeometric(1.5, branches, slacks, steps=3)
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


def test_larger_parts_have_less_noise_than_independent_values():
    """The figures of a tree over 1024 steps, by another code: convolutions of (s, φ) cut off, marked for squares."""
    law = SharedGeometric(1.0, (6, 6, 6, 5), (14, 22, 26, 16))
    expected = [14.120643890370733, -2.3277989607388156, -0.06841201753372549, -0.0019513067692473163]
    np.testing.assert_allclose(law.covariances[:4], expected, rtol=3e-6)  # what that code leaves out
    assert _row_sum(law) < 0.01 * law.variance
    group, alone = SharedGeometric(1.0, (6,), (6,)), TwoSidedGeometric(1.0).variance
    assert group.variance > 1.5 * alone
    assert _row_sum(group) < 0.6 * alone


def test_the_table_of_a_group_adds_the_law_up_over_the_noises_to_come():
    law, odds = SharedGeometric(math.log(6), (3,), (2,)), 6
    table, rows = law.table().remaining, twin.weights((3,), (2,), odds, 12)
    total = float(sum(rows.values()))
    for above, below in itertools.product(range(3), repeat=2):
        expected = odds ** -float(twin.sizes((above, -below, 0), (3,), (2,)))
        assert table[2][above, below] * total == pytest.approx(expected, rel=1e-7)
    assert table[0][2, 0] * total == pytest.approx(float(sum(w for x, w in rows.items() if x[0] == 2)), rel=1e-7)
    second = float(sum(w for x, w in rows.items() if x[:2] == (1, -2)))
    assert table[1][1, 2] * total == pytest.approx(second, rel=1e-7)


def test_the_tables_of_a_tree_are_the_law():
    """What the tables of a level add up to is the law of its nodes; of all children, the root."""
    law = SharedGeometric(1.0, (3, 2), (4, 3))
    table = law.table()
    assert table.root.sum() == pytest.approx(1.0)
    size = np.arange(len(table.root))
    assert table.root.sum(axis=1) @ size**2 == pytest.approx(law.n_values * _row_sum(law), rel=1e-6)
    for powers, parts, k in zip(table.powers, table.parts, law.branches, strict=True):
        assert powers.shape == (k, *parts.shape)
        assert (powers >= 0).all()


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
        ({"branches": (LARGEST_GROUP + 1,), "slacks": (1,), "epsilon": 40.0}, "group must be"),
        ({"slacks": (1,)}, "slacks must be as many as branches, 2, got 1"),
        ({"slacks": (1, -1)}, "slacks must be"),
        ({"slacks": (1, 1.5)}, "slacks must be"),
        ({"branches": (5000, 5000)}, "branches must make at most"),
        ({"steps": 0}, "steps must be"),
        ({"epsilon": 0.0}, "epsilon must be"),
        (
            {"epsilon": 0.001},
            r"branches must be fewer or slacks others, got \(2, 2\) and \(1, 1\) at an epsilon of 0\.001",
        ),
        ({"branches": (100, 100), "slacks": (0, 0)}, "branches must be fewer or slacks others"),
        (
            {"branches": (8,), "slacks": (1,), "epsilon": 0.01},
            "group must be smaller, got 8 at an epsilon of 0.01",
        ),
    ],
)
def test_what_makes_no_law_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        SharedGeometric(**({"epsilon": 1.0, "branches": (2, 2), "slacks": (1, 1)} | arguments))


@pytest.mark.parametrize("branches", [(4,), (2, 2)])
def test_other_shapes_and_numbers_are_refused(branches):
    law = SharedGeometric(1.0, branches, (1,) * len(branches))
    for x in ([1, 2, 3], 4):
        with pytest.raises(ValueError, match="x must be 4 integers along its last axis"):
            law.log_probability(x)
    with pytest.raises(ValueError, match="x must be integers"):
        law.log_probability([1.5, 2, 3, 4])
    with pytest.raises(ValueError, match="change must be"):
        law.guarantee(-1)
