"""Joint optima behind noise that hides all streams: as epsilon falls, they become the publication of a constant."""

import math

import numpy as np
import pytest

import dpfast as dp
from dpfast.design.mimo.limited_changes import limit_changes
from dpfast.filters.fft_grid import fft_angles

SLOW, QUICK = dp.Filter([0.05], [1, -0.95]), dp.Filter([0.2], [1, -0.8])
ROWS = [[SLOW, QUICK, SLOW], [QUICK, -1 * QUICK, SLOW], [SLOW, SLOW, QUICK], [QUICK, QUICK, QUICK]]
POLES = np.array([0.6, 0.4, 0.8])
FEW, MANY = dp.FilterMatrix(ROWS[:1]), dp.FilterMatrix(ROWS)
GAPS = {"one_input": 1e-4, "each_input_same_time": 1e-4, "each_input": 2.5e-3}


def streams(correlation):
    alike = np.full((3, 3), correlation) + (1 - correlation) * np.eye(3)
    sizes = np.sqrt(1 - POLES**2)
    return dp.VectorARMA([np.diag(POLES)], innovation_covariance=alike * np.outer(sizes, sizes))


def constant_mse(target, model):
    """Return what publishing a constant errs: the variance of the outputs."""
    omega = fft_angles(2**12)
    power = np.einsum("wpi,wij,wpj->w", target.response(omega), model.psd(omega), target.response(omega).conj()).real
    return float(np.trapezoid(power, omega) / math.pi)


def check(made, constant, gap):
    """As warnings are errors here, the design has given none."""
    assert made.ideal_mse * (1 - gap) <= made.lower_bound_mse <= made.ideal_mse * (1 + 1e-12)
    assert made.ideal_mse <= made.predicted_mse * (1 + 1e-12) <= constant * (1 + 1e-9)
    assert made.predicted_mse <= 1.001 * made.ideal_mse
    return 1 - made.ideal_mse / constant


@pytest.mark.parametrize("form", ["diagonal", "general"])
@pytest.mark.parametrize("adjacency", GAPS)
@pytest.mark.parametrize(
    ("target", "correlation"),
    [(FEW, 0.9), *(pytest.param(MANY, x, marks=pytest.mark.long) for x in (0.0, 1.0))],
)
def test_designs_become_a_constant_as_epsilon_falls(target, correlation, adjacency, form):
    """All streams were taken as hopeless behind such noise, and K = 0 has no factor. They are so beside others."""
    model = streams(correlation)
    constant = constant_mse(target, model)
    told = [
        check(
            dp.optimal(target, dp.Privacy(eps, 1e-9, adjacency=adjacency), model, lag=3, prefilter=form),
            constant,
            GAPS[adjacency],
        )
        for eps in (1e-2, 1e-4, 1e-8)
    ]
    assert 1e-6 < told[0] < 1e-2
    assert told[0] > told[1] > told[2]
    assert abs(told[2]) < 1e-9


@pytest.mark.parametrize("form", ["diagonal", "general"])
@pytest.mark.parametrize("adjacency", GAPS)
@pytest.mark.parametrize("lag", [0, 40, pytest.param(None, marks=pytest.mark.long)])
def test_all_lags_have_designs_behind_noise_that_hides_all(lag, adjacency, form):
    made = dp.optimal(FEW, dp.Privacy(1e-6, 1e-9, adjacency=adjacency), streams(0.9), lag=lag, prefilter=form)
    assert abs(check(made, constant_mse(FEW, streams(0.9)), GAPS[adjacency])) < 1e-9


@pytest.mark.parametrize("lag", [0, 40])
def test_a_search_starts_where_noise_pays(lag):
    """From K = F, which noise forbids, searches for three outputs ended at gaps of up to 8e-3."""
    target, model = dp.FilterMatrix(ROWS[:3]), streams(0.9)
    made = dp.optimal(target, dp.Privacy(1e-2, 1e-9, adjacency="one_input"), model, lag=lag, prefilter="general")
    assert made.ideal_mse * (1 - 5e-5) <= made.lower_bound_mse <= made.ideal_mse


@pytest.mark.parametrize("form", ["diagonal", "general"])
def test_a_stream_that_tells_nothing_does_not_make_others_hopeless(form):
    """The second one is moving, hardly changed by an event, and of no output."""
    target, model = dp.FilterMatrix([[SLOW, 0, QUICK]]), streams(0.0)
    demand = dp.Privacy(1e-2, 1e-9, max_change=(1e6, 1e-6, 2e6), adjacency="one_input")
    assert abs(check(dp.optimal(target, demand, model, prefilter=form), constant_mse(target, model), 1e-4)) < 1e-9


def test_a_stream_is_hopeless_beside_one_that_is_hidden_less():
    """Also behind noise that hides both: more than a thousand times as far apart, a prefilter is lost in rounding."""
    for loud in (1.0, 1e9):
        demand = dp.Privacy(1e-2, 1e-9, max_change=(loud, 1e12 * loud, loud), adjacency="one_input")
        most = limit_changes(MANY, demand, streams(0.9), mixed=True).most / loud
        assert (most[[0, 2]] > 1).all()
        assert most[1] < 1e5
