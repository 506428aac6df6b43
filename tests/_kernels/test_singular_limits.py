"""What singular values have beyond a limit, against a decomposition of each matrix."""

import numpy as np
import pytest

from dpfast._kernels.singular_limits import exceed_singular


def drawn(rng, *shape):
    return rng.standard_normal(shape) + 1j * rng.standard_normal(shape)


def exceed(e, whiten, limit, sizes, first, count):
    (p, m, places), n = e.shape, min(e.shape[:2])
    parts = np.stack([e.real, e.imag], axis=2).reshape(p * m, 2, places)
    scratch = (np.full(x, np.nan + 0j) for x in ((n, p + m - n), (n, n), (n, n), n))
    exceed_singular(parts, whiten, limit, sizes, first, count, *scratch)
    e[...] = (parts[:, 0] + 1j * parts[:, 1]).reshape(p, m, places)


def beyond(e, whiten, limits):
    rows, sizes, columns = np.linalg.svd(np.moveaxis(e, 2, 0) @ whiten, full_matrices=False)
    kept = (rows * np.maximum(0, sizes - limits[:, None])[:, None]) @ columns
    return np.moveaxis(kept @ np.swapaxes(whiten, 1, 2).conj(), 0, 2), sizes


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize(("p", "m"), [(1, 1), (1, 3), (3, 1), (2, 3), (3, 3), (4, 2)])
def test_it_is_what_singular_values_have_beyond_a_limit(p, m, shared):
    rng, n = np.random.default_rng(10 * p + m), 40
    e, whiten = drawn(rng, p, m, n), drawn(rng, 1 if shared else n, m, m)
    sizes = rng.uniform(0.5, 2, n)
    expected, found = beyond(e, whiten, sizes)
    limit = float(np.median(found[:, 0] / sizes))
    expected, found = beyond(e, whiten, limit * sizes)
    out = e.copy()
    exceed(out, whiten, limit, sizes, 0, n)
    np.testing.assert_allclose(out, expected, atol=1e-13 * np.abs(expected).max())
    within = found[:, 0] <= limit * sizes
    assert within.any()
    assert not within.all()
    assert not out[..., within].any()


def test_nodes_that_others_do_are_left_alone():
    rng = np.random.default_rng(1)
    e, whiten, sizes = drawn(rng, 2, 3, 9), drawn(rng, 9, 3, 3), np.ones(9)
    out = e.copy()
    exceed(out, whiten, 0.1, sizes, 3, 4)
    expected, _ = beyond(e, whiten, 0.1 * sizes)
    np.testing.assert_array_equal(out[..., [0, 1, 2, 7, 8]], e[..., [0, 1, 2, 7, 8]])
    np.testing.assert_allclose(out[..., 3:7], expected[..., 3:7], atol=1e-13)


@pytest.mark.parametrize(
    "matrix",
    [
        [[0, 0], [0, 0]],
        [[3, 0], [0, 3]],  # no direction is longer
        [[0, 2j], [2j, 0]],
        [[1, 1], [1, 1]],  # of rank one
        [[1e150, 1], [1, 1]],
        [[1e-150, 0], [0, 3]],
    ],
)
def test_matrices_of_any_kind(matrix):
    e = np.array(matrix, complex)[:, :, None]
    expected, _ = beyond(e, np.eye(2)[None] + 0j, np.ones(1))
    exceed(e, np.eye(2)[None] + 0j, 1.0, np.ones(1), 0, 1)
    np.testing.assert_allclose(e, expected, rtol=1e-12, atol=1e-12)
