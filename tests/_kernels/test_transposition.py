import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpfast._kernels import transposition
from dpfast._kernels._jit import OPTIONS
from dpfast._kernels.execute import any_order
from dpfast._kernels.simd import lanes

DTYPES = pytest.mark.parametrize("dtype", ["f4", "f8"])
ORDERS = {
    "C": lambda x: x,
    "Fortran": lambda x: np.asfortranarray(x),
    "part of longer streams": lambda x: np.pad(x, ((0, 0), (2, 3)))[:, 2:-3],
    "every other stream": lambda x: np.repeat(x, 2, axis=0)[::2],
    "every other sample": lambda x: np.repeat(x, 2, axis=1)[:, ::2],
    "backward": lambda x: x[:, ::-1].copy()[:, ::-1],
}
FIRST_ROW = 3


@st.composite
def jobs(draw, width):
    """Streams, the first of a bundle, and a range of time."""
    n_streams = draw(st.integers(1, 2 * width + 2))
    start, n = draw(st.integers(0, 5)), draw(st.integers(0, 2 * width + 1))
    return n_streams, draw(st.integers(0, n_streams - 1)), start, n


def signals(n_streams, n_samples, order, dtype):
    x = np.arange(1, n_streams * n_samples + 1).reshape(n_streams, n_samples).astype(dtype)
    return ORDERS[order](x)


@numba.njit(**OPTIONS)
def read(x, stream, t, rows, row, n):
    transposition.read(x[:, :, 0], stream, t, rows, row, n)


@numba.njit(**OPTIONS)
def write(rows, row, x, stream, t, n):
    transposition.write(rows, row, x[:, :, 0], stream, t, n)


@pytest.mark.parametrize("order", ORDERS)
@DTYPES
@given(data=st.data())
def test_samples_become_rows(order, dtype, data):
    width = lanes(dtype)
    n_streams, stream, t, n = data.draw(jobs(width))
    x = signals(n_streams, t + n + 2, order, dtype)
    rows = np.zeros((FIRST_ROW + n + 2, width), dtype)
    expected = rows.copy()
    for lane in range(width):  # beyond the last stream that stream again
        expected[FIRST_ROW : FIRST_ROW + n, lane] = x[min(stream + lane, n_streams - 1), t : t + n]
    read(any_order(x, writeable=False), stream, t, rows, FIRST_ROW, n)
    assert np.array_equal(rows, expected)


@pytest.mark.parametrize("order", ORDERS)
@DTYPES
@given(data=st.data())
def test_rows_become_samples(order, dtype, data):
    width = lanes(dtype)
    n_streams, stream, t, n = data.draw(jobs(width))
    x = signals(n_streams, t + n + 2, order, dtype)
    rows = -np.arange(1, (FIRST_ROW + n) * width + 1).reshape(-1, width).astype(dtype)
    expected = x.copy()
    count = min(width, n_streams - stream)
    expected[stream : stream + count, t : t + n] = rows[FIRST_ROW:, :count].T
    write(rows, FIRST_ROW, any_order(x, writeable=True), stream, t, n)
    assert np.array_equal(x, expected)  # and what belongs to other streams and times is as it was
