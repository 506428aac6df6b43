"""Numbers that floats stand for: every short decimal and every fraction of small numbers comes back from its float."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpfast._support.exact_numbers import meant_number, write_in_python, write_number

decimals = st.decimals(-1000, 1000, places=6, allow_nan=False).map(Fraction)
fractions = st.fractions(-1000, 1000, max_denominator=1000)


@given(decimals | fractions)
def test_a_number_comes_back_from_its_float_and_from_its_text(x):
    assert meant_number(float(x)) == x
    assert Fraction(write_number(x)) == x
    python = write_in_python(x)
    assert eval(python, {"Fraction": Fraction}) in (x, float(x))  # our own
    assert ("/" in write_number(x)) == ("Fraction" in python)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.1 + 0.2, "0.3"),
        (1 / 3, "1/3"),
        (-2 / 3, "-2/3"),
        (10.0, "10"),
        (0.0, "0"),
        (1e-50, "1E-50"),
        (5e-4, "0.0005"),
    ],
)
def test_numbers_are_written_as_people_write_them(number, text):
    assert write_number(meant_number(number)) == text


def test_what_is_near_a_fraction_alone_stays_a_decimal():
    assert write_number(meant_number(0.333333)) == "0.333333"
    assert write_number(meant_number(0.3333333333)) == "0.3333333333"
