"""Posterior means as mechanisms: equal to the enumeration of all paths, and what they say of themselves."""

import dataclasses
import math
import pickle

import numpy as np
import pytest
from helpers import mechanism_files
from helpers.chain_posterior import enumerate_paths, means_over_paths
from scipy import signal

import dpfast as dp
from dpfast._kernels import simulation

STEPS = 7
THREE = [[0.7, 0.2, 0.1], [0.15, 0.7, 0.15], [0.05, 0.25, 0.7]]
TWO = [[0.9, 0.1], [0.3, 0.7]]
PAPER, RECURSIVE, PAIR = ([1, 0.995], [1, -0.995]), ([1, 0.5], [1, -0.9]), ([0.4], [1, -1.5, 0.7])
SHORT, COINS = ([0.5], [1, -0.5]), dp.IndependentLevels([0, 1, 5], [0.5, 0.3, 0.2])
AVERAGE, DIFFERENCE = ([0.25] * 4, [1]), ([1, -2], [1])
# model, target, epsilon, delta, max_change, noise, and what else block sums are given
BLOCKS = {
    "three levels": (dp.MarkovChain(THREE, [0, 1, 2]), RECURSIVE, 1, 0, 1, "geometric", {"length": 2, "lag": 1}),
    "levels apart": (dp.MarkovChain(THREE, [-1, 0, 2.5]), PAIR, 2, 0, 1, "geometric", {"length": 3, "phase": 1}),
    "in any order": (dp.MarkovChain(THREE, [2, 0, 1]), AVERAGE, 1, 1e-6, 1, "canonical", {"length": 2, "lag": 3}),
    "of one value": (dp.MarkovChain(THREE, [1, 0, 1]), PAPER, 1, 0, 1, "geometric", {"length": 3, "lag": 0}),
    "bounded": (dp.MarkovChain(TWO, [2, 3.5]), DIFFERENCE, 1.1, 0.05, 1.5, "canonical", {"length": 3, "lag": 2}),
    "stairs": (dp.MarkovChain(THREE, [0, 1, 3]), RECURSIVE, 3, 0, 4, "staircase", {"length": 2, "lag": 0}),
    "every step": (dp.MarkovChain(TWO, [-0.5, 0.5]), PAIR, 3, 0, 1, "geometric", {"length": 1, "lag": 4}),
    "coins": (COINS, PAPER, 1, 0, 2, "geometric", {"length": 3, "phase": 2, "lag": 1}),
    "long blocks": (dp.MarkovChain(TWO, [0, 1]), AVERAGE, 1, 0, 1, "geometric", {"length": 6, "lag": 0}),
    "waiting": (dp.MarkovChain(TWO, [0, 1]), SHORT, 3, 0, 1, "geometric", {"length": 2, "lag": "smoother"}),
    "horizon": (dp.MarkovChain(TWO, [0, 1]), "running sum", 1, 0, 1, "geometric", {"length": 3, "lag": 2}),
}  # fmt: skip
EVERY_BLOCKS = pytest.mark.parametrize("name", BLOCKS)


def made(name, receiver="bayes", **changed):
    model, target, epsilon, delta, change, noise, given = BLOCKS[name]
    f = dp.running_sum(STEPS) if target == "running sum" else dp.Filter(*target)
    return dp.block_sums(
        f, dp.Privacy(epsilon, delta, max_change=change), model, receiver=receiver, noise=noise, **(given | changed)
    )


def enumerated(name, lag, released):
    """The estimates from sums about the mean, by all paths of as many steps."""
    n_steps = len(released)
    model, target, epsilon, delta, change, noise, given = BLOCKS[name]
    if isinstance(model, dp.MarkovChain):
        transition, levels = model.transition, model.states
    else:
        transition, levels = np.tile(model.probabilities, (len(model.levels), 1)), model.levels
    start = np.linalg.matrix_power(transition, 1000)[0]
    b, a = ([1], [1, -1]) if target == "running sum" else target
    impulse = signal.lfilter(b, a, np.eye(1, n_steps)[0])
    mean, length, phase = start @ levels, given["length"], given.get("phase", 0)
    paths, chance = enumerate_paths(transition, start, n_steps)
    u = (levels - mean)[paths]
    unit = 0.5 if 2.5 in levels else 1.5 if 3.5 in levels else 1.0
    likelihoods, begin = {}, 0
    for t, v in enumerate(released):
        if not np.isnan(v):
            n = np.rint((v - u[:, begin : t + 1].sum(axis=1)) / unit)
            likelihoods[t], begin = probability(noise, epsilon, delta, change / unit, n), t + 1
            assert (t + 1 + phase) % length == 0
    offset = signal.lfilter(b, a, np.where(np.arange(n_steps) < lag, 0.0, mean))
    return means_over_paths(paths, chance, levels - mean, impulse, lag, likelihoods) + offset


def probability(noise, epsilon, delta, d, n):
    """P(N = n) up to a factor, by the formulas."""
    if noise == "staircase":  # at ε = 3, d = 4 the likelier values of a stair are the first two
        return np.exp(-epsilon * (np.abs(n) // d)) * np.where(np.abs(n) % d < 2, 1, math.exp(-epsilon))
    if delta == 0:
        return np.exp(-epsilon / d * np.abs(n))
    tails = [(1 - delta) / (1 + math.exp(epsilon))]
    while tails[-1] > 0:
        tails.append(max(0.0, math.exp(-epsilon) * (tails[-1] - delta)))
    masses = np.append([1 - 2 * tails[0]], -np.diff(tails))
    return np.append(masses, 0.0)[np.minimum(np.abs(n).astype(int), len(masses))]


@EVERY_BLOCKS
def test_estimates_are_those_of_all_paths(name):
    """Inputs of the model, and others, whose sums may be beyond all that it makes."""
    mechanism, model = made(name), BLOCKS[name][0]
    u = np.vstack([model.sample(3, STEPS, seed=1), np.tile([[model.levels[0]], [model.levels[-1]]], STEPS)])
    u = np.vstack([u, np.rint(u[:2]) * 5 + model.levels[0]])
    paths = mechanism.simulate(u, seed=1)
    expected = [enumerated(name, mechanism.lag, v) for v in paths.privatized]
    np.testing.assert_allclose(paths.estimate, expected, rtol=0, atol=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize("lag", [1, 2, 4])
def test_studies_over_a_horizon_end_with_its_last_release(lag):
    """A study goes on for the lag; a block that ends meanwhile is never published."""
    mechanism, end = made("horizon", lag=lag), STEPS + lag
    study = simulation.CompiledStudy(mechanism.model.compiled(), (mechanism.compiled(),), 0, STEPS)
    u = np.empty((4, end))
    simulation.sample(study.source, 3, u, 1)
    released, estimates = simulation.simulate(mechanism.compiled(), u, 3, 1)
    released[:, [t for t in range(end) if t % 3 < 2 or t >= STEPS]] = np.nan
    expected = np.array([enumerated("horizon", lag, v) for v in released])
    np.testing.assert_allclose(estimates, expected, rtol=0, atol=1e-9)
    np.testing.assert_array_equal(mechanism.simulate(u[:, :STEPS], seed=3).estimate, estimates[:, :STEPS])
    errors = (expected[:, lag:] - np.cumsum(u, axis=1)[:, :STEPS]) ** 2
    np.testing.assert_allclose(simulation.squared_errors(study, 4, 3, 1)[:, 0], errors.mean(axis=1), rtol=1e-9)


def test_values_that_cannot_be_are_among_those_that_are_compared():
    """Noise of at most 3 steps of 1.5, on sums of three levels up to 3.5: a far larger sum tells nothing."""
    mechanism, levels = made("bounded"), BLOCKS["bounded"][0].levels
    assert mechanism.noise[0].largest == 3
    u = np.tile(np.rint(levels) * 5 + levels[0], (1, STEPS))[:, :STEPS]
    v = mechanism.simulate(u, seed=1).privatized[0, 2] + 3 * mechanism.model.mean
    assert v > 3 * 3.5 + 3 * 1.5


@EVERY_BLOCKS
def test_there_is_no_prediction_but_that_of_the_linear_receiver(name):
    mechanism, linear = made(name), made(name, "linear")
    model = mechanism.model
    assert [mechanism.predicted_mse, mechanism.ideal_mse, mechanism.phase_mse, mechanism.worst_step_mse] == [None] * 4
    assert [mechanism.predict(model), mechanism.step_mse(3), mechanism.predict_first(3, model)] == [None] * 3
    assert [mechanism.explained, mechanism.predicted_rmse, mechanism.lower_bound_mse] == [None] * 3
    assert (mechanism.linear_mse, mechanism.noise_std) == (linear.predicted_mse, linear.noise_std)
    assert (mechanism.lag, mechanism.lengths) == (linear.lag, linear.lengths)
    assert f"at most {math.sqrt(linear.predicted_mse):.6g}" in mechanism.summary()
    assert "posterior mean" in mechanism.summary()
    assert mechanism.options[-1] == ("receiver", "bayes")
    assert (linear.name, mechanism.name) == tuple(f"block sums{x} lag {linear.lag}" for x in ("", " Bayes")) or (
        name == "waiting"
    )


def assert_same(first, second, u):
    for x, y in zip(first.simulate(u, seed=2)[:2], second.simulate(u, seed=2)[:2], strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("name", ["levels apart", "bounded", "coins", "horizon", "response"])
def test_files_pickles_and_copies_estimate_the_same(name, tmp_path):
    mechanism = response() if name == "response" else made(name)
    u = mechanism.model.sample(2, STEPS, seed=3)
    dp.save(mechanism, tmp_path / "mechanism.json")
    loaded = dp.load(tmp_path / "mechanism.json")
    assert '"version": 4' in (tmp_path / "mechanism.json").read_text()
    for other in (loaded, pickle.loads(pickle.dumps(mechanism)), dataclasses.replace(mechanism, name="another")):
        assert type(other) is type(mechanism)
        assert other.linear_mse == mechanism.linear_mse
        assert_same(other, mechanism, u)


@pytest.mark.parametrize("name", ["levels apart", "response"])
def test_under_another_privacy_the_posterior_is_of_its_noise(name):
    mechanism = response() if name == "response" else made(name)
    privacy = dataclasses.replace(mechanism.privacy, epsilon=4.0)
    again = response(epsilon=4.0) if name == "response" else dataclasses.replace(made(name), privacy=privacy)
    u = mechanism.model.sample(2, STEPS, seed=3)
    assert_same(mechanism.under(privacy), again, u)
    before = mechanism.simulate(u, seed=2).estimate
    assert not np.array_equal(again.simulate(u, seed=2).estimate, before)


# --- behind randomised response -------------------------------------------------------------------


def response(target=RECURSIVE, epsilon=1.0, delta=1e-6, lag=1, model=None, **given):
    model = dp.MarkovChain(TWO, [2, 3.5]) if model is None else model
    privacy = dp.Privacy(epsilon, delta, max_change=1.5)
    return dp.randomized_response(dp.Filter(*target), privacy, model, lag=lag, receiver="bayes", **given)


RESPONSES = {
    "late": ({"lag": 3}, TWO, [2, 3.5]),
    "told for certain": ({"delta": 0.3, "target": PAIR, "lag": 0}, TWO, [2, 3.5]),
    "pure": ({"delta": 0.0, "target": DIFFERENCE, "lag": 1}, TWO, [2, 3.5]),
    "hidden levels": ({"delta": 0.1, "target": PAPER, "lag": 2}, THREE, [1, 2, 1]),
    "nearly certain": ({"epsilon": 100.0, "delta": 0.1}, TWO, [2, 3.5]),
}


@pytest.mark.parametrize("name", RESPONSES)
def test_estimates_behind_responses_are_those_of_all_paths(name):
    given, transition, levels = RESPONSES[name]
    transition, levels = np.array(transition), np.array(levels)
    mechanism = response(model=dp.MarkovChain(transition, levels), **given)
    epsilon, delta, lag = mechanism.privacy.epsilon, mechanism.privacy.delta, mechanism.lag
    start = np.linalg.matrix_power(transition, 1000)[0]
    mean, impulse = start @ levels, mechanism.target.impulse(STEPS)
    paths, chance = enumerate_paths(transition, start, STEPS)
    truth, trust = 1 / (1 + math.exp(-epsilon)), math.tanh(epsilon / 2)
    simulated = mechanism.simulate(mechanism.model.sample(6, STEPS, seed=1), seed=1)
    offset = mechanism.target.filter(np.where(np.arange(STEPS) < lag, 0.0, mean)).y
    r = delta + (1 - delta) * trust**2
    middle, seen = (levels.min() + levels.max()) / 2, set()
    for released, estimate in zip(simulated.privatized, simulated.estimate, strict=True):
        z = (released + mean - middle) * 2 * r / np.ptp(levels)
        seen |= set(np.round(z, 6))
        likelihoods = {}
        for t in range(STEPS):
            agrees = (levels[paths[:, t]] > middle) == (z[t] > 0)
            certain = abs(z[t]) > (1 + trust) / 2
            by_chance = (1 - delta) * np.where(agrees, truth, 1 - truth)
            likelihoods[t] = delta * agrees + by_chance if trust == 1 else delta * agrees if certain else by_chance
        expected = means_over_paths(paths, chance, levels - mean, impulse, lag, likelihoods) + offset
        np.testing.assert_allclose(estimate, expected, rtol=0, atol=1e-9 * np.abs(expected).max())
    assert len(seen) >= (2 if delta < 0.05 or trust == 1 else 4)


def test_a_response_says_that_only_simulation_tells():
    mechanism = response()
    linear = dp.randomized_response(mechanism.target, mechanism.privacy, mechanism.model, lag=1)
    model = mechanism.model
    assert [mechanism.predicted_mse, mechanism.ideal_mse, mechanism.worst_step_mse, mechanism.explained] == [None] * 4
    assert [mechanism.predicted_noise_mse, mechanism.predicted_distortion_mse] == [None] * 2
    assert [mechanism.predict(model), mechanism.step_mse(4), mechanism.predict_first(4, model)] == [None] * 3
    assert [mechanism.worst_case_mse(1.0), mechanism.linear_channel()] == [None] * 2
    assert mechanism.linear_mse == linear.predicted_mse
    assert mechanism.sizes()[1].startswith("posterior mean")
    assert f"at most {linear.predicted_rmse:.6g}" in mechanism.summary()
    assert mechanism.magnitudes(np.array([0.1])).receiver is None
    assert not mechanism.has_gaussian_bound
    assert mechanism.bound_terms().additive is False


def test_a_smoother_behind_responses_waits_until_waiting_gains_nothing():
    mechanism = response(lag="smoother", epsilon=2.0)
    linear = dp.randomized_response(mechanism.target, mechanism.privacy, mechanism.model, lag=None)
    assert mechanism.linear_mse == pytest.approx(linear.predicted_mse, rel=1e-6)
    assert mechanism.name == "randomised response Bayes smoother"
    assert mechanism.options == (("lag", None), ("receiver", "bayes"))


# --- what is refused ------------------------------------------------------------------------------

COUNTS = dp.ARMA([1], [1, -0.5], mean=3)
CHAIN = dp.MarkovChain(TWO, [0, 1])
REFUSED = {
    "counts": (
        {"model": COUNTS},
        dp.DesignError,
        "must be a MarkovChain or IndependentLevels for a posterior mean",
    ),
    "levels of an ARMA": (
        {"model": dp.ARMA([0.5], levels=[0, 1], mean=0.5)},
        dp.DesignError,
        'got ARMA, of which mean and spectrum are known: take receiver="linear", or a MarkovChain',
    ),
    "several lengths": ({"length": [2, 4]}, ValueError, r'length must be one for receiver="bayes", got \[2, 4\]'),
    "signs": ({"weights": [[1], [-1]], "length": 2}, ValueError, "weights must not be given with receiver="),
    "another word": ({"receiver": "Bayes"}, ValueError, "receiver must be one of 'linear', 'bayes', got 'Bayes'; did"),
    "long blocks": (
        {"model": dp.MarkovChain(THREE, [0, 1, 100]), "length": 2000},
        ValueError,
        r'receiver must be "linear" here: "bayes" would take .* numbers in its tables, more than 4.2e\+06, for 3',
    ),
    "much to make": (
        {"model": dp.MarkovChain(THREE, [0, 1, 50]), "length": 250},
        ValueError,
        r"multiply-adds to make them, more than 1.1e\+09, for 3 levels over 51 units, blocks of 250",
    ),
    "much for a sample": ({"length": 1, "target": dp.Filter([1.0] * 200)}, ValueError, "multiply-adds for a sample"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_no_posterior_mean_follows_is_refused_with_what_to_do(name):
    changed, error, message = REFUSED[name]
    given = {"target": dp.Filter([0.1], [1, -0.9]), "model": CHAIN, "receiver": "bayes", "length": 3} | changed
    with pytest.raises(error, match=message):
        dp.block_sums(privacy=dp.Privacy(1), **given)


def test_a_response_to_levels_of_which_only_the_spectrum_is_known_is_refused():
    with pytest.raises(dp.DesignError, match="model must be a MarkovChain or IndependentLevels"):
        response(model=dp.ARMA([0.1], [1, -0.5], levels=[-0.75, 0.75]))
    with pytest.raises(ValueError, match="receiver must be one of 'linear', 'bayes'"):
        dp.randomized_response(dp.Filter([1]), dp.Privacy(1), CHAIN, receiver="best")
    linear = dp.randomized_response(dp.Filter([1]), dp.Privacy(1), CHAIN)
    parts = {x.name: getattr(linear, x.name) for x in dataclasses.fields(linear)}
    kind = type(response())
    with pytest.raises(ValueError, match="noise must be randomised response to the levels of the model"):
        kind(**(parts | {"noise": None}))
    with pytest.raises(ValueError, match="noise must be randomised response to the levels of the model"):
        kind(**(parts | {"model": dp.MarkovChain(TWO, [0, 2])}))


def test_a_posterior_mean_of_blocks_is_refused_with_parts_that_it_does_not_follow():
    mechanism = made("three levels")
    with pytest.raises(dp.DesignError, match="model must be a MarkovChain"):
        dataclasses.replace(mechanism, model=COUNTS)
    signed = dp.block_sums(dp.Filter([1]), dp.Privacy(1), CHAIN, weights=[[1], [-1]])
    parts = {x.name: getattr(signed, x.name) for x in dataclasses.fields(signed)}
    with pytest.raises(ValueError, match="weights must not be there"):
        type(mechanism)(**parts)


FLAT, PRIVACY = dp.Filter([1]), dp.Privacy(1, 1e-6)
FORGED = {
    "another word": (lambda: made("bounded"), "best", "mechanism.estimator must be one of 'bayes'"),
    "a filter": (
        lambda: dp.lmmse(dp.Filter([1]), dp.Privacy(1, 1e-6), CHAIN, lag=0),
        "bayes",
        "noise must be randomised",
    ),
    "a counter": (
        lambda: dp.binary_tree(dp.running_sum(4), PRIVACY),
        "bayes",
        "there for blocks and randomised response",
    ),
    "counts": (
        lambda: dp.block_sums(dp.Filter([1]), dp.Privacy(1), COUNTS, length=2),
        "bayes",
        "model must be a Markov",
    ),
}


@pytest.mark.parametrize("name", FORGED)
def test_files_with_an_estimator_that_they_cannot_have_are_refused(name, tmp_path):
    make, word, message = FORGED[name]
    document = mechanism_files.forged(mechanism_files.documents(make(), tmp_path), {"estimator": word})
    with pytest.raises(dp.DataError, match=message):
        dp.load(mechanism_files.written(document, tmp_path))


# --- lengths --------------------------------------------------------------------------------------

STICKY = dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], [-0.5, 0.5])


@pytest.mark.slow_nojit
@pytest.mark.parametrize(
    ("target", "epsilon", "given", "linear", "length"),
    [
        (([0.1], [1, -0.9]), 3, {}, 2, 1),
        (([1 / 12] * 12, [1]), 1, {}, 6, 5),
        (([1 / 12] * 12, [1]), 1, {"phase": 5}, 6, 6),
        (([1, -2], [1]), 3, {}, 1, 1),
    ],
)
def test_a_length_is_that_of_the_linear_receiver_or_shorter_where_that_errs_less(
    target, epsilon, given, linear, length
):
    """Lengths of the mathematics' table; by 1 % at least beside the other ones."""
    asked = dp.Filter(*target), dp.Privacy(epsilon), STICKY
    assert dp.block_sums(*asked, **given).lengths == (linear,)
    assert dp.block_sums(*asked, **given, receiver="bayes").lengths == (length,)


@pytest.mark.slow_nojit
@pytest.mark.parametrize("name", ["every step", "horizon"])
def test_a_quick_simulation_finds_about_what_a_study_does(name):
    """Within 1 % of the gain over the linear receiver, which is all that is simulated."""
    mechanism = made(name)
    samples = STEPS if name == "horizon" else 2_000
    study = dp.monte_carlo(mechanism, mechanism.model, n_streams=4_000, n_samples=samples, seed=9)
    gain = mechanism.linear_mse - study[mechanism.name].mse
    assert mechanism.linear_mse - mechanism.simulated_mse() == pytest.approx(gain, rel=0.1)


@pytest.mark.parametrize("delta", [0.0, 0.01])
@pytest.mark.parametrize("epsilon", [20, 36, 37, 38, 40, 50, 800])
def test_of_a_response_that_is_all_but_certain_it_is_too(epsilon, delta):
    """What is told by chance is then as large, to rounding, as what is told for certain."""
    slow = dp.MarkovChain([[0.95, 0.05], [0.05, 0.95]], levels=[-0.5, 0.5])
    response = dp.randomized_response(dp.Filter([0.1], [1, -0.9]), dp.Privacy(epsilon, delta), slow, receiver="bayes")
    study = dp.monte_carlo([response], slow, n_streams=4, n_samples=1000, seed=0)
    assert study[response.name].rmse < 1e-8
