"""Products by blocks against those of whole matrices."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpfast.design.horizon.triangular_blocks import TriangularBlocks, inverse_of_root

ORDERS = st.sampled_from([1, 5, 127, 128, 129, 300])
PRECISIONS = pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-11), (np.float32, 1e-3)])


def kept(n, lag):
    return np.tri(n, k=lag, dtype=bool)


@given(ORDERS, st.integers(0, 400), st.integers(0, 10**6))
@settings(max_examples=25)
def test_products_are_those_of_whole_matrices(n, lag, seed):
    rng = np.random.default_rng(seed)
    left, right = np.tril(rng.normal(size=(2, n, n)))
    wide = rng.normal(size=(n, n)) * kept(n, lag)
    blocks = TriangularBlocks(kept(n, lag))
    np.testing.assert_allclose(blocks.of_lower(left, right), left @ right, atol=1e-11)
    np.testing.assert_allclose(blocks.of_kept(wide, right), wide @ right, atol=1e-11)


@given(ORDERS, st.integers(0, 400))
@settings(max_examples=25)
def test_blocks_know_what_is_kept(n, lag):
    mask = kept(n, lag)
    blocks = TriangularBlocks(mask)
    assert [i for i, _ in blocks.strips] == list(range(0, n, 128))
    for (i, j), first, reach in zip(blocks.strips, blocks.first, blocks.reach, strict=True):
        assert first == np.flatnonzero(mask[:, i:j].any(axis=1))[0]
        assert reach == np.flatnonzero(mask[i:j].any(axis=0))[-1] + 1


def test_a_column_for_all_keeps_all():
    blocks = TriangularBlocks(np.ones((200, 1), bool))
    assert (blocks.first, blocks.reach) == ([0, 0], [200, 200])


@PRECISIONS
def test_the_inverse_is_that_of_the_root(dtype, tolerance):
    x = np.random.default_rng(2).normal(size=(90, 200))
    gram = x @ x.T
    inverse = inverse_of_root(np.tril(gram).astype(dtype))  # what is above the diagonal is not read
    assert inverse.dtype == dtype
    np.testing.assert_allclose(inverse, np.linalg.inv(np.linalg.cholesky(gram)), atol=tolerance)
    assert not np.triu(inverse, 1).any()
