"""Products of the columns of a matrix of filters, against closed forms and impulse responses."""

import math

import numpy as np
import pytest

import dpfast as dp
from dpfast.filters.column_products import column_products
from dpfast.filters.filter import MAX_POLE_RADIUS
from dpfast.filters.state_space_system import StateSpaceSystem

COUPLES = [(0, 1), (0, 2), (1, 2)]
SLOW, QUICK = dp.Filter([0.05], [1, -0.95]), dp.Filter([0.2, 0.3], [1, -0.8])
MATRIX = dp.FilterMatrix([[SLOW, QUICK, 0], [QUICK, -1 * QUICK, SLOW]])


def shared(matrix):
    return dp.FilterMatrix.from_state_space(*matrix.state_space())


@pytest.mark.parametrize("matrix", [MATRIX, shared(MATRIX)])
def test_they_are_those_of_impulse_responses(matrix):
    g = matrix.impulse(2000)
    found = column_products(matrix, COUPLES, 1e-14)
    for i, j in COUPLES:
        whole = sum(np.correlate(row[j], row[i], "full") for row in g)
        reach, middle = len(found.near[i, j]) // 2, len(whole) // 2
        assert 300 < reach < 2000
        np.testing.assert_allclose(found.near[i, j], whole[middle - reach : middle + reach + 1], atol=1e-13)
        assert np.abs(whole[: middle - reach]).max() <= found.beyond[i, j] < 1e-13


@pytest.mark.parametrize("negligible", [1e-1, 1e-2, 1e-4])
def test_what_comes_beyond_is_bounded_where_much_is_cut_off(negligible):
    g = MATRIX.impulse(2000)
    found = column_products(shared(MATRIX), COUPLES, negligible)
    for i, j in COUPLES:
        whole, reach = sum(np.correlate(row[j], row[i], "full") for row in g), len(found.near[i, j]) // 2
        left = np.abs(np.delete(whole, slice(len(whole) // 2 - reach, len(whole) // 2 + reach + 1))).max()
        norms = np.sqrt((g[:, [i, j]] ** 2).sum(axis=(0, 2)))
        assert left <= found.beyond[i, j] <= negligible * norms.prod()


def test_the_slowest_poles_are_taken_in_strides(monkeypatch):
    """Of which no impulse response is run; it has as many samples as the products have times."""
    monkeypatch.setattr(StateSpaceSystem, "impulse", None)
    pole, gains = MAX_POLE_RADIUS, np.array([1.0, -2.0, 0.5])
    matrix = dp.FilterMatrix.from_state_space([[pole]], gains[None], [[1.0]], np.zeros((1, 3)))
    near = column_products(matrix, COUPLES, 1e-14).near
    for i, j in COUPLES:
        times = np.abs(np.arange(len(near[i, j])) - len(near[i, j]) // 2)
        wanted = gains[i] * gains[j] * np.exp(times * math.log(pole)) / (1 - pole**2)
        np.testing.assert_allclose(near[i, j], wanted, rtol=1e-10, atol=1e-30)
    found = dp.Privacy(1, 0.05, adjacency="each_input").sensitivity(matrix)
    assert found == pytest.approx(3.5 / math.sqrt(1 - pole**2), rel=1e-10)


def test_a_matrix_without_states_has_products_at_one_time():
    matrix = dp.FilterMatrix.from_state_space(np.zeros((0, 0)), np.zeros((0, 2)), np.zeros((1, 0)), [[2.0, -3.0]])
    assert column_products(matrix, [(0, 1)], 1e-14).near[0, 1].tolist() == [0, -6, 0]
