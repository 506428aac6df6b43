"""Several streams behind filters against their models: false alarms under them, and departures that are found."""

import functools

import numpy as np
import pytest
from helpers import wrong_models
from helpers.wrong_models import APART, CHANNELS, MEANS, published_channels, together
from scipy import stats

import dpfast as dp
from dpfast.releases.model_check import simulated_chances
from dpfast.releases.model_check.verdict import check_growing, check_whole

PRIVACY = dp.Privacy(4, 1e-3, adjacency="one_input")
CHAIN = dp.MarkovChain([[0.98, 0.02], [0.2, 0.8]], levels=[0, 1])
RARE = dp.IndependentLevels([0, 5], [0.98, 0.02])
MODELS = {
    "apart": APART,
    "together": together(0.6),
    "alike": together(0.95),
    "levels": [CHAIN, RARE, APART[2]],
}
INPUTS = dp.Inputs(-60, 60, unit=1 / 8, centre=0, n_streams=3)


@functools.cache
def plan_of(name, prefilter="diagonal"):
    if name == "total":  # one channel alone, of three streams
        return dp.exact(
            dp.lmmse(dp.total(3) * wrong_models.SLOW, PRIVACY, APART, lag=2, tolerance=0.1), INPUTS, tolerance=0.1
        )
    if name == "forced":
        return dp.exact(dp.zero_forcing(CHANNELS, PRIVACY), INPUTS, tolerance=0.1)
    design = dp.lmmse if prefilter == "diagonal" else functools.partial(dp.optimal, prefilter=prefilter)
    return dp.exact(design(CHANNELS, PRIVACY, MODELS[name], lag=2, tolerance=0.1), INPUTS, tolerance=0.1)


def draw(models, runs, time, seed):
    """Sets of streams (runs, 3, time)."""
    if isinstance(models, dp.VectorARMA):
        return models.sample(runs, time, seed=seed)
    return np.stack([x.sample(runs, time, seed=seed + j) for j, x in enumerate(models)], axis=1)


def check(plan, u, seed, level=1e-3):
    return check_whole(plan.evidence(published_channels(plan, u, np.random.default_rng(seed)), u.shape[1]), level)


def count_alarms(name, time, runs, check, level, prefilter="diagonal"):
    """How often a check finds what comes from the models to be something else."""
    plan, rng = plan_of(name, prefilter), np.random.default_rng(7)
    alarms = 0
    for u in draw(MODELS[name], runs, time, 3):
        alarms += not check(plan.evidence(published_channels(plan, u, rng), time), level).agrees
    return alarms


@pytest.mark.parametrize("name", MODELS)
def test_the_models_are_rarely_contradicted_by_what_comes_from_them(name):
    """At a level of 2 % over all channels: more than 14 of 150 by a chance of 1e-6."""
    assert count_alarms(name, 100, 150, check_whole, 0.02) <= 14


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "time"), [*((name, time) for name in MODELS for time in (7, 60)), ("together", 800), ("levels", 200)]
)
def test_false_alarms_have_the_stated_chance(name, time):
    """2,000 runs at .002: more by a chance of 1e-6 at most."""
    assert count_alarms(name, time, 2000, check_whole, 2e-3) <= stats.binom.isf(1e-6, 2000, 2e-3)


@pytest.mark.long
@pytest.mark.parametrize("name", ["apart", "together"])
def test_false_alarms_of_a_prefilter_that_mixes_streams_have_the_stated_chance(name):
    """2,000 runs at .002: more by a chance of 1e-6 at most."""
    alarms = count_alarms(name, 200, 2000, check_whole, 2e-3, "general")
    assert alarms <= stats.binom.isf(1e-6, 2000, 2e-3)


@pytest.mark.long
def test_a_stream_that_is_looked_at_again_and_again_has_the_level_once():
    """500 lives at .01: more by a chance of 1e-6 at most."""
    assert count_alarms("together", 1100, 500, check_growing, 1e-2) <= stats.binom.isf(1e-6, 500, 1e-2)


def test_a_correlation_that_the_model_does_not_have_is_found_and_named():
    found = check(plan_of("apart"), draw(together(0.9), 1, 2000, 5)[0], 1)
    assert found.agrees is False
    (said,) = found.findings
    assert "depend on one another, which are independent in the model" in said
    assert said.startswith("stream ")
    assert found.p_values["dependence"] < 1e-6 < min(found.p_values[x] for x in ("mean", "variance", "spectrum"))


def test_a_correlation_that_the_streams_do_not_have_is_found():
    found = check(plan_of("alike"), draw(APART, 1, 2000, 5)[0], 1)
    assert found.agrees is False
    assert found.p_values["dependence"] < 1e-6
    assert any("beside what the model says of it" in x for x in found.findings)


def test_a_stream_that_follows_another_later_is_found():
    """Of a lag, which no correlation at one time shows: stream 2 is stream 1 five steps later."""
    u = draw(APART, 1, 2000, 6)[0]
    u[1] = np.roll(u[0], 5) - MEANS[0] + MEANS[1]
    found = check(plan_of("apart"), u, 2)
    assert found.p_values["dependence"] < 1e-6
    assert any(x.startswith("stream 1 and stream 2 depend") for x in found.findings)


@pytest.mark.parametrize("name", ["apart", "together"])
@pytest.mark.parametrize("stream", [0, 2])
def test_a_wrong_variance_of_one_stream_is_found_and_named(name, stream):
    u = draw(MODELS[name], 1, 2000, 8)[0]
    u[stream] = MEANS[stream] + 2 * (u[stream] - MEANS[stream])
    found = check(plan_of(name), u, 3)
    assert found.agrees is False
    assert found.p_values["variance"] < 1e-3 / 4
    assert any(f"what is seen of the true values in stream {stream + 1} varies with about" in x for x in found.findings)


@pytest.mark.parametrize("name", ["apart", "together"])
def test_a_wrong_mean_of_one_stream_is_found_and_named(name):
    u = draw(MODELS[name], 1, 2000, 9)[0]
    u[1] += 1.5
    found = check(plan_of(name), u, 4)
    assert found.agrees is False
    assert any(
        x.startswith("the mean of the true values of stream 2 is about 2.") and x.endswith("and 1 in the model")
        for x in found.findings
    )
    assert found.statistics["mean above the model's, stream 2"] == pytest.approx(1.5, abs=0.5)
    assert abs(found.statistics["mean above the model's, stream 1"]) < 0.5


def test_a_rhythm_of_one_stream_is_found_and_named():
    u = draw(APART, 1, 2000, 10)[0]
    u[2] += 2 * np.cos(2 * np.pi * np.arange(2000) / 48)
    found = check(plan_of("apart"), u, 5)
    assert found.agrees is False
    assert any(
        x.startswith("of stream 3: what was published has") and "at periods of 32 to 6" in x for x in found.findings
    )


def test_of_one_channel_the_means_are_told_only_together():
    plan = plan_of("total")
    assert plan.taps.shape[:2] == (1, 3) or plan.taps.shape[0] == 3
    u = draw(APART, 1, 1500, 11)[0]
    assert check(plan, u, 6).agrees is True
    assert check(plan, u + np.array([[2.0], [0.0], [0.0]]), 6).agrees is False


def test_a_general_prefilter_is_checked_too():
    """Its channels are of several streams, and numbered."""
    plan = plan_of("apart", "general")
    u = draw(APART, 1, 2000, 12)[0]
    assert check(plan, u, 7).agrees is True
    loud = check(plan, np.array(MEANS)[:, None] + 2 * (u - np.array(MEANS)[:, None]), 7)
    assert loud.agrees is False
    assert any("what is seen of the true values in channel" in x for x in loud.findings)


def test_levels_that_are_less_rare_than_the_model_says_are_found():
    plan = plan_of("levels")
    u = draw([CHAIN, dp.IndependentLevels([0, 5], [0.85, 0.15]), APART[2]], 1, 200, 13)[0]
    found = check(plan, u, 8)
    assert found.agrees is False
    assert min(found.p_values.values()) == pytest.approx(1 / 4001)  # among as many v that were drawn


def test_what_would_take_too_long_is_compared_in_part(monkeypatch):
    plan = plan_of("levels")
    u = draw(MODELS["levels"], 1, 600, 14)[0]
    u[1, 100:] = 5
    monkeypatch.setattr(simulated_chances, "_MANY", 1e9)
    assert check(plan, u, 9).agrees is False
    monkeypatch.setattr(simulated_chances, "_WORK", 1_000_000)  # of the first 83 steps
    assert check(plan, u, 9).agrees is True


@pytest.mark.parametrize("time", [1, 2, 3, 9, 40])
def test_short_releases_are_checked_too(time):
    plan = plan_of("together")
    u = draw(MODELS["together"], 1, time, 15)[0]
    assert check(plan, u, 10).agrees is True
    assert check(plan, u + 55, 10).agrees is False


def test_a_design_without_models_has_nothing_to_agree_with():
    found = check(plan_of("forced"), draw(APART, 1, 100, 16)[0], 11)
    assert (found.agrees, found.estimated_mse) == (None, None)
    assert str(found) == (
        "The design has no model, so there is nothing for what was published to agree with. No error is estimated from "
        "what was published where streams are estimated together."
    )
