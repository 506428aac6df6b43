"""What conjugate gradients do to rows, against plain NumPy."""

import numpy as np
import pytest

from dpfast._kernels import row_products
from dpfast._kernels.simd import lanes

LANES = lanes(np.float64)


def drawn(n, count):
    """Vectors of five rows, and one with room behind its places, as an FFT leaves it."""
    rng = np.random.default_rng(n)
    vectors = rng.standard_normal((count, 5, 2, n * LANES))
    return *vectors, rng.standard_normal((5, 2, n * LANES + 3))[:, :, :-3]


@pytest.mark.parametrize("n", [1, 4])
def test_products_are_sums_over_a_row(n):
    a, b = drawn(n, 1)
    found = np.full((5, LANES), np.nan)
    row_products.multiply(a, b, found, n, 1, 3)
    np.testing.assert_allclose(found[1:4].sum(axis=1), (a * b).sum(axis=(1, 2))[1:4], rtol=1e-12)
    assert np.isnan(found[[0, 4]]).all()


@pytest.mark.parametrize("n", [1, 4])
def test_turned_directions_keep_some_of_what_they_were(n):
    direction, along, changed = drawn(n, 2)
    before, found = direction.copy(), np.full((5, LANES), np.nan)
    row_products.turn(direction, changed, 0.3, along, found, n, 1, 3)
    expected = 0.3 * before + changed
    np.testing.assert_allclose(direction[1:4], expected[1:4], rtol=1e-14, atol=1e-15)
    np.testing.assert_array_equal(direction[[0, 4]], before[[0, 4]])
    np.testing.assert_allclose(found[1:4].sum(axis=1), (expected * along).sum(axis=(1, 2))[1:4], rtol=1e-12)


@pytest.mark.parametrize("n", [1, 4])
def test_a_step_goes_along_the_direction_and_leaves_less(n):
    step, direction, left, changed = drawn(n, 3)
    further, less = step + 0.7 * direction, left - 0.7 * changed
    kept = step.copy(), left.copy()
    row_products.go(step, direction, left, changed, 0.7, n, 1, 3)
    for found, expected, before in ((step, further, kept[0]), (left, less, kept[1])):
        np.testing.assert_allclose(found[1:4], expected[1:4], rtol=1e-14, atol=1e-15)
        np.testing.assert_array_equal(found[[0, 4]], before[[0, 4]])
