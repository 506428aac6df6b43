"""Filters against their model: false alarms under it, departures that are found, and errors beside the true ones."""

import functools
import math

import numpy as np
import pytest
from helpers import wrong_models
from helpers.designs import designed
from helpers.imitations import check_moments
from scipy import stats

import dpfast as dp
from dpfast.releases.model_check.fourth_moments import excess_kurtosis
from dpfast.releases.model_check.verdict import check_growing, check_whole

PRIVACY = dp.Privacy(4, 1e-6)
MODELS = {
    "normal": dp.ARMA([1], [1, -0.5], mean=2.0),
    "slow": dp.ARMA([0.3], [1, -0.97], mean=1.0),
    "chain": dp.MarkovChain([[0.98, 0.02], [0.2, 0.8]], levels=[0, 1]),
    "rare": dp.IndependentLevels([0, 5], [0.98, 0.02]),
    "very rare": dp.IndependentLevels([0, 40], [0.998, 0.002]),
    "seldom moves": dp.MarkovChain([[0.99, 0.01], [0.01, 0.99]], levels=[-4, 4]),
}


@functools.cache
def plan_of(model):
    mechanism = dp.lmmse(wrong_models.TARGET, PRIVACY, MODELS[model], lag=5, tolerance=0.1)
    return dp.exact(mechanism, dp.Inputs(-60, 60, unit=1 / 8, centre=0))


def count_alarms(model, n_streams, time, runs, check, level):
    """How often a check finds what comes from its model to be something else."""
    plan, rng = plan_of(model), np.random.default_rng(7)
    u = MODELS[model].sample(n_streams * runs, time, seed=3).reshape(runs, n_streams, time)
    alarms = 0
    for x in u:
        v = wrong_models.published(plan, x, rng, unit=1 / 8)
        alarms += not check(plan.evidence(v, time), level).agrees
    return alarms


@pytest.mark.parametrize("model", ["slow", "rare"])
def test_imitated_values_have_the_moments_of_published_ones(model):
    plan, rng = plan_of(model), np.random.default_rng(10)
    u = np.rint(8 * MODELS[model].sample(4000, 40, seed=5)) / 8  # on the lattice
    evidence = plan.evidence(wrong_models.published(plan, u, rng, unit=1 / 8), 40)
    check_moments(evidence.centred, evidence.publish(u - evidence.mean, rng))


@pytest.mark.parametrize("model", MODELS)
def test_the_model_is_rarely_contradicted_by_what_comes_from_it(model):
    """At a level of 2 %: more than 17 of 200 by a chance of 1e-6."""
    assert count_alarms(model, 1, 80, 200, check_whole, 0.02) <= 17


@pytest.mark.long
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(("n_streams", "time"), [(1, 6), (1, 60), (5, 40), (1, 1500)])
def test_false_alarms_have_the_stated_chance(model, n_streams, time):
    """4,000 runs at .001: more by a chance of 1e-6 at most."""
    assert count_alarms(model, n_streams, time, 4000, check_whole, 1e-3) <= stats.binom.isf(1e-6, 4000, 1e-3)


@pytest.mark.long
@pytest.mark.parametrize(("model", "n_streams", "time"), [("chain", 1, 9000), ("rare", 5, 2000)])
def test_of_many_values_the_margin_keeps_the_level(model, n_streams, time):
    """1,000 runs at .001: more by a chance of 1e-6 at most."""
    assert count_alarms(model, n_streams, time, 1000, check_whole, 1e-3) <= stats.binom.isf(1e-6, 1000, 1e-3)


@pytest.mark.long
@pytest.mark.parametrize("model", ["normal", "chain", "rare", "seldom moves"])
def test_a_stream_that_is_looked_at_again_and_again_has_the_level_once(model):
    """2,000 lives at .01: more by a chance of 1e-6 at most."""
    assert count_alarms(model, 1, 2100, 2000, check_growing, 1e-2) <= stats.binom.isf(1e-6, 2000, 1e-2)


def test_levels_that_are_less_rare_than_the_model_says_are_found():
    plan, truth, rng = plan_of("rare"), dp.IndependentLevels([0, 5], [0.88, 0.12]), np.random.default_rng(9)
    for n_streams, time in ((1, 300), (4, 60)):
        u = truth.sample(n_streams, time, seed=4)
        found = check_whole(plan.evidence(wrong_models.published(plan, u, rng, unit=1 / 8), time))
        assert found.agrees is False
        assert any("the mean of the true values is about" in x for x in found.findings)


def test_a_kurtosis_is_that_of_the_innovations():
    p = 0.02
    assert excess_kurtosis(MODELS["rare"]) == pytest.approx(1 / (p * (1 - p)) - 6)
    assert excess_kurtosis(MODELS["normal"]) == 0
    assert (
        excess_kurtosis(dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[-1, 1])) == 0
    )  # its squares are constant
    # by the sum over all lags of E[h_0 h_k] - 2 R_k², h the centred square, and powers of the transition
    chain = MODELS["chain"]
    pi, levels = chain.probabilities, chain.levels - chain.mean
    h, total = levels**2 - pi @ levels**2, 0.0
    for k in range(-400, 401):
        power = np.linalg.matrix_power(chain.transition, abs(k))
        total += pi * h @ power @ h - 2 * (pi * levels @ power @ levels) ** 2
    assert excess_kurtosis(chain) == pytest.approx(total / chain.variance**2)
    # of a chain that seldom moves, that of its moves: ±.02 nearly always, ∓1.98 once in a hundred times
    moves, weights = np.array([0.02, -1.98]), np.array([0.99, 0.01])
    expected = weights @ moves**4 / (weights @ moves**2) ** 2 - 3
    assert excess_kurtosis(MODELS["seldom moves"]) == pytest.approx(expected)


FOUND = {
    "poisson": "the mean of the true values is about",
    "wrong mean": "the mean of the true values is about",
    "variance": "times the variance that the model predicts",
    "correlation": "times the variance that the model predicts",
    "daily cycle": "times the power that the model predicts",
    "level shift": "times the power that the model predicts",
}


@functools.cache
def recipe(n_streams):
    return wrong_models.recipe(n_streams)


@pytest.mark.parametrize("name", FOUND)
def test_a_wrong_model_is_found_and_named(name):
    plan, rng = recipe(2), np.random.default_rng(1)
    v = wrong_models.published(plan, wrong_models.INPUTS[name](rng, (2, 1000)), rng)
    found = check_whole(plan.evidence(v, 1000))
    assert found.agrees is False
    assert any(FOUND[name] in x for x in found.findings), found.findings


def measure(name, n_streams, time, runs):
    """(share of estimates within the band, true RMSE, its estimate, share of runs that agree) over many releases."""
    plan, rng, rows = recipe(n_streams), np.random.default_rng(11), []
    for _ in range(runs):
        u = wrong_models.INPUTS.get(name, wrong_models.true_model)(rng, (n_streams, time))
        v = wrong_models.published(plan, u, rng)
        errors, found = wrong_models.true_errors(plan, v, u), check_whole(plan.evidence(v, time))
        inside = np.abs(errors) <= found.band[:, np.newaxis]
        rows.append((inside.mean(), (errors**2).mean(), found.estimated_mse, found.agrees))
    covered, true, estimated, agree = np.mean(rows, axis=0)
    return covered, true**0.5, estimated**0.5, agree


@pytest.mark.parametrize("name", ["poisson", "level shift"])
def test_the_estimated_error_is_near_the_truth_where_the_model_is_wrong(name):
    covered, true, estimated, _ = measure(name, 1, 1000, 3)
    assert covered > 0.9
    assert estimated == pytest.approx(true, rel=0.15)
    assert true > 2 * recipe(1).predicted_rmse_if_model_holds


@pytest.mark.long
@pytest.mark.parametrize("name", [*wrong_models.INPUTS, "as the model says"])
@pytest.mark.parametrize(("n_streams", "time"), [(1, 1000), (3, 500), (1, 4000)])
def test_bands_cover_the_truth_over_200_releases(name, n_streams, time):
    covered, true, estimated, agree = measure(name, n_streams, time, 200)
    print(f"{name}, {n_streams} × {time}: {covered:.3f} covered, RMSE {true:.3f}, from v {estimated:.3f}, {agree:.2f}")
    assert covered >= 0.9
    assert estimated == pytest.approx(true, rel=0.15)
    if name == "poisson":
        assert agree == 0


def test_each_stream_has_a_band_of_its_own_where_they_differ():
    plan, rng, time = recipe(2), np.random.default_rng(2), 2000
    u = np.stack([wrong_models.true_model(rng, (1, time))[0], wrong_models.INPUTS["wrong mean"](rng, (1, time))[0]])
    v = wrong_models.published(plan, u, rng)
    true = (wrong_models.true_errors(plan, v, u) ** 2).mean(axis=1) ** 0.5
    found = check_whole(plan.evidence(v, time))
    np.testing.assert_allclose(found.band / 1.96, true, rtol=0.2)


def test_zero_forcing_has_a_known_error_and_nothing_to_agree_with():
    plan = dp.exact(designed(dp.zero_forcing, dp.Filter([1], [1, -0.9]), PRIVACY, tolerance=0.1), dp.Inputs(0, 20))
    rng = np.random.default_rng(3)
    found = check_whole(plan.evidence(wrong_models.published(plan, rng.poisson(9, (1, 300)), rng), 300))
    assert found.agrees is None
    assert "has no model" in str(found)
    assert found.estimated_mse == pytest.approx(plan.predicted_mse, rel=1e-3)


def test_decision_feedback_has_a_check_and_no_error():
    chain = dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[0, 1])
    mechanism = designed(dp.decision_feedback, dp.Filter([1], [1, -0.9]), PRIVACY, chain, lag=4, tolerance=0.1)
    plan, rng = dp.exact(mechanism, dp.Inputs(0, 20)), np.random.default_rng(4)
    found = check_whole(plan.evidence(wrong_models.published(plan, rng.poisson(9, (1, 300)), rng), 300))
    assert found.agrees is False
    assert found.estimated_mse is found.band is None
    assert "receiver is not linear" in found.reason


@pytest.mark.parametrize("time", [1, 2, 3, 5, 12, 20])
def test_short_releases_are_checked_too(time):
    plan, rng = recipe(1), np.random.default_rng(5)
    found = check_whole(plan.evidence(wrong_models.published(plan, np.full((1, time), 2), rng), time))
    assert found.agrees is True
    assert (found.estimated_mse is None) == (time < 16)
    far = check_whole(plan.evidence(wrong_models.published(plan, np.full((1, time), 390), rng), time))
    assert far.agrees is False


def test_a_prefilter_that_has_not_settled_is_checked_by_its_first_values():
    target = dp.Filter([1, 0.995], [1, -0.995])
    plan = dp.exact(dp.lmmse(target, PRIVACY, MODELS["normal"], lag=0, tolerance=0.1), dp.Inputs(0, 40, centre=2))
    rng = np.random.default_rng(6)
    assert len(plan.taps) > 20
    for time in (30, 700):
        v = wrong_models.published(plan, wrong_models.true_model(rng, (1, time)), rng)
        assert check_whole(plan.evidence(v, time), 1e-6).agrees is True


def test_the_estimate_is_right_on_the_average():
    """The expectation over v is the error that the theory of linear receivers gives, for the true mean and spectrum."""
    plan, rng, time, runs = recipe(1), np.random.default_rng(8), 1500, 60
    truth = dp.ARMA([math.sqrt(0.75 * 4 * wrong_models.VARIANCE)], [1, -0.5], mean=2.6)
    channel = plan.linear_channel()
    expected = sum(channel.receiver.predicted_errors(channel.target, channel.prefilter, channel.noise_std, truth))
    estimates = []
    for _ in range(runs):
        u = 2.6 + wrong_models.correlated(rng, (1, time), variance=truth.variance)
        v = wrong_models.published(plan, u, rng)
        estimates.append(check_whole(plan.evidence(v, time)).estimated_mse)
    deviation = np.std(estimates) / math.sqrt(runs)
    # what a fitted spectrum says of what v does not show is wrong by as much as its order is
    assert abs(np.mean(estimates) - expected) < 5 * deviation + 0.08 * expected
