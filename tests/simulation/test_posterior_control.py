"""Studies of posterior means: their errors by the linear receiver as a control variate, and where there is none."""

import math

import numpy as np
import pytest
from scipy import stats

import dpfast as dp

CHAIN = dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[-0.5, 0.5])
SAME = dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[-0.5, 0.5])
OTHER = dp.MarkovChain([[0.6, 0.4], [0.4, 0.6]], levels=[-0.5, 0.5])
MEMORY = dp.Filter([0.1], [1, -0.9])
SHIFTED = dp.MarkovChain([[0.9, 0.1], [0.3, 0.7]], levels=[2, 3.5])
ALARM = 1e-7  # of a case
SIZES = {"n_streams": 400, "n_samples": 700, "seed": 3}


def blocks(receiver="bayes", **given):
    return dp.block_sums(MEMORY, dp.Privacy(1), CHAIN, **({"length": 5, "receiver": receiver} | given))


def response(receiver="bayes", target=MEMORY, epsilon=2.0, **given):
    return dp.randomized_response(target, dp.Privacy(epsilon, 1e-6), CHAIN, receiver=receiver, **given)


def shifted(receiver="bayes"):
    return dp.block_sums(
        dp.Filter([1, 0.5]), dp.Privacy(2, max_change=1.5), SHIFTED, length=3, phase=2, lag=4, receiver=receiver
    )


def slow(receiver="bayes"):
    return dp.block_sums(dp.Filter([1, 0.995], [1, -0.995]), dp.Privacy(3), CHAIN, length=6, receiver=receiver)


def counter(receiver="bayes"):
    return dp.block_sums(dp.running_sum(60), dp.Privacy(1), CHAIN, length=7, lag=2, receiver=receiver)


# what is simulated, on which streams, and what else a study is given
CASES = {
    "blocks": (blocks, CHAIN, {}),
    "blocks from rest, of no whole cycle": (blocks, CHAIN, {"burn_in": 0, "n_samples": 33}),
    "blocks before they have settled": (slow, SAME, {"burn_in": 10, "n_samples": 21, "n_streams": 6_000}),
    "blocks about another mean": (shifted, SHIFTED, {}),
    "responses": (response, CHAIN, {}),
    "responses from rest": (lambda x="bayes": response(x, lag=3), CHAIN, {"burn_in": 0, "n_samples": 40}),
    "a horizon": (counter, CHAIN, {"n_samples": 60}),
}


@pytest.mark.slow_nojit
@pytest.mark.parametrize("name", CASES)
def test_the_control_variate_has_the_mean_of_the_squared_errors(name):
    """On the same streams, where their difference is far less than either: E[(y - ŷ)(ŷ - linear)] = 0."""
    make, model, given = CASES[name]
    study = dp.monte_carlo([make(), make("linear")], model, **(SIZES | given))
    found, linear = study
    assert found.predicted_rmse is None
    away = found.stream_mse - found.controlled_mse
    z = away.mean() / (away.std(ddof=1) / math.sqrt(len(away)))
    assert abs(z) < stats.norm.isf(ALARM / 2)
    assert found.controlled_mse.std() < found.stream_mse.std()
    assert found.controlled_mse.mean() < make().linear_mse if name in ("blocks", "responses") else True
    assert linear.controlled_mse is None
    exact = linear.predicted_rmse**2 if given.get("burn_in", 1) == 0 or name == "a horizon" else None
    if exact is not None:  # of the same steps
        assert (found.controlled_mse < exact).all()


def test_figures_and_intervals_are_from_the_control_variate():
    found = dp.monte_carlo(blocks(), CHAIN, **SIZES)["block sums Bayes lag 0"]
    assert found.values is found.controlled_mse
    assert found.mse == found.controlled_mse.mean()
    low, high = found.interval
    assert low < found.rmse < high
    plain = dp.simulation.study.Result("plain", None, found.stream_mse, 0.95)
    assert high - low < 0.5 * (plain.interval[1] - plain.interval[0])


def test_a_study_says_that_a_control_variate_was_used():
    study = dp.monte_carlo([blocks(), blocks("linear")], CHAIN, **SIZES)
    note = (
        "block sums Bayes lag 0: the exact error of the linear receiver, less the simulated squared difference from it."
    )
    assert " ".join(str(study).split()).endswith(note)
    assert note in study._repr_html_()
    frame = study.to_pandas()
    assert frame.loc["block sums Bayes lag 0", "interval_by"] == "control variate"
    assert frame.loc["block sums lag 0", "interval_by"] == "spread"
    assert "the exact error" not in str(dp.monte_carlo(blocks("linear"), CHAIN, **SIZES))


def test_streams_of_another_law_are_averaged_plainly():
    found = dp.monte_carlo(blocks(), OTHER, **SIZES)["block sums Bayes lag 0"]
    assert found.controlled_mse is None
    assert found.mse == found.stream_mse.mean()
    counts = dp.ARMA([0.5], mean=0.0)
    assert dp.monte_carlo(blocks(), counts, **SIZES)["block sums Bayes lag 0"].controlled_mse is None


def test_noise_that_is_hardly_ever_drawn_has_no_control_variate():
    """The difference from the linear receiver is then as rare as the noise."""
    mechanism = dp.block_sums(dp.Filter([1]), dp.Privacy(30), CHAIN, length=1, receiver="bayes")
    found = dp.monte_carlo(mechanism, CHAIN, **SIZES)[mechanism.name]
    assert found.sizes is not None
    assert found.controlled_mse is None


def test_an_error_by_control_variates_is_never_below_zero():
    """Of a few samples the difference may be larger than the whole error: here it is, by this seed."""
    kinds = [
        dp.block_sums(MEMORY, dp.Privacy(3), CHAIN, length=2, receiver="bayes", name=name) for name in ("one", "two")
    ]
    study = dp.monte_carlo(kinds, CHAIN, n_streams=2, n_samples=11, seed=20)
    assert study["one"].values.mean() < 0
    assert (study["one"].mse, study["one"].rmse) == (0.0, 0.0)
    assert study.compare("one", "two").rmse_ratio == 1.0


def test_pairs_are_compared_by_what_varies_together():
    study = dp.monte_carlo([blocks(), blocks("linear"), blocks(length=4, name="shorter")], CHAIN, **SIZES)
    bayes, linear, shorter = study
    found = study.compare("block sums Bayes lag 0", "block sums lag 0")
    assert found.mse_difference == pytest.approx((bayes.stream_mse - linear.stream_mse).mean(), rel=1e-9)
    assert found.decided
    assert found.interval[1] < 0
    both = study.compare("block sums Bayes lag 0", "shorter")
    assert both.mse_difference == pytest.approx((bayes.controlled_mse - shorter.controlled_mse).mean(), rel=1e-9)


def test_studies_have_the_same_bits_whatever_the_threads_and_beside_whatever_else():
    alone = dp.monte_carlo(blocks(), CHAIN, **SIZES, n_threads=1)["block sums Bayes lag 0"]
    counting = dp.input_perturbation(MEMORY, dp.Privacy(1, 1e-6))
    beside = dp.monte_carlo([counting, response(), blocks()], CHAIN, **SIZES, burn_in=80, n_threads=3)
    again = dp.monte_carlo(blocks(), CHAIN, **SIZES, burn_in=80, n_threads=2)["block sums Bayes lag 0"]
    assert np.array_equal(beside["block sums Bayes lag 0"].controlled_mse, again.controlled_mse)
    assert np.array_equal(beside["block sums Bayes lag 0"].stream_mse, again.stream_mse)
    assert len(alone.controlled_mse) == SIZES["n_streams"]


def test_beside_matrices_a_posterior_mean_errs_as_alone():
    tree = dp.binary_tree(dp.running_sum(60), dp.Privacy(1, 1e-6))
    given = SIZES | {"n_samples": 60, "n_streams": 40}
    alone = dp.monte_carlo(counter(), CHAIN, **given)["block sums Bayes lag 2"]
    beside = dp.monte_carlo([tree, counter()], CHAIN, **given)
    assert np.array_equal(beside["block sums Bayes lag 2"].controlled_mse, alone.controlled_mse)
    assert beside[tree.name].controlled_mse is None


def test_in_single_precision_the_figures_are_nearly_the_same():
    single, double = (dp.monte_carlo(blocks(), CHAIN, **SIZES, dtype=x)["block sums Bayes lag 0"] for x in ("f4", "f8"))
    assert single.rmse == pytest.approx(double.rmse, rel=1e-4)


def test_sweeps_take_the_receiver_as_an_axis():
    grid = {"mechanism": ["block_sums", "randomized_response"], "receiver": ["linear", "bayes"], "target": MEMORY}
    found = dp.sweep(grid | {"model": CHAIN, "epsilon": 2.0, "delta": 0.0}, n_samples=200, budget=1e5, seed=1)
    errors = {(x.settings["mechanism"], x.settings["receiver"]): x.mse for x in found}
    assert len(errors) == 4
    for name in grid["mechanism"]:
        assert errors[name, "bayes"] < errors[name, "linear"]
    assert [x.predicted_mse is None for x in found] == [x.settings["receiver"] == "bayes" for x in found]
