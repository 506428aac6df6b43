"""The mechanism of several streams: parts that fit, errors, paths."""

import numpy as np
import pytest

import dpfast as dp

PRIVACY = dp.Privacy(1, 1e-6, adjacency="one_input")
SLOW = dp.Filter([0.05], [1, -0.95])
IDENTITY = dp.FilterMatrix.diagonal([1, 1])


def make(target, prefilter, receiver):
    return dp.ChannelsMechanism("mine", target, PRIVACY, prefilter, receiver)


def test_parts_must_fit():
    with pytest.raises(ValueError, match=r"must be q × 2 and 1 × q for a target of shape \(1, 2\), got \(1, 1\) and"):
        make(dp.total(2), dp.total(1), dp.total(2))
    with pytest.raises(dp.DesignError, match="receiver must give the target behind the prefilter"):
        make(dp.total(2), IDENTITY, dp.FilterMatrix([[1, 1.001]]))


def test_errors_of_a_mechanism_of_ones_own():
    """A rotation in front, undone behind it: noise of one deviation on both channels, by hand."""
    turn = np.array([[0.6, -0.8], [0.8, 0.6]])
    back = dp.FilterMatrix([[SLOW * turn[j, i] for j in range(2)] for i in range(2)])
    made = make(dp.FilterMatrix.diagonal([SLOW, SLOW]), dp.FilterMatrix(turn), back)
    assert made.noise_std == pytest.approx(PRIVACY.noise_multiplier)
    np.testing.assert_allclose(made.output_mse, np.full(2, made.noise_std**2 * SLOW.h2_norm() ** 2), rtol=1e-10)
    assert made.predicted_rmse == pytest.approx(made.predicted_mse**0.5)
    assert (made.ideal_mse, made.ideal_rmse, made.lower_bound_mse, made.lag) == (None, None, None, 0)
    assert "lower bound" not in made.summary()


def test_paths_are_fixed_by_the_seed_and_have_channels_before_time():
    made = dp.zero_forcing(dp.total(2) * SLOW, PRIVACY)
    u = np.random.default_rng(0).standard_normal((5, 2, 30))
    one, again, other = (made.simulate(u, seed=x) for x in (1, 1, 2))
    assert one.privatized.shape == (5, 2, 30)
    assert one.estimate.shape == (5, 1, 30)
    assert np.array_equal(one.estimate, again.estimate)
    assert not np.array_equal(one.estimate, other.estimate)
    noise = one.privatized - made.prefilter.apply(u)
    assert noise.std() == pytest.approx(made.noise_std, rel=0.3)
    np.testing.assert_allclose(made.receiver.apply(one.privatized), one.estimate)
    with pytest.raises(
        ValueError, match=r"u must have the shape \(\.\.\., 2, time\), 2 channels, got \(30, 2\): transp"
    ):
        made.simulate(u[0].T, seed=1)
    with pytest.raises(ValueError, match="seed must be"):
        made.simulate(u, seed=-1)


@pytest.mark.parametrize(
    ("adjacency", "words"),
    [
        ("one_input", "one event of a person is at one of the 2 inputs; 1 event at most"),
        ("each_input_same_time", "one event of a person may be at all 2 inputs, at the same time; 1 event"),
        ("each_input", "one event of a person may be at all 2 inputs, at a time of its own at each; 1 event"),
    ],
)
def test_a_summary_says_what_one_person_may_change(adjacency, words):
    text = dp.input_perturbation(dp.total(2), dp.Privacy(1, 1e-6, adjacency=adjacency)).summary()
    assert words in text
    assert "without distortion, for any prefilter" in text


def test_what_is_of_one_stream_names_what_it_got_and_what_to_do():
    made, words = dp.input_perturbation(dp.total(2), PRIVACY), "mechanism must be of one stream, got the Channels"
    with pytest.raises(ValueError, match=words + ".* of 2 inputs: .* design it anew"):
        dp.adapt(made, np.zeros((2, 50)))
    with pytest.raises(ValueError, match=words + ".* of 2 inputs: .* lower_bound_mse"):
        dp.bounds_of(made)


@pytest.mark.parametrize("adjacency", ["one_input", "each_input_same_time", "each_input"])
def test_under_another_privacy_the_filters_stay_and_the_noise_is_what_it_takes(adjacency):
    turn = np.array([[0.6, -0.8], [0.8, 0.6]])
    back = dp.FilterMatrix([[SLOW * turn[j, i] for j in range(2)] for i in range(2)])
    made = make(dp.FilterMatrix.diagonal([SLOW, SLOW]), dp.FilterMatrix(turn), back)
    other = dp.Privacy(2, 1e-5, max_events=3, adjacency=adjacency)
    under = made.under(other)
    reach = {"one_input": 1.0, "each_input_same_time": np.sqrt(2), "each_input": np.sqrt(2)}[adjacency]
    assert (under.prefilter, under.receiver, under.lower_bound_mse) == (made.prefilter, made.receiver, None)
    assert under.noise_std == pytest.approx(3 * reach * other.noise_multiplier, rel=1e-9)
    assert made.under(PRIVACY) is made


def test_blocks_under_more_events_of_a_person_have_the_noise_of_a_design_for_them():
    models, target = [dp.ARMA([1], [1, -0.5])] * 2, dp.total(2) * SLOW
    shared = {"length": [2, 3], "shares": [0.7, 0.3]}
    made = dp.block_sums(target, dp.Privacy(1, adjacency="each_input"), models, **shared)
    two = dp.Privacy(1, max_events=2, min_separation=4, adjacency="each_input")
    under = made.under(two)
    assert under.privacy == two
    assert under.lengths == made.lengths
    np.testing.assert_allclose(under.noise_stds, dp.block_sums(target, two, models, **shared).noise_stds, rtol=1e-12)
    assert made.under(made.privacy) is made
    with pytest.raises(ValueError, match=r"privacy must be that of the design, .*, but for max_events"):
        made.under(dp.Privacy(2, adjacency="each_input"))
