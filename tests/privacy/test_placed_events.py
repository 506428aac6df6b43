"""Where events at three inputs change most, against trying all times."""

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dpfast.privacy.placed_events import _crop, largest_of_three

products_of_three = st.integers(0, 4).flatmap(
    lambda h: st.lists(st.integers(-9, 9), min_size=6 * h + 3, max_size=6 * h + 3)
)


def try_all(x, y, z):
    """The largest sum of three products at all times, zero where they do not reach."""
    n = len(x) // 2
    reach = range(-2 * n, 2 * n + 1)

    def at(r, t):
        return int(r[t + n]) if abs(t) <= n else 0

    def best(u, v, w):
        return max(u + v + w, u - v - w, -u + v - w, -u - v + w)

    return max(best(at(x, a), at(y, b), at(z, b - a)) for a, b in itertools.product(reach, repeat=2))


@given(products_of_three)
def test_three_are_placed_best_whatever_is_cut_off(values):
    three = np.reshape(values, (3, -1))
    assert largest_of_three(*three) == try_all(*three)


def test_low_tails_are_cut_off_as_far_as_they_belong_to_no_larger_sum():
    """The sum is 6 at one time, and 4 + 2·1 with what is not above 1: tails are tried where they are above it."""
    x = np.ones(2001, int)
    x[1000], x[990:1011:20] = 4, (2, 2)
    y, z = np.zeros((2, 2001), int)
    y[1000] = z[1000] = 1
    cut = _crop(x, y, z)
    assert [len(r) for r in cut] == [41] * 3
    for whole, part in zip((x, y, z), cut, strict=True):
        np.testing.assert_array_equal(part, whole[980:1021])
    assert largest_of_three(x, y, z) == 6


def test_tails_that_may_belong_to_a_larger_sum_are_kept():
    """Two events far from the third meet in the tail of one product, where the sum at one time is of opposed signs."""
    x, y, z = np.zeros((3, 201), int)
    x[100], y[100], z[100] = 4, 4, -4
    y[0] = 2  # x(-100) + y(-100) + z(0) is 2 + 4
    assert largest_of_three(x, y, z) == 6
    assert [len(r) for r in _crop(x, y, z)] == [201] * 3
