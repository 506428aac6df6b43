"""Strategies of bounded ℓ₁ norm: goals, gradients, pseudoinverses, integers, models, refusals."""

import math

import numpy as np
import pytest
from helpers.designs import designed
from scipy import linalg, optimize

import dpfast as dp
from dpfast.design.horizon import l1_descent, l1_factorization, l1_search, l1_starts
from dpfast.design.horizon.joint_problem import FactorizationProblem
from dpfast.mechanisms.least_squares import in_time
from dpfast.mechanisms.matrix_mechanism import MatrixMechanism
from dpfast.mechanisms.operators.dense import Dense
from dpfast.signals.model import autocovariance

PURE = dp.Privacy(1)
CHAIN = dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[-0.5, 0.5])
CHAIN_OF_COUNTS = dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[0.0, 1.0])
KINDS = ["lower", "dense"]
N = 32
TARGETS = {
    "sum": np.ones(N),
    "delayed": np.r_[0.0, 0.0, np.ones(N - 2)],
    "exponential": 0.9 ** np.arange(N),
    "window": np.r_[np.ones(6), np.zeros(N - 6)],
    "difference": np.r_[1.0, -2.0, np.zeros(N - 2)],
}


def lower_triangle(f):
    return np.array([[f[t - s] if s <= t else 0.0 for s in range(len(f))] for t in range(len(f))])


def laplace(f, strategy, privacy=PURE, **options):
    return designed(dp.optimal_factorization, dp.Toeplitz(f), privacy, noise="laplace", strategy=strategy, **options)


# --- goals ----------------------------------------------------------------------------------------

# the largest RMSE, and that of the best tree
GOALS = {
    (64, "dense"): (5.33, 5.8195),
    (64, "lower"): (6.94, 7.2994),
    (256, "dense"): (7.38, 8.3706),
    (256, "lower"): (10.31, 10.7970),
    (1024, "dense"): (9.75, 10.8604),
    (1024, "lower"): (14.20, 15.1100),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "n", [64, pytest.param(256, marks=pytest.mark.long), pytest.param(1024, marks=pytest.mark.long)]
)
def test_running_sums_reach_their_goals(n, kind):
    found = dp.optimal_factorization(dp.running_sum(n), PURE, noise="laplace", strategy=kind)
    goal, of_tree = GOALS[n, kind]
    tree = dp.tree(dp.running_sum(n), PURE, subtraction=kind == "dense")
    assert tree.predicted_rmse == pytest.approx(of_tree, abs=1e-3)
    assert 0 < found.lower_bound_mse < found.predicted_mse <= goal**2 < (0.96 * of_tree) ** 2


@pytest.mark.parametrize("kind", KINDS)
def test_errors_grow_with_the_horizon(kind):
    found = [laplace(np.ones(n), kind).predicted_mse for n in (1, 2, 5, 16, N, 64)]
    assert found == sorted(found)
    assert found[0] == pytest.approx(2)


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("kind", KINDS)
def test_targets_are_published_with_no_more_error_than_by_noise_on_their_inputs(name, kind):
    found, a = laplace(TARGETS[name], kind), lower_triangle(TARGETS[name])
    c, b = found.strategy.matrix(), found.reconstruction.matrix()
    assert np.abs(b @ c - a).max() < 1e-10
    np.testing.assert_allclose(b, a @ np.linalg.pinv(c), atol=1e-9)
    norms, used = np.abs(c).sum(axis=0), a.any(axis=0)
    np.testing.assert_allclose(norms[used], 1, rtol=1e-12)
    assert not norms[~used].any()
    if kind == "lower":
        delay = int(np.argmax(TARGETS[name] != 0))
        assert not np.triu(c, 1).any()
        assert not np.triu(b, 1 - delay).any()
    assert found.lag == (0 if kind == "lower" else None)
    assert found.lower_bound_mse <= found.predicted_mse <= 2 * (a**2).sum() / N * (1 + 1e-6)


def test_a_dense_strategy_errs_less_and_the_bound_is_that_of_the_other_norm():
    lower, dense = (laplace(TARGETS["sum"], kind) for kind in KINDS)
    assert dense.predicted_mse < 0.7 * lower.predicted_mse
    unit = dp.Privacy.from_gdp(1, 1e-6)
    gaussian = dp.optimal_factorization(dp.running_sum(N), unit).lower_bound_mse / unit.noise_multiplier**2
    assert dense.lower_bound_mse == lower.lower_bound_mse == pytest.approx(2 * gaussian, rel=1e-6)


# --- the descent ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [*KINDS, "joint", "joint, lag", "joint, dense"])
def test_gradients_are_those_of_differences(kind):
    rng, n = np.random.default_rng(5), 7
    a, is_dense = lower_triangle(0.9 ** np.arange(n)), "dense" in kind
    entries = rng.normal(size=(9, n)) if is_dense else np.tril(rng.normal(size=(n, n))) + 3 * np.eye(n)
    entries[2, 1] = 0.0
    kept = np.ones((n, 1), bool) if is_dense else in_time(np.arange(n), n, 2 if kind == "joint, lag" else 0)
    joint = FactorizationProblem(a, linalg.toeplitz(autocovariance(CHAIN, n)), 0.7, kept)
    behind = {
        "lower": lambda c: l1_descent.error_behind_lower(c, a),
        "dense": lambda c: l1_descent.error_behind_any(c, a),
    }.get(kind, joint.error_behind)
    problem = l1_descent.ColumnsOnSimplex(np.nonzero(entries), entries.shape, behind)
    x = entries[np.nonzero(entries)]
    numerical = optimize.approx_fprime(x, lambda y: problem.log_error(y)[0], 1e-7)
    np.testing.assert_allclose(problem.log_error(x)[1], numerical, atol=1e-5)


def test_errors_are_those_of_pseudoinverses():
    c, a = np.random.default_rng(1).normal(size=(9, 6)), lower_triangle(np.ones(6))
    assert l1_descent.error_behind_any(c, a)[0] == pytest.approx(np.sum((a @ np.linalg.pinv(c)) ** 2))
    c = np.tril(c[:6]) + 3 * np.eye(6)
    assert l1_descent.error_behind_lower(c, a)[0] == pytest.approx(np.sum((a @ np.linalg.inv(c)) ** 2))
    assert l1_descent.error_behind_any(np.zeros((3, 2)), np.eye(2))[0] == math.inf


@pytest.mark.parametrize("n", [1, 2, 12, 40, 200, 600])
def test_starts_see_every_input(n):
    for start in l1_starts.lower_triangular_starts(np.tri(n)):
        assert not np.triu(start, 1).any()
        assert start.diagonal().all()
    for start in l1_starts.dense_starts(np.tri(n)):
        assert start.shape[1] == n
        assert start[:n].diagonal().all()
        assert np.linalg.matrix_rank(start) == n


@pytest.mark.parametrize("kind", KINDS)
def test_a_search_that_is_cut_short_is_never_worse_than_noise_on_the_inputs(kind, monkeypatch):
    for bound in ("_TRIAL", "_MOST", "_FEWEST"):
        monkeypatch.setattr(l1_factorization, bound, 1)
    found = dp.optimal_factorization(TARGETS["window"], PURE, noise="laplace", strategy=kind)
    assert found.predicted_mse <= dp.input_perturbation(found.target, PURE, noise="laplace").predicted_mse * (1 + 1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_found_cannot_be_improved_nearby(kind):
    """Random changes of the strategy, its columns brought back to norm one, do not help."""
    rng, c = np.random.default_rng(3), laplace(TARGETS["sum"], kind).strategy.matrix()
    best = np.linalg.norm(np.tri(N) @ np.linalg.pinv(c))
    for size in (1e-4, 1e-3, 1e-2):
        other = c * (1 + size * rng.normal(size=c.shape))
        other /= np.abs(other).sum(axis=0)
        assert np.linalg.norm(np.tri(N) @ np.linalg.pinv(other)) > best * (1 - 1e-5)


# --- plain strategies, and the lower-triangular ones, are never better ------------------------------


def random_task(seed):
    """A target, a privacy, and the options of a design over a few steps."""
    rng = np.random.default_rng([18, 3, seed])
    n, angle = int(rng.integers(2, 20)), rng.uniform(0.3, 3)
    targets = [
        np.ones(n),
        np.eye(1, n, n - 1)[0],
        np.r_[1.0, rng.normal(size=n - 1)],
        np.cos(angle * np.arange(n)) * 0.97 ** np.arange(n),
        (np.arange(n) < 1 + n // 3) * 1.0,
        np.r_[0.0, rng.normal(size=n - 1)],
    ]
    p = rng.choice([0.01, 0.1, 0.9])
    models = [None, dp.MarkovChain([[1 - p, p], [p, 1 - p]], levels=[0, 1]), dp.ARMA([1.0], [1, -0.8])]
    model = models[rng.integers(3)]
    privacy = dp.Privacy(float(rng.choice([0.1, 1, 3, 10])), max_events=int(rng.choice([1, 1, 2])))
    noise = str(rng.choice(["laplace", "geometric"]))
    options = {"noise": noise, "lag": int(rng.integers(0, 4)) if model else 0}
    if noise == "geometric" and rng.random() < 0.3:
        options["strategy_unit"] = float(rng.choice([1.0, 0.3, 0.125]))
    return dp.Toeplitz(targets[rng.integers(len(targets))]), privacy, model, options


@pytest.mark.parametrize("seed", [pytest.param(x, marks=[pytest.mark.long] * (x >= 24)) for x in range(150)])
def test_a_dense_strategy_is_never_worse_than_a_lower_triangular_one(seed):
    target, privacy, model, options = random_task(seed)
    lower, dense = (dp.optimal_factorization(target, privacy, model, strategy=x, **options) for x in KINDS)
    assert dense.lag is None
    assert dense.predicted_mse <= lower.predicted_mse * (1 + 1e-9)
    assert [dict(x.options)["strategy"] for x in (lower, dense)] == KINDS


@pytest.mark.parametrize("noise", ["laplace", "geometric"])
@pytest.mark.parametrize("model", [None, CHAIN_OF_COUNTS], ids=["alone", "model"])
def test_a_dense_strategy_is_the_lower_triangular_one_where_its_own_search_finds_none(noise, model, monkeypatch):
    for search in (l1_search.UnbiasedSearch, l1_search.JointSearch):
        find = search.find
        monkeypatch.setattr(
            search, "find", lambda self, find=find, **more: find(self, **more) if self.lower else np.eye(N)
        )
    lower, dense = (
        dp.optimal_factorization(dp.running_sum(N), PURE, model, noise=noise, strategy=x, lag=0) for x in KINDS
    )
    if model is not None:
        lower = lower.with_receiver(model, lag=None)
    assert dense.predicted_mse <= lower.predicted_mse * (1 + 1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_a_search_that_is_cut_short_is_never_worse_than_sums_of_blocks(kind, monkeypatch):
    for bound in ("_TRIAL", "_MOST", "_FEWEST"):
        monkeypatch.setattr(l1_factorization, bound, 0)
    target, privacy, model = dp.running_sum(17), dp.Privacy(0.37), dp.ARMA([1.0], [1, -0.8])
    found = dp.optimal_factorization(target, privacy, model, noise="laplace", strategy=kind)
    rows = np.kron(np.eye(3), np.ones(6))[:, :17]
    plain = behind(target, privacy, model, 0 if kind == "lower" else None, "laplace", rows)
    assert found.predicted_mse <= plain.predicted_mse * (1 + 1e-9)


def behind(target, privacy, model, lag, noise, rows):
    """The mechanism of a strategy, with the linear receiver of a lag."""
    silent = Dense(np.zeros(rows.shape[::-1]))
    made = MatrixMechanism("plain", target, privacy, Dense(rows), silent, noise=noise, unbiased=False)
    return made.with_receiver(model, lag=lag)


@pytest.mark.parametrize("seed", [pytest.param(x, marks=[pytest.mark.long] * (x >= 24)) for x in range(100)])
def test_with_a_model_no_sums_of_blocks_alike_err_less(seed):
    """Of all lengths up to the horizon, among them noise on the inputs."""
    target, privacy, model, options = random_task(seed)
    model, n = model or CHAIN_OF_COUNTS, target.horizon
    options = options | {"strategy_unit": None}
    found = dp.optimal_factorization(target, privacy, model, **options)
    for length in range(1, n + 1):
        rows = np.array([[float(s // length == i) for s in range(n)] for i in range(-(-n // length))])
        plain = behind(target, privacy, model, options["lag"], options["noise"], rows)
        assert found.predicted_mse <= plain.predicted_mse * (1 + 1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_to_be_told_of_the_first_input_is_told_by_the_sum_of_all(kind):
    slow = dp.MarkovChain([[0.99, 0.01], [0.01, 0.99]], levels=[0, 1])
    found = dp.optimal_factorization(dp.Toeplitz(np.eye(1, 16, 15)[0]), PURE, slow, noise="laplace", strategy=kind)
    assert found.predicted_rmse <= 0.0525206


@pytest.mark.parametrize("kind", KINDS)
def test_where_epsilon_is_large_integer_noise_is_on_the_inputs_themselves(kind):
    target, privacy = dp.running_sum(16), dp.Privacy(3)
    found = dp.optimal_factorization(target, privacy, noise="geometric", strategy=kind)
    inputs = dp.input_perturbation(target, privacy, noise="geometric")
    assert found.predicted_mse == pytest.approx(inputs.predicted_mse, rel=1e-9)
    assert dict(found.options)["strategy_unit"] == 1


@pytest.mark.parametrize("noise", ["laplace", "geometric"])
@pytest.mark.parametrize("epsilon", [1, 3])
def test_without_a_model_no_tree_of_a_batch_errs_less(noise, epsilon):
    found = dp.optimal_factorization(TARGETS["sum"], dp.Privacy(epsilon), noise=noise, strategy="dense")
    tree = dp.tree(found.target, found.privacy, subtraction=True, noise=noise)
    assert found.predicted_mse <= tree.predicted_mse * (1 + 1e-9)


# --- integers -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("unit", [None, 2**-6])
def test_geometric_noise_is_on_rounded_rows(kind, unit):
    real = laplace(TARGETS["sum"], kind)
    found = dp.optimal_factorization(
        dp.running_sum(N), PURE, noise="geometric", strategy=kind, strategy_unit=unit, name="rounded"
    )
    fine, k = dict(found.options)["strategy_unit"], found.strategy.matrix()
    assert unit is None or fine == unit
    expected = np.rint(real.strategy.matrix() / fine)
    np.testing.assert_array_equal(k, expected[expected.any(axis=1)])
    largest = int(np.abs(k).sum(axis=0).max())
    assert found.sensitivity == largest
    q = math.exp(-1 / largest)
    assert found.noise_std == pytest.approx(math.sqrt(2 * q) / (1 - q), rel=1e-7)
    b = found.reconstruction.matrix()
    np.testing.assert_allclose(b, np.tri(N) @ np.linalg.pinv(k), atol=1e-9 * fine)
    assert found.predicted_mse == pytest.approx(found.noise_std**2 * (b**2).sum() / N)
    assert found.predicted_mse == pytest.approx(real.predicted_mse, rel=2e-3 if unit is None else 0.2)
    assert found.lower_bound_mse < found.predicted_mse
    assert "inputs that are integers" in found.guarantee_terms().ending


def test_with_a_model_zeros_and_ones_are_blocks_of_their_own_lengths():
    """As good as block sums of the same noise, of which all lengths but the last are the same."""
    target, found = dp.running_sum(N), {}
    for lag in (0, None):
        found[lag] = dp.optimal_factorization(target, PURE, CHAIN_OF_COUNTS, lag=lag, noise="geometric")
        blocks = dp.block_sums(target, PURE, CHAIN_OF_COUNTS, lag=lag)
        assert found[lag].predicted_mse < 1.01 * blocks.predicted_mse
    rows = found[0].strategy.matrix()
    assert dict(found[0].options)["strategy_unit"] == 1
    np.testing.assert_array_equal(rows.sum(axis=0), 1)
    assert ((rows == 0) | (rows == 1)).all()


def test_integers_are_published_and_err_as_predicted():
    model = CHAIN_OF_COUNTS
    found = dp.optimal_factorization(dp.running_sum(12), PURE, model, lag=3, noise="geometric", strategy_unit=1 / 16)
    u = model.sample(6000, 12, seed=1)
    paths = found.simulate(u, seed=2)
    whole = paths.privatized + found.strategy.apply(np.full(12, found.centre))  # what is taken off is public
    np.testing.assert_allclose(whole, np.rint(whole), atol=1e-9)
    mse = ((paths.estimate - np.cumsum(u, axis=1)) ** 2).mean(axis=1)
    # 5.5 standard errors of the mean of 6000 streams: a false alarm in less than 1e-6 of runs
    assert abs(mse.mean() - found.predicted_mse) < 5.5 * mse.std() / math.sqrt(len(mse))


# --- with a model ---------------------------------------------------------------------------------


def test_with_a_model_strategy_and_receiver_are_found_together():
    alone, errors = laplace(TARGETS["sum"], "lower"), {}
    for lag in (0, 4, None):
        found = laplace(TARGETS["sum"], "lower", model=CHAIN, lag=lag)
        assert found.lower_bound_mse < found.predicted_mse < alone.with_receiver(CHAIN, lag=lag).predicted_mse
        assert (found.lag, found.model, found.unbiased) == (lag, CHAIN, False)
        np.testing.assert_allclose(np.abs(found.strategy.matrix()).sum(axis=0), 1, rtol=1e-12)
        errors[lag] = found.predicted_mse
    assert errors[None] <= errors[4] < errors[0]
    dense = laplace(TARGETS["sum"], "dense", model=CHAIN)
    assert dense.lag is None
    assert errors[None] < 2.62  # 2.6946 from fewer starts
    assert dense.predicted_mse < min(2.571, 0.99 * errors[None])


# --- privacy, words, refusals ---------------------------------------------------------------------


def test_several_events_and_large_changes_are_louder_noise():
    one, loud = (laplace(TARGETS["sum"], "lower", x) for x in (PURE, dp.Privacy(0.5, max_change=3, max_events=2)))
    assert loud.sensitivity == pytest.approx(6 * one.sensitivity)
    assert loud.predicted_mse == pytest.approx(144 * one.predicted_mse, rel=1e-8)
    assert loud.lower_bound_mse == pytest.approx(36 * one.lower_bound_mse, rel=1e-9)  # of one event


def test_the_guarantee_says_for_which_inputs_it_holds():
    lower, dense = (laplace(TARGETS["sum"], kind).guarantee_terms() for kind in KINDS)
    assert (lower.delta, lower.noise) == (0.0, "Laplace noise")
    assert "react to what was published before" in lower.ending
    assert "for a batch" in dense.ending


@pytest.mark.parametrize(
    ("name", "noise", "kind", "given"),
    [
        ("optimal factorization (Laplace)", "laplace", "lower", {}),
        ("optimal factorization (geometric, dense)", "geometric", "dense", {}),
        ("optimal factorization lag 2 (Laplace)", "laplace", "lower", {"model": CHAIN, "lag": 2}),
        ("optimal factorization smoother (Laplace, dense)", "laplace", "dense", {"model": CHAIN, "lag": 2}),
    ],
)
def test_names(name, noise, kind, given):
    assert dp.optimal_factorization(dp.running_sum(4), PURE, noise=noise, strategy=kind, **given).name == name


def test_a_bar_is_shown_where_it_is_asked_for(capsys):
    pytest.importorskip("tqdm")
    dp.optimal_factorization(dp.running_sum(4), PURE, noise="laplace", progress=True)
    assert "descending" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("message", "options"),
    [
        ("noise must be one of", {"noise": "canonical"}),
        ("strategy must be one of", {"noise": "laplace", "strategy": "upper"}),
        ("strategy must be 'lower' with gaussian noise", {"strategy": "dense"}),
        ("strategy_unit must be None with laplace noise", {"noise": "laplace", "strategy_unit": 0.5}),
        ("strategy_unit must be from", {"noise": "geometric", "strategy_unit": 2.0}),
        ("strategy_unit must be from", {"noise": "geometric", "strategy_unit": 1e-15}),
        ("lag must be 0 without a model", {"noise": "laplace", "lag": 2}),
    ],
)
def test_refusals(message, options):
    with pytest.raises(ValueError, match=message):
        dp.optimal_factorization(dp.running_sum(N), dp.Privacy(1, 0.01), **options)


def test_what_cannot_be_designed_is_refused_at_once():
    with pytest.raises(ValueError, match="max_change must be a multiple of 1"):
        dp.optimal_factorization(dp.running_sum(2000), dp.Privacy(1, max_change=0.5), noise="geometric")
    with pytest.raises(dp.DesignError, match="horizon must be at most 2048 steps"):
        dp.optimal_factorization(dp.running_sum(2049), PURE, noise="laplace")
    with pytest.raises(ValueError, match="delta"):
        dp.optimal_factorization(dp.running_sum(8), PURE)
