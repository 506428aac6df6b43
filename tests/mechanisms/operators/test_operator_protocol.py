import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from dpfast.mechanisms.operators.convolution import Convolution
from dpfast.mechanisms.operators.dense import Dense
from dpfast.mechanisms.operators.sparse import Sparse

SEEDS = st.integers(0, 10**6)


def entries(seed, rows=None, columns=None):
    rng = np.random.default_rng(seed)
    shape = rows or rng.integers(1, 9), columns or rng.integers(1, 9)
    x = rng.normal(size=shape) * (rng.random(shape) < 0.6)
    x[0, 0] = 1  # not all zero
    return x


def kinds(seed):
    """An operator of each kind, and its matrix."""
    x = entries(seed)
    f = entries(seed, rows=1)[0]
    lower = np.array([[f[i - j] if i >= j else 0 for j in range(len(f))] for i in range(len(f))])
    return [(Dense(x), x), (Sparse.of(sparse.csr_array(x)), x), (Convolution(f), lower)]


def largest_products(x):
    gram = np.abs(x.T @ x)
    n = len(gram)
    return [max(gram[s, t] for s in range(n) for t in range(n) if abs(s - t) >= lag) for lag in range(n)]


@given(SEEDS)
def test_operators_are_their_matrices(seed):
    for operator, x in kinds(seed):
        assert operator.shape == x.shape
        np.testing.assert_allclose(operator.matrix(), x, atol=1e-15)
        u = np.random.default_rng(seed).normal(size=(2, 3, x.shape[1]))
        np.testing.assert_allclose(operator.apply(u), u @ x.T, atol=1e-12)
        np.testing.assert_allclose(operator.apply(u[0, 0]), x @ u[0, 0], atol=1e-12)
        np.testing.assert_allclose(operator.squared_rows(), (x**2).sum(axis=1), rtol=1e-12)
        assert operator.largest_l1() == pytest.approx(np.abs(x).sum(axis=0).max())


@given(SEEDS)
def test_products_bound_those_of_all_columns(seed):
    for operator, x in kinds(seed):
        bounds, exact = operator.products(), largest_products(x)
        assert bounds[0] == pytest.approx(exact[0], rel=1e-12)
        assert (bounds >= np.array(exact) * (1 - 1e-12)).all()
        assert (np.diff(bounds) <= 0).all()
        if isinstance(operator, Dense):
            np.testing.assert_allclose(bounds, exact, rtol=1e-12)


def test_products_of_a_decaying_convolution_are_exact():
    f = 0.9 ** np.arange(30)
    lower = np.array([[f[i - j] if i >= j else 0 for j in range(30)] for i in range(30)])
    np.testing.assert_allclose(Convolution(f).products(), largest_products(lower), rtol=1e-10)


def test_products_of_a_tree_are_exact():
    rows = [[j <= t < j + 2**level for t in range(8)] for level in range(4) for j in range(0, 8, 2**level)]
    x = np.array(rows, float)
    np.testing.assert_allclose(Sparse.of(sparse.csr_array(x)).products(), largest_products(x))
    assert list(Sparse.of(sparse.csr_array(x)).products()) == [4, 3, 2, 2, 1, 1, 1, 1]


def test_sparse_rows_come_back_from_floats():
    x = entries(3)
    operator = Sparse.of(sparse.csr_array(x))
    again = Sparse(*(np.asarray(part, float) for part in operator[:3]), operator.n_columns)
    np.testing.assert_array_equal(again.matrix(), x)
    np.testing.assert_array_equal(again.apply(np.eye(x.shape[1])), operator.apply(np.eye(x.shape[1])))


def test_rows_may_be_empty():
    """As the first ones of a reconstruction are that comes late."""
    x = np.array([[0.0, 0.0], [1.0, 2.0], [0.0, 0.0], [0.0, 3.0]])
    operator = Sparse.of(sparse.csr_array(x))
    operator.check()
    np.testing.assert_array_equal(operator.matrix(), x)
    np.testing.assert_array_equal(operator.squared_rows(), [0, 5, 0, 9])
    assert operator.products()[0] == 13


@pytest.mark.parametrize(
    ("indices", "indptr"), [([1, 0], [0, 2]), ([0, 0], [0, 2]), ([0, 2], [0, 2]), ([0, 1], [0, 0, 3])]
)
def test_sparse_rows_have_their_columns_in_order_and_once(indices, indptr):
    operator = Sparse(np.ones(2), np.array(indices), np.array(indptr), 2)
    with pytest.raises(ValueError, match="must"):
        operator.check()
