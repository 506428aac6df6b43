"""The rule of a sweep against a naive twin, and what its intervals and decisions are worth by simulation."""

import itertools
import math

import numpy as np
import pytest
from helpers import reference
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dpfast.simulation.intervals import ENOUGH, ErrorSizes, mean_interval
from dpfast.simulation.sweep.stopping_rule import Outcome, StoppingRule

BATCHES = 16


def first_blocks(draws, n):
    """What a rule gets to see."""
    return lambda case: draws[case, : BATCHES * n[case]]


def finished(rule, draws):
    """Stage after stage until nothing more is wanted: the stages, and the last look."""
    n = np.ones(len(draws), dtype=int)
    stages = [n]
    while True:
        look = rule.look(first_blocks(draws, n), n)
        if np.array_equal(look.wanted, n):
            return stages, look
        n = look.wanted
        stages.append(n)


# --- a naive twin ---------------------------------------------------------------------------------


def naive_interval(values, level, sizes):
    """Of a mean squared error, and whether errors are rare."""
    n_events = sum(x > sizes.smallest for x in values) if sizes else len(values)
    if n_events >= ENOUGH:
        return *reference.skewed_interval(values, level), False
    p = stats.binomtest(n_events, len(values)).proportion_ci(1 - level, method="exact")
    return p.low * sizes.smallest, p.high * sizes.largest + (1 - p.high) * sizes.smallest, True


def naive_width(values, confidence, sizes=None):
    low, high, _ = naive_interval(values, 1 - confidence, sizes)
    mse = np.mean(values)
    return (math.sqrt(high) - math.sqrt(max(low, 0))) / math.sqrt(mse) if mse > 0 else math.inf


def naive_looks(budget):
    looks, k = [], 1
    while k < budget:
        looks.append(k)
        k *= 2
    return [*looks, budget]


def naive_look(rule, means, n):
    """(wanted, outcomes), case by case and pair by pair."""
    wanted, looks, outcomes = list(n), naive_looks(rule.budget_blocks), []
    if rule.width is not None:
        for case, blocks in enumerate(n):
            sizes = rule.sizes.get(case)
            excess = naive_width(means(case), rule.confidence, sizes) / rule.width if blocks else 0
            if blocks and naive_interval(means(case), 0.05, sizes)[2]:
                n_events = sum(x > sizes.smallest for x in means(case))
                excess = max(excess, math.sqrt(ENOUGH / n_events) if n_events else math.inf)
            if excess > 1:
                predicted = 1.05 * blocks * excess**2
                wanted[case] = 4 * blocks if predicted > 4 * blocks else max(math.ceil(predicted), blocks + 1)
    for cell in rule.decide or ():
        live = [case for case in cell if n[case]]
        best = live[0]

        def pair(a, b):
            blocks = max(x for x in looks if x <= min(n[a], n[b]))
            return means(a)[: BATCHES * blocks], means(b)[: BATCHES * blocks], blocks

        for other in live[1:]:
            a, b, _ = pair(best, other)
            best = other if np.mean(a - b) > 0 else best
        state, nearest = "decided", (-math.inf, None)
        others = list(live)
        others.remove(best)
        for other in others:
            a, b, blocks = pair(best, other)
            nearest = max(nearest, (np.mean(a - b), other))
            sizes = [rule.sizes.get(best), rule.sizes.get(other)]
            level = (1 - rule.confidence) / len(looks) / len(others)
            rare = [naive_interval(x, level / 2, size)[2] for x, size in zip((a, b), sizes, strict=True)]
            if np.array_equal(a, b) and not any(rare):
                state = "tie" if state == "decided" else state
                continue
            if any(rare):
                upper = naive_interval(a, level / 2, sizes[0])[1] - max(0, naive_interval(b, level / 2, sizes[1])[0])
            else:
                upper = reference.skewed_interval(a - b, level)[1]
            if upper >= 0:
                state = "undecided"
                target = min([x for x in looks if x > blocks], default=blocks)
                wanted[best], wanted[other] = max(wanted[best], target), max(wanted[other], target)
        outcomes.append(Outcome(best, nearest[1], state))
    return [max(a, min(b, rule.budget_blocks)) for a, b in zip(n, wanted, strict=True)], tuple(outcomes)


@given(
    seed=st.integers(0, 2**32),
    width=st.none() | st.floats(0.003, 0.05) | st.floats(0.5, 3),
    confidence=st.sampled_from([0.8, 0.95, 0.999]),
    budget=st.integers(1, 40),
    data=st.data(),
)
@settings(max_examples=12)
def test_every_stage_is_that_of_the_twin(seed, width, confidence, budget, data):
    rng = np.random.default_rng(seed)
    gaps = data.draw(st.lists(st.sampled_from([0, 0.001, 0.01, 0.1]), min_size=6, max_size=6))
    draws = rng.normal(1, 0.02, (6, BATCHES * budget)) + rng.normal(0, 0.2, BATCHES * budget) ** 2
    draws += np.array(gaps)[:, None]
    draws[5] = draws[1]
    chance = data.draw(st.sampled_from([0, 0.02, 0.3]))
    for case in (3, 4):  # rare errors
        draws[case] = rng.gamma(2, 0.5, BATCHES * budget) * (rng.random(BATCHES * budget) < chance)
    sizes = {3: ErrorSizes(1e-3, 2), 4: ErrorSizes(0.1, 1e4), 0: ErrorSizes(1e-3, 100)}
    cells = ((0, 1, 2), (3, 4), (1, 3, 5), (2,), (0, 0), (2, 3))
    rule = StoppingRule(width, cells if width is None or data.draw(st.booleans()) else None, budget, confidence, sizes)
    n = np.minimum(data.draw(st.lists(st.integers(1, 40), min_size=6, max_size=6)), budget)
    for _ in range(12):
        look = rule.look(first_blocks(draws, n), n)
        wanted, outcomes = naive_look(rule, first_blocks(draws, n), n.tolist())
        assert look.wanted.tolist() == wanted
        assert look.outcomes == outcomes
        assert look.widths == pytest.approx(
            [
                naive_width(x[: BATCHES * k], confidence, sizes.get(i))
                for i, (x, k) in enumerate(zip(draws, n, strict=True))
            ]
        )
        assert (look.expected >= look.wanted).all()
        assert (look.expected <= budget).all()
        assert np.array_equal(rule.next_blocks(first_blocks(draws, n), n), look.wanted)
        if np.array_equal(look.wanted, n):
            assert None not in look.reasons
            break
        n = look.wanted


# --- laws -----------------------------------------------------------------------------------------


def noisy(n_cases, budget, seed=1):
    return np.random.default_rng(seed).normal(1, 0.02, (n_cases, BATCHES * budget))


CELLS = tuple((i, i + 1, i + 2) for i in range(0, 30, 3))


@pytest.mark.parametrize(
    "rule",
    [StoppingRule(0.004, None, 50, 0.95), StoppingRule(None, CELLS, 50, 0.95), StoppingRule(0.01, CELLS, 50, 0.9)],
)
def test_a_stage_depends_on_the_blocks_that_count_alone(rule):
    """Whatever is in the store beyond them: the same stages, so that an interrupted sweep comes to the same end."""
    draws, other = noisy(30, 50), noisy(30, 50, seed=2)
    stages, end = finished(rule, draws)
    assert len(stages) > 2
    for before, after in itertools.pairwise(stages):
        mixed = other.copy()
        for case, blocks in enumerate(before):
            mixed[case, : BATCHES * blocks] = draws[case, : BATCHES * blocks]
        assert np.array_equal(rule.next_blocks(first_blocks(mixed, before), before), after)
        assert (after >= before).all()
        assert (after <= 4 * before).all()
    again, end_again = finished(rule, draws.copy())
    assert np.array_equal(again, stages)
    assert end_again.outcomes == end.outcomes
    assert end_again.widths.tobytes() == end.widths.tobytes()


def test_a_case_does_not_depend_on_the_others_to_the_bit(monkeypatch):
    draws, n = noisy(50, 7), np.random.default_rng(3).integers(1, 8, 50)
    rule = StoppingRule(0.004, None, 50, 0.95)
    together = rule.look(first_blocks(draws, n), n)
    monkeypatch.setattr("dpfast.simulation.sweep.stopping_rule._VALUES", 500)
    in_parts = rule.look(first_blocks(draws, n), n)
    for case in range(50):
        alone = rule.look(first_blocks(draws[case : case + 1], n[case : case + 1]), n[case : case + 1])
        for field in ("wanted", "expected", "widths"):
            values = {getattr(x, field)[i].tobytes() for x, i in ((together, case), (in_parts, case), (alone, 0))}
            assert len(values) == 1


@pytest.mark.parametrize(
    ("n", "excess", "wanted", "expected"),
    [
        (10, 1.2, 16, 16),
        (10, 1.001, 11, 11),
        (1, 1.001, 2, 2),
        (10, 3, 40, 95),
        (10, 9, 40, 100),
        (50, 3, 100, 100),
        (10, 0.999, 10, 10),
    ],
)
def test_growth_is_what_the_width_predicts(n, excess, wanted, expected):
    """10 · 1.2² · 1.05 = 15.1; four times what is there, and the budget, are the most."""
    means = first_blocks(noisy(1, 100), [n])
    width = float(StoppingRule(None, None, 100, 0.95).look(means, [n]).widths[0])
    look = StoppingRule(width / excess, None, 100, 0.95).look(means, [n])
    assert (look.wanted.tolist(), look.expected.tolist()) == ([wanted], [expected])


def test_a_best_case_that_a_longer_look_contradicts_is_not_the_winner_yet():
    """1 beats 0 and 2 beats 1 over a block; over two, which 0 and 2 have, 0 beats 2."""
    draws = noisy(3, 2) + np.repeat([[0.2, -0.8], [0.1, 0], [0, 0]], BATCHES, axis=1)
    n = np.array([2, 1, 2])
    look = StoppingRule(None, ((0, 1, 2),), 4, 0.95).look(first_blocks(draws, n), n)
    assert look.outcomes == (Outcome(2, 0, "undecided"),)
    assert look.wanted.tolist() == [4, 1, 4]


def test_comparisons_double_at_most():
    draws = np.ones((2, BATCHES * 100)) + noisy(2, 100)
    stages, look = finished(StoppingRule(None, ((0, 1),), 100, 1 - 1e-9), draws)
    assert [x.tolist() for x in stages] == [[k, k] for k in (1, 2, 4, 8, 16, 32, 64, 100)]
    assert look.reasons == ("budget", "budget")
    assert look.outcomes[0].state == "undecided"


@pytest.mark.parametrize(
    ("budget", "looks"), [(1, [1]), (2, [1, 2]), (3, [1, 2, 3]), (8, [1, 2, 4, 8]), (9, [1, 2, 4, 8, 9])]
)
def test_looks(budget, looks):
    assert StoppingRule(None, None, budget, 0.95).looks.tolist() == looks == naive_looks(budget)


def test_nothing_asked_is_the_whole_budget():
    n = np.array([1, 0, 3])
    look = StoppingRule(None, None, 5, 0.95).look(first_blocks(noisy(3, 5), n), n)
    assert look.wanted.tolist() == look.expected.tolist() == [5, 0, 5]
    assert look.reasons == (None, None, None)
    n = look.wanted
    assert StoppingRule(None, None, 5, 0.95).look(first_blocks(noisy(3, 5), n), n).reasons == ("budget", None, "budget")


def test_reasons():
    draws = noisy(4, 8) + np.array([0, 0.5, 0, 0])[:, None]  # 1 is clearly worse than 0; 2 and 3 are alike
    cells = ((0, 1), (2, 3))
    assert finished(StoppingRule(1.0, None, 8, 0.95), draws)[1].reasons == ("width",) * 4
    assert finished(StoppingRule(1e-4, None, 8, 0.95), draws)[1].reasons == ("budget",) * 4
    assert finished(StoppingRule(None, cells, 8, 0.95), draws)[1].reasons == ("decided", "decided", "budget", "budget")
    assert finished(StoppingRule(1.0, cells, 8, 0.95), draws)[1].reasons == ("decided", "decided", "budget", "budget")
    assert finished(StoppingRule(1e-4, cells, 8, 0.95), draws)[1].reasons == ("budget",) * 4
    assert finished(StoppingRule(None, ((0, 1),), 8, 0.95), draws)[0][-1].tolist() == [1, 1, 1, 1]


def test_ties_and_small_cells():
    draws = noisy(5, 4) + np.array([0, 0, 0.5, 0.5, 0])[:, None]
    draws[1], draws[3] = draws[0], draws[2]
    n = np.array([1, 1, 1, 1, 0])
    cells = ((0, 1), (0, 1, 2), (0, 2, 3), (3, 3), (2,), (2, 4), (4,), (4, 4))
    look = StoppingRule(None, cells, 4, 0.95).look(first_blocks(draws, n), n)
    states = ["tie", "tie", "decided", "tie", "decided", "decided", "undecided", "undecided"]
    assert [x.state for x in look.outcomes] == states
    assert [x.winner for x in look.outcomes] == [0, 0, 0, 3, 2, 2, None, None]
    assert look.outcomes[0].runner_up == look.outcomes[1].runner_up == 1
    assert look.outcomes[3].runner_up == 3
    assert look.outcomes[4].runner_up is look.outcomes[5].runner_up is None
    assert look.reasons == ("decided",) * 4 + (None,)
    assert look.wanted.tolist() == n.tolist()
    assert math.isnan(look.widths[4])


def test_a_difference_too_small_for_intervals_is_found_by_pairs():
    """Common random numbers: what both have in common does not count."""
    rng = np.random.default_rng(1)
    draws = rng.gamma(4, 0.25, BATCHES * 8) + rng.normal(0, 1e-4, (2, BATCHES * 8)) + np.array([[1e-3], [0]])
    _, look = finished(StoppingRule(None, ((0, 1),), 8, 0.95), draws)
    assert look.outcomes == (Outcome(1, 0, "decided"),)
    assert (look.widths > 0.1).all()


def test_no_error_at_all_is_known_well_enough():
    draws = np.zeros((2, BATCHES * 4))
    _, look = finished(StoppingRule(0.01, ((0, 1),), 4, 0.95), draws)
    assert look.widths.tolist() == [0, 0]
    assert look.outcomes == (Outcome(0, 1, "tie"),)


def test_blocks_that_do_not_count_yet_are_refused():
    draws, n = noisy(2, 3), np.array([1, 2])
    with pytest.raises(ValueError, match="means must give 96 batch means of case 1, got 48"):
        StoppingRule(0.01, None, 8, 0.95).next_blocks(lambda case: draws[case], n)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"width": 0}, "width must be a finite number above 0, got 0"),
        ({"budget_blocks": 0}, "budget_blocks must be an integer, at least 1, got 0"),
        ({"confidence": 1}, "confidence must be a number strictly between 0 and 1, got 1"),
        ({"decide": ((0, 1), ())}, "decide must be None or cells of at least one case, got a tuple of length 2"),
    ],
)
def test_arguments(change, message):
    with pytest.raises(ValueError, match=message):
        StoppingRule(**{"width": 0.01, "decide": None, "budget_blocks": 8, "confidence": 0.95, **change})


# --- what intervals and decisions are worth -------------------------------------------------------

FALSE_ALARM = 1e-7


def coverage(confidence, needed, n_cases, seed):
    """How many intervals cover the truth after stopping, where so many blocks are needed."""
    spread, budget = 0.02, 12
    rule = StoppingRule(
        2 * stats.norm.ppf(0.5 + confidence / 2) * spread / 2 / math.sqrt(BATCHES * needed), None, budget, confidence
    )
    draws = np.random.default_rng(seed).normal(1, spread, (n_cases, BATCHES * budget))
    n = finished(rule, draws)[0][-1]
    covered = 0
    for blocks in np.unique(n):
        values = draws[n == blocks, : BATCHES * blocks]
        _, low, high = mean_interval(values, 1 - confidence)
        covered += np.count_nonzero((low <= 1) & (1 <= high))
    return covered


@pytest.mark.parametrize("needed", [1.2, 5])
def test_intervals_cover_after_stopping(needed):
    n_cases = 20_000
    assert coverage(0.95, needed, n_cases, 1) > stats.binom.ppf(FALSE_ALARM, n_cases, 0.94)


@pytest.mark.long
@pytest.mark.parametrize(("confidence", "least"), [(0.95, 0.94), (0.99, 0.986)])
@pytest.mark.parametrize("needed", [1, 1.15, 1.3, 1.5])
def test_intervals_cover_after_stopping_whatever_the_length(confidence, least, needed):
    n_cases = 50_000
    covered = sum(coverage(confidence, needed, n_cases, seed) for seed in range(10))
    assert covered > stats.binom.ppf(FALSE_ALARM, 10 * n_cases, least)


def wrong(n_cells, size, seed, shape=None):
    """Cells decided, of mechanisms that are equally good."""
    rng, budget = np.random.default_rng(seed), 16
    kind = (n_cells * size, BATCHES * budget)
    draws = rng.normal(1, 0.02, kind) if shape is None else rng.gamma(shape, 1 / shape, kind)
    cells = tuple(tuple(range(i, i + size)) for i in range(0, n_cells * size, size))
    _, look = finished(StoppingRule(None, cells, budget, 0.95), draws)
    return sum(x.state == "decided" for x in look.outcomes)


@pytest.mark.parametrize(
    ("size", "shape"), [(2, None), (4, 4), *(pytest.param(*x, marks=pytest.mark.long) for x in [(2, 4), (4, None)])]
)
def test_equal_mechanisms_are_seldom_separated(size, shape):
    n_cells = 1500
    found = wrong(n_cells, size, 1, shape)
    assert found <= stats.binom.isf(FALSE_ALARM, n_cells, 0.05)
    if size == 2:  # nor is the rule so careful that it says nothing: 0.038 measured
        assert found >= stats.binom.ppf(FALSE_ALARM, n_cells, 0.03)


@pytest.mark.long
def test_equal_mechanisms_are_seldom_separated_at_length():
    n_cells = 20_000
    assert wrong(n_cells, 2, 2) <= stats.binom.isf(FALSE_ALARM, n_cells, 0.05)


def test_what_differs_is_told_apart():
    """By half the spread of batch means: with fewer blocks than 16, and rightly."""
    draws = noisy(200, 64) + np.tile([0, 0.01], 100)[:, None]
    stages, look = finished(StoppingRule(None, tuple((i, i + 1) for i in range(0, 200, 2)), 64, 0.95), draws)
    assert {(x.winner % 2, x.state) for x in look.outcomes} == {(0, "decided")}
    assert stages[-1].mean() < 8
