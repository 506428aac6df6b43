"""Prefilters of few states near to values at the nodes of a circle."""

import numpy as np
import pytest

import dpfast as dp
from dpfast.design.mimo.mixing_smoother import spread_nodes
from dpfast.design.mimo.prefilter_states import PrefilterStates, fewest_states
from dpfast.filters.state_space import frequency_response
from dpfast.filters.warped_circle import make_circle

MATRIX = dp.FilterMatrix([[dp.Filter([1], [1, -0.7]), dp.Filter([0.3, 0.5])], [0.2, dp.Filter([1], [1, 0.4])]])


def test_states_are_not_made_of_images_of_what_is_told_at_few_nodes():
    """Three states are near to a filter of three that is put on lines between 33 nodes, and no more are told."""
    few, many = (make_circle(0.2, x) for x in (64, 2048))
    g = spread_nodes(MATRIX.response(few.grid.omega), 2048)
    told, lined = (PrefilterStates(many, g, "general", np.ones(2), x) for x in (32, 1024))
    found = frequency_response(*told.reduce(3), many.grid.omega)
    scale = np.vdot(found, g) / np.vdot(found, found)  # which is left open
    assert np.linalg.norm(scale * found - g) < 0.01 * np.linalg.norm(g)
    sizes, more = (x._parts[0].sizes for x in (told, lined))
    np.testing.assert_allclose(sizes[:3], more[:3], rtol=0.01)
    assert (sizes[5:10] < 1e-5).all()
    assert (more[5:10] > 1e-3).all()


def test_a_smoother_whose_gains_have_kinks_is_within_the_tolerance():
    """Of three streams of one noise; of states that follow lines between nodes 48 erred by twice the tolerance."""
    rng = np.random.default_rng(1045)
    rng.integers(1, 5)
    poles, own = rng.uniform(0.5, 0.95, (3, 3)), rng.uniform(0.3, 0.95, 3)
    target = dp.FilterMatrix([[dp.Filter([1 - x], [1, -x]) for x in row] for row in poles])
    size = np.sqrt(1 - own**2)
    model = dp.VectorARMA([np.diag(own)], innovation_covariance=np.outer(size, size))
    made = dp.optimal(target, dp.Privacy(86, 0.05, adjacency="each_input"), model, lag=None, prefilter="general")
    assert made.prefilter.n_states < 48
    assert made.predicted_mse <= made.ideal_mse * (1 + 1.1e-3)


class Kinds:
    """Prefilters of any number of states, which are numbers."""

    most = 1000

    def reduce(self, order):
        return order


@pytest.mark.parametrize(
    ("excesses", "within", "expected"),
    [
        ([9, 8, 7, 1, 2], 1, (1, 3)),  # the first that is within
        ([9, *[8.9] * 15, 0.5], 1, (0.5, 16)),  # which may be sixteen states later
        ([9, *[8.9] * 16, 0.5], 1, (8.9, 1)),  # but not seventeen
        ([*[9 * 0.9**k for k in range(40)], *[0.12] * 35, 0], 1e-3, (0, 75)),  # the more the more there were before
        ([*[9 * 0.9**k for k in range(40)], *[0.145] * 35, 0], 1e-3, (0.145, 40)),
    ],
)
def test_more_states_are_tried_as_long_as_they_gain(excesses, within, expected):
    assert fewest_states([Kinds()], lambda order: ([*excesses, *[99] * 1000])[order], within) == expected
