"""Sums of Aberth's iteration against plain NumPy."""

import numpy as np
import pytest

from dpfast._kernels.zero_search import LANES, N_SUMS, add_repulsion, evaluate


def some_points(n):
    return np.random.default_rng(0).normal(size=(2, n))


@pytest.mark.parametrize("n", [LANES, 2 * LANES])
def test_repulsion_is_the_sum_over_the_others(n):
    every, out = some_points(n + 5), np.empty((2, n))
    every[:, 3] = every[:, 7]  # two in one place do not move one another
    own = every[:, :n].copy()
    add_repulsion(own, every, np.empty((N_SUMS, LANES)), out)
    z, x = own[0] + 1j * own[1], every[0] + 1j * every[1]
    apart = z[:, None] - x
    expected = np.divide(1, apart, out=np.zeros_like(apart), where=apart != 0).sum(axis=1)
    np.testing.assert_allclose(out[0] + 1j * out[1], expected, rtol=1e-12)


@pytest.mark.parametrize("n", [LANES, 2 * LANES])
def test_polynomials_are_those_of_numpy(n):
    c, points, out = np.random.default_rng(1).normal(size=9), 0.5 * some_points(n), np.empty((5, n))
    z = points[0] + 1j * points[1]
    evaluate(c, np.concatenate([points, [np.abs(z)]]), np.empty((N_SUMS, LANES)), out)
    sizes = np.polyval(np.abs(c), np.abs(z))
    np.testing.assert_allclose(out[4], sizes, rtol=1e-13)
    assert (np.abs(out[0] + 1j * out[1] - np.polyval(c, z)) <= 1e-14 * sizes).all()
    steep = np.polyval(np.polyder(np.abs(c)), np.abs(z))
    assert (np.abs(out[2] + 1j * out[3] - np.polyval(np.polyder(c), z)) <= 1e-14 * steep).all()
