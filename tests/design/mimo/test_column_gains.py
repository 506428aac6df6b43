"""Filters as loud as the columns of a target."""

import numpy as np
import pytest

import dpfast as dp
from dpfast.design.mimo.column_gains import column_gain

OMEGA = np.linspace(0, np.pi, 500)
SLOW, QUICK = dp.Filter([0.05], [1, -0.95]), dp.Filter([0.2], [1, -0.8])


@pytest.mark.parametrize(
    "column",
    [
        [SLOW, QUICK],
        [SLOW, dp.Filter([0, 0, 1.0, 0.3])],
        [dp.Filter([1, 0.4], [1, 0.2, 0.5]), dp.Filter([1], [1, 0.2, 0.5]), 0, QUICK],
        [dp.Filter.from_zpk([], [0.9999], 0.01), QUICK],
        [dp.Filter([1, -1]), dp.Filter([1, 1])],
        [dp.Filter([1, -2]), QUICK],  # a zero outside
    ],
)
def test_the_power_is_that_of_the_column(column):
    target = dp.FilterMatrix([[x] for x in column])
    found = column_gain(target, 0)
    wanted = (np.abs(target.response(OMEGA)) ** 2).sum(axis=(1, 2))
    np.testing.assert_allclose(np.abs(found.response(OMEGA)) ** 2, wanted, rtol=1e-7)
    assert found.inverse().h2_norm() > 0  # it is minimum phase


def test_multiples_of_one_filter_may_vanish():
    edge = dp.Filter([1, -1])
    target = dp.FilterMatrix([[edge, 0], [-2 * edge, SLOW], [0.5 * edge * dp.Filter([0, 1]), 0]])
    power = np.abs(column_gain(target, 0).response(OMEGA)) ** 2
    np.testing.assert_allclose(power, 5.25 * np.abs(edge.response(OMEGA)) ** 2, atol=1e-12)
    assert column_gain(target, 1) == SLOW


def test_poles_that_entries_share_count_once():
    target = dp.FilterMatrix([[dp.Filter([1, 0.4], [1, 0.2, 0.5])], [dp.Filter([1], [1, 0.2, 0.5])], [QUICK]])
    assert column_gain(target, 0).order == 3


@pytest.mark.parametrize("other", [dp.Filter([1, -1]) * QUICK, dp.Filter([1, 0, -1])])
def test_other_columns_that_vanish_are_refused_by_name(other):
    edge = dp.Filter([1, -1])
    target = dp.FilterMatrix([[1, edge], [1, other]])
    with pytest.raises(dp.DesignError, match="target must not vanish, nor nearly, for input 1 at a frequency"):
        column_gain(target, 1)
