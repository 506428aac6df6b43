"""Rounding up, by the bits that guarantees of before were computed with."""

from dpfast._support.safe_rounding import round_up


def test_it_is_more_than_the_value_and_hardly_more():
    assert round_up(1.0) == 1.000000001
    assert round_up(3.7) == 3.7 * (1 + 1e-9)
    assert round_up(0.0) == 0.0
