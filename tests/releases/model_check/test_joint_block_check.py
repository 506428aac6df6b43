"""Block sums of several streams against their models: false alarms under them, and departures that are found."""

import functools

import numpy as np
import pytest
from helpers import wrong_models
from helpers.wrong_models import CHANNELS, MEANS, published_channel_sums
from scipy import stats

import dpfast as dp
from dpfast.releases.model_check import simulated_chances
from dpfast.releases.model_check.verdict import check_whole

INPUTS = dp.Inputs(-60, 60, n_streams=3)
LOUD = [dp.ARMA([3], [1, -0.5], mean=2), dp.ARMA([3], [1, -0.5], mean=1), dp.ARMA([2], [1, -0.8], mean=3)]


@functools.cache
def plan_of(lengths=(2, 3, 4), target=CHANNELS):
    privacy = dp.Privacy(4, adjacency="one_input")
    return dp.exact(dp.block_sums(target, privacy, LOUD, length=list(lengths), lag=2), INPUTS)


def draw(runs, time, seed, correlation=0.0):
    """Sets of the streams of LOUD (runs, 3, time), rounded, whose innovations have this correlation."""
    sizes = np.diag([3.0, 3.0, 2.0])
    covariance = sizes @ ((1 - correlation) * np.eye(3) + correlation) @ sizes
    model = dp.VectorARMA([np.diag(wrong_models.POLES)], innovation_covariance=covariance, mean=MEANS)
    return np.rint(model.sample(runs, time, seed=seed))


def judge(plan, u, seed, level=1e-3):
    return check_whole(plan.evidence(published_channel_sums(plan, u, np.random.default_rng(seed)), u.shape[1]), level)


def count_alarms(time, runs, level, lengths=(2, 3, 4)):
    return sum(judge(plan_of(lengths), u, 7 + i, level).agrees is False for i, u in enumerate(draw(runs, time, 3)))


def test_the_models_are_rarely_contradicted_by_what_comes_from_them():
    """At a level of 2 % over all streams: more than 9 of 60 by a chance of 1e-6."""
    assert count_alarms(400, 60, 0.02) <= 9


@pytest.mark.long
@pytest.mark.parametrize(("time", "lengths"), [(300, (2, 3, 4)), (1000, (5, 5, 5)), (3000, (1, 2, 7))])
def test_false_alarms_have_the_stated_chance(time, lengths):
    """1,000 runs at .01: more by a chance of 1e-6 at most."""
    assert count_alarms(time, 1000, 0.01, lengths) <= stats.binom.isf(1e-6, 1000, 0.01)


@pytest.mark.parametrize("lengths", [(2, 3, 4), (5, 5, 5)])
def test_a_correlation_that_the_models_do_not_have_is_found_and_named(lengths):
    found = judge(plan_of(lengths), draw(1, 3000, 4, correlation=0.9)[0], 1)
    assert found.agrees is False
    assert any("depend on one another, which are independent in the model" in x for x in found.findings)
    assert found.p_values["dependence"] < 1e-3 / 4


def test_a_wrong_variance_and_a_wrong_mean_are_found_and_named():
    u = draw(1, 3000, 5)[0]
    u[1] = np.rint(MEANS[1] + 2 * (u[1] - MEANS[1]))
    u[2] += 3
    found = judge(plan_of(), u, 2)
    assert found.agrees is False
    assert any(x.startswith("of stream 2: what is seen of the true values varies with about") for x in found.findings)
    assert any(x.startswith("of stream 3: the mean of the true values is about 5.9") for x in found.findings)
    assert found.p_values["dependence"] > 1e-3


def test_streams_of_which_nothing_is_published_are_left_out():
    target = dp.FilterMatrix([[wrong_models.SLOW, 0, 0]])
    plan = plan_of((2, 2, 2), target)
    found = judge(plan, draw(1, 600, 6)[0], 3)
    assert found.agrees is True
    assert set(found.p_values) == {"mean", "variance", "spectrum"}  # one stream depends on no other


def test_too_few_steps_are_not_judged(monkeypatch):
    plan, u = plan_of(), draw(1, 400, 7, correlation=0.9)[0] + 40
    evidence = plan.evidence(published_channel_sums(plan, u, np.random.default_rng(4)), 400)
    assert evidence.judge(0.5).agrees is False
    assert evidence.until(200).judge(0.5).agrees is None
    monkeypatch.setattr(simulated_chances, "_MANY", 1e9)
    monkeypatch.setattr(simulated_chances, "_WORK", 1000)  # draws of no part of it
    assert evidence.judge(0.5).agrees is None
