"""Randomised response as a table: what it guarantees, over all outcomes and inputs, and what a receiver needs."""

import itertools
import math
from fractions import Fraction

import mpmath
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpfast.privacy.randomized_response import RandomizedResponse
from dpfast.privacy.response_table import ResponseTable, response_table

CASES = list(itertools.product((0.01, 1.0, math.log(3), 8.0, 24.0), (0.0, 1e-6, 0.05)))


def published(law, level):
    """The probabilities of what is published of a level: (level, whether it is certain)."""
    certain, truly, falsely = law.probabilities
    return {(level, True): certain, (level, False): truly, (not level, False): falsely}


@settings(max_examples=60)
@given(st.floats(1e-9, 24), st.floats(0, 0.5))
@example(2.0**-40, 0.0)
@example(24.0, 1e-6)
@example(math.log(3), 0.05)
def test_the_guarantee_holds_and_is_used(epsilon, delta):
    """The hockey stick over the four outcomes, by mpmath; told falsely is never below (1 - δ)/(1 + e^ε)."""
    law = response_table(epsilon, delta)
    with mpmath.workdps(60):
        growth = mpmath.exp(mpmath.mpf(epsilon))
        least = (1 - mpmath.mpf(delta)) / (1 + growth)
        assert mpmath.mpf(law.falsely.numerator) / law.falsely.denominator >= least
        assert law.falsely - Fraction(1, 2**61) <= Fraction(int(least * 2**200), 2**200)
        for level in (False, True):
            one, other, total = published(law, level), published(law, not level), mpmath.mpf(0)
            for outcome, p in one.items():
                q = other.get(outcome, Fraction(0))
                total += max(0, mpmath.mpf(p.numerator) / p.denominator - growth * q.numerator / q.denominator)
            assert total <= mpmath.mpf(law.delta.numerator) / law.delta.denominator <= delta
    assert law.certain <= Fraction(delta) < law.certain + Fraction(1, 2**62)
    assert law.delta == law.certain


@pytest.mark.parametrize(("epsilon", "delta"), CASES)
def test_it_is_the_law_of_designs(epsilon, delta):
    law, floating = response_table(epsilon, delta), RandomizedResponse(epsilon, delta, -0.5, 0.5)
    assert float(law.certain + law.truly) == pytest.approx(floating.truth, rel=1e-12)
    for name in ("trust", "shown", "variance"):
        assert float(getattr(law, name)) == pytest.approx(getattr(floating, name), rel=1e-7), name


def test_the_variance_is_that_of_what_the_receiver_sees():
    """z is 1 where it is certain, and ±trust elsewhere; z/(2 r) is the level ±1/2 on average."""
    law = response_table(1.0, 0.05)
    z = {0: Fraction(1), 1: law.trust, 2: -law.trust}
    moments = [sum(p * z[x] ** k for x, p in zip(law.values, law.probabilities, strict=True)) for k in (1, 2)]
    assert moments[0] == moments[1] == law.shown
    mean, square = moments[0] / (2 * law.shown), moments[1] / (2 * law.shown) ** 2
    assert mean == Fraction(1, 2)
    assert law.variance == square - mean**2


@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.0), (25.0, 0.0), (1.0, -1e-9), (1.0, 0.6)])
def test_what_is_out_of_range_is_refused(epsilon, delta):
    with pytest.raises(ValueError, match=r"(epsilon|delta) must be from .* for a law that is a table"):
        response_table(epsilon, delta)


@pytest.mark.parametrize(
    ("values", "weights"), [((0, 1, 2), (1, 1, 2)), ((0, 1, 2), (2, 2, 0)), ((1, 2, 3), (0, 3, 1)), ((0, 1), (1, 1))]
)
def test_tables_that_are_no_response_are_refused(values, weights):
    with pytest.raises(ValueError, match="weights must be of certain, truly and falsely, the last the least"):
        ResponseTable(values, weights, Fraction(1))
