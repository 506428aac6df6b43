import numpy as np
import pytest

import dpfast as dp
from dpfast.reports.mechanism_styles import FAMILIES
from dpfast.reports.study_dot_plot import draw_study
from dpfast.simulation.study import Result, Study


def study(*predicted, scale=1.0):
    names = ("LZF", "LMMSE lag 2", "DFE soft")
    draws = np.random.default_rng(1).gamma(50, 1 / 50, (3, 40))
    parts = zip(names, predicted, draws, (1.0, 1.0, scale), strict=True)
    return Study(tuple(Result(name, x, mse * s, 0.9) for name, x, mse, s in parts), 10, 0, 1, 0.9)


def test_dots_are_errors_on_their_intervals_beside_what_was_predicted():
    found = study(1.01, 0.99, None)
    figure = draw_study(found)
    left, right = figure.axes
    assert [x.get_text() for x in left.get_yticklabels()] == [x.name for x in found]
    for y, (x, family) in enumerate(zip(found, ("zero_forcing", "lmmse", "decision_feedback"), strict=True)):
        here = [each for each in left.lines if len(each.get_ydata()) and set(each.get_ydata()) == {y}]
        assert [list(each.get_xdata()) for each in here[:2]] == [list(x.interval), [x.rmse]]
        predicted = [np.nan if x.predicted_rmse is None else x.predicted_rmse]
        assert np.array_equal(here[2].get_xdata(), predicted, equal_nan=True)
        assert {each.get_color() for each in here} == {FAMILIES[family].colour}
    dots = [each.get_xdata()[0] for each in right.lines if each.get_marker() in {"s", "^", "D"}]
    assert dots == pytest.approx([100 * (x.rmse / x.predicted_rmse - 1) for x in list(found)[:2]])
    assert [x.get_text() for x in figure.legends[0].get_texts()] == ["predicted", "90 % interval"]


def test_without_predictions_there_is_one_panel():
    figure = draw_study(study(None, None, None))
    assert len(figure.axes) == 1
    assert [x.get_text() for x in figure.legends[0].get_texts()] == ["90 % interval"]


@pytest.mark.parametrize(("scale", "kind"), [(1.0, "linear"), (1e4, "log")])
def test_errors_far_apart_are_on_a_logarithmic_axis_that_holds_them(scale, kind):
    found = study(1.0, 1.0, None, scale=scale)
    ax = draw_study(found).axes[0]
    assert ax.get_xscale() == kind
    low, high = ax.get_xlim()
    assert all(low < y < high for x in found for y in x.interval)


def test_a_study_of_one_is_drawn():
    chain = dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[-0.5, 0.5])
    mechanism = dp.zero_forcing(dp.Filter([1], [1, -0.9]), dp.Privacy(1, 1e-3))
    study = dp.monte_carlo(mechanism, chain, n_streams=16, n_samples=100, seed=1)
    drawn = draw_study(study)
    drawn.draw_without_rendering()
    low, high = drawn.axes[0].get_xlim()
    assert all(low < y < high for y in study["LZF"].interval)
