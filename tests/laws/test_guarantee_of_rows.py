"""Guarantees of geometric noise on strategies of integers, by enumeration in exact rationals of all that is published.

The package says with which ratio; the twin, `row_publishers`, imports nothing of it. The adversary chooses inputs as it
sees rows: of a dense strategy all of them at the end.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
from helpers import row_publishers as twin
from helpers.covers import long_but

import dpfast as dp
from dpfast.mechanisms.operators.dense import Dense


def by_hand(rows):
    """A mechanism with this strategy."""
    rows = np.array(rows, float)
    n = rows.shape[1]

    def design(privacy):
        b = np.tri(n) @ np.linalg.pinv(rows)
        return dp.MatrixMechanism(
            "by hand", dp.running_sum(n), privacy, Dense(rows), Dense(b), noise="geometric", lag=None
        )

    return design


def tree_of(n, **options):
    return lambda privacy: dp.tree(dp.running_sum(n), privacy, branching=2, levels=2, noise="geometric", **options)


def rounded(n, **options):
    model = dp.ARMA([0.5])
    return lambda privacy: dp.optimal_factorization(dp.running_sum(n), privacy, model, noise="geometric", **options)


CASES = {
    "tree": (tree_of(3), 1, 1),
    "short tree": (tree_of(2), 1, 1),
    "tree, two events": (tree_of(2), 1, 2),
    "tree, large changes": (tree_of(2), 2, 1),
    "tree of all nodes": (tree_of(3, subtraction=True), 1, 1),
    "short tree of all nodes": (tree_of(2, subtraction=True), 1, 1),
    "signs": (by_hand([[2, 0], [1, -2], [0, 1]]), 1, 1),
    "signs, two events": (by_hand([[1, -1], [1, 2]]), 1, 2),
    "dense": (by_hand([[1, 1, 1], [1, -2, 1], [0, 0, 1]]), 1, 1),
    "rounded": (rounded(2, strategy_unit=0.25), 1, 1),
    "rounded, dense": (rounded(2, strategy_unit=0.5, strategy="dense"), 1, 1),
}


SLOW = {"tree", "tree of all nodes"}  # take some seconds each


def ratio_of(mechanism):
    """The ratio q of geometric noise, of which 2q/(1 - q)² is the variance."""
    variance = mechanism.noise_std**2
    return 1 + 1 / variance - math.sqrt((1 + 1 / variance) ** 2 - 1)


@pytest.mark.parametrize("name", long_but(list(CASES), [x for x in CASES if x not in SLOW]))
def test_no_adversary_gains_more_than_is_promised(name):
    design, change, n_events = CASES[name]
    any_privacy = design(dp.Privacy(1, max_change=change, max_events=n_events))
    rows = any_privacy.strategy.matrix()
    steps = change * n_events * int(np.abs(rows).sum(axis=0).max())
    mechanism = design(dp.Privacy(steps * math.log(2), max_change=change, max_events=n_events))
    rows = tuple(tuple(int(x) for x in row) for row in mechanism.strategy.matrix())
    steps = change * n_events * max(sum(abs(row[t]) for row in rows) for t in range(len(rows[0])))
    q = ratio_of(mechanism)
    odds = Fraction(math.exp(mechanism.privacy.epsilon)).limit_denominator(1000)
    ratio = Fraction(q).limit_denominator(1000)
    assert float(ratio) == pytest.approx(q, rel=1e-6)
    assert ratio**steps * odds == 1
    publisher = twin.RowPublisher(rows, ratio, change)
    assert twin.worst_case(publisher, odds, change, n_events) == 0
    assert n_events > 1 or twin.worst_case(publisher, odds * Fraction(99, 100), change, n_events) > 0


def test_the_adversary_finds_a_ratio_of_one_row_alone():
    """The same rows with the noise of a single one of them."""
    rows = ((1, 0), (0, 1), (1, 1))
    assert twin.worst_case(twin.RowPublisher(rows, Fraction(1, 2), 1), 2, 1, 1) > 0
    assert twin.worst_case(twin.RowPublisher(rows, Fraction(1, 2), 1), 4, 1, 1) == 0


def test_a_law_has_all_of_the_probability():
    assert sum(twin.geometric_law(Fraction(1, 3), 2, -1, 4).values()) == 1


@pytest.mark.parametrize(
    ("message", "strategy", "options"),
    [
        ("strategy must be a Dense or Sparse of integers", [[1, 0], [0.5, 1]], {}),
        ("strategy must be 1 with canonical noise", [[1, 0], [1, 1]], {"noise": "canonical"}),
        ("strategy must be 1 with staircase noise", [[1, 0], [1, 1]], {"noise": "staircase"}),
        ("unit must be None with a strategy other than 1", [[1, 0], [1, 1]], {"unit": 0.5}),
        ("strategy must be a Dense or Sparse of integers", [[2.0**54, 0], [1, 1]], {}),
    ],
)
def test_other_noise_and_other_rows_are_refused(message, strategy, options):
    rows = np.array(strategy)
    with pytest.raises(ValueError, match=message):
        dp.MatrixMechanism(
            *("refused", dp.running_sum(2), dp.Privacy(1, 0.1), Dense(rows), Dense(np.tri(2) @ np.linalg.inv(rows))),
            **{"noise": "geometric"} | options,
        )
