import numpy as np

import dpfast as dp
from dpfast.reports.sample_paths import SamplePaths, draw_paths, simulate_paths

CHAIN = dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], [-0.5, 0.5])
TARGET, PRIVACY = dp.Filter([1], [1, -0.8]), dp.Privacy(1, 1e-3)


def test_estimates_are_aligned_with_what_they_estimate():
    weak = dp.Privacy(500, 0.9)
    late = dp.lmmse(TARGET, weak, CHAIN, lag=7, prefilter=dp.Filter([1]))
    made = {"LZF": dp.zero_forcing(TARGET, weak), "LMMSE": late}
    found = simulate_paths(made, CHAIN, seed=1, before=100, n_samples=50, after=20)
    u = CHAIN.sample(1, 170, seed=1)[0]
    np.testing.assert_array_equal(found.truth, TARGET.filter(u).y[100:150])
    for estimate in found.estimates.values():
        np.testing.assert_allclose(estimate, found.truth, atol=0.3)


def test_a_panel_for_each_mechanism_in_the_colour_of_its_family():
    t = np.linspace(-1, 1, 20)
    drawn = draw_paths(SamplePaths(t, {"LZF": t + 0.5, "LMMSE, lag 5": t - 0.5, "mine": t}), "title")
    assert len(drawn.axes) == 3
    assert [x.get_title(loc="left") for x in drawn.axes] == ["LZF", "LMMSE, lag 5", "mine"]
    assert [x.lines[1].get_color() for x in drawn.axes[:2]] == ["#0072B2", "#D55E00"]
    np.testing.assert_array_equal(drawn.axes[0].lines[1].get_ydata(), t + 0.5)
    low, high = drawn.axes[0].get_ylim()
    assert low < -1.5 < 1.5 < high
    assert not any(x.texts for x in drawn.axes)


def test_an_estimate_that_is_far_off_is_named_and_does_not_flatten_the_others():
    t = np.linspace(-1, 1, 20)
    drawn = draw_paths(SamplePaths(t, {"LZF": t, "DFE": t - 200}), "title")
    assert drawn.axes[0].get_ylim()[0] > -1.2
    assert [[x.get_text() for x in ax.texts] for ax in drawn.axes] == [[], ["leaves the axis: −201 to −199"]]


def test_a_constant_output_has_room():
    drawn = draw_paths(SamplePaths(np.zeros(5), {"LZF": np.zeros(5)}), "title")
    low, high = drawn.axes[0].get_ylim()
    assert low < 0 < high


def test_a_matrix_mechanism_runs_over_its_horizon_and_is_not_shifted():
    """Its estimates are of their own step, however late they are known."""
    matrix = dp.optimal_factorization(dp.running_sum(12), PRIVACY, CHAIN, lag=3)
    found = simulate_paths({"late": matrix}, CHAIN, seed=4, before=0, n_samples=12, after=5)
    u = CHAIN.sample(1, 17, seed=4)[0, :12]
    np.testing.assert_allclose(found.truth, np.cumsum(u), atol=1e-12)
    np.testing.assert_array_equal(found.estimates["late"], matrix.simulate(u, seed=4).estimate)
