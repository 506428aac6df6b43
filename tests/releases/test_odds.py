import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpfast.privacy.discrete_gaussian_accounting import Shift, Sigma, epsilon
from dpfast.releases import odds

DELTA = 1e-3


@pytest.mark.parametrize(("against", "eps"), [(1, 0.5), (1, 3.0), (10, 1.0), (100, 0.01), (100, 8.0)])
def test_bounds_are_those_of_randomised_response(against, eps):
    """Who tells the truth with the odds e^ε moves the odds of a reader to either bound: Bayes' rule on two by two."""
    truth = math.exp(eps) / (1 + math.exp(eps))
    prior = 1 / (1 + against)
    after = [prior * p / (prior * p + (1 - prior) * (1 - p)) for p in (1 - truth, truth)]
    assert [float(x) for x in odds.bound_probability(against, eps)] == pytest.approx(after, rel=1e-12)


def test_bounds_of_any_epsilon_are_numbers():
    for eps in (0.0, 1e-300, 1e5, math.inf):
        low, high = odds.bound_probability(10, eps)
        assert 0 <= low <= Decimal(1) / 11 + Decimal("1e-25")
        assert Decimal(1) / 11 - Decimal("1e-25") <= high <= 1
    assert odds.format_bounds(*odds.bound_probability(1, 1e5)) == ("0\u00a0%", "100\u00a0%")


@given(st.integers(1, 1000), st.floats(1e-9, 60))
def test_percentages_never_understate(against, eps):
    low, high = odds.bound_probability(against, eps)
    shown = [Fraction(x.removesuffix("\u00a0%")) / 100 for x in odds.format_bounds(low, high)]
    assert 0 <= shown[0] <= Fraction(low)
    assert Fraction(high) <= shown[1] <= 1


def law(mean, a):
    """A discrete Gaussian on the integers, far enough: P(n) ∝ exp(-(n-mean)²/2a²)."""
    n = np.arange(-12 * a, 12 * a + 1)
    weights = np.exp(-((n - mean) ** 2) / (2 * a**2))
    return weights / weights.sum()


@pytest.mark.parametrize(("a", "shift"), [(3, 1), (4, 3), (10, 7)])
def test_odds_go_beyond_the_slack_as_rarely_as_is_said(a, shift):
    """Brute force over all outcomes of one exact number, with and without the event."""
    eps = epsilon([Shift(shift**2, Sigma(a, 0), 1)], DELTA)
    with_event, without = law(shift, a), law(0, a)
    ratio = with_event / without
    limit = math.exp(eps) * float(odds.SLACK)
    bound = float(odds.probability_beyond(eps, DELTA))
    for world in (with_event, without):
        beyond = world[(ratio > limit) | (ratio < 1 / limit)].sum()
        assert 0 < beyond <= bound
    assert bound <= 21 * DELTA


def test_with_gaussian_noise_odds_exceed_the_factor_with_more_than_delta():
    """Which is why the page does not say that they do so with a probability of at most δ."""
    eps = epsilon([Shift(1, Sigma(4, 0), 1)], DELTA)
    p, q = law(1, 4), law(0, 4)
    assert p[p / q > math.exp(eps)].sum() > 1.5 * DELTA


def test_the_coin_of_delta_explains_any_law():
    """What is over e^ε times the other law has a mass of at most δ: take it away, and the rest keeps the bounds."""
    eps = epsilon([Shift(9, Sigma(4, 0), 1)], DELTA)
    p, q = law(3, 4), law(0, 4)
    assert np.clip(p - math.exp(eps) * q, 0, None).sum() <= DELTA
    assert np.clip(q - math.exp(eps) * p, 0, None).sum() <= DELTA


def test_chances_and_priors_as_they_are_read():
    assert odds.format_chance(Decimal("1e-6")) == "1 in 1,000,000"
    assert odds.format_chance(Decimal("0.3")) == "1 in 3"
    assert odds.format_chance(Decimal("1e-20")) == "1e-20"
    assert odds.format_chance(Decimal("1.231e-20")) == "1.24e-20"  # never below it
    assert [odds.format_prior(n).replace("\u00a0", " ") for n in odds.PRIORS] == [
        "1 : 1 (50 %)",
        "1 : 10 (9.1 %)",
        "1 : 100 (0.99 %)",
    ]
