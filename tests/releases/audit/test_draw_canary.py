"""Canaries behind noise that is drawn once for each value, on sums and answers that are written as they are defined."""

import math
from fractions import Fraction

import numpy as np
import pytest
from helpers.naive_blocks import NaiveBlocks

import dpfast as dp
from dpfast.privacy.canonical_table import canonical_table
from dpfast.privacy.composition import Loss
from dpfast.privacy.geometric_rate import GeometricRate
from dpfast.privacy.response_table import response_table
from dpfast.releases import noise
from dpfast.releases.audit import draw_canary
from dpfast.releases.audit.confidence_bounds import clopper_pearson
from dpfast.releases.audit.draw_attacks import DrawStage
from dpfast.releases.noise import Noise, NoiseOfLaws

MISS, RUNS = 1e-9, 40_000
PURE, BOTH = Loss(pure=(Fraction(1),)), Loss(approximate=((Fraction(1), Fraction(0.05)),))
COUNTS, LEVELS = dp.Inputs(0, 20), dp.Inputs(0, 1)
PLANS = {
    "G = 1": NaiveBlocks(GeometricRate.below(1.0, 1), dp.Privacy(1), COUNTS, PURE),
    "blocks of 7": NaiveBlocks(GeometricRate.below(1.0, 1), dp.Privacy(1), COUNTS, PURE, 7),
    "larger changes": NaiveBlocks(GeometricRate.below(1.0, 3), dp.Privacy(1, max_change=3), COUNTS, PURE, 2),
    "three events": NaiveBlocks(
        GeometricRate.below(1.0, 3), dp.Privacy(1, max_events=3, min_separation=4), COUNTS, PURE, 7
    ),
    "two streams": NaiveBlocks(
        GeometricRate.below(0.5, 1), dp.Privacy(1), dp.Inputs(0, 20, n_streams=3, streams_per_person=2), PURE
    ),
    "canonical": NaiveBlocks(canonical_table(1.0, 0.05), dp.Privacy(1, 0.05), COUNTS, BOTH, 4),
    "response": NaiveBlocks(response_table(1.0, 0.05), dp.Privacy(1, 0.05), LEVELS, BOTH),
    "pure response": NaiveBlocks(response_table(1.0, 0.0), dp.Privacy(1), LEVELS, PURE),
}
ALONE, PUSHES, RELEASES = "canary, all steps", "opposite canaries, two pushes", "opposite canaries, two releases"


def findings(plan, runs=RUNS):
    stage = DrawStage(plan, np.random.default_rng(1), MISS)
    return {x.attack: x for attack in stage.attacks(runs) for x in attack.find(lambda n: None)}


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_a_sound_mechanism_shows_nearly_its_epsilon_and_not_more(plan):
    found = findings(plan)
    assert [x.violated for x in found.values()] == [False] * 3
    alone, *twice = found.values()
    assert alone.claim == pytest.approx(1)
    assert alone.found > 0.5
    assert alone.found == pytest.approx(alone.reachable, abs=0.35)
    assert [x.claim for x in twice] == [twice[0].claim] * 2
    assert 1.9 < twice[0].claim <= 2
    for x in twice:  # eight standard deviations of the rarest
        assert x.found == pytest.approx(x.reachable, abs=0.7)


def test_the_ratio_has_the_law_that_its_definition_gives():
    """Of one geometric noise and a change of one: ±ε, with the probabilities of half lines."""
    stage = DrawStage(PLANS["blocks of 7"], np.random.default_rng(1), MISS)
    canary = draw_canary.DrawCanary.place(stage.plan, stage.rng)
    assert canary.size == 7
    values, without, with_ = canary.ratio_law()
    q = math.exp(-1)
    assert values == pytest.approx([-1, 1], abs=1e-8)
    assert without == pytest.approx([1 / (1 + q), q / (1 + q)])
    assert with_ == pytest.approx(without[::-1])


@pytest.mark.parametrize("name", PLANS)
def test_the_law_of_the_ratio_is_that_of_runs(name):
    plan, n = PLANS[name], 20_000
    canary = draw_canary.DrawCanary.place(plan, np.random.default_rng(2))
    values, *laws = canary.ratio_law()
    for present, law in zip((False, True), laws, strict=True):
        assert law.sum() == pytest.approx(1)
        seen = canary.statistic(NoiseOfLaws.of(plan.laws), n, present=present)
        cuts = (values[1:] + values[:-1]) / 2
        for cut, p in zip(cuts, np.cumsum(law), strict=False):
            low, high = clopper_pearson(np.count_nonzero(seen < cut), n, 1e-9)
            assert low <= p + 1e-12
            assert p - 1e-12 <= high


def test_events_are_as_near_as_they_may_be_and_add_up():
    plan = PLANS["three events"]
    canary = draw_canary.DrawCanary.place(plan, np.random.default_rng(3), -1)
    change = canary.x[1] - canary.x[0]
    assert np.flatnonzero(change[0]).tolist() == [0, 4, 8]
    assert change[0, [0, 4, 8]].tolist() == [-1, -1, -1]


@pytest.mark.parametrize("name", ["G = 1", "blocks of 7"])
def test_a_rate_that_is_a_tenth_too_large_is_found(name):
    honest = PLANS[name]
    plan = NaiveBlocks(GeometricRate.below(1 / 0.9, 1), honest.mechanism.privacy, COUNTS, PURE, honest.block)
    found = findings(plan, 400_000)
    assert found[ALONE].violated
    assert found[PUSHES].violated
    assert found[RELEASES].violated


@pytest.mark.parametrize("name", ["G = 1", "blocks of 7", "canonical"])
@pytest.mark.parametrize(("everywhere", "attack"), [(False, PUSHES), (True, RELEASES)])
def test_noise_that_comes_again_is_found_by_opposite_canaries(monkeypatch, name, everywhere, attack):
    """One coin for both answers would tell no more than one answer, and is no fault."""

    class Again(Noise):
        def __init__(self, law):
            super().__init__(law)
            self.kept = common if everywhere else {}

        def take(self, n):
            return self.kept.setdefault(n, super().take(n)).copy()

    common = {}
    monkeypatch.setattr(noise, "Noise", Again)
    found = findings(PLANS[name], 20_000)
    assert found[attack].violated
    assert not found[ALONE].violated or everywhere


def test_what_is_no_integer_is_found(monkeypatch):
    class Floats(Noise):
        def take(self, n):
            return super().take(n) + 0.25

    monkeypatch.setattr(noise, "Noise", Floats)
    stage = DrawStage(PLANS["blocks of 7"], np.random.default_rng(1), MISS)
    (found,) = stage.before()
    assert (found.violated, found.found) == (True, 1.0)
