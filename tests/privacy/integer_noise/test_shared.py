"""The law of noise that blocks share, against its sum over all noises and against its guarantee, in exact rationals."""

import itertools
import math

import numpy as np
import pytest
from helpers import shared_law as twin

from dpfast.privacy.integer_noise.geometric import TwoSidedGeometric
from dpfast.privacy.integer_noise.shared import LARGEST_GROUP, SharedGeometric

CASES = [(2, 0, 9), (2, 1, 9), (2, 3, 9), (3, 2, 20)]  # blocks of a group, slack, e^epsilon


@pytest.mark.parametrize(("group", "slack", "odds"), CASES)
def test_moments_and_probabilities_are_those_of_the_listed_law(group, slack, odds):
    law = SharedGeometric(math.log(odds), group, slack)
    total, variance, covariance = twin.moments(group, slack, odds, 14 if group == 2 else 10)
    assert law.variance == pytest.approx(variance, rel=1e-9)
    assert law.covariance == pytest.approx(covariance, rel=1e-9, abs=1e-12)
    places = [(0,) * group, (3,) + (-2,) * (group - 1), (1, *range(group - 1))]
    expected = [-math.log(odds) * twin.size(x, slack) - math.log(total) for x in places]
    np.testing.assert_allclose(law.log_probability(places), expected, rtol=1e-9)


def test_the_table_adds_the_law_up_over_the_noises_to_come():
    law, odds = SharedGeometric(math.log(6), 3, 2), 6
    table, rows = law.table(), twin.weights(3, 2, odds, 12)
    total = float(sum(rows.values()))
    for above, below in itertools.product(range(3), repeat=2):
        assert table[2][above, below] * total == pytest.approx(odds ** -twin.size((above, -below), 2), rel=1e-7)
    assert table[0][2, 0] * total == pytest.approx(float(sum(w for x, w in rows.items() if x[0] == 2)), rel=1e-7)
    second = float(sum(w for x, w in rows.items() if x[:2] == (1, -2)))
    assert table[1][1, 2] * total == pytest.approx(second, rel=1e-7)


def test_without_slack_or_company_it_is_independent_geometric_noise():
    for group, slack in ((4, 0), (1, 0)):
        law, one = SharedGeometric(0.7, group, slack), TwoSidedGeometric(0.7)
        assert law.variance == pytest.approx(one.variance, rel=1e-12)
        assert law.covariance == pytest.approx(0.0, abs=1e-12)
        x = np.array([3, -1, 0, 2][:group])
        assert law.log_probability(x) == pytest.approx(one.log_probability(x).sum(), rel=1e-12)
        np.testing.assert_allclose(law.tails()[0][:9], one.tail(np.arange(1, 10)), rtol=1e-12)


@pytest.mark.parametrize(("group", "slack"), [(2, 1), (2, 4), (3, 2), (4, 3)])
def test_a_change_of_one_value_by_k_steps_costs_k_times_the_rate_and_no_more(group, slack):
    law = SharedGeometric(1.0, group, slack, steps=2)
    x = np.array(list(itertools.product(range(-5, 6), repeat=group)))
    for k in (1, 2, 3):
        for place in range(group):
            moved = x.copy()
            moved[:, place] += k
            cost = np.abs(law.log_weight(moved) - law.log_weight(x))
            assert cost.max() == pytest.approx(law.guarantee(k)[0], rel=1e-12)


def test_a_sum_of_a_group_has_less_noise_than_independent_ones_and_a_single_value_more():
    law, alone = SharedGeometric(1.0, 6, 6), TwoSidedGeometric(1.0).variance
    of_sum = 6 * law.variance + 30 * law.covariance
    assert law.variance > 1.5 * alone
    assert of_sum < 0.6 * 6 * alone
    assert law.own_variance == pytest.approx(law.variance - law.covariance)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"epsilon": 0.0}, "epsilon must be"),
        ({"group": 0}, "group must be"),
        ({"group": LARGEST_GROUP + 1}, "group must be"),
        ({"slack": -1}, "slack must be"),
        ({"slack": 1.5}, "slack must be"),
        ({"steps": 0}, "steps must be"),
        ({"epsilon": 0.01, "group": 8}, "group must be smaller, got 8 at an epsilon of 0.01"),
    ],
)
def test_what_no_law_is_for_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        SharedGeometric(**({"epsilon": 1.0, "group": 2, "slack": 1} | arguments))


def test_other_shapes_and_numbers_are_refused():
    law = SharedGeometric(1.0, 2, 1)
    for x in ([1, 2, 3], 4):
        with pytest.raises(ValueError, match="x must be 2 integers along its last axis"):
            law.log_probability(x)
    with pytest.raises(ValueError, match="x must be integers"):
        law.log_probability([0.5, 1.0])
    with pytest.raises(ValueError, match="change must be"):
        law.guarantee(-1)
