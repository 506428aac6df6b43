"""Rounding up, by the bits that guarantees of before were computed with."""

import math
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from dpfast._support.safe_rounding import float_above, float_below, round_up


def test_it_is_more_than_the_value_and_hardly_more():
    assert round_up(1.0) == 1.000000001
    assert round_up(3.7) == 3.7 * (1 + 1e-9)
    assert round_up(0.0) == 0.0


@given(st.fractions())
def test_floats_enclose_a_fraction_and_are_its_neighbours(x):
    low, high = float_below(x), float_above(x)
    assert low <= x <= high
    assert low == high == x or math.nextafter(low, math.inf) == high


def test_fractions_beyond_all_floats():
    huge = Fraction(10**400)
    assert (float_above(huge), float_below(-huge)) == (math.inf, -math.inf)
    assert float_below(huge) == -float_above(-huge) == math.nextafter(math.inf, 0)
