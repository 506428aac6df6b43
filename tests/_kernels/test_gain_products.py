"""Products with curvatures at each frequency against plain NumPy."""

import numpy as np
import pytest

from dpfast._kernels.gain_products import curve_alone, divide_alone, lengthen

shapes = pytest.mark.parametrize("shape", [(5, 1, 1), (4, 2, 3), (3, 4, 2)])


def drawn(shape, *more):
    """E, directions and duals (nodes, p, m), matrices (nodes, m, m), and real numbers of other shapes."""
    rng, (nodes, p, m) = np.random.default_rng(7), shape
    e, k, u = rng.standard_normal((3, nodes, p, m)) + 1j * rng.standard_normal((3, nodes, p, m))
    roots = rng.standard_normal((nodes, m, m)) + 1j * rng.standard_normal((nodes, m, m))
    return e, k, u, roots @ np.swapaxes(roots, 1, 2).conj(), *(rng.uniform(0.1, 1, x) for x in more)


def along(k, e):
    return (k.conj() * e).real.sum(axis=1)


@shapes
def test_columns_get_longer_by_what_is_along_them(shape):
    nodes, _, m = shape
    e, k, _, _, weights = drawn(shape, nodes)
    found, means = np.empty((nodes, m)), np.full(m, np.nan)
    lengthen(e, k, weights, found, means)
    np.testing.assert_allclose(found, along(k, e), rtol=1e-13)
    np.testing.assert_allclose(means, weights @ along(k, e), rtol=1e-13)


@shapes
def test_curvature_is_that_of_the_formula(shape):
    nodes, _, m = shape
    e, k, u, psd, stiffness, lengths = drawn(shape, (nodes, m), m)
    out = np.empty_like(e)
    curve_alone(e, psd, k, u, along(k, e), stiffness, lengths, 0.3, out)
    turned = (k * along(u, e)[:, None] + u * along(k, e)[:, None]) / 2
    expected = 1.3 * (e @ psd) + stiffness[:, None] * (1.3 * e - turned) + lengths * k
    np.testing.assert_allclose(out, expected, rtol=1e-12)


@shapes
def test_divisions_are_those_of_the_formula(shape):
    nodes, _, m = shape
    e, k, _, inverse, rest, scratch = drawn(shape, (nodes, m, m), m)
    missing = np.einsum("wij,wj->wi", rest, along(k, e @ inverse))
    expected, out = (e + k * missing[:, None]) @ inverse, np.empty_like(e)
    divide_alone(e, inverse, k, rest, scratch, out)
    np.testing.assert_allclose(out, expected, rtol=1e-12)
