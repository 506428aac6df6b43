"""Names of outputs: the sum that they are, where one filter stands before all of it."""

import pytest

import dpfast as dp
from dpfast.filters.output_names import name_outputs

SLOW, QUICK, MEAN = dp.Filter([0.05], [1, -0.95]), dp.Filter([0.2], [1, -0.8]), dp.Filter([0.5, 0.5])


@pytest.mark.parametrize(
    ("rows", "names"),
    [
        ([[1, 1]], ("A + B",)),
        ([[SLOW, -1 * SLOW], [0, QUICK]], ("A - B", "B")),
        ([[-1 * SLOW, SLOW], [-2 * MEAN, 0]], ("-A + B", "-A")),
        ([[SLOW, 0.5 * SLOW], [SLOW, -3 * SLOW]], ("A + 0.5 B", "A - 3 B")),
        ([[0, 2 * SLOW], [SLOW, 2 * SLOW]], ("B", "A + 2 B")),
        ([[dp.Filter([0, 1, -1]), dp.Filter([0, 1, -1])]], ("A + B",)),
        ([[SLOW, QUICK], [dp.Filter([1, 0.5]), dp.Filter([1, 0.6])]], ("output 1", "output 2")),  # of other filters
        ([[SLOW, SLOW], [QUICK, QUICK], [1, 0]], ("output 1", "output 2", "A")),  # one name for two
    ],
)
def test_an_output_is_named_after_the_inputs_that_it_is_of(rows, names):
    assert name_outputs(dp.FilterMatrix(rows), "AB") == names


def test_states_that_entries_share_change_no_name():
    shared = dp.FilterMatrix.from_state_space([[0.9]], [[1, -1]], [[1], [2]], [[0, 0], [0, 1]])
    assert name_outputs(shared, ["north", "south"]) == ("north - south", "output 2")


def test_of_many_inputs_there_is_the_total_alone():
    many = [f"sensor {i}" for i in range(6)]
    target = dp.FilterMatrix([[QUICK] * 6, [QUICK] * 5 + [0], [0, 0, QUICK, 0, 0, 0]])
    assert name_outputs(target, many) == ("total", "output 2", "sensor 2")
