"""Products with curvatures at each frequency against plain NumPy."""

import numpy as np
import pytest

from dpfast._kernels.gain_products import curve_alone, divide_alone
from dpfast._kernels.matrix_tiles import make_room, nodes_in_lanes
from dpfast._kernels.simd import lanes

LANES = lanes(np.float64)
shapes = pytest.mark.parametrize("shape", [(5, 1, 1), (LANES + 1, 2, 3), (2 * LANES, 4, 2)])


def drawn(shape, *more):
    """E, directions and duals (nodes, p, m), matrices (nodes, m, m), and real numbers of other shapes."""
    rng, (nodes, p, m) = np.random.default_rng(7), shape
    e, k, u = rng.standard_normal((3, nodes, p, m)) + 1j * rng.standard_normal((3, nodes, p, m))
    roots = rng.standard_normal((nodes, m, m)) + 1j * rng.standard_normal((nodes, m, m))
    return e, k, u, roots @ np.swapaxes(roots, 1, 2).conj(), *(rng.uniform(0.1, 1, x) for x in more)


def along(k, e):
    return (k.conj() * e).real.sum(axis=1)


def tile(shape):
    return np.full((2 * shape[1] * shape[2], LANES), np.nan)


def tiles(shape):
    return -(-shape[0] // LANES)


def nodes_last(e):
    nodes, p, m = e.shape
    x, last = make_room(p, m, nodes), np.moveaxis(e, 0, 2).reshape(p * m, nodes)
    x[:, 0, :nodes], x[:, 1, :nodes] = last.real, last.imag
    return x


def nodes_first(x, e):
    nodes, p, m = e.shape
    return np.moveaxis((x[:, 0] + 1j * x[:, 1]).reshape(p, m, -1), 2, 0)[:nodes]


def in_lanes(x):
    return nodes_in_lanes(x, np.arange(len(x)))


@shapes
def test_tiles_have_an_entry_of_all_nodes_in_a_row(shape):
    nodes, p, m = shape
    e, order = drawn(shape)[0], np.random.default_rng(1).permutation(nodes)
    found = nodes_in_lanes(e, order).reshape(-1, p, m, 2, LANES)
    for place in range(len(found) * LANES):
        parts = found[place // LANES, :, :, :, place % LANES]
        np.testing.assert_array_equal(parts[:, :, 0] + 1j * parts[:, :, 1], e[order[min(place, nodes - 1)]])


@shapes
def test_curvature_is_that_of_the_formula(shape):
    nodes, _, m = shape
    e, k, u, psd, stiffness, sizes, lengths = drawn(shape, (nodes, m), nodes, m)
    fixed = [in_lanes(x) for x in (psd, k, u, stiffness, sizes)]
    turned = (k * along(u, e)[:, None] + u * along(k, e)[:, None]) / 2
    expected = 1.3 * (e @ psd) + stiffness[:, None] * (1.3 * e - turned) + sizes[:, None, None] * lengths * k
    x = nodes_last(e)
    curve_alone(x, *fixed, lengths, 1.3, 0, tiles(shape), tile(shape), tile(shape))
    np.testing.assert_allclose(nodes_first(x, e), expected, rtol=1e-12)


@shapes
def test_divisions_are_those_of_the_formula(shape):
    nodes, p, m = shape
    e, k, _, inverse, rest = drawn(shape, (nodes, m, m))
    missing = np.einsum("wij,wj->wi", rest, along(k, e @ inverse))
    expected = (e + k * missing[:, None]) @ inverse
    fixed = [in_lanes(x) for x in (inverse, k, rest)]
    x = nodes_last(e)
    divide_alone(x, *fixed, p, m, 0, tiles(shape), tile(shape), tile(shape), np.empty((m, LANES)))
    np.testing.assert_allclose(nodes_first(x, e), expected, rtol=1e-12)
