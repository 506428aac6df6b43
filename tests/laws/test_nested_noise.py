"""Block sums that share noise in groups of groups: dense covariances, guarantees by enumeration, simulations, files."""

import dataclasses
import itertools
import math
import pickle

import numpy as np
import pytest
from helpers import mechanism_files
from helpers import nested_law as twin
from helpers.dense_blocks import DenseBlocks, arma_autocovariance, chain_autocovariance, impulse_response

import dpfast as dp

PAPER = dp.Filter([1, 0.95], [1, -0.95])
CHAIN = dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], [-0.5, 0.5])
AR = dp.ARMA([1.2], [1, -0.9], mean=5.0)
ALARM = 5.5  # standard errors of a simulated MSE: less than 1e-7 a comparison


class NestedDense(DenseBlocks):
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
        ("chain", 3, (2, 2), (1, 2), 0, 0),
        ("chain", 2, (2, 3), (1, 2), 3, 1),
        ("AR", 3, (2, 2), (3, 1), 4, 2),
        ("AR", 2, (2, 2), (1, 2), 9, 0),
        ("chain", 1, (2, 2, 2), (2, 1, 2), 2, 0),
    ],
)
def test_errors_are_those_of_all_covariances_at_once(model, length, branches, slacks, lag, phase):
    odds, seen, n = 60, 5, 240
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
    if branches == (2, 2):  # larger trees: in the tests of the law
        listed, missing = twin.moments(branches, slacks, odds, seen)[1], float(odds) ** (sum(slacks) / 2 - seen - 1)
        np.testing.assert_allclose(moments, listed, atol=99 * missing + 1e-8)
    impulse = impulse_response([1, 0.95], [1, -0.95], n)
    dense = NestedDense(impulse, autocovariance, length, moments, branches, phase, rounding)
    cycle = length * math.prod(branches)
    last = (n + phase) // cycle * cycle - 1 - phase
    expected = [dense.mse(t - lag, dense.best_weights(t - lag, t)) for t in range(last - cycle, last)]
    np.testing.assert_allclose(mechanism.phase_mse, expected, rtol=1e-7)
    assert mechanism.ideal_mse == pytest.approx(mechanism.predicted_mse, rel=1e-9)


def test_over_a_horizon_errors_are_those_of_all_covariances_at_once():
    n, branches = 29, (2, 3)
    target = dp.running_sum(n)
    autocovariance = chain_autocovariance([[0.75, 0.25], [0.25, 0.75]], [-0.5, 0.5], n)
    for lag in (0, 3):
        options = {"length": 3, "group": branches, "slack": (2, 4), "lag": lag}
        mechanism = dp.block_sums(target, dp.Privacy(2), CHAIN, **options)
        dense = NestedDense(np.ones(n), autocovariance, 3, mechanism.noise[0].covariances, branches)
        np.testing.assert_allclose(mechanism.step_mse(), dense.step_mse(lag), rtol=1e-7)
        assert mechanism.predicted_mse == pytest.approx(mechanism.ideal_mse, rel=1e-9)


def test_groups_without_slack_at_one_level_are_flat_ones():
    for lag in (0, 6):
        flat = dp.block_sums(PAPER, dp.Privacy(1), CHAIN, length=5, lag=lag, group=3, slack=4)
        tree = dp.block_sums(PAPER, dp.Privacy(1), CHAIN, length=5, lag=lag, group=(3, 2), slack=(4, 0))
        np.testing.assert_allclose(tree.phase_mse, np.tile(flat.phase_mse, 2), rtol=1e-7)
        alone = dp.block_sums(PAPER, dp.Privacy(1), CHAIN, length=5, lag=lag, group=(3,), slack=(4,))
        np.testing.assert_array_equal(alone.phase_mse, flat.phase_mse)
        assert (alone.group, alone.slack) == (3, 4)


# --- guarantee ------------------------------------------------------------------------------------


@pytest.mark.parametrize("slacks", [(1, 2), (2, 2), (3, 1)])
@pytest.mark.parametrize("n_changes", [1, 2])
def test_no_value_tells_two_inputs_apart_by_more_than_epsilon_also_where_inputs_react(slacks, n_changes):
    """Exactly, value by value: inputs of a block are any functions of what was published in the tree before.

    P(v) is odds^-size(v - u(v)), so that sizes, which are integers, tell it. Two neighbours have the same functions
    but for `n_changes` blocks, where they differ by one.
    """
    rng = np.random.default_rng(sum(slacks))
    branches, n = (2, 2), 4
    values = list(itertools.product(range(-2, 3), repeat=n))
    largest = 0
    for _ in range(3):
        tables = [dict(zip(values, rng.integers(-3, 4, len(values)).tolist(), strict=True)) for _ in range(n)]

        def inputs(v, tables=tables):
            return [tables[j][(*v[:j], *(0,) * (n - j))] for j in range(n)]

        for places in itertools.combinations(range(n), n_changes):
            change = [int(rng.choice([-1, 1])) if j in places else 0 for j in range(n)]
            for v in values:
                noise = [a - b for a, b in zip(v, inputs(v), strict=True)]
                other = [a - b for a, b in zip(noise, change, strict=True)]
                cost = abs(twin.size(noise, branches, slacks) - twin.size(other, branches, slacks))
                largest = max(largest, cost)
    assert largest == n_changes  # of epsilon: no more, and it is reached


def test_what_is_published_has_that_law_about_the_sums():
    """Constant inputs: what is released is the sum and noise of the listed law, to a chi-square test."""
    odds, branches, slacks = 6, (2, 2), (2, 3)
    options = {"length": 3, "group": branches, "slack": slacks}
    mechanism = dp.block_sums(PAPER, dp.Privacy(math.log(odds)), CHAIN, **options)
    u = np.full((300, 480), 0.5)
    noise = np.rint(mechanism.simulate(u, seed=4).privatized[:, 2::3] - 1.5).astype(int).reshape(-1, 4)
    sizes = {x: twin.size(x, branches, slacks) for x in itertools.product(range(-5, 6), repeat=4)}
    total = sum(float(odds) ** -n for n in sizes.values())
    values, counts = np.unique(noise, axis=0, return_counts=True)
    found = dict(zip(map(tuple, values.tolist()), counts.tolist(), strict=True))
    expected = {x: len(noise) * float(odds) ** -n / total for x, n in sizes.items()}
    pairs = [(found.get(x, 0), n) for x, n in expected.items() if n > 10]
    pairs.append((len(noise) - sum(x for x, _ in pairs), len(noise) - sum(n for _, n in pairs)))
    assert len(pairs) > 80
    chi = sum((x - n) ** 2 / n for x, n in pairs)
    assert chi < len(pairs) + 6 * math.sqrt(2 * len(pairs)) + 12  # beyond it less than 1e-8


def test_the_guarantee_counts_all_events_of_a_person_and_steps_of_the_lattice():
    levels = dp.IndependentLevels([0.0, 1.0, 2.0], [0.2, 0.5, 0.3])
    privacy = dp.Privacy(3, max_change=2.0, max_events=3)
    mechanism = dp.block_sums(PAPER, privacy, levels, length=2, group=(2, 2), slack=(3, 4))
    assert mechanism.noise[0].rate == pytest.approx(3 / 6)
    assert mechanism.guarantee_terms().delta == 0.0
    assert "nested geometric noise" in mechanism.summary()


# --- simulation and files -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def mechanisms():
    options = {"group": (3, 2), "slack": (4, 3), "length": 4}
    three = {"group": (2, 2, 2), "slack": (2, 2, 4), "length": 2}
    return [
        dp.block_sums(PAPER, dp.Privacy(1), CHAIN, **options, name="two levels"),
        dp.block_sums(PAPER, dp.Privacy(1), CHAIN, **options, lag=5, phase=1, name="late"),
        dp.block_sums(PAPER, dp.Privacy(2), CHAIN, **three, name="three levels"),
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
def test_files_that_no_tree_has_are_refused(mechanisms, tmp_path, change, message):
    ((name, value),) = change.items()
    document = mechanism_files.forged(mechanism_files.documents(mechanisms[0], tmp_path), {f"blocks.{name}": value})
    with pytest.raises(ValueError, match=message):
        dp.load(mechanism_files.written(document, tmp_path))


def test_another_privacy_makes_other_noise(mechanisms):
    other = dataclasses.replace(mechanisms[0], privacy=dp.Privacy(2))
    assert other.noise[0].epsilon == 2
    assert other.predicted_mse < mechanisms[0].predicted_mse


# --- designs --------------------------------------------------------------------------------------


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
        dp.block_sums(PAPER, dp.Privacy(1), CHAIN, **options)


def test_noise_too_large_for_its_tables_is_refused():
    with pytest.raises(ValueError, match=r"at an epsilon of 0\.01"):
        dp.block_sums(PAPER, dp.Privacy(0.01), CHAIN, length=50, group=(8, 8))
