"""Rates of exact geometric noise: what they promise is not above what was asked, and near it."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dpfast.privacy.geometric_rate import GeometricRate
from dpfast.privacy.integer_noise.geometric import TwoSidedGeometric


@given(st.floats(2**-30, 2**20, exclude_min=True), st.integers(1, 1000))
@example(1.0, 3)
@example(0.1, 1)
@example(2.0**20, 1)
def test_a_rate_is_not_above_what_was_asked_and_near_it(epsilon, steps):
    rate = GeometricRate.below(epsilon, steps)
    asked = Fraction(epsilon)
    assert rate.epsilon(steps) <= asked
    assert 0 <= rate.j <= 40
    slack = Fraction(steps, 2**40) if rate.j == 40 else asked / 2**28
    assert asked - rate.epsilon(steps) <= slack
    larger = GeometricRate(rate.s + 1, rate.j)
    assert larger.epsilon(steps) > asked


@pytest.mark.parametrize(("epsilon", "steps"), [(2.0**-41, 1), (1.0, 2**41), (2.0**21, 1), (0.0, 1), (-1.0, 1)])
def test_what_cannot_be_drawn_is_refused(epsilon, steps):
    with pytest.raises(ValueError, match=r"epsilon must be from 2\*\*-40 to 1,048,576 for each unit"):
        GeometricRate.below(epsilon, steps)


@pytest.mark.parametrize("steps", [0, 1.5, True])
def test_steps_are_a_positive_number(steps):
    with pytest.raises(ValueError, match="steps must be an integer"):
        GeometricRate.below(1.0, steps)


@pytest.mark.parametrize("rate", [GeometricRate(3, 0), GeometricRate(1, 2), GeometricRate(1, 20)])
def test_a_change_costs_what_the_law_says(rate):
    """The log of the ratio of any two probabilities so far apart, and the variance, as the float law has them."""
    law = TwoSidedGeometric(float(rate.per_step))
    n = np.arange(-50, 51)
    logs = law.log_probability(n)
    for change in (1, 2, 7):
        ratios = np.abs(logs[change:] - logs[:-change])
        assert ratios.max() == pytest.approx(float(rate.epsilon(change)), rel=1e-12)
    assert rate.variance == pytest.approx(law.variance, rel=1e-14)
    assert rate.variance == pytest.approx(1 / (2 * math.sinh(float(rate.per_step) / 2) ** 2), rel=1e-12)
