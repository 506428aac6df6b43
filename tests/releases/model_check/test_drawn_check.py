"""Randomised response and integer noise on inputs against their models, with the error that v tells."""

import functools
from dataclasses import replace

import numpy as np
import pytest
from helpers.drawn_noise import published
from helpers.imitations import check_moments
from scipy import signal, stats

import dpfast as dp
from dpfast.releases.model_check.noise_imitation import imitate_noise, noise_kurtosis
from dpfast.releases.model_check.verdict import check_whole
from dpfast.releases.noise import Noise

TARGET = dp.Filter(np.ones(12) / 12)
CHAIN = dp.MarkovChain([[0.9, 0.1], [0.2, 0.8]], levels=[0, 1])
COUNTS = dp.IndependentLevels([0, 1, 9], [0.6, 0.38, 0.02])
MODELS = {"response": CHAIN, "geometric": COUNTS, "canonical": COUNTS}


@functools.cache
def plan_of(name, n_streams=1):
    if name == "response":
        mechanism = dp.randomized_response(TARGET, dp.Privacy(1, 0.01), CHAIN, lag=3)
        return dp.exact(mechanism, dp.Inputs(0, 1, n_streams=n_streams))
    mechanism = replace(dp.input_perturbation(TARGET, dp.Privacy(1, 0.05), noise=name), model=COUNTS)
    return dp.exact(mechanism, dp.Inputs(0, 20, centre=1, n_streams=n_streams))


def count_alarms(name, n_streams, time, runs, level):
    plan, rng = plan_of(name, n_streams), np.random.default_rng(1)
    u = MODELS[name].sample(n_streams * runs, time, seed=2).reshape(runs, n_streams, time)
    return sum(plan.evidence(published(plan, x, rng), time).judge(level).agrees is False for x in u)


@pytest.mark.parametrize("name", MODELS)
def test_the_model_is_rarely_contradicted_by_what_comes_from_it(name):
    """At a level of 2 %: more than 14 of 150 by a chance of 1e-6."""
    assert count_alarms(name, 2, 40, 150, 0.02) <= 14


@pytest.mark.long
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(("n_streams", "time"), [(1, 6), (1, 60), (5, 40), (1, 1500)])
def test_false_alarms_have_the_stated_chance(name, n_streams, time):
    """4,000 runs at .001."""
    assert count_alarms(name, n_streams, time, 4000, 1e-3) <= stats.binom.isf(1e-6, 4000, 1e-3)


@pytest.mark.parametrize("name", MODELS)
def test_a_wrong_mean_and_a_slow_change_are_found(name):
    plan, rng, time = plan_of(name, 2), np.random.default_rng(3), 3000
    ones = check_whole(plan.evidence(published(plan, np.ones((2, time)), rng), time))
    assert ones.agrees is False
    assert any("the mean of the true values is about" in x for x in ones.findings)
    slow = np.repeat(rng.integers(0, 2, (2, time // 100)), 100, axis=1)
    changing = check_whole(plan.evidence(published(plan, slow * (1 if name == "response" else 4), rng), time))
    assert changing.agrees is False


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("holds", [True, False])
def test_the_error_is_estimated_from_v(name, holds):
    plan, rng, time = plan_of(name, 2), np.random.default_rng(4), 6000
    u = MODELS[name].sample(2, time, seed=5) if holds else rng.integers(0, 2, (2, time))
    v = published(plan, u, rng)
    errors = plan.estimate(v)[:, plan.lag or 0 :] - signal.lfilter(TARGET.b, [1], u)[:, : time - (plan.lag or 0)]
    found = check_whole(plan.evidence(v, time))
    assert found.estimated_mse == pytest.approx((errors**2).mean(), rel=0.15)
    assert found.agrees is holds or name != "response"


@pytest.mark.parametrize("name", MODELS)
def test_imitated_values_have_the_moments_of_published_ones(name):
    plan, rng, n = plan_of(name, 4000), np.random.default_rng(8), 4000
    u = MODELS[name].sample(n, 30, seed=9)
    evidence = plan.evidence(published(plan, u, rng), 30)
    check_moments(evidence.centred, evidence.publish(u - evidence.mean, rng))


@pytest.mark.parametrize("name", MODELS)
def test_imitated_noise_has_the_law_that_is_drawn(name):
    """By a chi-square test of the exact sampler's draws against the imitation's; a chance of 1e-6."""
    law, n = plan_of(name).noise, 40_000
    exact = Noise(law)
    exact.ready(n)
    both = imitate_noise(law, np.random.default_rng(6), (n,)).astype(np.int64), exact.take(n)
    cells = [np.bincount(np.clip(x, -4, 4) + 4, minlength=9) for x in both]
    seen = np.array(cells)[:, np.sum(cells, axis=0) > 20]
    assert stats.chi2_contingency(seen).pvalue > 1e-6


def test_kurtoses_are_those_of_the_laws():
    rate = plan_of("geometric").noise
    n = np.arange(-400, 401)
    weights = np.exp(-float(rate.per_step) * np.abs(n))
    second, fourth = (weights @ n**2.0 / weights.sum(), weights @ n**4.0 / weights.sum())
    assert noise_kurtosis(rate) == pytest.approx(fourth / second**2 - 3)
    table = plan_of("canonical").noise
    weights, values = np.array([float(x) for x in table.probabilities]), np.array(table.values)
    assert noise_kurtosis(table) == pytest.approx(weights @ values**4 / (weights @ values**2) ** 2 - 3)


def test_a_design_without_a_model_has_an_error_and_nothing_to_agree_with():
    plan = dp.exact(dp.input_perturbation(TARGET, dp.Privacy(1), noise="geometric"), dp.Inputs(0, 20))
    rng = np.random.default_rng(7)
    found = check_whole(plan.evidence(published(plan, rng.poisson(5, (1, 300)), rng), 300))
    assert found.agrees is None
    assert found.estimated_mse == pytest.approx(plan.predicted_mse, rel=1e-6)
