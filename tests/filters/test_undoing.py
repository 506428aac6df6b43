"""What undoes a prefilter, against zeros by hand and outputs."""

import numpy as np
import pytest

import dpfast as dp
from dpfast._support.errors import UnstableFilterError
from dpfast.filters.undoing import can_undo, can_undo_matrix, undo_filter

SLOW = dp.Filter([0.1], [1, -0.9])
DELAY = dp.Filter([0, 1])


@pytest.mark.parametrize("delay", [0, 1, 3])
def test_both_in_a_row_are_the_target(delay):
    late = dp.Filter([0] * delay + [1])
    target, prefilter = dp.Filter([1, 0.3], [1, -0.8]) * late * DELAY, dp.Filter([2, 1], [1, -0.5]) * late
    undone = undo_filter(target, prefilter)
    np.testing.assert_allclose((undone * prefilter).impulse(50), target.impulse(50), atol=1e-14)
    assert can_undo(target, prefilter)


@pytest.mark.parametrize("prefilter", [DELAY, dp.Filter([1, 2]), dp.Filter([1, -1]), dp.Filter([0, 1, 2])])
def test_longer_delays_and_zeros_that_are_not_inside_cannot_be_undone(prefilter):
    assert not can_undo(SLOW, prefilter)
    with pytest.raises(UnstableFilterError):
        undo_filter(SLOW, prefilter)
    assert undo_filter(dp.Filter([0.0]), dp.Filter([2.0])).b.tolist() == [0.0]


ONES = np.ones((2, 2), bool)


@pytest.mark.parametrize(
    ("rows", "zero"),
    [
        ([[1, dp.Filter([0, 0.5])], [dp.Filter([0, 0.5]), 1]], 0.5),  # 1 - z⁻²/4
        ([[1, dp.Filter([0, 2])], [dp.Filter([0, 0.4]), 1]], 0.8**0.5),
        ([[1, dp.Filter([0, 2])], [dp.Filter([0, 0.6]), 1]], 1.2**0.5),
        ([[SLOW, 2 * SLOW], [1, 5]], 0),  # the pole is no zero
        ([[SLOW * DELAY, 2 * SLOW], [DELAY, 5]], 0),  # a delay of one input
        ([[SLOW, 2], [SLOW, 2]], np.inf),
        ([[SLOW, 2], [SLOW, 2 * DELAY]], np.inf),
    ],
)
def test_a_system_is_undone_where_its_determinant_has_no_zero_outside(rows, zero):
    system = dp.FilterMatrix(rows)
    for whole in (system, dp.FilterMatrix.from_state_space(*system.state_space())):
        assert can_undo_matrix(whole, whole, ONES) == (zero < 1)


def test_channels_of_one_input_are_undone_one_by_one():
    apart = dp.FilterMatrix([[SLOW, 0], [0, SLOW * DELAY]])
    assert can_undo_matrix(apart, apart, ONES)
    assert not can_undo_matrix(dp.FilterMatrix([[SLOW, SLOW]]), apart, ONES[:1])
    shared = dp.FilterMatrix([[1], [DELAY]])  # of one input, each channel for an output of its own
    assert can_undo_matrix(shared, shared, np.eye(2, dtype=bool))
    assert not can_undo_matrix(shared, shared, ONES)


def test_fewer_channels_are_undone_where_they_see_sums():
    assert can_undo_matrix(dp.total(3), dp.total(3) * SLOW, ONES[:1])
    assert not can_undo_matrix(dp.total(2), dp.FilterMatrix([[SLOW, dp.Filter([1], [1, -0.5])]]), ONES[:1])
    assert not can_undo_matrix(dp.total(3), dp.total(3) * dp.Filter([1, 2]), ONES[:1])
