import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize

from dpfast._support.root_finding import root_between

numbers = st.floats(-3, 3)
FUNCTIONS = {
    "cubic": lambda x, c: (x - c) ** 3 + 1e-3 * (x - c),
    "steep": lambda x, c: math.tanh(40 * (x - c)) - 0.3,
    "exponential": lambda x, c: math.exp(x) - math.exp(c),
    "stairs": lambda x, c: math.floor(8 * (x - c)) + 0.5,
    "flat": lambda x, c: (x - c) ** 9,
}


@pytest.mark.parametrize("name", FUNCTIONS)
@given(c=numbers, low=st.floats(-9, -3.5), high=st.floats(3.5, 9), xtol=st.sampled_from([1e-14, 1e-6, 0.1]))
def test_the_root_has_the_bits_of_scipy(name, c, low, high, xtol):
    def f(x):
        return FUNCTIONS[name](x, c)

    asked = [[], []]
    options = {"xtol": xtol, "rtol": 4e-15}
    ours = root_between(lambda x: (asked[0].append(x), f(x))[1], low, high, steps=300, **options)
    theirs = optimize.brentq(lambda x: (asked[1].append(x), f(x))[1], low, high, maxiter=300, **options)
    assert (ours, asked[0]) == (theirs, asked[1])


def test_a_root_at_an_end_is_found_there():
    assert root_between(lambda x: x, 0.0, 1.0, xtol=1e-9, rtol=1e-9) == 0
    assert root_between(lambda x: x - 1, 0.0, 1.0, xtol=1e-9, rtol=1e-9) == 1


def test_the_same_signs_and_too_few_steps_are_refused():
    with pytest.raises(ArithmeticError, match="change its sign between 1 and 2"):
        root_between(lambda x: x, 1.0, 2.0, xtol=1e-9, rtol=1e-9)
    with pytest.raises(ArithmeticError, match="in 3 steps"):
        root_between(lambda x: x**9 - 1e-3, -1.0, 2.0, xtol=1e-14, rtol=1e-14, steps=3)
