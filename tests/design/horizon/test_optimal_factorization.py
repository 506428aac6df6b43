"""The least error over a horizon: against closed forms, its own bound, simulations, and stationary mechanisms."""

import importlib
import math

import numpy as np
import pytest
from helpers.covers import long_but
from scipy import linalg

import dpfast as dp

PRIVACY = dp.Privacy(math.log(3), 0.05)
SCALE = PRIVACY.noise_multiplier
CHAIN = dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[-0.5, 0.5])
BIASED = dp.ARMA([1, 0.5], [1, -0.7], mean=2.0)
LAGS = pytest.mark.parametrize("lag", [0, 3, None])


# --- unbiased -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("f", "delay"),
    [([1.0] * 60, 0), ([1, -2], 0), ([0, 0, 0, 2, 1], 3), ([1e-9, 1], 0), ([1, 0.9, 0.5, 0.2], 0), ([-3, 1], 0)],
)
def test_unbiased_optima_publish_the_target_and_are_certified(f, delay):
    target = dp.Toeplitz(f, 60)
    found = dp.optimal_factorization(target, PRIVACY)
    c, b = found.strategy.matrix(), found.reconstruction.matrix()
    a = linalg.toeplitz(target.coefficients, np.zeros(60))
    assert np.abs(b @ c - a).max() < 1e-9 * np.abs(a).max()
    assert c.shape == b.T.shape == (60 - delay, 60)
    assert not np.triu(c, 1).any()
    assert not np.triu(b[delay:], 1).any()
    np.testing.assert_allclose((c[:, : 60 - delay] ** 2).sum(axis=0), 1, rtol=1e-12)
    assert found.lower_bound_mse <= found.predicted_mse <= found.lower_bound_mse * (1 + 1e-6)
    assert found.predicted_mse == pytest.approx(SCALE**2 * (b**2).sum() / 60)


def test_running_sums_are_better_than_by_the_square_root():
    # 2.6688 is the closed form of the square root at 256 steps
    target = dp.running_sum(256)
    found = dp.optimal_factorization(target, PRIVACY)
    assert dp.square_root(target, PRIVACY).predicted_rmse / SCALE == pytest.approx(2.6688, abs=1e-4)
    assert found.predicted_rmse / SCALE == pytest.approx(2.5244, abs=1e-4)


def test_a_target_whose_inverse_explodes():
    # over all time the least is <|F|> per unit of noise; the ends of a horizon cost less
    target = dp.Toeplitz([1, -2], 512)
    found = dp.optimal_factorization(target, PRIVACY)
    gain = np.abs(1 - 2 * np.exp(1j * np.linspace(0, 2 * np.pi, 4096, endpoint=False))).mean()
    assert 0.99 * gain < found.predicted_rmse / SCALE < gain
    u = np.random.default_rng(1).normal(size=512)
    through = found.reconstruction.apply(found.strategy.apply(u))
    np.testing.assert_allclose(through, target.apply(u), atol=1e-11)


# --- with a receiver ------------------------------------------------------------------------------


@LAGS
def test_mechanisms_err_as_the_search_says_and_less_than_others(lag):
    target = dp.running_sum(48)
    found = dp.optimal_factorization(target, PRIVACY, BIASED, lag=lag)
    assert (found.lag, found.centre, found.noise_std) == (lag, BIASED.mean, pytest.approx(SCALE))
    # by the residual B C - A, which the search never sees
    assert found.lower_bound_mse <= found.predicted_mse <= found.lower_bound_mse * (1 + 3e-3)
    roots = dp.square_root(target, PRIVACY).with_receiver(BIASED, lag=lag)
    unbiased = dp.optimal_factorization(target, PRIVACY)
    assert found.predicted_mse < roots.predicted_mse < dp.square_root(target, PRIVACY).predicted_mse
    assert found.predicted_mse < unbiased.with_receiver(BIASED, lag=lag).predicted_mse < unbiased.predicted_mse


def test_without_knowledge_it_is_the_unbiased_optimum():
    target = dp.running_sum(32)
    unbiased = dp.optimal_factorization(target, PRIVACY).predicted_mse
    loud = dp.optimal_factorization(target, PRIVACY, dp.ARMA([1e4]))
    assert loud.predicted_mse == pytest.approx(unbiased, rel=1e-5)


def test_it_gains_by_waiting():
    errors = [dp.optimal_factorization(dp.running_sum(40), PRIVACY, CHAIN, lag=x).predicted_mse for x in (0, 2, 8, 39)]
    assert errors == sorted(errors, reverse=True)
    smoother = dp.optimal_factorization(dp.running_sum(40), PRIVACY, CHAIN, lag=None)
    assert errors[-1] == pytest.approx(smoother.predicted_mse, rel=1e-9)


@pytest.mark.parametrize("lag", long_but([0, 3, None], [3]))
def test_it_is_at_least_as_good_as_the_stationary_optimum(lag):
    n, target = 150, dp.Filter([1, 0.9], [1, -0.9])
    stationary = dp.optimal(target, PRIVACY, CHAIN, lag=lag, tolerance=1e-2)
    found = dp.optimal_factorization(target, PRIVACY, CHAIN, horizon=n, lag=lag)
    # the ends of a horizon cost less; in its middle there is nothing to gain
    assert found.predicted_mse < stationary.step_mse(n).mean()
    assert found.predicted_mse < stationary.ideal_mse
    assert found.step_mse()[60:90].mean() == pytest.approx(stationary.ideal_mse, rel=0.02)


def test_a_delay_of_the_target_helps():
    late = dp.optimal_factorization(dp.Toeplitz([0, 0, 1, 1], 40), PRIVACY, CHAIN)
    early = dp.optimal_factorization(dp.Toeplitz([1, 1], 40), PRIVACY, CHAIN)
    waiting = dp.optimal_factorization(dp.Toeplitz([1, 1], 38), PRIVACY, CHAIN, lag=2)
    assert late.predicted_mse < early.predicted_mse
    assert late.predicted_mse * 40 == pytest.approx(waiting.predicted_mse * 38, rel=0.02)


def test_several_events_make_more_noise():
    several = dp.Privacy(math.log(3), 0.05, max_events=3, min_separation=5)
    target = dp.running_sum(30)
    for model in (None, CHAIN):
        one, found = (dp.optimal_factorization(target, x, model) for x in (PRIVACY, several))
        np.testing.assert_array_equal(found.strategy.matrix(), one.strategy.matrix())
        assert found.noise_std > one.noise_std
        assert found.lower_bound_mse == one.lower_bound_mse < one.predicted_mse < found.predicted_mse
        if model is not None:  # the receiver knows of the noise
            best = found.with_receiver(CHAIN).predicted_mse
            assert found.predicted_mse == pytest.approx(best)


def test_simulations_have_the_predicted_error():
    found = dp.optimal_factorization(dp.running_sum(20), PRIVACY, CHAIN, lag=2)
    u = CHAIN.sample(8000, 20, seed=5)
    error = found.simulate(u, seed=6).estimate - np.cumsum(u, axis=1)
    mse = (error**2).mean(axis=1)
    assert abs(mse.mean() - found.predicted_mse) < 5.5 * mse.std() / math.sqrt(len(mse))


# --- arguments ------------------------------------------------------------------------------------


def test_arguments_are_checked():
    short, filter_ = dp.running_sum(4), dp.Filter([1], [1, -0.5])
    for message, arguments, options in [
        ("lag must be 0 without a model, got 3", (short, PRIVACY), {"lag": 3}),
        ("lag must be 0 without a model, got None", (short, PRIVACY), {"lag": None}),
        ("lag must be an integer", (short, PRIVACY, CHAIN), {"lag": -1}),
        ("horizon must be given for a Filter", (filter_, PRIVACY), {}),
        ("privacy must be a Privacy", (short, 1.0), {}),
        ("model must be", (short, PRIVACY, "white"), {}),
        ("horizon must be at most 2048", (dp.running_sum(2049), PRIVACY), {}),
        ("target must be", ("running sum", PRIVACY), {}),
    ]:
        with pytest.raises(ValueError, match=message):
            dp.optimal_factorization(*arguments, **options)


def test_names_and_one_step():
    assert dp.optimal_factorization([2.0], PRIVACY, name="mine").name == "mine"
    assert dp.optimal_factorization([2.0], PRIVACY).predicted_rmse == pytest.approx(2 * SCALE)
    one = dp.optimal_factorization([2.0], PRIVACY, CHAIN, lag=None)
    assert one.predicted_mse == pytest.approx(4 * 0.25 * SCALE**2 / (0.25 + SCALE**2))
    assert (one.name, one.options) == ("optimal factorization smoother", (("lag", None),))


def test_spectra_that_are_all_but_zero_in_a_band_are_certified():
    nearly_nothing = dp.ARMA.from_shaping(dp.Filter(np.poly(np.ones(4))) * 0.02)
    found = dp.optimal_factorization(dp.running_sum(64), dp.Privacy.from_gdp(1, 1e-6), nearly_nothing, lag=4)
    assert found.lower_bound_mse < found.predicted_mse < found.lower_bound_mse * (1 + 1e-2)
    others = [dp.square_root(found.target, found.privacy), dp.optimal_factorization(found.target, found.privacy)]
    assert all(found.predicted_mse < x.with_receiver(nearly_nothing, lag=4).predicted_mse for x in others)


@pytest.mark.parametrize(("privacy", "gap"), [(PRIVACY, 5e-5), (dp.Privacy(1, 1e-6), 1e-4)])
def test_running_sums_of_a_chain_are_certified(privacy, gap):
    found = dp.optimal_factorization(dp.running_sum(256), privacy, CHAIN)
    assert found.lower_bound_mse < found.predicted_mse < found.lower_bound_mse * (1 + gap)


def test_a_bound_that_is_far_below_is_said_to_be(monkeypatch):
    module = importlib.import_module("dpfast.design.horizon.optimal_factorization")
    monkeypatch.setattr(module, "LARGEST_JOINT_GAP", 0.0)
    with pytest.warns(dp.ConvergenceWarning, match="certified to a relative gap of"):
        dp.optimal_factorization(dp.running_sum(8), PRIVACY, CHAIN)


def test_larger_changes_are_louder_noise():
    large = dp.Privacy(math.log(3), 0.05, max_change=3.0)
    target = dp.running_sum(20)
    unbiased, other = (dp.optimal_factorization(target, x) for x in (PRIVACY, large))
    assert other.predicted_mse == pytest.approx(9 * unbiased.predicted_mse)
    assert other.lower_bound_mse == pytest.approx(9 * unbiased.lower_bound_mse)
    found = dp.optimal_factorization(target, large, dp.ARMA([3.0]))
    same = dp.optimal_factorization(target, PRIVACY, dp.ARMA([1.0]))
    assert found.predicted_mse == pytest.approx(9 * same.predicted_mse, rel=1e-6)
    assert found.lower_bound_mse == pytest.approx(9 * same.lower_bound_mse, rel=1e-3)


@pytest.mark.parametrize("lag", [0, 3, None])
@pytest.mark.parametrize("n", [1, 40])
def test_a_signal_far_above_its_noise_is_designed_for_and_the_bound_said_to_be_far(n, lag):
    """What tells a bound is then rounding, and may be nothing."""
    shift = dp.Toeplitz(np.eye(n)[min(7, n - 1)])
    with pytest.warns(dp.ConvergenceWarning, match="is certified to a relative gap of"):
        found = dp.optimal_factorization(shift, dp.Privacy(1, 1e-6), dp.ARMA([1e9]), lag=lag)
    assert 0 <= found.lower_bound_mse <= found.predicted_mse < np.inf
