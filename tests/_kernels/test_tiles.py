import itertools

import numba
import numpy as np
import pytest

from dpfast._kernels import tiles
from dpfast._kernels._jit import OPTIONS
from dpfast._kernels.simd import lanes
from dpfast._kernels.tiles import copy_row

DTYPES = pytest.mark.parametrize("dtype", ["f4", "f8"])


def some_rows(dtype, n=20):
    return np.random.default_rng(0).normal(size=(n, lanes(dtype))).astype(dtype)


@numba.njit(**OPTIONS)
def move_row(x, row, y, to):
    copy_row(x, row, y, to)


@pytest.mark.parametrize("target", ["f4", "f8"])
@DTYPES
def test_rows_are_converted_to_the_type_of_the_array(dtype, target):
    x, y = some_rows(dtype), np.zeros((4, lanes(dtype)), target)
    move_row(x, 3, y, 1)
    assert np.array_equal(y[1], x[3].astype(target))


@DTYPES
@pytest.mark.parametrize("step", [1, -1])
def test_copies_go_row_by_row(dtype, step):
    wrong = []
    for target, n in itertools.product([0, 3, 9, 11], [0, 1, 7]):
        x = some_rows(dtype)
        expected = x.copy()
        for r in range(n):  # where the two places overlap, the order shows
            expected[target + r] = expected[8 + step * r]
        tiles.copy(x, 8, step, target, n)
        wrong += [] if np.array_equal(x, expected) else [(target, n)]
    assert wrong == []


@DTYPES
@pytest.mark.parametrize("n", [0, 1, 8])
def test_fill_sets_the_rows_and_no_others(dtype, n):
    x = some_rows(dtype)
    expected = x.copy()
    expected[4 : 4 + n] = 0.1
    tiles.fill(x, 4, n, 0.1)
    assert np.array_equal(x, expected)
