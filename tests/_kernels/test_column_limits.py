"""Columns that are cut to their limits: by how much, and at what cost, against a convex program."""

import cvxpy as cp
import numpy as np
import pytest

from dpfast._kernels.column_limits import cut_columns, exceed
from dpfast._kernels.matrix_tiles import make_room, nodes_in_lanes
from dpfast._kernels.simd import lanes

LANES = lanes(np.float64)


def drawn(nodes, p, m, seed):
    rng = np.random.default_rng(seed)
    psi = rng.standard_normal((nodes, p, m)) + 1j * rng.standard_normal((nodes, p, m))
    roots = rng.standard_normal((nodes, m, m)) + 1j * rng.standard_normal((nodes, m, m))
    return psi, roots


def cut(psi, psd, limits):
    m, left, multiples = len(limits), psi.copy(), np.full(psi.shape, np.nan + 0j)
    cut_columns(psi, psd, limits, left, multiples, np.empty((m, m)), np.empty(m), np.empty(m))
    np.testing.assert_allclose(psi - left, multiples @ psd, rtol=1e-9, atol=1e-12)
    return left, ((psi - left) * multiples.conj()).real.sum(axis=(1, 2))


@pytest.mark.parametrize("nodes", [1, 2 * LANES, 2 * LANES + 3])
def test_what_exceeds_limits_is_in_the_direction_of_columns(nodes):
    psi, _ = drawn(nodes, 2, 3, 0)
    psi[0], limits, sizes = 0, np.array([0.5, 1.5, 100.0]), np.linspace(0.5, 2, nodes)
    room, last = make_room(2, 3, nodes), np.moveaxis(psi, 0, 2).reshape(6, nodes)
    room[:, 0, :nodes], room[:, 1, :nodes] = last.real, last.imag
    in_lanes, tile = nodes_in_lanes(sizes, np.arange(nodes)), np.full((12, LANES), np.nan)
    exceed(room, limits, in_lanes, 0, -(-nodes // LANES), tile)
    out = np.moveaxis((room[:, 0] + 1j * room[:, 1]).reshape(2, 3, -1), 2, 0)[:nodes]
    lengths = np.linalg.norm(psi, axis=1)
    np.testing.assert_allclose(
        np.linalg.norm(psi - out, axis=1), np.minimum(lengths, limits * sizes[:, None]), rtol=1e-14
    )
    assert not out[0].any()
    assert not out[:, :, 2].any()
    beyond = np.maximum(0, lengths - limits * sizes[:, None])
    np.testing.assert_allclose(np.linalg.norm(out, axis=1), beyond, atol=1e-14)
    assert nodes == 1 or beyond.any()


@pytest.mark.parametrize(("p", "m"), [(1, 1), (2, 3), (3, 2)])
@pytest.mark.parametrize("beyond", [0.01, 0.3])
def test_columns_are_cut_at_about_the_least_cost(p, m, beyond):
    psi, roots = drawn(6, p, m, 1)
    psd, lengths = roots @ np.swapaxes(roots, 1, 2).conj(), np.linalg.norm(psi, axis=1)
    limits = np.median(lengths, axis=0) / (1 + beyond)
    psi *= (np.minimum(lengths, (1 + beyond) * limits) / lengths)[:, None]
    left, costs = cut(psi, psd, limits)
    assert (np.linalg.norm(left, axis=1) <= limits * (1 + 1e-9)).all()
    inverse = np.linalg.inv(psd)
    e = psi - left
    np.testing.assert_allclose(costs, (e @ inverse * e.conj()).real.sum(axis=(1, 2)), rtol=1e-9, atol=1e-15)
    for w in range(6):
        y = cp.Variable((p, m), complex=True)
        tight = [cp.norm(psi[w, :, i] - (y @ roots[w].conj().T)[:, i], 2) <= limits[i] for i in range(m)]
        least = cp.Problem(cp.Minimize(cp.sum_squares(y)), tight).solve(solver=cp.CLARABEL)
        assert least * (1 - 5e-3) - 1e-9 <= costs[w] <= least * (1 + beyond) + 1e-9


def test_columns_within_their_limits_are_left_alone():
    psi, roots = drawn(5, 2, 3, 2)
    left, costs = cut(psi, roots @ np.swapaxes(roots, 1, 2).conj(), np.full(3, 100.0))
    np.testing.assert_array_equal(left, psi)
    np.testing.assert_array_equal(costs, 0)


def test_what_singular_spectra_cannot_cut_is_left():
    """A column of a stream that is nothing stays; those of two streams that are one move together."""
    psi, same = np.array([[[3.0, 3.0, 2.0]]], complex), np.array([[[1, 1, 0], [1, 1, 0], [0, 0, 0]]], complex)
    left, costs = cut(psi, same, np.array([1.0, 2.0, 1.0]))
    np.testing.assert_allclose(left, [[[1, 1, 2]]], rtol=1e-6)
    assert costs[0] == pytest.approx(4, rel=1e-6)
    against = np.array([[[1, -1, 0], [-1, 1, 0], [0, 0, 1]]], complex)
    left, _ = cut(psi, against, np.ones(3))
    assert np.abs(left[0, 0, :2]).sum() == pytest.approx(6, rel=1e-6)
    assert np.isfinite(left).all()


def test_nothing_is_taken_off_by_what_rounding_leaves_of_singular_spectra():
    """Of columns that P does not see, in any units: else a cost of rounding, or below 0, would be a bound."""
    rng = np.random.default_rng(4)
    a = rng.standard_normal((200, 2))
    psi = np.stack([a[:, 1], -a[:, 0]], axis=1)[:, None].astype(complex)
    left, costs = cut(psi, (a[:, :, None] * a[:, None]).astype(complex), np.abs(psi).min(axis=(0, 1)) / 2)
    np.testing.assert_array_equal(left, psi)
    np.testing.assert_array_equal(costs, 0)
    left, costs = cut(psi, np.full((200, 2, 2), 1e-310 + 0j), np.full(2, 0.1))  # a quotient would be infinite
    np.testing.assert_array_equal(left, psi)
    np.testing.assert_array_equal(costs, 0)


def test_columns_are_left_no_longer_than_they_were():
    """Limits that are far, and spectra that are nearly singular: what is linearized may miss them."""
    psi, roots = drawn(300, 2, 3, 5)
    roots[:, :, 1:] *= 1e-3
    psd = roots @ np.swapaxes(roots, 1, 2).conj()
    limits = np.linalg.norm(psi, axis=1).min(axis=0)
    left, costs = cut(psi, psd, limits)
    before, after = ((np.linalg.norm(x, axis=1) / limits).max(axis=1) for x in (psi, left))
    assert (after <= before * (1 + 1e-12)).all()
    assert (costs >= 0).all()


def test_columns_that_hold_one_another_up_are_cut_in_many_rounds():
    """Streams that are nearly one, columns that are nearly opposite: what one loses makes its neighbours longer."""
    rng, m = np.random.default_rng(0), 6
    shared = rng.standard_normal((8, m, 1)) + 1j * rng.standard_normal((8, m, 1))
    psi = shared + 0.1 * (rng.standard_normal((8, m, m)) + 1j * rng.standard_normal((8, m, m)))
    psi *= [1, -1, 1 + 2e-3, -1, 1, -1] / np.linalg.norm(psi, axis=1)[:, None]
    left, _ = cut(psi, np.tile(0.9999 + 1e-4 * np.eye(m) + 0j, (8, 1, 1)), np.ones(m))
    assert (np.linalg.norm(left, axis=1) <= 1 + 1e-9).all()
