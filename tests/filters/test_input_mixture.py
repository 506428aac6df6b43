"""Sums of inputs that a system sees: its responses are those of the filters times the weights, or there are none."""

import numpy as np
import pytest

import dpfast as dp
from dpfast.filters.input_mixture import find_mixture

SLOW, QUICK = dp.Filter([0.05], [1, -0.95]), dp.Filter([0.2], [1, -0.8])
LATE = dp.Filter([0, 1, 0.5])


@pytest.mark.parametrize(
    ("rows", "unit"),
    [
        ([[SLOW, SLOW, SLOW]], 1),
        ([[-1 * LATE, LATE, 0], [0, -1 * LATE, LATE]], 1),
        ([[SLOW, SLOW, SLOW], [QUICK, -1 * QUICK, 0]], 2),  # the first two and half of them
        ([[SLOW, 0.5 * SLOW, -1 / 3 * SLOW]], 6),
        ([[SLOW, SLOW, 0, 0], [0, 0, QUICK, QUICK]], 1),
        ([[SLOW, LATE], [QUICK, SLOW]], 1),  # as many as there are inputs
    ],
)
def test_filters_and_weights_are_the_system(rows, unit):
    system = dp.FilterMatrix(rows)
    found = find_mixture(system)
    filters = system.impulse(200)[:, found.columns]
    np.testing.assert_allclose(
        np.einsum("akn,ki->ain", filters, found.weights / found.unit), system.impulse(200), atol=1e-12
    )
    assert found.weights[:, found.columns].tolist() == (found.unit * np.eye(len(rows), dtype=int)).tolist()
    assert found.unit in {1, unit}


@pytest.mark.parametrize(
    "rows",
    [
        [[SLOW, QUICK]],  # different filters
        [[SLOW, SLOW], [QUICK, QUICK]],  # two outputs of one sum
        [[SLOW, np.pi * SLOW]],  # a weight that is no fraction
        [[101 * SLOW, 73 * SLOW]],  # one that is no simple fraction
        [[SLOW, dp.Filter([0.05], [1, -0.951])]],
    ],
)
def test_where_there_are_no_such_sums_there_are_none(rows):
    assert find_mixture(dp.FilterMatrix(rows)) is None


def test_states_that_entries_share_change_nothing():
    shared = dp.FilterMatrix.from_state_space([[0.9, 0], [0, 0.5]], [[1, 1, -1], [2, 2, -2]], [[1, 1]])
    found = find_mixture(shared)
    assert (len(found.columns), found.unit, np.abs(found.weights).tolist()) == (1, 1, [[1, 1, 1]])
