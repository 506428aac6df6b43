"""Noise that the steps of a horizon share: errors by dense covariances, guarantees by enumeration, simulations."""

import dataclasses
import itertools
import math

import numpy as np
import pytest
from helpers import mechanism_files
from helpers import shared_law as twin

import dpfast as dp
from dpfast.privacy.integer_noise.shared import SharedGeometric

CHAIN = dp.MarkovChain([[0.7, 0.3], [0.2, 0.8]], [0.0, 1.0])
ALARM = 5.5  # standard errors of a simulated MSE: less than 1e-7 a comparison
TREE = {"group": (2, 3), "slack": (2, 3)}


def dense_covariance(law, n):
    """Entry by entry, by the level of the lowest node that has both steps."""
    sizes = np.cumprod([1, *law.branches])
    found = np.zeros((n, n))
    for i, j in itertools.product(range(n), repeat=2):
        levels = [level for level, size in enumerate(sizes) if i // size == j // size]
        found[i, j] = law.covariances[levels[0]] if levels else 0.0
    return found


def dense_target(target):
    n = target.horizon
    return np.array([[target.coefficients[t - s] if t >= s else 0.0 for s in range(n)] for t in range(n)])


def law_of(mechanism):
    return mechanism._integer_law


TARGETS = [dp.running_sum(12), dp.running_sum(29), dp.Toeplitz(0.8 ** np.arange(23)), dp.Toeplitz([2.0, -1.0, 0.5])]


@pytest.mark.parametrize("target", TARGETS, ids=str)
@pytest.mark.parametrize(
    "tree", [TREE, {"group": (2, 2, 2, 2), "slack": (1, 4, 3, 2)}, {"group": 5, "slack": 4}], ids=str
)
def test_errors_are_those_of_the_dense_covariance(target, tree):
    mechanism = dp.shared_noise(target, dp.Privacy(1.3), **tree)
    law = law_anew(1.3, mechanism)
    a, sigma = dense_target(target), dense_covariance(law, target.horizon)
    np.testing.assert_allclose(mechanism.step_mse(), np.diag(a @ sigma @ a.T), rtol=1e-8)
    assert mechanism.predicted_mse == pytest.approx(np.trace(a @ sigma @ a.T) / target.horizon, rel=1e-8)


def law_anew(rate, mechanism):
    """The law anew, from what the mechanism says of it."""
    return SharedGeometric(rate, mechanism.groups, mechanism.slacks)


@pytest.mark.parametrize("lag", [0, 3, None])
def test_a_receiver_for_a_model_is_the_best_behind_that_covariance(lag):
    n = 17
    plain = dp.shared_noise(dp.running_sum(n), dp.Privacy(1), **TREE)
    found = plain.with_receiver(CHAIN, lag=lag)
    sigma, a = dense_covariance(law_anew(1.0, plain), n), dense_target(plain.target)
    r = 0.24 * 0.5 ** np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    v = r + sigma
    for t in range(n):
        there = n if lag is None else min(n, t + lag + 1)
        seen = (r @ a[t])[:there]
        least = a[t] @ r @ a[t] - seen @ np.linalg.solve(v[:there, :there], seen)
        assert found.step_mse()[t] == pytest.approx(least, rel=1e-7)
    assert found.groups == plain.groups
    assert found.predicted_mse < plain.predicted_mse


# --- guarantee ------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_changes", [1, 2])
def test_no_path_tells_two_inputs_apart_by_more_than_epsilon_also_where_inputs_react(n_changes):
    """Exactly, path by path; the law of what is drawn is tested below."""
    rng = np.random.default_rng(n_changes)
    assert twin.largest_cost((2, 2), (1, 2), n_changes, rng) == n_changes  # of epsilon: it is reached, and not passed


def test_the_guarantee_counts_all_events_of_a_person_and_steps_of_the_lattice():
    privacy = dp.Privacy(2, 1e-3, max_change=2.0, max_events=3)
    mechanism = dp.shared_noise(dp.running_sum(12), privacy, **TREE)
    assert law_of(mechanism).rate == pytest.approx(2 / 6)
    assert mechanism.guarantee_terms().delta == 0.0
    assert "react" in mechanism.guarantee_terms().ending
    rounded = dp.shared_noise(dp.running_sum(12), dp.Privacy(2), unit=0.5, **TREE)
    assert law_of(rounded).rate == pytest.approx(2 / 3)  # both ends of a change may move
    a = np.tri(12)
    sigma = 0.25 * dense_covariance(law_of(rounded), 12) + 0.25 / 12 * np.eye(12)
    np.testing.assert_allclose(rounded.step_mse(), np.diag(a @ sigma @ a.T), rtol=1e-8)


# --- simulation and files -------------------------------------------------------------------------


def test_what_is_drawn_has_the_law_that_is_listed():
    """A chi-square test over all noises of a tree that are expected ten times, of two trees one after the other."""
    odds, branches, slacks = 9, (2, 2), (1, 2)
    mechanism = dp.shared_noise(dp.running_sum(8), dp.Privacy(math.log(odds)), group=branches, slack=slacks)
    noise = mechanism.simulate(np.zeros((6000, 8)), seed=4).privatized.astype(int).reshape(-1, 4)
    p, n_cells = twin.misfit(noise, branches, slacks, odds, 4)
    assert p > 1e-8
    assert n_cells > 30
    first, second = noise.reshape(-1, 2, 4).transpose(1, 0, 2)
    products = first.sum(axis=1) * second.sum(axis=1)
    assert abs(products.mean()) < ALARM * products.std() / math.sqrt(len(products))  # trees are independent


@pytest.fixture(scope="module")
def mechanisms():
    tall = {"group": (2,) * 5, "slack": (2, 3, 4, 4, 3)}
    plain = dp.shared_noise(dp.running_sum(40), dp.Privacy(1), **tall, name="plain")
    return [plain, plain.with_receiver(CHAIN, name="with a receiver"), _of_decay()]


def _of_decay():
    return dp.shared_noise(dp.Toeplitz(0.9 ** np.arange(40)), dp.Privacy(2), **TREE, name="decay")


def test_simulations_have_the_predicted_error(mechanisms):
    for mechanism in mechanisms:
        study = dp.monte_carlo([mechanism], CHAIN, n_streams=1500, n_samples=40, seed=7)
        found = study[mechanism.name]
        error = found.stream_mse.std(ddof=1) / math.sqrt(1500)
        assert abs(found.mse - mechanism.predicted_mse) < ALARM * error
        assert error < 0.06 * mechanism.predicted_mse


def test_a_stream_depends_on_the_seed_and_its_number_alone(mechanisms):
    u = CHAIN.sample(11, 40, seed=1)
    whole = mechanisms[0].simulate(u, seed=2).estimate
    np.testing.assert_array_equal(mechanisms[0].simulate(u[:3], seed=2).estimate, whole[:3])
    options = {"n_streams": 24, "n_samples": 40, "seed": 3}
    one, two = (dp.monte_carlo(mechanisms[:1], CHAIN, **options, n_threads=x)["plain"].stream_mse for x in (1, 2))
    np.testing.assert_array_equal(one, two)


def test_they_are_kept_in_files_and_pickles(mechanisms, tmp_path):
    u = CHAIN.sample(2, 40, seed=1)
    for mechanism in mechanisms:
        for kept in mechanism_files.kept(mechanism, u, tmp_path):
            assert (kept.groups, kept.slacks) == (mechanism.groups, mechanism.slacks)


def test_another_privacy_makes_other_noise(mechanisms):
    other = dataclasses.replace(mechanisms[0], privacy=dp.Privacy(2))
    assert law_of(other).epsilon == 2
    assert other.predicted_mse < mechanisms[0].predicted_mse / 2


# --- designs --------------------------------------------------------------------------------------


def test_a_running_sum_errs_less_than_behind_any_known_strategy():
    mechanism = dp.shared_noise(dp.running_sum(256), dp.Privacy(1))
    assert mechanism.predicted_rmse <= 6.2  # of the best dense strategy with Laplace noise 7.51
    assert mechanism.groups == (2,) * 8
    assert (mechanism.lag, mechanism.unbiased) == (0, True)


@pytest.mark.long
@pytest.mark.parametrize(("n", "epsilon", "most"), [(1024, 1.0, 8.0), (256, 3.0, 2.01), (1024, 3.0, 2.7)])
def test_long_running_sums_err_less_too(n, epsilon, most):
    assert dp.shared_noise(dp.running_sum(n), dp.Privacy(epsilon)).predicted_rmse <= most


def test_no_slack_near_the_best_errs_much_less():
    best = dp.shared_noise(dp.running_sum(32), dp.Privacy(1))
    for level, step in itertools.product(range(len(best.slacks)), (-1, 1)):
        slacks = list(best.slacks)
        slacks[level] += step
        other = dp.shared_noise(dp.running_sum(32), dp.Privacy(1), group=best.groups, slack=tuple(slacks))
        assert other.predicted_mse > best.predicted_mse * (1 - 5e-4)
    given = dp.shared_noise(dp.running_sum(32), dp.Privacy(1), group=best.groups)
    assert given.predicted_mse == pytest.approx(best.predicted_mse, rel=0.02)


def test_where_sharing_gains_nothing_noise_is_independent():
    target = dp.Toeplitz([1.0, -2.0, 0, 0, 0, 0])
    alone = dp.input_perturbation(target, dp.Privacy(1), noise="geometric")
    found = dp.shared_noise(target, dp.Privacy(1))
    assert set(found.slacks) == {0}
    assert found.predicted_mse == pytest.approx(alone.predicted_mse, rel=1e-8)


def test_best_takes_it_for_running_sums_without_a_model():
    found = dp.best(dp.running_sum(64), dp.Privacy(1))
    assert found.noise == "nested"


def test_arrays_serve_as_numbers_do():
    target, privacy = dp.running_sum(8), dp.Privacy(1, max_change=2)
    found = dp.shared_noise(target, privacy, group=np.array([2, 2]), slack=np.array([1, 3]), unit=np.array(0.5))
    expected = dp.shared_noise(target, privacy, group=(2, 2), slack=(1, 3), unit=0.5)
    assert (found.groups, found.slacks, found.options) == (expected.groups, expected.slacks, expected.options)
    assert type(found.unit) is float


REFUSED = [
    ({"slack": 2}, "slack must not be given without group"),
    ({"group": 1}, "group must be an integer, at least 2"),
    ({"group": (2, 2), "slack": (1,)}, "slack must be as many as group, 2, got 1"),
    ({"group": (2, 2), "slack": (1, -1)}, "slack must be an integer"),
    ({"group": ()}, "group must be a tuple"),
    ({"group": "wide"}, "group must be an integer"),
    ({"group": 1000}, "group must be of fewer branches, got 1000 at an epsilon of 1 for each unit"),
    ({"unit": -1.0}, "unit must be"),
]


@pytest.mark.parametrize(("options", "message"), REFUSED, ids=[str(x[0]) for x in REFUSED])
def test_what_does_not_go_together_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        dp.shared_noise(dp.running_sum(8), dp.Privacy(1), **options)


def test_noise_too_large_for_its_tables_is_refused():
    with pytest.raises(dp.DesignError, match=r"epsilon must be larger, got 0\.005 for each unit"):
        dp.shared_noise(dp.running_sum(8), dp.Privacy(0.005))


def test_a_mechanism_refuses_trees_of_other_noise_and_other_strategies():
    plain = dp.shared_noise(dp.running_sum(8), dp.Privacy(1), **TREE)
    with pytest.raises(ValueError, match=r"groups and slacks must be \(\) with laplace noise"):
        dataclasses.replace(plain, noise="laplace")
    with pytest.raises(ValueError, match="groups must be a tuple"):
        dataclasses.replace(plain, groups=(), slacks=())
    geometric = dp.optimal_factorization(dp.running_sum(4), dp.Privacy(1), noise="geometric")
    with pytest.raises(ValueError, match="strategy must be 1 with nested noise"):
        dataclasses.replace(geometric, noise="nested", groups=(2,), slacks=(1,))


@pytest.mark.parametrize("epsilon", [12, 20, 32, 50, 700])
@pytest.mark.parametrize("target", [np.ones(8), 1.3 ** np.arange(8) * np.cos(2.8 * np.arange(8))], ids=["sum", "loud"])
def test_where_epsilon_is_large_nothing_is_shared(epsilon, target):
    """There the noise of a step is mostly 0, and a slack would let it be other than 0 at no cost."""
    found = dp.shared_noise(dp.Toeplitz(target), dp.Privacy(epsilon))
    alone = dp.input_perturbation(dp.Toeplitz(target), dp.Privacy(epsilon), noise="geometric")
    assert (len(found.groups), found.slacks) == (1, (0,))
    assert found.predicted_mse == pytest.approx(alone.predicted_mse, rel=2e-2)
