"""Block sums that share noise, in groups and trees of groups: dense covariances, guarantees, simulations, files."""

import dataclasses
import itertools
import math

import numpy as np
import pytest
from helpers import mechanism_files
from helpers import shared_law as twin
from helpers.dense_blocks import DenseBlocks, arma_autocovariance, chain_autocovariance, impulse_response

import dpfast as dp

PAPER = dp.Filter([1, 0.95], [1, -0.95])
CHAIN = dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], [-0.5, 0.5])
AR = dp.ARMA([1.2], [1, -0.9], mean=5.0)
ALARM = 5.5  # standard errors of a simulated MSE: less than 1e-7 a comparison
SEEN = {2: 16, 3: 10, 4: 5}  # largest noise that is listed, of so many in a draw


class SharedDense(DenseBlocks):
    """Noise with a covariance by the level of the lowest node above two blocks."""

    def __init__(self, impulse, autocovariance, length, moments, branches, phase=0, rounding=0.0):
        super().__init__(impulse, autocovariance, (length,), (0.0,), phase, rounding)
        number = (self.times + 1 + phase) // length - 1
        left = np.ones((len(number),) * 2, dtype=bool)
        added = np.zeros(left.shape)
        for size, covariance in zip(np.cumprod([1, *branches]), moments, strict=True):
            same = number[:, None] // size == number // size
            added[same & left] = covariance
            left &= ~same
        self.v = self.v + added


@pytest.mark.parametrize(
    ("model", "length", "branches", "slacks", "lag", "phase"),
    [
        ("chain", 3, (2,), (2,), 0, 0),
        ("chain", 2, (3,), (1,), 0, 1),
        ("AR", 3, (2,), (1,), 4, 2),
        ("AR", 2, (3,), (2,), 7, 0),
        ("chain", 3, (2, 2), (1, 2), 0, 0),
        ("chain", 2, (2, 3), (1, 2), 3, 1),
        ("AR", 3, (2, 2), (3, 1), 4, 2),
        ("AR", 2, (2, 2), (1, 2), 9, 0),
        ("chain", 1, (2, 2, 2), (2, 1, 2), 2, 0),
    ],
)
def test_errors_are_those_of_all_covariances_at_once(model, length, branches, slacks, lag, phase):
    odds, n = 20 if len(branches) == 1 else 60, 240
    model, autocovariance = {
        "chain": (CHAIN, chain_autocovariance([[0.75, 0.25], [0.25, 0.75]], [-0.5, 0.5], n)),
        "AR": (AR, arma_autocovariance([1.2], [1, -0.9], n)),
    }[model]
    rounding = 0.0 if model is CHAIN else 1 / 12
    privacy = dp.Privacy(math.log(odds)) if model is CHAIN else dp.Privacy(2 * math.log(odds), max_change=1.0)
    unit = None if model is CHAIN else 1.0
    options = {"length": length, "group": branches, "slack": slacks, "lag": lag, "phase": phase, "unit": unit}
    mechanism = dp.block_sums(PAPER, privacy, model, **options)  # a real input that is rounded moves by a step more
    moments = mechanism.noise[0].covariances
    if seen := SEEN.get(math.prod(branches)):  # larger trees: in the tests of the law
        listed, missing = twin.moments(branches, slacks, odds, seen)[1], float(odds) ** (sum(slacks) / 2 - seen - 1)
        np.testing.assert_allclose(moments, listed, atol=99 * missing + 1e-8)
    impulse = impulse_response([1, 0.95], [1, -0.95], n)
    dense = SharedDense(impulse, autocovariance, length, moments, branches, phase, rounding)
    cycle = length * math.prod(branches)
    last = (n + phase) // cycle * cycle - 1 - phase
    expected = [dense.mse(t - lag, dense.best_weights(t - lag, t)) for t in range(last - cycle, last)]
    np.testing.assert_allclose(mechanism.phase_mse, expected, rtol=1e-7)
    assert mechanism.ideal_mse == pytest.approx(mechanism.predicted_mse, rel=1e-9)


@pytest.mark.parametrize(("length", "branches", "slacks"), [(4, (2,), (3,)), (3, (2, 3), (2, 4))])
def test_over_a_horizon_errors_are_those_of_all_covariances_at_once(length, branches, slacks):
    n = 29
    target = dp.running_sum(n)
    autocovariance = chain_autocovariance([[0.75, 0.25], [0.25, 0.75]], [-0.5, 0.5], n)
    for lag in (0, 3):
        options = {"length": length, "group": branches, "slack": slacks, "lag": lag}
        mechanism = dp.block_sums(target, dp.Privacy(2), CHAIN, **options)
        dense = SharedDense(np.ones(n), autocovariance, length, mechanism.noise[0].covariances, branches)
        np.testing.assert_allclose(mechanism.step_mse(), dense.step_mse(lag), rtol=1e-7)
        assert mechanism.predicted_mse == pytest.approx(mechanism.ideal_mse, rel=1e-9)


def test_without_slack_it_is_plain_block_sums():
    for lag in (0, 6):
        plain = dp.block_sums(PAPER, dp.Privacy(1), CHAIN, length=5, lag=lag)
        shared = dp.block_sums(PAPER, dp.Privacy(1), CHAIN, length=5, lag=lag, group=3, slack=0)
        np.testing.assert_allclose(shared.phase_mse, np.tile(plain.phase_mse, 3), rtol=1e-9)


def test_groups_without_slack_at_one_level_are_flat_ones():
    for lag in (0, 6):
        flat = dp.block_sums(PAPER, dp.Privacy(1), CHAIN, length=5, lag=lag, group=3, slack=4)
        tree = dp.block_sums(PAPER, dp.Privacy(1), CHAIN, length=5, lag=lag, group=(3, 2), slack=(4, 0))
        np.testing.assert_allclose(tree.phase_mse, np.tile(flat.phase_mse, 2), rtol=1e-7)
        alone = dp.block_sums(PAPER, dp.Privacy(1), CHAIN, length=5, lag=lag, group=(3,), slack=(4,))
        np.testing.assert_array_equal(alone.phase_mse, flat.phase_mse)
        assert (alone.group, alone.slack) == (3, 4)


# --- guarantee ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("branches", "slacks"),
    [((2,), (1,)), ((2,), (3,)), ((3,), (2,)), ((2, 2), (1, 2)), ((2, 2), (2, 2)), ((2, 2), (3, 1))],
)
@pytest.mark.parametrize("n_changes", [1, 2])
def test_no_value_tells_two_inputs_apart_by_more_than_epsilon_also_where_inputs_react(branches, slacks, n_changes):
    """Exactly, value by value; that the noise has this law is tested below."""
    rng, seen = np.random.default_rng(sum(slacks)), 3 if len(branches) == 1 else 2
    assert twin.largest_cost(branches, slacks, n_changes, rng, seen, seen + 1) == n_changes  # it is reached


@pytest.mark.parametrize(
    ("odds", "branches", "slacks", "seen", "n_cells"), [(9, (2,), (2,), 5, 15), (6, (2, 2), (2, 3), 5, 80)]
)
def test_what_is_published_has_that_law_about_the_sums(odds, branches, slacks, seen, n_cells):
    """Constant inputs: what is released is the sum and noise of the listed law, to a chi-square test."""
    options = {"length": 3, "group": branches, "slack": slacks}
    mechanism = dp.block_sums(PAPER, dp.Privacy(math.log(odds)), CHAIN, **options)
    noise = np.rint(mechanism.simulate(np.full((300, 480), 0.5), seed=4).privatized[:, 2::3] - 1.5)
    p, n = twin.misfit(noise.astype(int).reshape(-1, math.prod(branches)), branches, slacks, odds, seen)
    assert p > 1e-8
    assert n > n_cells


@pytest.mark.parametrize(
    ("group", "slack", "kind"), [(2, 3, "shared geometric noise"), ((2, 2), (3, 4), "nested geometric noise")]
)
def test_the_guarantee_counts_all_events_of_a_person_and_steps_of_the_lattice(group, slack, kind):
    levels = dp.IndependentLevels([0.0, 1.0, 2.0], [0.2, 0.5, 0.3])
    privacy = dp.Privacy(3, max_change=2.0, max_events=3)
    mechanism = dp.block_sums(PAPER, privacy, levels, length=2, group=group, slack=slack)
    assert mechanism.noise[0].rate == pytest.approx(3 / 6)
    assert mechanism.guarantee_terms().delta == 0.0
    assert kind in mechanism.summary()


# --- simulation and files -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def groups():
    options = {"group": 3, "slack": 2, "length": 4}
    return [
        dp.block_sums(PAPER, dp.Privacy(1), CHAIN, **options, name="chain"),
        dp.block_sums(PAPER, dp.Privacy(1), CHAIN, **options, lag=5, phase=1, name="late"),
        dp.block_sums(dp.Filter([0.2], [1, -0.8]), dp.Privacy(1), CHAIN, group=2, slack=1, length=1, name="each step"),
    ]


@pytest.fixture(scope="module")
def trees():
    options = {"group": (3, 2), "slack": (4, 3), "length": 4}
    three = {"group": (2, 2, 2), "slack": (2, 2, 4), "length": 2}
    return [
        dp.block_sums(PAPER, dp.Privacy(1), CHAIN, **options, name="two levels"),
        dp.block_sums(PAPER, dp.Privacy(1), CHAIN, **options, lag=5, phase=1, name="two levels, late"),
        dp.block_sums(PAPER, dp.Privacy(2), CHAIN, **three, name="three levels"),
    ]


def test_simulations_have_the_predicted_error(groups, trees):
    study = dp.monte_carlo([*groups, *trees], CHAIN, n_streams=300, n_samples=3000, seed=7)
    for mechanism in (*groups, *trees):
        found = study[mechanism.name]
        error = found.stream_mse.std(ddof=1) / math.sqrt(300)
        assert abs(found.mse - mechanism.predicted_mse) < ALARM * error
        assert error < 0.02 * mechanism.predicted_mse


def test_they_are_kept_in_files_and_pickles(groups, trees, tmp_path):
    u = CHAIN.sample(2, 60, seed=1)
    for mechanism in (*groups, *trees):
        for kept in mechanism_files.kept(mechanism, u, tmp_path):
            assert (kept.group, kept.slack) == (mechanism.group, mechanism.slack)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"slack": 4}, "slack must be as many"),
        ({"slack": [4, 3, 1]}, "slack must be as many"),
        ({"slack": [4, -1]}, "slack must be"),
        ({"slack": []}, "slack must be"),
        ({"group": [3, 1]}, "group must be"),
        ({"group": [2, 2]}, "weights must be|advance|gains"),
        ({"group": 6}, "slack must be as many"),
    ],
)
def test_files_that_no_tree_has_are_refused(trees, tmp_path, change, message):
    ((name, value),) = change.items()
    document = mechanism_files.forged(mechanism_files.documents(trees[0], tmp_path), {f"blocks.{name}": value})
    with pytest.raises(ValueError, match=message):
        dp.load(mechanism_files.written(document, tmp_path))


def test_another_privacy_makes_other_noise(groups, trees):
    for mechanism in (groups[0], trees[0]):
        other = dataclasses.replace(mechanism, privacy=dp.Privacy(2))
        assert other.noise[0].epsilon == 2
        assert other.predicted_mse < mechanism.predicted_mse


# --- designs --------------------------------------------------------------------------------------


def test_groups_err_less_on_the_paper_s_example_and_no_neighbour_errs_less():
    target = dp.Filter([1, 0.995], [1, -0.995])
    best = dp.block_sums(target, dp.Privacy(1), CHAIN, group=5)
    plain = dp.block_sums(target, dp.Privacy(1), CHAIN)
    assert best.predicted_rmse < 6.605  # 8.6 % below the 7.228 of plain sums
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
    shared = dp.block_sums(dp.running_sum(256), dp.Privacy(1), CHAIN, group="best")
    assert shared.predicted_mse < 0.85 * dp.block_sums(dp.running_sum(256), dp.Privacy(1), CHAIN).predicted_mse


def test_the_best_tree_errs_less_on_the_paper_s_example_and_no_neighbour_errs_less():
    target = dp.Filter([1, 0.995], [1, -0.995])
    best = dp.block_sums(target, dp.Privacy(1), CHAIN, group="best")
    assert best.predicted_rmse < 6.392  # 11.6 % below the 7.228 of plain sums
    (length,), group, slack = best.lengths, best.group, best.slack
    for axis, step in itertools.product(range(1 + 2 * len(group)), (-1, 1)):
        numbers = [length, *group, *slack]
        numbers[axis] += step * (2 if axis > len(group) else 1)
        n = len(group) + 1
        options = {"length": numbers[0], "group": numbers[1:n], "slack": numbers[n:]}
        moved = dp.block_sums(target, dp.Privacy(1), CHAIN, **options)
        assert moved.predicted_mse >= best.predicted_mse * (1 - 1e-5)


@pytest.mark.parametrize(
    ("pole", "epsilon", "length", "group", "slack", "rmse"),
    [
        (0.995, 1, 14, (3, 3), (4, 4), 6.4532),  # by a program that shares no code with the package
        (0.9999, 1, 59, (5, 6), (12, 16), 15.0534),
    ],
)
def test_errors_are_those_that_another_program_finds(pole, epsilon, length, group, slack, rmse):
    options = {"length": length, "group": group, "slack": slack}
    mechanism = dp.block_sums(dp.Filter([1, pole], [1, -pole]), dp.Privacy(epsilon), CHAIN, **options)
    assert mechanism.predicted_rmse == pytest.approx(rmse, abs=1e-4)


def test_slacks_of_given_groups_are_found():
    found = dp.block_sums(PAPER, dp.Privacy(1), CHAIN, group=(3, 2), length=6)
    (a, b) = found.slack
    for slack in ((a - 2, b), (a + 2, b), (a, b - 2), (a, b + 2)):
        if min(slack) >= 1:
            moved = dp.block_sums(PAPER, dp.Privacy(1), CHAIN, group=(3, 2), length=6, slack=slack)
            assert moved.predicted_mse >= found.predicted_mse * (1 - 1e-5)


REFUSED = [
    ({"group": 1}, "group must be"),
    ({"group": 65}, "group must be"),
    ({"group": "most"}, "group must be"),
    ({"slack": 2}, "slack must not be given without"),
    ({"group": 2, "slack": -1}, "slack must be"),
    ({"group": 2, "slack": 10**6}, "slack must be smaller, got 1000000 for groups of 2 at an epsilon of 1"),
    ({"group": (3, 3), "slack": (4, 10**6)}, r"slack must be smaller, got \(4, 1000000\) for groups of \(3, 3\)"),
    ({"group": "best", "slack": 10**30}, "slack must be smaller, got 1000000"),
    ({"group": 64, "slack": 4}, "group must be smaller, got 64 at an epsilon of 1"),
    ({"group": 2, "noise": "canonical"}, "noise must be 'geometric' where blocks share noise"),
    ({"group": 2, "receiver": "bayes"}, "receiver must be 'linear' where blocks share noise"),
    ({"group": 2, "weights": "best"}, "weights must be None where blocks share noise"),
    ({"group": 2, "length": (2, 4)}, "length must be one where blocks share noise"),
    ({"group": 2, "length": (2,), "shares": (1.0,)}, "shares must be None where blocks share noise"),
    ({"group": ()}, "group must be"),
    ({"group": (3, 1)}, "group must be"),
    ({"group": (3, 65)}, "group must be"),
    ({"group": (3, 2.5)}, "group must be"),
    ({"group": (3, 2), "slack": 3}, "slack must be as many integers as there are levels of groups, 2"),
    ({"group": 3, "slack": (3, 2)}, "slack must be as many integers as there are levels of groups, 1"),
    ({"group": "best", "slack": (3, 2)}, "slack must be as many integers as there are levels of groups, 1"),
    ({"group": (3, 2), "slack": (3, -1)}, "slack must be"),
    ({"group": (8, 8, 8)}, "group must be of at most"),
    ({"group": (3, 2), "receiver": "bayes"}, "receiver must be 'linear' where blocks share noise"),
    ({"group": (3, 2), "length": (2, 4)}, "length must be one where blocks share noise"),
]


@pytest.mark.parametrize(("options", "message"), REFUSED, ids=[str(x[0]) for x in REFUSED])
def test_what_does_not_go_together_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        dp.block_sums(PAPER, dp.Privacy(1, 0.01), CHAIN, **options)


def test_noise_too_large_for_its_tables_is_refused_and_never_found():
    with pytest.raises(ValueError, match=r"group must be smaller, got 8 at an epsilon of 0\.01"):
        dp.block_sums(PAPER, dp.Privacy(0.01), CHAIN, length=50, group=8)
    with pytest.raises(ValueError, match=r"at an epsilon of 0\.01"):
        dp.block_sums(PAPER, dp.Privacy(0.01), CHAIN, length=50, group=(8, 8))
    assert dp.block_sums(PAPER, dp.Privacy(0.005), CHAIN, length=50, group="best").group == 1


@pytest.mark.parametrize(("group", "most"), [(2, 200), (4, 600)])
def test_a_slack_that_gains_a_little_for_ever_ends(group, most):
    """Behind each input on its own any more slack errs less: it ends where twice as much gains hardly a per cent."""
    found = dp.block_sums(PAPER, dp.Privacy(1), CHAIN, group=group, length=1)
    twice = dp.block_sums(PAPER, dp.Privacy(1), CHAIN, group=group, length=1, slack=2 * found.slack)
    assert found.slack < most
    assert 0.99 * found.predicted_mse < twice.predicted_mse < found.predicted_mse
