"""Decision feedback whose decisions seldom fail: what a sweep may say of errors that it has hardly seen."""

import functools
import math

import numpy as np
import pytest
from helpers.designs import designed
from helpers.sweeps import run
from scipy import stats

import dpfast as dp
from dpfast._support import table_layout
from dpfast.simulation.intervals import ENOUGH, count_events, mse_interval
from dpfast.simulation.prepared_study import settling_time
from dpfast.simulation.rare_error_sizes import error_sizes, input_range
from dpfast.simulation.sweep import stream_blocks
from dpfast.simulation.sweep.stopping_rule import StoppingRule

PAPER, AVERAGE = dp.Filter([1, 0.995], [1, -0.995]), dp.Filter(np.ones(12) / 12)
CHAIN = dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[-0.5, 0.5])
OWN = {"mechanism": "decision_feedback", "decision": ["sign", "soft"], "prefilter": "decision-feedback"}
TASKS = {
    "paper, ε = 50": (PAPER, 50, 1000),
    "paper, ε = 60": (PAPER, 60, 10_000),
    "average, ε = 50": (AVERAGE, 50, 1000),
    "average, ε = 60": (AVERAGE, 60, 10_000),
}
SIGN, SOFT, LINEAR = range(3)
BUDGET, BATCHES = 32, stream_blocks.BATCHES


# --- sweeps ---------------------------------------------------------------------------------------


@functools.cache
def certain():
    """So little noise that no decision will ever fail, and hard decisions have no error at all."""
    grid = {**OWN, "target": AVERAGE, "model": CHAIN, "epsilon": 100, "delta": 0.05, "lag": 5}
    return run(grid, n_samples=100, burn_in=None, width=0.5, budget=5e4, decide="decision")


def test_an_error_that_was_not_seen_is_bounded():
    hard, soft = certain()
    assert hard.rmse == 0 < soft.rmse < 1e-9
    for row in (hard, soft):
        n = len(row.batch_means)
        assert (n, row.stopped) == (3 * BATCHES, "budget")
        assert (row.error_events, row.is_rare) == (0, True)
        chance = stats.binomtest(0, n).proportion_ci(0.95, method="exact").high
        one = 0.25 / 12 / (8 * 100)  # squared error of a wrong decision, by half the distance, on a batch
        assert row.interval == pytest.approx((0, math.sqrt(chance + (1 - chance) * one)), rel=1e-9)
    assert hard.relative_width == math.inf


def test_what_was_not_seen_decides_nothing():
    (cell,) = certain().winners()
    assert cell.state == "undecided"
    assert certain().rule.startswith("until interval of at most 50% of the RMSE and best decision decided")


def test_no_error_seen_is_no_width_and_no_tie():
    """Two kinds of hard decisions, the same to the bit as long as none is wrong."""
    grid = {**OWN, "target": AVERAGE, "model": CHAIN, "epsilon": 100, "delta": 0.05, "lag": 5}
    grid["decision"] = ["sign", "quantizer"]
    found = run(grid, n_samples=100, burn_in=None, width=0.5, budget=5e4)
    assert [(x.rmse, len(x.batch_means), x.stopped) for x in found] == [(0, 3 * BATCHES, "budget")] * 2
    (cell,) = found.winners("decision")
    assert cell.state == "undecided"
    (again,) = run(grid, n_samples=100, burn_in=None, width=None, budget=5e4, decide="decision").winners()
    assert again.state == "undecided"


def test_tables_say_that_errors_are_rare(monkeypatch):
    monkeypatch.setattr(table_layout, "WIDTH", 1000)  # room for all columns
    found = certain()
    table = found.to_pandas()[:2]  # behind them the constant, of which nothing is simulated
    assert table["error_events"].tolist() == [0, 0]
    assert table["interval_by"].tolist() == ["rare errors"] * 2
    assert "error_events  interval_by" in str(found)
    assert "95% intervals, of 2 cases bounds for rare errors" in " ".join(str(found).split())
    assert "rare errors" in found._repr_html_()
    linear = run(budget=1)
    assert "interval_by" not in str(linear)
    assert set(linear.to_pandas()["interval_by"][:4]) == {"spread"}
    assert linear.to_pandas()["error_events"].isna().all()


def hard_decisions():
    privacy, options = dp.Privacy(100, 0.05), {"lag": 5, "decision": "sign", "name": "DFE", "tolerance": 0.3}
    return designed(dp.decision_feedback, AVERAGE, privacy, CHAIN, **options)


def test_errors_that_were_not_seen_win_no_contest():
    """Against a small error, far above zero by its spread: decisions could still be worse, if one of them is wrong."""
    designs = [hard_decisions()]
    designs.append(dp.input_perturbation(AVERAGE, dp.Privacy(100, 0.05), name="linear"))
    found = run({"mechanism": designs, "stream": CHAIN}, n_samples=100, width=None, budget=5e4, decide="mechanism")
    (cell,) = found.winners()
    assert (cell.state, cell.best.mechanism_name, cell.best.rmse) == ("undecided", "DFE", 0)
    assert cell.second.interval[0] > 0.01
    assert [x.stopped for x in found] == ["budget"] * 2


def test_a_bound_decides_where_it_is_below_the_others():
    """However large the errors are not seen are: less than those of a mechanism worse than the worst decisions."""
    designs = [hard_decisions()]
    designs.append(dp.output_perturbation(AVERAGE, dp.Privacy(0.01, 0.05), name="noisy"))
    found = run({"mechanism": designs, "stream": CHAIN}, n_samples=100, width=None, budget=5e4, decide="mechanism")
    (cell,) = found.winners()
    assert (cell.state, cell.best.mechanism_name) == ("decided", "DFE")
    assert cell.best.is_rare
    assert [x.stopped for x in found] == ["decided"] * 2


def test_a_stream_that_may_be_anything_has_no_bound():
    grid = {**OWN, "decision": "sign", "target": AVERAGE, "model": CHAIN, "epsilon": 100, "delta": 0.05, "lag": 5}
    (row,) = run(grid | {"stream": dp.ARMA([1e-6], [1.0], mean=0.5)}, n_samples=100, width=None, budget=1)
    assert row.sizes.largest == math.inf
    assert row.interval[1] == (math.inf if row.is_rare else pytest.approx(row.rmse, rel=0.1))


# --- coverage -------------------------------------------------------------------------------------


class Task:
    """Sign and soft decisions behind their own prefilter, lag 5, and a linear mechanism beside them."""

    def __init__(self, target, epsilon, n_samples):
        privacy, own = dp.Privacy(epsilon, 0.05), "decision-feedback"
        made = [
            dp.decision_feedback(target, privacy, CHAIN, lag=5, prefilter=own, decision=x) for x in ("sign", "soft")
        ]
        made.append(dp.lmmse(target, privacy, CHAIN, lag=5, prefilter=dp.Filter([1.0])))
        self.source, self.n_samples = CHAIN.compiled(), n_samples
        self.mechanisms = tuple(x.compiled() for x in made)
        self.burn_in = max(map(settling_time, made))
        inputs = input_range(self.source)
        self.sizes = [error_sizes(x, inputs, n_samples, stream_blocks.STREAMS // BATCHES) for x in self.mechanisms]

    def batch_means(self, seed, n_blocks):
        """(cases, batches) of the first blocks of a seed, as a sweep has them."""
        parts = (
            stream_blocks.Block(self.source, self.mechanisms, self.burn_in, self.n_samples, seed, k)
            for k in range(n_blocks)
        )
        return np.concatenate([stream_blocks.simulate_block(x, 2) for x in parts], axis=1)


def finished(rule, draws):
    """Blocks of each case when nothing more is wanted, and the last look."""
    wanted = np.ones(len(draws), dtype=int)
    while True:
        n = wanted
        look = rule.look(functools.partial(_first, draws, n), n)
        wanted = look.wanted
        if np.array_equal(wanted, n):
            return n, look


def _first(draws, n, case):
    return draws[case, : BATCHES * n[case]]


def check_sweeps(task, draws, truth, **asked):
    """What many sweeps (sweeps, cases, batches) say: intervals cover, and winners are right, as they should."""
    n_sweeps, n_cases, n_batches = draws.shape
    flat = draws.reshape(n_sweeps * n_cases, -1)
    sizes = {i: task.sizes[i % n_cases] for i in range(len(flat)) if task.sizes[i % n_cases]}
    cells = tuple(tuple(range(i, i + n_cases)) for i in range(0, len(flat), n_cases))
    rule = StoppingRule(asked.get("width"), cells if "decide" in asked else None, n_batches // BATCHES, 0.95, sizes)
    n, look = finished(rule, flat)
    fewest = 0.95 * n_sweeps - 5 * math.sqrt(n_sweeps * 0.95 * 0.05)
    covered, by_width = {}, 0
    for case in range(n_cases):
        held = 0
        for i in range(case, len(flat), n_cases):
            values = flat[i, : BATCHES * n[i]]
            low, high = mse_interval(values, 0.05, sizes.get(i))
            held += low <= truth[case] <= high
            if case != LINEAR and look.reasons[i] == "width":
                assert count_events(values, sizes[i]) >= ENOUGH
                by_width += 1
        covered[case] = held / n_sweeps
        assert held >= fewest, covered
    best = int(np.argmin(truth))
    wrong = sum(x.state == "decided" and x.winner % n_cases != best for x in look.outcomes)
    assert wrong <= 0.05 * n_sweeps + 5 * math.sqrt(n_sweeps * 0.95 * 0.05)
    decided = sum(x.state == "decided" for x in look.outcomes)
    print(asked, "covered", covered, "by width", by_width, "decided", decided, "wrong", wrong, "of", n_sweeps)


def resampled(pool, n_sweeps, seed):
    """Sweeps whose batches are drawn from many, the same for all cases: their mean is the truth."""
    chosen = np.random.default_rng(seed).integers(pool.shape[1], size=(n_sweeps, BATCHES * BUDGET))
    return np.moveaxis(pool[:, chosen], 0, 1)


RULES = [{"width": 0.8}, {"width": 0.4}, {"decide": True}]


def test_intervals_of_rare_errors_cover():
    """A smaller version of what `nox -s statistics` does."""
    task = Task(*TASKS["average, ε = 50"])
    pool = task.batch_means(1, 60)
    for asked in ({"width": 0.8}, {"decide": True}):
        check_sweeps(task, resampled(pool, 300, 2), pool.mean(axis=1), **asked)


@pytest.mark.long
@pytest.mark.parametrize("name", TASKS)
def test_intervals_of_rare_errors_cover_at_length(name):
    """5,000 sweeps of batches drawn from those of 1,000 blocks: simulating all of them would take most of a day."""
    task = Task(*TASKS[name])
    pool = task.batch_means(3, 1000)
    for asked in RULES:
        check_sweeps(task, resampled(pool, 5000, 4), pool.mean(axis=1), **asked)


@pytest.mark.long
@pytest.mark.parametrize("name", TASKS)
def test_intervals_of_rare_errors_cover_over_seeds(name):
    """5,000 sweeps, each of its own seed; with 10,000 samples they have at most 8 blocks, or it would take hours."""
    task = Task(*TASKS[name])
    budget = BUDGET if task.n_samples < 10_000 else 8
    draws = np.stack([task.batch_means(seed, budget) for seed in range(1000, 6000)])
    truth = draws.mean(axis=(0, 2))
    for asked in RULES:
        check_sweeps(task, draws, truth, **asked)
