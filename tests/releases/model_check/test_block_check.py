"""Block sums against their model: false alarms under it, departures that are found, chunks against dense algebra."""

import functools

import numpy as np
import pytest
from helpers.imitations import check_moments
from scipy import stats

import dpfast as dp
from dpfast.releases.model_check import simulated_chances
from dpfast.releases.model_check.block_check import _whiten_chunks
from dpfast.releases.model_check.verdict import check_whole

CHAIN = dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[0, 1])


@functools.cache
def plan_of(n_streams):
    mechanism = dp.block_sums(dp.Filter([0.1], [1, -0.9]), dp.Privacy(1), CHAIN)
    return dp.exact(mechanism, dp.Inputs(0, 1, n_streams=n_streams))


def published(plan, u, rng):
    """v with two-sided geometric noise of the variance that the plan states: a difference of two one-sided draws."""
    variance = float(plan.noise[0].variance)
    q = (1 + variance - (1 + 2 * variance) ** 0.5) / variance  # 2 q / (1 - q)² is the variance
    draws = rng.geometric(1 - q, (2, len(u), sum(plan.n_draws(0, u.shape[1]))))
    return plan.privatize(np.zeros((len(u), 0), np.int64), plan.inputs.integers(u), draws[0] - draws[1])


def count_alarms(n_streams, time, runs, level):
    plan, rng = plan_of(n_streams), np.random.default_rng(1)
    u = CHAIN.sample(n_streams * runs, time, seed=2).reshape(runs, n_streams, time).astype(np.int64)
    return sum(plan.evidence(published(plan, x, rng), time).judge(level).agrees is False for x in u)


def test_the_model_is_rarely_contradicted_by_what_comes_from_it():
    """At a level of 2 %: more than 9 of 60 by a chance of 1e-6."""
    assert count_alarms(2, 400, 60, 0.02) <= 9


@pytest.mark.long
@pytest.mark.parametrize(("n_streams", "time"), [(1, 300), (1, 700), (4, 400), (1, 3000)])
def test_false_alarms_have_the_stated_chance(n_streams, time):
    """1,000 runs at .01: more by a chance of 1e-6 at most."""
    assert count_alarms(n_streams, time, 1000, 0.01) <= stats.binom.isf(1e-6, 1000, 0.01)


def test_a_wrong_mean_and_a_slow_change_are_found():
    plan, rng, time = plan_of(2), np.random.default_rng(3), 2000
    ones = check_whole(plan.evidence(published(plan, np.ones((2, time), np.int64), rng), time))
    assert ones.agrees is False
    assert any("the mean of the true values is about" in x for x in ones.findings)
    slow = np.repeat(rng.integers(0, 2, (2, time // 100)), 100, axis=1)
    changing = check_whole(plan.evidence(published(plan, slow, rng), time))
    assert changing.agrees is False


def test_too_few_steps_are_not_judged(monkeypatch):
    plan, rng = plan_of(1), np.random.default_rng(4)
    evidence = plan.evidence(published(plan, np.ones((1, 300), np.int64), rng), 300)
    assert evidence.judge(0.5).agrees is False
    assert evidence.until(200).judge(0.5).agrees is None
    monkeypatch.setattr(simulated_chances, "_WORK", 1000)  # draws of no part of it
    assert evidence.judge(0.5).agrees is None


def test_imitated_sums_have_the_moments_of_published_ones():
    plan, rng, n = plan_of(4000), np.random.default_rng(6), 4000
    u = CHAIN.sample(n, 40, seed=7)
    evidence = plan.evidence(published(plan, u.astype(np.int64), rng), 40)
    check_moments(evidence.sums[..., evidence.begin :], evidence.publish(u[:, evidence.begin :], rng))


def test_chunks_are_white_behind_the_one_before_as_dense_algebra_has_it():
    rng = np.random.default_rng(5)
    root = rng.normal(size=(6, 6))
    covariance, x = root @ root.T + np.eye(6), rng.normal(size=(2, 9))
    first, cross, last = covariance[:3, :3], covariance[3:, :3], covariance[3:, 3:]
    taps = cross @ np.linalg.inv(first)
    inner = np.linalg.cholesky(last - taps @ cross.T)
    expected = [np.linalg.solve(np.linalg.cholesky(first), x[:, :3].T)]
    expected += [np.linalg.solve(inner, x[:, i : i + 3].T - taps @ x[:, i - 3 : i].T) for i in (3, 6)]
    np.testing.assert_allclose(_whiten_chunks(x, covariance, 3), np.concatenate(expected).T)
