"""Caps are sums, which may be reached and not passed."""

import math
from fractions import Fraction

import pytest
from helpers.ledgers import entry

from dpfast.privacy.composition import Loss
from dpfast.privacy.discrete_gaussian_accounting import Shift, Sigma
from dpfast.releases.ledger.cap import Cap

NOISE = (Shift(12, Sigma(4, 0), 1),)  # rho = 3/8


def noisy(delta=1e-6):
    return entry(loss=Loss(NOISE), delta=Fraction(delta), max_events=2)


def pure(value):
    return entry(epsilon=Fraction(value), max_events=2)


@pytest.mark.parametrize("value", [0.1, 0.3, 1.0, 2 / 3])
def test_equal_shares_reach_a_cap_and_do_not_pass_it(value):
    cap = Cap.of(round(12 * value, 12), None, None)
    assert cap.holds([pure(value)] * 12)
    assert not cap.holds([pure(value)] * 13)
    assert not cap.holds([pure(value)] * 12 + [pure(1e-6)])


def test_epsilons_of_gaussian_noise_are_those_that_were_demanded():
    each = Loss(NOISE).epsilon(1e-6)
    cap = Cap.of(3 * each, 3e-6, None)
    assert cap.holds([noisy()] * 3)
    assert not cap.holds([noisy()] * 4)
    assert not Cap.of(9 * each, 2e-6, None).holds([noisy()] * 3)  # its deltas are beyond
    assert cap.spent([noisy(), pure(1)])[0] == Fraction(each) + 1


def test_sums_of_rho():
    cap = Cap.of(None, None, 1.25)
    assert cap.holds([noisy(), noisy(), pure(1)])  # 3/8 + 3/8 + 1/2
    assert not cap.holds([noisy(), noisy(), pure(1), pure(0.1)])
    told = entry(loss=Loss(approximate=((Fraction(1, 2), Fraction(1, 10**6)),)), delta=Fraction(1, 10**6), max_events=2)
    assert not cap.holds([told])
    assert Cap.of(None, 1e-6, 1.25).holds([told])
    assert not Cap.of(None, 1e-6, 1.25).holds([told, told])


def test_nothing_is_within_every_cap():
    assert Cap.of(1e-9, None, None).holds([])
    assert Cap.of(1e-9, None, None).spent([]) == (0, 0)


def test_caps_go_through_text():
    for cap in (Cap.of(0.1, 1e-6, None), Cap.of(None, None, 1.5)):
        assert Cap.from_json(cap.to_json()) == cap
    assert Cap.of(0.1, None, None).epsilon == Fraction(1, 10)
    assert Cap.of(None, None, None) is None


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((None, 0.1, None), "cap_delta must come with cap_epsilon or cap_rho"),
        ((1, None, 1), "cap_epsilon must come without cap_rho"),
        ((0, None, None), "cap_epsilon must be a finite number above 0"),
        ((math.inf, None, None), "cap_epsilon must be a finite number above 0"),
        ((None, None, -1), "cap_rho must be a finite number above 0"),
        ((1, 1, None), "cap_delta must be a number from 0 to below 1"),
        ((1, -0.1, None), "cap_delta must be a number from 0 to below 1"),
    ],
)
def test_caps_that_are_none_are_refused_by_name(given, message):
    with pytest.raises(ValueError, match=message):
        Cap.of(*given)
