"""Numbers of a guarantee are never shown below what they are."""

from decimal import Decimal
from fractions import Fraction

from hypothesis import example, given
from hypothesis import strategies as st

from dpfast.releases.rounded_numbers import format_rounded_up


@given(st.fractions(Fraction(1, 10**12), 10**12) | st.floats(0, allow_infinity=False), st.integers(1, 12))
@example(Fraction(3, 10**400), 6)
@example(Fraction(10**400, 3), 6)
@example(1.2345678e-320, 6)
@example(1.1, 2)  # the float is above 1.1
@example(Fraction(1, 3), 3)
@example(0.0, 3)
@example(999.5, 3)
@example(Fraction(10**12 + 1, 10**12), 9)
def test_what_is_shown_is_never_below_and_less_than_a_digit_above(value, digits):
    shown = Fraction(format_rounded_up(value, digits))
    assert Fraction(value) <= shown
    assert len(Decimal(format_rounded_up(value, digits)).normalize().as_tuple().digits) <= digits
    # below: one digit at this place less
    place = Fraction(10) ** (Decimal(format_rounded_up(value, digits)).adjusted() - digits + 1)
    assert shown - Fraction(value) <= place
