"""Block sums of several streams in integers: what one person changes, by enumeration, and what is estimated of them."""

import itertools
import json
import math
import pickle
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import dpfast as dp
from dpfast._support.errors import DesignError, ReleaseError
from dpfast.privacy.geometric_rate import GeometricRate
from dpfast.releases.integer.exact_forms import load_exact

SLOW, QUICK = dp.Filter([0.05], [1, -0.95]), dp.Filter([0.2], [1, -0.8])
TARGET = dp.FilterMatrix([[SLOW, SLOW, SLOW], [QUICK, -1 * QUICK, 0]])
STREAMS = [(0.5, 4.0, 2.0), (0.5, 9.0, 1.0), (0.8, 16.0, 3.0)]  # pole, variance and mean of each
MODELS = [dp.ARMA([1], [1, -a], innovation_std=math.sqrt(v * (1 - a * a)), mean=mean) for a, v, mean in STREAMS]
INPUTS = dp.Inputs(0, 20, n_streams=3)
ADJACENCIES = "one_input", "each_input_same_time", "each_input"


def design(adjacency, **others):
    privacy = dp.Privacy(1.2, adjacency=adjacency, max_events=others.pop("max_events", 1))
    return dp.block_sums(TARGET, privacy, MODELS, length=[2, 3, 2], **others)


@pytest.fixture(scope="module")
def plans():
    """Late by two steps, for each adjacency; shares of ε that differ where they may."""
    found = {x: {"shares": [0.5, 0.2, 0.3]} if x != "one_input" else {} for x in ADJACENCIES}
    return {x: dp.exact(design(x, lag=2, **given), INPUTS) for x, given in found.items()}


# --- what one person changes ----------------------------------------------------------------------


def log_odds(plan, x, y):
    """The most that a change of inputs from x to y changes the log-probability of any v, by the sums alone."""
    n = x.shape[1]
    moved = np.abs(exact_sums(x, [2, 3, 2]) - exact_sums(y, [2, 3, 2]))
    rates = [Fraction(law.s, 2**law.j) for law in plan.laws]
    assert n == moved.shape[1]
    return sum(rate * int(row.sum()) for rate, row in zip(rates, moved, strict=True))


def exact_sums(x, lengths):
    """Sums of whole blocks, input by input, at the steps where they end; 0 elsewhere."""
    v = np.zeros(x.shape, np.int64)
    for i, length in enumerate(lengths):
        for end in range(length, x.shape[1] + 1, length):
            v[i, end - 1] = x[i, end - length : end].sum()
    return v


def patterns(adjacency, n):
    """All that one event may change within n steps of three streams: +1, 0 or -1 at each that it is at."""
    if adjacency == "one_input":
        return [[(i, t, s)] for i in range(3) for t in range(n) for s in (1, -1)]
    if adjacency == "each_input_same_time":
        signs = list(itertools.product((1, 0, -1), repeat=3))
        return [[(i, t, s[i]) for i in range(3)] for t in range(n) for s in signs]
    each = [(t, s) for t in range(n) for s in (1, -1)]
    return [[(i, t, s) for i, (t, s) in enumerate(x)] for x in itertools.product(each, repeat=3)]


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_no_pattern_that_one_person_may_change_costs_more_and_one_costs_as_much(plans, adjacency):
    plan, n = plans[adjacency], 6
    x = np.full((3, n), 5)
    worst = Fraction(0)
    for pattern in patterns(adjacency, n):
        y = x.copy()
        for i, t, s in pattern:
            y[i, t] += s
        worst = max(worst, log_odds(plan, x, y))
    assert worst == plan.guarantee.loss.sum_of_epsilons <= Fraction(1.2)
    assert plan.guarantee.delta == 0.0
    assert float(worst) == pytest.approx(1.2, rel=1e-7)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_two_events_cost_at_most_as_much_wherever_they_are(adjacency):
    shares = {} if adjacency == "one_input" else {"shares": [0.5, 0.2, 0.3]}
    plan = dp.exact(design(adjacency, max_events=2, **shares), INPUTS)
    n = 3 if adjacency == "each_input" else 6  # of times of their own: 23,436 pairs
    x, single = np.full((3, n), 5), patterns(adjacency, n)
    worst = Fraction(0)
    for first, second in itertools.combinations_with_replacement(single, 2):
        y = x.copy()
        for i, t, s in (*first, *second):
            y[i, t] += s
        worst = max(worst, log_odds(plan, x, y))
    assert worst == plan.guarantee.loss.sum_of_epsilons <= Fraction(1.2)


def probabilities(law):
    """Of canonical noise, (2k + 1,), from its whole weights."""
    return np.array([float(Fraction(x, sum(law.weights))) for x in law.weights])


def excess(laws, shifts, epsilon):
    """P(A) − e^ε Q(A) of the worst set A of outputs, where Q has each draw moved by a whole number: by all outputs."""
    p, q = np.ones(1), np.ones(1)
    for law, shift in zip(laws, shifts, strict=True):
        one, room = probabilities(law), abs(shift)
        p = np.multiply.outer(p, np.pad(one, room))
        q = np.multiply.outer(q, np.roll(np.pad(one, room), shift))
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())


def all_shifts(adjacency, n_events):
    """How one person may move three draws: those of stream 1 at steps 0 and 1, and of stream 2 for both together.

    Each event is at a step of one of the two streams, of both, or at a step of each; it adds, removes or is not there.
    """
    first = [(s, 0, 0) for s in (1, 0, -1)] + [(0, s, 0) for s in (1, 0, -1)]
    second = [(0, 0, s) for s in (1, 0, -1)]
    single = [*first, *second] if adjacency == "one_input" else [np.add(a, b) for a in first for b in second]
    groups = itertools.combinations_with_replacement(single, n_events)
    return {tuple(int(x) for x in np.sum(group, axis=0)) for group in groups}


@pytest.mark.parametrize("n_events", [1, 2])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_no_pattern_makes_an_output_of_canonical_noise_likelier_than_is_promised(adjacency, n_events):
    shares = {} if adjacency == "one_input" else {"shares": [0.3, 0.7]}
    privacy = dp.Privacy(2, 0.1, adjacency=adjacency, max_events=n_events)
    target = dp.FilterMatrix([[SLOW, QUICK]])
    made = dp.block_sums(target, privacy, MODELS[:2], length=[1, 2], noise="canonical", **shares)
    plan = dp.exact(made, dp.Inputs(0, 20, n_streams=2))
    laws = plan.laws[0], plan.laws[0], plan.laws[1]  # two sums of stream 1, one of stream 2
    epsilon, delta = plan.guarantee.epsilon, plan.guarantee.delta
    worst = max(excess(laws, shifts, epsilon) for shifts in all_shifts(adjacency, n_events))
    assert (epsilon, delta) <= (2, 0.1)
    assert worst <= delta * (1 + 1e-9)
    if adjacency == "one_input":  # of draws of two streams the composition of any (ε, δ) is a bound
        assert worst == pytest.approx(delta, rel=1e-6)


def test_what_runs_is_sums_of_whole_blocks_with_a_draw_for_each(plans):
    plan = plans["each_input"]
    x = np.random.default_rng(1).integers(0, 9, (3, 13))
    draws = plan.n_draws(0, 13)
    assert sum(draws) == 6 + 4 + 6
    none = plan.privatize(x[:, :0], x, np.zeros((1, sum(draws)), np.int64))
    np.testing.assert_array_equal(none, exact_sums(x, [2, 3, 2]))
    numbered = plan.privatize(x[:, :0], x, np.arange(1, 17)[None]) - none
    assert sorted(numbered[plan.released(0, 13)]) == list(range(1, 17))  # each draw once
    assert not numbered[~plan.released(0, 13)].any()
    laws = np.repeat([plan.drawn_laws.index(law) for law in plan.laws], [6, 4, 6])
    by_draw = np.repeat(range(len(draws)), draws)
    np.testing.assert_array_equal(by_draw[numbered[plan.released(0, 13)] - 1], laws)  # of the law of its input


@pytest.mark.parametrize("cut", [1, 4, 7])
def test_pieces_are_the_whole_to_the_bit(plans, cut):
    plan, n = plans["one_input"], 15
    x = np.random.default_rng(2).integers(0, 9, (3, n))
    noise = np.zeros((1, sum(plan.n_draws(0, n))), np.int64)
    whole = plan.privatize(x[:, :0], x, noise)
    live, pieces, estimates = plan.live(), [], []
    for first in range(0, n, cut):
        piece = x[:, first : first + cut]
        none = np.zeros((1, sum(plan.n_draws(first, piece.shape[1]))), np.int64)
        pieces.append(plan.privatize(x[:, first - plan.needed(first) : first], piece, none, first))
        again = plan.live()
        again.restore(live.state())
        estimates.append(live.push(pieces[-1]))
        np.testing.assert_array_equal(again.push(pieces[-1]), estimates[-1])
    np.testing.assert_array_equal(np.concatenate(pieces, axis=1), whole)
    np.testing.assert_array_equal(np.concatenate(estimates, axis=1), plan.estimate(whole))


# --- what is estimated ----------------------------------------------------------------------------


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_the_prediction_is_that_of_the_design(plans, adjacency):
    plan = plans[adjacency]
    np.testing.assert_allclose(plan.output_mse, plan.mechanism.output_mse, rtol=1e-7)
    assert plan.predicted_mse == plan.output_mse.sum()


def test_the_estimates_are_those_of_studies_also_of_what_is_not_published():
    made = dp.block_sums(TARGET, dp.Privacy(0.5, adjacency="each_input"), MODELS, lag=2)
    assert None in made.lengths
    plan = dp.exact(made, INPUTS)
    u = np.random.default_rng(3).integers(0, 15, (3, 60))
    paths = made.simulate(u, seed=1)
    rows = list(plan.columns)
    means = np.array([MODELS[i].mean for i in rows])
    began = plan.released(0, 60)
    ones = exact_sums(np.ones((len(rows), 60), np.int64), [made.lengths[i] for i in rows])
    v = np.where(began, np.nan_to_num(paths.privatized[rows]) + means[:, None] * ones, 0)
    np.testing.assert_allclose(v, np.rint(v), atol=1e-9)
    np.testing.assert_allclose(plan.estimate(np.rint(v).astype(np.int64)), paths.estimate, atol=1e-9)


def test_a_published_last_block_has_its_sum_at_the_last_step(plans):
    plan = dp.exact(plans["one_input"].mechanism, INPUTS, last_block="publish", n_steps=7)
    x = np.random.default_rng(5).integers(0, 9, (3, 7))
    v = plan.privatize(x[:, :0], x, np.zeros((1, sum(plan.n_draws(0, 7))), np.int64))
    np.testing.assert_array_equal(v[:, :6], exact_sums(x, [2, 3, 2])[:, :6])
    np.testing.assert_array_equal(v[:, 6], x[:, 6])
    assert plan.released(0, 9)[:, 6].all()
    assert "unfinished is published there" in plan.guarantee.items()["published"]


# --- one stream, files, errors --------------------------------------------------------------------


def test_one_input_and_output_are_the_release_of_one_stream():
    privacy, model = dp.Privacy(1, max_events=2), MODELS[2]
    alone = dp.exact(dp.block_sums(QUICK, privacy, model, lag=3), dp.Inputs(0, 20))
    plan = dp.exact(dp.block_sums(dp.FilterMatrix([[QUICK]]), privacy, [model], lag=3), dp.Inputs(0, 20))
    assert plan.laws == alone.laws
    assert plan.guarantee.sentence == alone.guarantee.sentence
    assert plan.predicted_mse == pytest.approx(alone.predicted_mse, rel=1e-12)
    x = np.random.default_rng(6).integers(0, 9, (1, 40))
    noise = np.arange(sum(plan.n_draws(0, 40)))[None]
    v = plan.privatize(x[:, :0], x, noise)
    np.testing.assert_array_equal(v, alone.privatize(x[:, :0], x, noise))
    np.testing.assert_allclose(plan.estimate(v), alone.estimate(v), atol=1e-12)


def test_a_file_of_the_design_is_released_as_the_design_itself(plans, tmp_path):
    plan = plans["each_input"]
    dp.save(plan.mechanism, tmp_path / "design.json")
    again = dp.exact(dp.load(tmp_path / "design.json"), INPUTS)
    assert again.digest == plan.digest
    assert again.configuration == plan.configuration


@pytest.mark.parametrize("last", [{}, {"last_block": "publish", "n_steps": 31}])
def test_a_configuration_is_read_back_to_the_bit(plans, last):
    plan = dp.exact(plans["each_input"].mechanism, INPUTS, **last)
    for again in load_exact(json.loads(json.dumps(plan.configuration))), pickle.loads(pickle.dumps(plan)):
        assert again.digest == plan.digest
        assert again.guarantee.to_json() == plan.guarantee.to_json()
        v = np.random.default_rng(7).integers(0, 30, (3, 31))
        np.testing.assert_array_equal(again.estimate(v), plan.estimate(v))


def test_less_noise_other_entries_and_other_inputs_are_refused(plans):
    plan = plans["one_input"]
    quiet = tuple(
        tuple(None if x is None else replace(x, noise=(GeometricRate(1, 0),)) for x in row) for row in plan.entries
    )
    assert replace(plan, entries=quiet).guarantee.epsilon == 1
    with pytest.raises(DesignError, match="same sums of input 0"):
        replace(plan, entries=(quiet[0], plan.entries[1]))
    shared = plans["each_input"]
    with pytest.raises(DesignError, match=r"entries must be of the design"):
        replace(plan, entries=shared.entries)
    with pytest.raises(ValueError, match="n_streams=3"):
        dp.exact(plan.mechanism, dp.Inputs(0, 20))
    with pytest.raises(DesignError, match="input 0 of the target: inputs must be in the units"):
        dp.exact(plan.mechanism, dp.Inputs(0, 20, unit=2, n_streams=3))
    fitted = [dp.ARMA.fit(np.random.default_rng(1).normal(size=200), 1), *MODELS[1:]]
    with pytest.raises(ReleaseError, match=r"models\[0\] is fitted from private data"):
        dp.exact(dp.block_sums(TARGET, dp.Privacy(1, adjacency="one_input"), fitted), INPUTS)
    with pytest.raises(ReleaseError, match="staircase"):
        dp.exact(dp.block_sums(TARGET, dp.Privacy(1, adjacency="one_input"), MODELS, noise="staircase"), INPUTS)


def test_a_state_of_another_receiver_is_refused_and_changes_nothing(plans):
    live, v = plans["one_input"].live(), np.ones((3, 10), np.int64)
    live.push(v)
    before = live.state()
    for state in b"", before[:-1], before + b"\0", plans["one_input"].live().state()[:40] + before[40:]:
        with pytest.raises(ValueError, match="state must be"):
            live.restore(state)
        assert live.state() == before
