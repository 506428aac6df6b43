"""Chances by v that are drawn from the model: of the stated level for any law, with power where it matters."""

import functools
import itertools

import numpy as np
import pytest
from helpers import wrong_models

import dpfast as dp
from dpfast.releases.model_check import simulated_chances
from dpfast.releases.model_check.simulated_chances import WhiteValues, draws_for, fewer_steps
from dpfast.releases.model_check.verdict import check_whole
from dpfast.releases.model_check.whiteness_tests import NORMAL, Excess, find_departures, rank_departures

RARE = dp.IndependentLevels([0, 5], [0.98, 0.02])


@functools.cache
def plan_of(model):
    mechanism = dp.lmmse(wrong_models.TARGET, dp.Privacy(4, 1e-6), model, lag=5, tolerance=0.1)
    return dp.exact(mechanism, dp.Inputs(-60, 60, unit=1 / 8, centre=0))


def white(z, excess, draw):
    return WhiteValues(np.asarray(z), np.ones(len(z[0])), np.ones(9), excess, draw, np.size(z))


def cubes(rows, rng):
    """Values with tails far beyond normal ones, of variance one."""
    return rng.normal(size=(rows, 40)) ** 3 / 15**0.5


def test_a_chance_is_a_rank_among_draws():
    """p = (1 + draws that are as little white) / (1 + draws), against a count by another generator's draws."""
    z = np.full((1, 40), 0.6)
    seen = []

    def draw(rows, rng):
        seen.append(cubes(rows, rng))
        return seen[-1]

    found = white(z, Excess(43.0, 0.0), draw).compare(0.3)
    everyone = np.concatenate(seen)
    assert len(everyone) == draws_for(0.3) == 10
    as_little = np.sum(np.abs(everyone.sum(axis=1)) >= abs(z.sum()))
    assert found.p_mean == (1 + as_little) / 11


def test_draws_stop_where_all_doubts_are_gone():
    calls = []

    def draw(rows, rng):
        calls.append(rows)
        return np.full((rows, 40), 5.0)

    values = white(np.full((1, 40), 0.6), Excess(43.0, 0.0), draw)._replace(cost=2**16)
    found = values.compare(0.01)
    assert calls == [4]
    assert found.p_mean == 1


def test_what_is_whiter_than_doubted_is_not_simulated():
    def draw(rows, rng):
        raise AssertionError

    rng = np.random.default_rng(1)
    z = rng.normal(size=(1, 40))
    assert (
        white(z, Excess(43.0, 0.0), draw).compare(1e-3).p_mean
        == find_departures(z, np.ones(40), np.ones(9), Excess(43.0, 0.0)).p_mean
    )
    shifted = find_departures(z + 1, np.ones(40), np.ones(9), NORMAL).p_mean
    assert 0 < shifted == white(z + 1, NORMAL, draw).compare(1e-3).p_mean < 1e-6  # the laws of normal values are known


def test_of_many_values_a_margin_is_enough():
    def draw(rows, rng):
        raise AssertionError

    z = np.random.default_rng(2).normal(size=(1, 4000)) + 0.12
    excess = Excess(10.0, 5.0)
    plain = find_departures(z, np.ones(4000), np.ones(9), excess)
    assert white(z, excess, draw).compare(1e-3).p_mean == 10 * plain.p_mean < 1e-9


def test_what_would_take_too_long_is_compared_in_part(monkeypatch):
    monkeypatch.setattr(simulated_chances, "_WORK", 400_000)
    plan, rng = plan_of(RARE), np.random.default_rng(3)
    v = wrong_models.published(plan, np.full((2, 500), 5.0), rng, unit=1 / 8)
    assert fewer_steps(500, 1000, 1e-3) == 66
    assert check_whole(plan.evidence(v, 500)).agrees is False
    late = np.concatenate([RARE.sample(2, 66, seed=1), np.full((2, 434), 5.0)], axis=1)
    assert check_whole(plan.evidence(wrong_models.published(plan, late, rng, unit=1 / 8), 500)).agrees is True


def test_ranks_are_nearly_the_chances():
    rng, rise, share = np.random.default_rng(4), np.exp(-np.arange(60) / 9), np.linspace(1, 0.1, 33)
    z = rng.normal(size=(200, 2, 60))
    found = rank_departures(z, rise, share, NORMAL)
    each = np.array([find_departures(x, rise, share, NORMAL).chances for x in z])
    single = [rank_departures(x[np.newaxis], rise, share, NORMAL)[0] for x in z]
    np.testing.assert_allclose(found, single, rtol=1e-9)
    for ranks, chances in zip(found.T, each.T, strict=True):
        small = chances < 0.2
        assert small.sum() > 10
        assert np.corrcoef(np.log(ranks[small]), np.log(chances[small]))[0, 1] > 0.9


def test_the_verdict_is_always_the_same():
    plan, rng = plan_of(RARE), np.random.default_rng(5)
    v = wrong_models.published(plan, np.full((1, 60), 1.0), rng, unit=1 / 8)
    first, second = (check_whole(plan.evidence(v, 60)) for _ in range(2))
    assert first.agrees is False
    assert first.content() == second.content()
    assert min(first.p_values.values()) == pytest.approx(1 / 3001)


class Costly:
    """Values of which so many steps can be compared; `asked` tells how many were tried."""

    n_tests = 4

    def __init__(self, steps, most, asked):
        self.steps, self.most, self.cost = steps, most, 10 * steps
        asked.append(steps)

    def compare(self, level):
        return f"{self.steps} steps at {level:g}" if self.steps <= self.most else None


@pytest.mark.parametrize("most", [1000, 300, 1, 0])
def test_the_first_steps_are_compared_as_many_as_can_be(monkeypatch, most):
    monkeypatch.setattr(simulated_chances, "_WORK", 4_000_000)  # that of 1000 values for each of 4 tests at 1e-3
    asked = []
    found = simulated_chances.compare_first(1000, lambda steps: Costly(steps, most, asked), 1e-3)
    assert asked[:2] == [1000, 100][: len(asked)]
    assert all(a > b for a, b in itertools.pairwise(asked))
    assert found == (f"{asked[-1]} steps at 0.001" if most else None)
    assert asked[-1] == 1 if most < 100 else asked[-1] <= most


def test_of_no_steps_nothing_is_compared():
    assert simulated_chances.compare_first(0, lambda steps: pytest.fail("there is nothing"), 1e-3) is None
