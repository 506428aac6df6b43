"""LMMSE of several streams, against MIMO.md, scalar designs, normal equations and simulation."""

import math

import numpy as np
import pytest

import dpfast as dp

SLOW, QUICK = dp.Filter([0.05], [1, -0.95]), dp.Filter([0.2], [1, -0.8])
TARGET = dp.FilterMatrix([[SLOW, SLOW, SLOW], [QUICK, -1 * QUICK, 0]])


def stream(pole, variance, mean=0.0):
    return dp.ARMA([1], [1, -pole], innovation_std=math.sqrt(variance * (1 - pole * pole)), mean=mean)


MODELS = [stream(0.5, 0.25), stream(0.5, 0.25), stream(0.8, 1)]


def privacy(adjacency, **more):
    return dp.Privacy(math.log(3), 0.05, adjacency=adjacency, **more)


@pytest.fixture(scope="module")
def designed():
    found = {}

    def design(adjacency, lag):
        if (adjacency, lag) not in found:
            found[adjacency, lag] = dp.lmmse(TARGET, privacy(adjacency), MODELS, lag=lag, tolerance=1e-2)
        return found[adjacency, lag]

    return design


@pytest.mark.parametrize(
    ("adjacency", "lag", "optimum", "smoother"),
    [
        ("one_input", 0, 0.082333, 0.054865),
        ("one_input", 10, 0.055063, 0.054865),
        ("each_input", 0, 0.129760, 0.091040),
        ("each_input_same_time", 10, 0.091553, 0.091040),
    ],
)
def test_the_optimum_that_other_programs_found_is_near_and_never_beaten(designed, adjacency, lag, optimum, smoother):
    made = designed(adjacency, lag)
    assert made.lower_bound_mse == pytest.approx(smoother, abs=5e-7)
    assert optimum * (1 - 1e-5) <= made.predicted_mse <= optimum * 1.05
    assert made.lag == lag


def test_one_input_and_output_are_the_scalar_design():
    demand, model = dp.Privacy(1, 1e-6, max_change=2), stream(0.5, 0.25, mean=3.0)
    scalar = dp.lmmse(SLOW, demand, model, lag=3, tolerance=1e-2)
    several = dp.lmmse(dp.FilterMatrix([[SLOW]]), demand, [model], lag=3, tolerance=1e-2)
    assert several.predicted_mse == pytest.approx(scalar.predicted_mse, rel=1e-10)
    assert several.lower_bound_mse == pytest.approx(dp.lmmse(SLOW, demand, model).ideal_mse, rel=1e-10)
    u = np.random.default_rng(0).standard_normal((1, 50)) + 3
    quiet = several.simulate(u, seed=1)
    np.testing.assert_allclose(
        quiet.estimate[0], scalar.receiver.estimate(quiet.privatized / several.prefilter.h2_norm())[0][0], atol=1e-8
    )


@pytest.mark.parametrize("lag", [0, 10])
def test_no_linear_receiver_errs_less_behind_these_prefilters(designed, lag):
    """Normal equations over the last 120 samples of v, channel by channel, as streams are independent."""
    made, n, long = designed("each_input", lag), 120, 4000
    for i in range(2):
        least = 0.0
        for j, model in enumerate(MODELS):
            pole, variance = [(0.5, 0.25), (0.5, 0.25), (0.8, 1.0)][j]
            r = variance * pole ** np.abs(np.arange(-long, long + 1))
            g, f = made.prefilter.impulse(600)[j, j], TARGET.impulse(600)[i, j]
            rv = np.convolve(np.convolve(r, g), g[::-1])
            middle = long + len(g) - 1
            cov = rv[middle + np.subtract.outer(np.arange(n), np.arange(n))] + made.noise_std**2 * np.eye(n)
            cross = np.convolve(np.convolve(r, f), g[::-1])[middle + np.arange(n) - lag]  # E y_{t-lag} v_{t-k}
            ry = np.convolve(np.convolve(r, f), f[::-1])[middle]
            least += ry - cross @ np.linalg.solve(cov, cross)
            assert model.variance == pytest.approx(variance)
        assert made.output_mse[i] == pytest.approx(least, rel=1e-3)


@pytest.mark.parametrize("adjacency", ["one_input", "each_input"])
def test_simulated_errors_are_the_predicted_ones(designed, adjacency):
    made, lag = designed(adjacency, 10 if adjacency == "one_input" else 0), 10 if adjacency == "one_input" else 0
    u = np.stack([x.sample(300, 400, seed=i) for i, x in enumerate(MODELS)], axis=1)
    y = TARGET.apply(u)
    error = made.simulate(u, seed=7).estimate[..., 150:] - y[..., 150 - lag : 400 - lag]
    of_streams = (error**2).mean(axis=-1)
    deviation = np.abs(of_streams.mean(axis=0) - made.output_mse)
    assert (deviation <= 5 * of_streams.std(axis=0) / math.sqrt(len(u))).all()


def test_means_pass_without_an_error():
    models = [stream(0.5, 0.25, mean=100.0), stream(0.5, 0.25, mean=-40.0), stream(0.8, 1.0)]
    made = dp.lmmse(TARGET, privacy("one_input"), models, lag=2, tolerance=1e-1)
    u = np.stack([x.sample(20, 300, seed=i) for i, x in enumerate(models)], axis=1)
    error = made.simulate(u, seed=7).estimate[..., 200:] - TARGET.apply(u)[..., 198:298]
    assert np.abs(error.mean(axis=(0, 2))).max() < 0.3
    assert np.abs(made.simulate(u[..., :1], seed=7).estimate).max() < 10  # before the lag nothing of the mean is there


def test_an_input_that_is_lost_in_the_noise_is_not_published():
    models, target = [stream(0.5, 1.0), stream(0.5, 1e-9)], dp.total(2) * QUICK
    made = dp.lmmse(target, privacy("each_input"), models, lag=1, tolerance=1e-2)
    assert made.prefilter.shape == (1, 2)
    alone = dp.lmmse(dp.FilterMatrix([[QUICK]]), privacy("each_input"), models[:1], lag=1, tolerance=1e-2)
    assert made.predicted_mse == pytest.approx(alone.predicted_mse, abs=1e-8)
    assert made.lower_bound_mse == pytest.approx(alone.lower_bound_mse, abs=1e-8)


def test_permuted_and_scaled_channels(designed):
    base, order, scale = designed("each_input", 0), [2, 0, 1], [3.0, 0.5, 2.0]
    target = dp.FilterMatrix([[row[j] * (1 / scale[j]) for j in order] for row in TARGET.rows])
    models = [
        dp.ARMA.from_shaping(MODELS[j].shaping * scale[j]) for j in order
    ]  # louder inputs, of which events are louder too
    demand = privacy("each_input", max_change=[scale[j] for j in order])
    made = dp.lmmse(target, demand, models, lag=0, tolerance=1e-2)
    assert made.predicted_mse == pytest.approx(base.predicted_mse, rel=1e-4)
    assert made.lower_bound_mse == pytest.approx(base.lower_bound_mse, rel=1e-6)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"model": MODELS[:2], "lag": 0}, "model must be a sequence of 3 models for a FilterMatrix of 3 inputs"),
        ({"model": MODELS[0], "lag": 0}, "model must be a sequence of 3 models for a FilterMatrix of 3 inputs"),
        ({"model": [1, 2, 3], "lag": 0}, "model must be a MarkovChain"),
        ({"model": MODELS, "lag": "smooth"}, "lag must be"),
        ({"model": MODELS, "lag": -1}, "lag must be an integer, at least 0"),
        (
            {"model": MODELS, "lag": 0, "prefilter": SLOW},
            "prefilter must be a FilterMatrix of 3 inputs, as the target is, got Filter",
        ),
        ({"model": MODELS, "lag": 0, "tolerance": 2}, "tolerance must be"),
        ({"model": MODELS, "lag": 0, "privacy": dp.Privacy(1, 0.05)}, "adjacency must be said for 3 inputs"),
    ],
)
def test_what_does_not_fit_is_named(arguments, words):
    with pytest.raises(ValueError, match=words):
        dp.lmmse(**{"target": TARGET, "privacy": privacy("one_input"), **arguments})


def test_models_of_a_mechanism_are_as_many_as_inputs():
    ones = dp.FilterMatrix.diagonal([1, 1])
    with pytest.raises(ValueError, match="a VectorARMA of 2 channels, got a tuple of length 3"):
        dp.ChannelsMechanism("mine", ones, privacy("one_input"), ones, ones, models=tuple(MODELS))


def test_a_summary_says_how_late_it_is(designed):
    assert "of all outputs together, 10 samples late" in designed("one_input", 10).summary()
    assert "of a prefilter for each input" in designed("one_input", 10).summary()


def test_a_summary_has_the_error_of_the_constant_beside_its_own():
    """Of outputs u_1 + u_2 and u_1 - u_2 of white streams of variances 4 and 9 the sum of the variances is 26."""
    target = dp.FilterMatrix([[1, 1], [1, -1]])
    models = [dp.ARMA([1], innovation_std=2.0), dp.ARMA([1], innovation_std=3.0)]
    made = dp.lmmse(target, dp.Privacy(1, 1e-6, adjacency="one_input"), models, lag=0)
    assert "constant        MSE 26 of all outputs together, by publishing the means alone" in made.summary()
