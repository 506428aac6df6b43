import numpy as np

import dpfast as dp
from dpfast.report.paths import SamplePaths, draw_paths, sample_paths
from dpfast.report.styles import FAMILIES

TARGET, PRIVACY = dp.Filter([0.5], [1, -0.5]), dp.Privacy(1000, 0.5)
COIN = dp.IndependentLevels([0, 2], [0.75, 0.25])


def test_estimates_are_shown_at_the_time_of_what_they_estimate():
    mechanisms = {x.name: x for x in (dp.zero_forcing(TARGET, PRIVACY), dp.lmmse(TARGET, PRIVACY, COIN, lag=3))}
    found = sample_paths(mechanisms, COIN, seed=1, before=50, n_samples=200, after=10)
    u = COIN.sample(1, 260, seed=1)[0]
    assert np.array_equal(found.truth, TARGET.filter(u).y[50:250])
    for estimate in found.estimates.values():
        # with hardly any noise the estimate is the output itself, and that a sample earlier is far from it
        assert np.abs(estimate - found.truth).max() < 0.2
        assert np.abs(estimate[1:] - found.truth[:-1]).max() > 0.5


def test_panels_hold_the_truth_and_not_what_is_lost():
    t = np.arange(10.0)
    figure = draw_paths(SamplePaths(t, {"LZF": t + 1, "DFE sign": 1000 * t, "LMMSE": t}), "title")
    assert [x.get_title(loc="left") for x in figure.axes] == ["LZF", "DFE sign", "LMMSE"]
    low, high = figure.axes[0].get_ylim()
    assert low <= 0 < 10 <= high < 20
    colours = [x.lines[1].get_color() for x in figure.axes]
    assert colours == [FAMILIES[x].style.colour for x in ("zero_forcing", "decision_feedback", "lmmse")]
