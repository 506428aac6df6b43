"""A smoother is asked for by its name, or by None, wherever a lag is taken."""

import numpy as np
import pytest

import dpfast as dp
from dpfast.mechanisms.lags import check_lag
from dpfast.mechanisms.serialization.mechanism_file import to_text
from dpfast.simulation.sweep.grid import ParameterGrid

TARGET, PRIVACY = dp.Filter([1], [1, -0.8]), dp.Privacy(1, 1e-3)
COIN = dp.IndependentLevels([-0.5, 0.5], [0.5, 0.5])
SUM = dp.running_sum(8)
DESIGNS = {
    "lmmse": lambda lag: dp.lmmse(TARGET, PRIVACY, COIN, lag=lag, tolerance=0.1),
    "lmmse behind a prefilter": lambda lag: dp.lmmse(TARGET, PRIVACY, COIN, lag=lag, prefilter=TARGET),
    "optimal": lambda lag: dp.optimal(TARGET, PRIVACY, COIN, lag=lag, tolerance=0.1),
    "robust": lambda lag: dp.robust(TARGET, PRIVACY, mean_square=1.0, lag=lag, tolerance=0.1),
    "optimal_factorization": lambda lag: dp.optimal_factorization(SUM, PRIVACY, COIN, lag=lag),
    "with_receiver": lambda lag: dp.square_root(SUM, PRIVACY).with_receiver(COIN, lag=lag),
}


SLOW = {"robust"}  # for the long session


@pytest.mark.parametrize(
    "design", [pytest.param(x, id=name, marks=[pytest.mark.long] * (name in SLOW)) for name, x in DESIGNS.items()]
)
def test_the_word_and_none_make_the_same_mechanism(design):
    by_name, by_none = design("smoother"), design(None)
    assert by_name.lag is None
    assert by_name.name == by_none.name
    assert "smoother" in by_name.name
    assert dict(by_name.options)["lag"] is None
    assert to_text(by_name) == to_text(by_none)


@pytest.mark.parametrize("lag", ["smoother", None])
def test_decision_feedback_and_cone_programs_say_why_they_are_no_smoothers(lag):
    with pytest.raises(dp.DesignError, match=r"lag must be a number of samples, got .*: decisions are fed back"):
        dp.decision_feedback(TARGET, PRIVACY, COIN, lag=lag)
    with pytest.raises(dp.DesignError, match=r"optimal\(lag='smoother'\) is the smoother"):
        dp.optimal_program(TARGET, PRIVACY, COIN, lag=lag)


@pytest.mark.parametrize("wrong", ["smoothed", "5", 1.5, -1, True, float("inf"), np.array([1, 2])])
def test_other_lags_are_refused_with_what_there_is(wrong):
    with pytest.raises(ValueError, match=r"lag must be an integer, at least 0 .*; or 'smoother', or None"):
        check_lag(wrong)


def test_adapting_keeps_the_smoother():
    mechanism = dp.lmmse(TARGET, PRIVACY, dp.ARMA([2.0]), lag="smoother")
    v = mechanism.simulate(np.zeros(3000), seed=1).privatized
    assert dp.adapt(mechanism, v).mechanism.lag is None


def test_the_smoother_of_a_grid_has_its_name_as_a_label_and_is_where_it_is_asked_for():
    definition = {"mechanism": "lmmse", "target": TARGET, "model": COIN, "epsilon": 1, "delta": 1e-3}
    assert ParameterGrid(definition | {"lag": [0, None]}).axes["lag"] == (0, "smoother")
    assert ParameterGrid(definition | {"lag": [0, "smoother"]}).axes["lag"] == (0, "smoother")
    with pytest.raises(ValueError, match="lag must have every value once"):
        ParameterGrid(definition | {"lag": [None, "smoother"]})
