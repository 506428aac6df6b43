"""e^x between two rationals: beside mpmath."""

from fractions import Fraction

import mpmath
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dpfast.privacy.exponential_bounds import exp_above, exp_below


@given(st.fractions(0, 64))
@example(Fraction(0))
@example(Fraction(1, 2**1000))
@example(Fraction(64))
@example(Fraction(0.1))
@example(Fraction(1, 2**40))
def test_bounds_hold_and_are_near(x):
    low, high = exp_below(x), exp_above(x)
    with mpmath.workdps(400):
        truth = mpmath.exp(mpmath.mpf(x.numerator) / x.denominator)
        assert mpmath.mpf(low.numerator) / low.denominator <= truth
        assert truth <= mpmath.mpf(high.numerator) / high.denominator
        assert high - low <= low * Fraction(1, 10**30)


@pytest.mark.parametrize("x", [Fraction(0), Fraction(1, 3), Fraction(24)])
def test_they_grow(x):
    assert exp_above(x) < exp_below(x + Fraction(1, 10**9))
