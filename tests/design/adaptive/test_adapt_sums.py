"""Receivers of block sums that are fitted to v: taken where they help, refused otherwise; nothing else changes."""

import functools

import numpy as np
import pytest
from helpers import wrong_models
from scipy import signal

import dpfast as dp
from dpfast._support.errors import DesignError


@functools.cache
def recipe(n_streams=1, **options):
    return wrong_models.block_recipe(n_streams, **options)


def published(plan, name, time, seed=1):
    rng = np.random.default_rng(seed)
    u = wrong_models.INPUTS.get(name, wrong_models.true_model)(rng, (plan.inputs.n_streams, time))
    v = wrong_models.published_sums(plan, u, rng)
    return v, signal.lfilter(np.ones(12) / 12, [1], np.rint(u))


@pytest.mark.parametrize(
    "options", [{}, {"length": (2, 8)}, {"weights": "best", "length": 4}, {"length": 5, "phase": 2}], ids=str
)
def test_a_fitted_receiver_errs_less_where_the_model_is_wrong(options):
    plan = recipe(**options)
    v, y = published(plan, "wrong mean", 2500)
    found = dp.adapt(plan, v)
    assert found.taken
    given = ((plan.estimate(v, end=2500)[:, 5:] - y) ** 2).mean()
    adapted = ((found.estimate(v, end=2500)[:, 5:] - y) ** 2).mean()
    assert adapted < 0.6 * given
    assert found.interval[0] < found.gain < found.interval[1]
    assert found.gain == pytest.approx(1 - adapted / given, abs=0.1)
    assert found.model.mean == pytest.approx(6, abs=0.4)
    assert "adapted receiver is taken" in str(found)
    # only the receiver is another one
    assert found.mechanism.mechanism is plan.mechanism
    assert found.mechanism.noise == plan.noise
    assert found.mechanism.guarantee == plan.guarantee


def test_the_receiver_is_that_of_the_fitted_model():
    plan = recipe()
    counts = dp.ARMA([2.4], [1], mean=5.9)
    other = plan.redesigned_for(counts)
    best = dp.exact(dp.block_sums(wrong_models.TARGET, dp.Privacy(1), counts, lag=5, length=5), plan.inputs)
    np.testing.assert_allclose(other.receiver.gains, best.receiver.gains, atol=1e-9)
    assert other.mse_on(counts) == pytest.approx(best.predicted_mse)
    assert plan.mse_on(counts) > 1.3 * best.predicted_mse
    assert plan.mse_on(plan.mechanism.model) == pytest.approx(plan.predicted_mse)


def test_a_published_last_block_is_looked_at_by_the_fitted_receiver_too():
    mechanism = dp.block_sums(wrong_models.TARGET, dp.Privacy(1), wrong_models.MODEL, lag=5)
    plan = dp.exact(mechanism, dp.Inputs(-400, 400, centre=2), last_block="publish", n_steps=2502)
    v, y = published(plan, "wrong mean", 2502)
    found = dp.adapt(plan, v)
    assert found.taken
    assert found.mechanism.last_block.n_steps == 2502
    assert np.abs(found.estimate(v, end=2502)[:, 5:] - y).max() < 1.5


def test_over_a_horizon_too():
    counts = dp.ARMA([1.2], [1, -0.9], mean=2)
    plan = dp.exact(
        dp.block_sums(dp.Toeplitz.of(dp.Filter([0.1], [1, -0.9]), 400), dp.Privacy(1), counts, length=4),
        dp.Inputs(-99, 99),
    )
    rng = np.random.default_rng(2)
    u = 30 + 5 * rng.normal(size=(1, 400))
    found = dp.adapt(plan, wrong_models.published_sums(plan, u, rng))
    assert found.taken
    assert found.mechanism.mse_on(found.model) < 0.2 * plan.mse_on(found.model)


def test_a_receiver_that_is_right_stays():
    plan = recipe()
    v, _ = published(plan, "as the model says", 2000)
    found = dp.adapt(plan, v)
    assert not found.taken
    assert found.mechanism is plan
    assert "explains v as well" in found.reason
    np.testing.assert_array_equal(found.estimate(v, end=2000), plan.estimate(v, end=2000))


def test_what_is_all_noise_teaches_nothing():
    plan = dp.exact(
        dp.block_sums(wrong_models.TARGET, dp.Privacy(0.01), dp.ARMA([1], [1, -0.5], mean=0), length=5),
        dp.Inputs(-400, 400),
    )
    v = wrong_models.published_sums(plan, np.zeros((1, 1000)), np.random.default_rng(3))
    found = dp.adapt(plan, v)
    assert not found.taken
    assert "Nothing can be learnt" in found.reason


def test_a_level_that_shifts_is_a_doubt():
    plan = recipe()
    found = dp.adapt(plan, published(plan, "level shift", 2000)[0])
    assert "the spectrum or the mean changes in time" in found.reason


def test_a_line_is_a_doubt_and_an_order_may_be_given():
    plan = recipe()
    rng = np.random.default_rng(4)
    u = 4 + 6 * np.sin(2 * np.pi * np.arange(3000)[np.newaxis] / 120) + rng.normal(size=(1, 3000)) * 0.5
    v = wrong_models.published_sums(plan, u, rng)
    assert "the fit is in doubt" in dp.adapt(plan, v).reason.lower()
    low = dp.adapt(plan, v, order=0)
    assert low.order == 0
    assert "fits v far better than 0" in low.reason


def test_bad_arguments_are_explained():
    plan = recipe()
    v, _ = published(plan, "wrong mean", 1000)
    for bad, message in (
        (v.astype(float), "v must hold the integers that were published, got dtype float64"),
        (v[np.newaxis, np.newaxis], r"v must have the shape \(1, 'time'\)"),
        (v[:, :150], r"v must have at least \d+ steps, got 150"),
    ):
        with pytest.raises(ValueError, match=message):
            dp.adapt(plan, bad)
    with pytest.raises(ValueError, match="order must be"):
        dp.adapt(plan, v, order=21)
    with pytest.raises(ValueError, match="of block sums give the exact form"):
        dp.adapt(plan.mechanism, v)


def test_a_receiver_whose_errors_v_does_not_tell_is_refused(monkeypatch):
    plan = wrong_models.block_recipe()
    v, _ = published(plan, "wrong mean", 1000)
    monkeypatch.setattr(type(plan), "error_responses", "It decides.")
    with pytest.raises(DesignError, match="It decides"):
        dp.adapt(plan, v)
