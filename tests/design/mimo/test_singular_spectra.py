"""Joint optima of streams whose spectrum is singular: alike, of one noise, silent at a frequency, or constant."""

import math

import numpy as np
import pytest

import dpfast as dp

SLOW, QUICK = dp.Filter([0.05], [1, -0.95]), dp.Filter([0.2], [1, -0.8])
TARGET = dp.FilterMatrix([[SLOW, SLOW], [QUICK, -1 * QUICK]])
ONE = np.ones((2, 2))
MODELS = {
    "alike": dp.VectorARMA([0.5 * np.eye(2)], innovation_covariance=ONE),
    "of one noise": dp.VectorARMA([np.diag([0.5, 0.2])], innovation_covariance=ONE),
    "silent at zero": dp.VectorARMA(np.zeros((0, 2, 2)), [-np.eye(2)], innovation_covariance=ONE + np.eye(2)),
    "both": dp.VectorARMA([0.5 * np.eye(2)], [np.diag([1.0, -1.0])], innovation_covariance=ONE),
    "constant": dp.VectorARMA([0.5 * np.eye(2)], innovation_covariance=np.diag([1.0, 0.0])),
}
both_forms = pytest.mark.parametrize("form", ["diagonal", "general"])


def privacy(adjacency, **more):
    return dp.Privacy(math.log(3), 0.05, adjacency=adjacency, **more)


@both_forms
@pytest.mark.parametrize("name", MODELS)
def test_they_are_certified_and_realised(name, form):
    """A smoothed norm bends where spectra do not: no inverse of a spectrum is taken."""
    made = dp.optimal(TARGET, privacy("one_input"), MODELS[name], prefilter=form, tolerance=2e-2)
    assert 0 < made.ideal_mse * (1 - 1e-4) <= made.lower_bound_mse <= made.ideal_mse
    assert made.ideal_mse <= made.predicted_mse <= made.ideal_mse * 1.02


@pytest.mark.parametrize(
    ("form", "adjacency", "change"),
    [
        ("diagonal", "one_input", math.sqrt(0.5)),
        ("diagonal", "each_input_same_time", 1.0),
        ("general", "one_input", 0.5),
        ("general", "each_input_same_time", 1.0),
    ],
)
def test_two_streams_that_are_alike_are_one_stream_seen_better(form, adjacency, change):
    """Two noises have a mean of half the variance, and a sum that a person is in once hides him with a half of it."""
    one = dp.ARMA([1], [1, -0.5])
    scalar = dp.optimal(2 * SLOW, dp.Privacy(math.log(3), 0.05, max_change=change), one, lag=1, tolerance=5e-2)
    target = dp.FilterMatrix([[SLOW, SLOW]])
    made = dp.optimal(target, privacy(adjacency), MODELS["alike"], lag=1, prefilter=form, tolerance=5e-2)
    assert made.ideal_mse == pytest.approx(scalar.ideal_mse, rel=1e-6 if form == "diagonal" else 2e-5)
    assert scalar.ideal_mse * (1 - 1e-4) <= made.lower_bound_mse <= scalar.ideal_mse * (1 + 1e-7)


@pytest.mark.parametrize(
    ("model", "lag"),
    [
        (dp.VectorARMA([np.diag([0.5, 0.2, 0.8])], innovation_covariance=[[1, 0, 1], [0, 1, 1], [1, 1, 2]]), 5),
        (dp.VectorARMA([np.diag([0.5, 0.2, 0.8])], innovation_covariance=np.ones((3, 3))), 2),
    ],
)
@pytest.mark.parametrize("adjacency", ["one_input", "each_input"])
def test_streams_of_fewer_noises_are_certified_to_a_millionth(model, lag, adjacency):
    """What is left of the slope counts there by what it is between nodes, which smoothing less does not mend."""
    target = dp.FilterMatrix([[SLOW, SLOW, SLOW], [QUICK, -1 * QUICK, 0]])
    made = dp.optimal(target, privacy(adjacency), model, lag=lag, tolerance=0.2)
    assert made.ideal_mse * (1 - 1e-6) <= made.lower_bound_mse <= made.ideal_mse


def test_a_constant_stream_beside_a_loud_one_is_left_out():
    """What is divided by its variance, 0, does not overflow."""
    model = dp.VectorARMA([0.5 * np.eye(2)], innovation_covariance=np.diag([1e4, 0.0]))
    made = dp.optimal(TARGET, privacy("one_input"), model, tolerance=5e-2)
    assert made.prefilter.shape == (1, 2)
    assert made.lower_bound_mse <= made.ideal_mse <= made.predicted_mse
