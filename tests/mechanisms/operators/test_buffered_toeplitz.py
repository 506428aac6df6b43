"""A Toeplitz matrix of few buffers against the matrix written out."""

import numpy as np
import pytest
from helpers.reference import direct_form
from hypothesis import given
from hypothesis import strategies as st

from dpfast.mechanisms.operators.buffered_toeplitz import BufferedToeplitz

SEEDS = st.integers(0, 10**6)


def exponentials(seed, largest=0.99):
    rng = np.random.default_rng(seed)
    m = rng.integers(1, 5)
    return BufferedToeplitz(*rng.uniform(-largest, largest, (2, m)), int(rng.integers(1, 40)))


@given(SEEDS)
def test_the_strategy_is_its_matrix(seed):
    C = exponentials(seed)
    c = direct_form(np.poly(C.zeros), np.poly(C.poles), np.eye(1, C.horizon)[0])
    matrix = np.array([[c[t - k] if k <= t else 0.0 for k in range(C.horizon)] for t in range(C.horizon)])
    np.testing.assert_allclose(C.matrix(), matrix, atol=1e-10)
    x = np.random.default_rng(seed).normal(size=(2, 3, C.horizon))
    np.testing.assert_allclose(C.apply(x), x @ matrix.T, atol=1e-10)
    np.testing.assert_allclose(C.squared_rows(), (matrix**2).sum(axis=1), rtol=1e-10)
    assert C.largest_l1() == pytest.approx(np.abs(matrix).sum(axis=0).max())
    gram = np.abs(matrix.T @ matrix)
    rows, columns = np.indices(gram.shape)
    assert C.products()[0] == pytest.approx(gram.max())
    assert all(
        bound >= gram[np.abs(rows - columns) >= lag].max() * (1 - 1e-12) for lag, bound in enumerate(C.products())
    )


@given(SEEDS)
def test_the_filter_is_the_strategy_with_a_state_for_every_buffer(seed):
    C = exponentials(seed)
    np.testing.assert_allclose(C.filter().impulse(C.horizon), C.coefficients, atol=1e-10)
    assert C.filter().order == len(C.poles)
