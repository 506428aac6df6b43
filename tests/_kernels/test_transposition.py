import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpfast._kernels import transposition
from dpfast._kernels._jit import OPTIONS
from dpfast._kernels.chain_execute import any_order
from dpfast._kernels.simd import lanes

DTYPES = pytest.mark.parametrize("dtype", ["f4", "f8"])
ORDERS = {  # of (..., streams, time)
    "C": lambda x: x,
    "Fortran": lambda x: np.asfortranarray(x),
    "streams side by side": lambda x: x.swapaxes(-1, -2).copy().swapaxes(-1, -2),
    "part of longer streams": lambda x: np.concatenate([x, -x], axis=-1)[..., : x.shape[-1]],
    "every other stream": lambda x: np.repeat(x, 2, axis=-2)[..., ::2, :],
    "every other sample": lambda x: np.repeat(x, 2, axis=-1)[..., ::2],
    "backward": lambda x: x[..., ::-1].copy()[..., ::-1],
}
FIRST_ROW = 3


@st.composite
def jobs(draw, width):
    """Streams, the first of a bundle, and a range of time."""
    n_streams = draw(st.integers(1, 2 * width + 2))
    start, n = draw(st.integers(0, 5)), draw(st.integers(0, 2 * width + 1))
    return n_streams, draw(st.integers(0, n_streams - 1)), start, n


def signals(shape, order, dtype):
    return ORDERS[order](np.arange(1, np.prod(shape) + 1).reshape(shape).astype(dtype))


@pytest.mark.parametrize("order", ORDERS)
@DTYPES
@given(data=st.data())
def test_samples_become_rows(order, dtype, data):
    width = lanes(dtype)
    n_streams, stream, t, n = data.draw(jobs(width))
    x = signals((3, n_streams, t + n + 2), order, dtype)
    rows = np.zeros((FIRST_ROW + n + 2, width), dtype)
    expected = rows.copy()
    for lane in range(width):  # beyond the last stream that stream again
        expected[FIRST_ROW : FIRST_ROW + n, lane] = x[1, min(stream + lane, n_streams - 1), t : t + n]
    transposition.read(any_order(x, writeable=False), 1, stream, t, rows, FIRST_ROW, n)
    assert np.array_equal(rows, expected)


@pytest.mark.parametrize("order", ORDERS)
@DTYPES
@given(data=st.data())
def test_rows_become_samples(order, dtype, data):
    width = lanes(dtype)
    n_streams, stream, t, n = data.draw(jobs(width))
    x = signals((3, n_streams, t + n + 2), order, dtype)
    rows = -np.arange(1, (FIRST_ROW + n) * width + 1).reshape(-1, width).astype(dtype)
    expected, count = x.copy(), min(width, n_streams - stream)
    expected[1, stream : stream + count, t : t + n] = rows[FIRST_ROW:, :count].T
    transposition.write(rows, FIRST_ROW, any_order(x, writeable=True), 1, stream, t, n)
    assert np.array_equal(x, expected)  # and what belongs to other streams, times and arrays is as it was


@numba.njit(**OPTIONS)
def pass_through(numbers, i, stream, numbers_row, like, out, j):
    transposition.take(numbers, stream, i, numbers_row, 0, like)
    transposition.give(numbers_row, 0, out, 1, stream, j, like)


@pytest.mark.parametrize("order", ORDERS)
@DTYPES
@pytest.mark.parametrize("numbers", ["f8", "u4"])
def test_numbers_of_a_bundle_become_a_row_and_numbers_again(dtype, numbers, order):
    """Also numbers of another type than the rows; nothing but the bundle's is written."""
    for n_streams in (1, 3, 40, 100):
        like, stream = np.zeros((1, lanes(dtype)), dtype), n_streams // 3
        x, out = signals((n_streams, 4), order, numbers), signals((2, n_streams, 3), order, numbers)
        row, bundle = np.zeros((1, like.size), numbers), np.minimum(stream + np.arange(like.size), n_streams - 1)
        expected = out.copy()
        expected[1, bundle, 0] = x[bundle, 2]
        pass_through(any_order(x, writeable=False), 2, stream, row, like, any_order(out, writeable=True), 0)
        assert np.array_equal(row[0], x[bundle, 2])
        assert np.array_equal(out, expected)
