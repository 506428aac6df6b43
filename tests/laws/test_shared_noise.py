"""Block sums whose blocks share noise: predictions by dense covariances, guarantees by enumeration, simulations."""

import dataclasses
import itertools
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from helpers import shared_law as twin
from helpers.dense_blocks import DenseBlocks, arma_autocovariance, chain_autocovariance, impulse_response

import dpfast as dp

PAPER = dp.Filter([1, 0.95], [1, -0.95])
CHAIN = dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], [-0.5, 0.5])
AR = dp.ARMA([1.2], [1, -0.9], mean=5.0)
RTOL = 1e-9
ALARM = 5.5  # standard errors of a simulated MSE: less than 1e-7 a comparison


class SharedDense(DenseBlocks):
    """Noise of blocks of a group, q blocks from the first one on, with a covariance."""

    def __init__(self, impulse, autocovariance, length, law, group, phase=0, rounding=0.0):
        variance, covariance = law
        super().__init__(impulse, autocovariance, (length,), (variance,), phase, rounding)
        of_group = ((self.times + 1 + phase) // length - 1) // group
        same = of_group[:, None] == of_group
        self.v = self.v + covariance * (same & ~np.eye(len(same), dtype=bool))


def law_of(odds, group, slack):
    """Variance and covariance by listing."""
    return twin.moments(group, slack, odds, 16 if group == 2 else 10)[1:]


@pytest.mark.parametrize(
    ("model", "length", "group", "slack", "lag", "phase"),
    [("chain", 3, 2, 2, 0, 0), ("chain", 2, 3, 1, 0, 1), ("AR", 3, 2, 1, 4, 2), ("AR", 2, 3, 2, 7, 0)],
)
def test_errors_are_those_of_all_covariances_at_once(model, length, group, slack, lag, phase):
    odds, n = 20, 400
    model, autocovariance = {
        "chain": (CHAIN, chain_autocovariance([[0.75, 0.25], [0.25, 0.75]], [-0.5, 0.5], n)),
        "AR": (AR, arma_autocovariance([1.2], [1, -0.9], n)),
    }[model]
    rounding = 0.0 if model is CHAIN else 1 / 12
    change = {} if model is CHAIN else {"max_change": 1.0}
    odds = odds if model is CHAIN else odds**2  # a real input that is rounded moves by one step more
    unit = None if model is CHAIN else 1.0
    options = {"length": length, "group": group, "slack": slack, "lag": lag, "phase": phase, "unit": unit}
    mechanism = dp.block_sums(PAPER, dp.Privacy(math.log(odds), **change), model, **options)
    law = law_of(20, group, slack)
    assert (mechanism.noise[0].variance, mechanism.noise[0].covariance) == pytest.approx(law, rel=1e-7)
    dense = SharedDense(impulse_response([1, 0.95], [1, -0.95], n), autocovariance, length, law, group, phase, rounding)
    cycle = length * group
    last = (n + phase) // cycle * cycle - 1 - phase
    expected = [dense.mse(t - lag, dense.best_weights(t - lag, t)) for t in range(last - cycle, last)]
    np.testing.assert_allclose(mechanism.phase_mse, expected, rtol=1e-7)


def test_over_a_horizon_errors_are_those_of_all_covariances_at_once():
    n, odds, group, slack = 23, 9, 2, 3
    target = dp.running_sum(n)
    autocovariance = chain_autocovariance([[0.75, 0.25], [0.25, 0.75]], [-0.5, 0.5], n)
    for lag in (0, 3):
        options = {"length": 4, "group": group, "slack": slack, "lag": lag}
        mechanism = dp.block_sums(target, dp.Privacy(math.log(odds)), CHAIN, **options)
        dense = SharedDense(np.ones(n), autocovariance, 4, law_of(odds, group, slack), group)
        np.testing.assert_allclose(mechanism.step_mse(), dense.step_mse(lag), rtol=1e-7)
        assert mechanism.predicted_mse == pytest.approx(mechanism.ideal_mse, rel=RTOL)


def test_without_slack_it_is_plain_block_sums():
    for lag in (0, 6):
        plain = dp.block_sums(PAPER, dp.Privacy(1), CHAIN, length=5, lag=lag)
        shared = dp.block_sums(PAPER, dp.Privacy(1), CHAIN, length=5, lag=lag, group=3, slack=0)
        np.testing.assert_allclose(shared.phase_mse, np.tile(plain.phase_mse, 3), rtol=RTOL)


# --- guarantee ------------------------------------------------------------------------------------

ODDS = 3  # e^epsilon


def published(law, inputs, v):
    """The weight of publishing v, for inputs of each block that depend on what was published before."""
    return law(tuple(value - inputs[j](v[:j]) for j, value in enumerate(v)))


@pytest.mark.parametrize(("group", "slack"), [(2, 1), (2, 3), (3, 2)])
@pytest.mark.parametrize("n_changes", [1, 2])
def test_no_value_tells_two_inputs_apart_by_more_than_epsilon_also_where_inputs_react(group, slack, n_changes):
    """Exactly, value by value: inputs of a block are any functions of what was published in the group before.

    Two neighbours have the same functions but for `n_changes` blocks, where they differ by one.
    """
    rng = np.random.default_rng(group + slack)
    weigh = {x: Fraction(1, ODDS ** twin.size(x, slack)) for x in itertools.product(range(-15, 16), repeat=group)}
    values = list(itertools.product(range(-3, 4), repeat=group))
    largest = Fraction(0)
    for _ in range(6):
        tables = [dict(zip(values, rng.integers(-4, 5, len(values)), strict=True)) for _ in range(group)]
        rules = [lambda past, t=t: int(t[(*past, *(0,) * (group - len(past)))]) for t in tables]
        for places in itertools.combinations(range(group), n_changes):
            signs = rng.choice([-1, 1], group)
            other = [
                (lambda past, r=r, k=int(signs[j]): r(past) + k) if j in places else r for j, r in enumerate(rules)
            ]
            ratios = [published(weigh.get, rules, v) / published(weigh.get, other, v) for v in values]
            largest = max(largest, *ratios, *(1 / x for x in ratios))
    assert largest <= ODDS**n_changes
    assert largest == ODDS**n_changes  # it is reached


def test_what_is_published_has_that_law_about_the_sums():
    """Constant inputs: what is released is the sum and noise of the listed law, to a chi-square test."""
    odds, group, slack = 9, 2, 2
    mechanism = dp.block_sums(PAPER, dp.Privacy(math.log(odds)), CHAIN, length=3, group=group, slack=slack)
    u = np.full((400, 300), 0.5)
    noise = np.rint(mechanism.simulate(u, seed=4).privatized[:, 2::3] - 1.5).astype(int).reshape(-1, group)
    law = twin.weights(group, slack, odds, 5)
    total = float(sum(law.values()))
    values, counts = np.unique(noise, axis=0, return_counts=True)
    found = dict(zip(map(tuple, values), counts, strict=True))
    expected = {x: len(noise) * float(w) / total for x, w in law.items() if len(noise) * float(w) / total > 10}
    chi = sum((found.get(x, 0) - n) ** 2 / n for x, n in expected.items())
    assert chi < len(expected) + 6 * math.sqrt(2 * len(expected)) + 12  # beyond it less than 1e-8


def test_the_guarantee_counts_all_events_of_a_person_and_steps_of_the_lattice():
    levels = dp.IndependentLevels([0.0, 1.0, 2.0], [0.2, 0.5, 0.3])
    privacy = dp.Privacy(2, max_change=2.0, max_events=3)
    mechanism = dp.block_sums(PAPER, privacy, levels, length=2, group=2, slack=3)
    assert mechanism.noise[0].rate == pytest.approx(2 / 6)
    assert mechanism.guarantee_terms().delta == 0.0


# --- simulation and files -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def mechanisms():
    options = {"group": 3, "slack": 2, "length": 4}
    return [
        dp.block_sums(PAPER, dp.Privacy(1), CHAIN, **options, name="chain"),
        dp.block_sums(PAPER, dp.Privacy(1), CHAIN, **options, lag=5, phase=1, name="late"),
        dp.block_sums(dp.Filter([0.2], [1, -0.8]), dp.Privacy(1), CHAIN, group=2, slack=1, length=1, name="each step"),
    ]


def test_simulations_have_the_predicted_error(mechanisms):
    study = dp.monte_carlo(mechanisms, CHAIN, n_streams=300, n_samples=3000, seed=7)
    for mechanism in mechanisms:
        found = study[mechanism.name]
        error = found.stream_mse.std(ddof=1) / math.sqrt(300)
        assert abs(found.mse - mechanism.predicted_mse) < ALARM * error
        assert error < 0.02 * mechanism.predicted_mse


def test_they_are_kept_in_files_and_pickles(mechanisms, tmp_path):
    u = CHAIN.sample(2, 60, seed=1)
    for mechanism in mechanisms:
        dp.save(mechanism, tmp_path / "m.json")
        for kept in (dp.load(tmp_path / "m.json"), pickle.loads(pickle.dumps(mechanism))):
            assert (kept.group, kept.slack) == (mechanism.group, mechanism.slack)
            np.testing.assert_array_equal(kept.simulate(u, seed=2).estimate, mechanism.simulate(u, seed=2).estimate)
            assert kept.predicted_mse == mechanism.predicted_mse


def test_another_privacy_makes_other_noise(mechanisms):
    other = dataclasses.replace(mechanisms[0], privacy=dp.Privacy(2))
    assert other.noise[0].epsilon == 2
    assert other.predicted_mse < mechanisms[0].predicted_mse


# --- designs --------------------------------------------------------------------------------------


def test_groups_err_less_on_the_paper_s_example_and_no_neighbour_errs_less():
    target = dp.Filter([1, 0.995], [1, -0.995])
    best = dp.block_sums(target, dp.Privacy(1), CHAIN, group=5)
    plain = dp.block_sums(target, dp.Privacy(1), CHAIN)
    assert best.predicted_rmse < 6.605  # 8.6 % below the 7.228 of plain sums; of groups of groups: test_nested_noise
    assert plain.predicted_rmse == pytest.approx(7.228, abs=1e-3)
    (length,), group, slack = best.lengths, best.group, best.slack
    for moves in ((-1, 0), (1, 0), (0, -1), (0, 1)):
        options = {"length": length + moves[0], "group": group, "slack": slack + moves[1]}
        assert dp.block_sums(target, dp.Privacy(1), CHAIN, **options).predicted_mse >= best.predicted_mse


def test_it_finds_noise_of_its_own_where_sharing_gains_nothing():
    best = dp.block_sums(dp.Filter([1, -2]), dp.Privacy(3), CHAIN, group="best")
    assert best.group == 1
    assert best.predicted_mse == dp.block_sums(dp.Filter([1, -2]), dp.Privacy(3), CHAIN).predicted_mse


def test_over_a_horizon_it_errs_less_too():
    shared = dp.block_sums(dp.running_sum(512), dp.Privacy(1), CHAIN, group="best")
    assert shared.predicted_mse < 0.85 * dp.block_sums(dp.running_sum(512), dp.Privacy(1), CHAIN).predicted_mse


REFUSED = [
    ({"group": 1}, "group must be"),
    ({"group": 65}, "group must be"),
    ({"group": "most"}, "group must be"),
    ({"slack": 2}, "slack must not be given without"),
    ({"group": 2, "slack": -1}, "slack must be"),
    ({"group": 2, "noise": "canonical"}, "noise must be 'geometric' where blocks share noise"),
    ({"group": 2, "receiver": "bayes"}, "receiver must be 'linear' where blocks share noise"),
    ({"group": 2, "weights": "best"}, "weights must be None where blocks share noise"),
    ({"group": 2, "length": (2, 4)}, "length must be one where blocks share noise"),
    ({"group": 2, "length": (2,), "shares": (1.0,)}, "shares must be None where blocks share noise"),
]


@pytest.mark.parametrize(("options", "message"), REFUSED, ids=[str(x[0]) for x in REFUSED])
def test_what_does_not_go_together_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        dp.block_sums(PAPER, dp.Privacy(1, 0.01), CHAIN, **options)


def test_noise_too_large_for_its_table_is_refused_and_never_found():
    with pytest.raises(ValueError, match=r"group must be smaller, got 8 at an epsilon of 0\.01"):
        dp.block_sums(PAPER, dp.Privacy(0.01), CHAIN, length=50, group=8)
    assert dp.block_sums(PAPER, dp.Privacy(0.005), CHAIN, length=50, group="best").group == 1
