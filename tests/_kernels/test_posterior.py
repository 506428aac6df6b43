"""The posterior mean behind sums and responses against the recursion of its formula, step by step in plain NumPy."""

import numpy as np
import pytest
from helpers.chain_posterior import means_by_recursion
from helpers.chains import LANES, assert_close
from scipy import signal

from dpfast._kernels import signal_sources, simulation
from dpfast._kernels.block_sums import BlockSums
from dpfast._kernels.chain_builder import Chain
from dpfast._kernels.chain_execute import execute
from dpfast._kernels.compiled_mechanisms import CompiledResponseMechanism
from dpfast._kernels.compiled_receivers import CompiledLinearReceiver, CompiledPosterior
from dpfast._kernels.integer_draws import IntegerTable
from dpfast._kernels.randomized_response import TwoLevelResponse
from dpfast._kernels.simulated_noise import RELEASE
from dpfast.filters.filter import Filter
from dpfast.mechanisms.chain_law import ChainLaw
from dpfast.mechanisms.posterior_tables import TableMaker, block_posterior, response_posterior
from dpfast.privacy.integer_noise.canonical import DiscreteCanonical
from dpfast.privacy.integer_noise.geometric import TwoSidedGeometric
from dpfast.privacy.integer_noise.staircase import Staircase

DTYPES = pytest.mark.parametrize("dtype", ["f4", "f8"])
THREE = np.array([[0.7, 0.2, 0.1], [0.15, 0.7, 0.15], [0.05, 0.25, 0.7]])
TWO = np.array([[0.75, 0.25], [0.25, 0.75]])
COIN = np.array([[0.3, 0.7], [0.3, 0.7]])
RARE = np.array([[0.9, 0.1, 0.0], [0.0, 0.5, 0.5], [1.0, 0.0, 0.0]])  # not every level after every other
GEOMETRIC = TwoSidedGeometric(0.7)
# transition, levels in steps, target, lag, length, phase, noise
CASES = {
    "every step": (TWO, (0, 1), ([1], [1]), 0, 1, 0, GEOMETRIC),
    "every step, late": (THREE, (0, 1, 3), ([1, 0.5], [1, -0.9]), 3, 1, 0, GEOMETRIC),
    "paper": (TWO, (0, 1), ([1, 0.995], [1, -0.995]), 0, 8, 0, TwoSidedGeometric(1.0)),
    "paper, a shorter first": (TWO, (0, 1), ([1, 0.995], [1, -0.995]), 0, 8, 5, GEOMETRIC),
    "three levels, late": (THREE, (0, 1, 2), ([0.3, -0.2, 0.1], [1, -1.2, 0.5]), 7, 3, 1, GEOMETRIC),
    "a little late": (THREE, (2, 0, 5), ([1, 1, 1, 1], [1]), 2, 4, 0, TwoSidedGeometric(3.0)),
    "no memory": (COIN, (0, 2), ([0.5], [1, -0.5]), 1, 3, 2, GEOMETRIC),
    "bounded noise": (TWO, (0, 1), ([0.1], [1, -0.9]), 0, 4, 0, DiscreteCanonical(1.0, 0.05)),
    "bounded noise, late": (RARE, (0, 1, 2), ([1, -2], [1]), 4, 3, 2, DiscreteCanonical(2.0, 0.2)),
    "stairs": (THREE, (0, 1, 4), ([1], [1, -0.8]), 1, 3, 0, Staircase(2.0, 4)),
    "a running sum": (TWO, (0, 1), ([1], [1, -1]), 0, 6, 0, GEOMETRIC),
}
EVERY_CASE = pytest.mark.parametrize("name", CASES)


def stationary(transition):
    return np.linalg.matrix_power(transition, 500)[0]


def source_of(name):
    transition, levels, *_ = CASES[name]
    return signal_sources.LevelSource(
        np.cumsum(stationary(transition)), np.cumsum(transition, axis=1), np.array(levels, dtype=float)
    )


def mean_of(name):
    transition, levels, *_ = CASES[name]
    return float(stationary(transition) @ levels)


def posterior_of(name, n_steps=None):
    _, levels, (b, a), lag, length, phase, noise = CASES[name]
    target = Filter(b, a).factors if a != [1, -1] else Filter(b).factors._replace(recursion=np.array([1.0, -1.0]))
    maker = TableMaker(ChainLaw.of(source_of(name)), mean_of(name), float(min(levels)), 1.0, target)
    return block_posterior(maker, noise, length, phase, lag, n_steps)


def run(name, u, dtype="f8", chunk=48, n_steps=None, **options):
    """What is released about the mean, and estimates: (2, streams, time)."""
    _, levels, _, _, length, phase, noise = CASES[name]
    chain, out, low, mean = Chain(dtype, chunk), np.empty((2, *u.shape), dtype), min(levels), mean_of(name)
    sums = BlockSums(length, phase, low, 1.0, length * (low - mean), -phase * (low - mean), rounds=False)
    v = chain.release(sums, IntegerTable.from_tails(*noise.tails()), RELEASE, chain.read())
    for x in (v, chain.estimate_posterior(posterior_of(name, n_steps), v)):
        chain.write(x)
    execute(chain, *u.shape, x=u.astype(dtype), out=out, seed=5, **options)
    return out


def inputs(name, n_streams, n, seed=1):
    return np.random.default_rng(seed).choice(np.array(CASES[name][1], dtype=float), (n_streams, n))


def expected_of(name, released, n_steps=None):
    """The twin's estimates behind what was released about the mean; beyond a horizon a sum tells nothing."""
    transition, levels, (b, a), lag, length, phase, noise = CASES[name]
    mean, low, steps = mean_of(name), min(levels), np.array(levels) - min(levels)
    n = np.where(np.arange(len(released)) < length - phase, length - phase, length)
    sums = np.rint(released - n * (low - mean)).astype(int)
    start, centred = stationary(transition), np.array(levels) - mean

    left = len(released) if n_steps is None else (n_steps + phase) // length

    def probability(n):
        nonlocal left
        left -= 1
        return np.exp(noise.log_probability(n)) if left >= 0 else np.ones(len(n))

    return means_by_recursion(transition, start, steps, centred, b, a, lag, length, phase, probability, sums)


@DTYPES
@pytest.mark.parametrize("n_steps", [2, 47])
@pytest.mark.parametrize(
    "name", ["every step, late", "three levels, late", "a little late", "bounded noise, late", "a running sum"]
)
def test_after_the_last_step_of_a_horizon_nothing_is_taken_in(name, n_steps, dtype):
    lag = CASES[name][3]
    first, second = (inputs(name, 2, n_steps + lag + 40, seed) for seed in (1, 2))
    second[:, :n_steps] = first[:, :n_steps]
    released, estimates = run(name, first, dtype, n_steps=n_steps)
    stop = n_steps + lag
    expected = [expected_of(name, v, n_steps)[:stop] for v in released]
    assert_close(estimates[:, :stop], expected, name)
    np.testing.assert_array_equal(run(name, second, dtype, n_steps=n_steps)[1], estimates)
    np.testing.assert_array_equal(estimates[:, -1], estimates[:, -2])  # of no step of the horizon: the last is kept


@DTYPES
@EVERY_CASE
def test_estimates_are_those_of_the_recursion(name, dtype):
    released, estimates = run(name, inputs(name, 2, 130), dtype)
    assert_close(estimates, [expected_of(name, v) for v in released], name)


@DTYPES
@EVERY_CASE
def test_estimates_do_not_depend_on_chunks_or_threads_or_the_future(name, dtype):
    u = inputs(name, LANES + 1, 66)
    expected = run(name, u, dtype)
    for chunk in (6, 30):
        assert np.array_equal(run(name, u, dtype, chunk), expected)
    assert np.array_equal(run(name, u, dtype, n_threads=3), expected)
    assert np.array_equal(run(name, u[:1], dtype), expected[:, :1])
    assert np.array_equal(run(name, u[:, :35], dtype), expected[:, :, :35])


@DTYPES
@pytest.mark.parametrize("name", ["paper", "bounded noise", "bounded noise, late", "stairs"])
def test_sums_beyond_all_that_levels_make_are_weighed_as_their_noise_says(name, dtype):
    """Inputs here are far from the levels; beyond bounded noise a sum tells nothing."""
    u = inputs(name, 2, 130) * np.array([3.0, -7.0])[:, None]
    released, estimates = run(name, np.rint(u), dtype)
    assert np.isfinite(estimates).all()
    assert_close(estimates, [expected_of(name, v) for v in released], name)


def test_of_a_chain_with_levels_that_are_followed_alike_these_are_one_memory():
    assert [len(posterior_of(name).start) for name in ("no memory", "every step", "a little late")] == [1, 2, 3]


# --- responses, and studies -----------------------------------------------------------------------

RESPONSE = TwoLevelResponse(0.0, 0.1, 0.7, 2.0, 1.5, 0.0)
OUTCOMES = np.array([[0.1, 0.6, 0.3, 0.0], [0.0, 0.3, 0.6, 0.1]]).T


def filtered(x):
    return signal.lfilter([1], [1, -0.5], x)


def response_mechanism(level=0.0, lag=2, centre=0.25):
    """Randomised response to a chain on ± 1/2, whose mean is `centre` here."""
    source = signal_sources.LevelSource(
        np.array([0.25, 1.0]), np.array([[0.4, 1.0], [0.2, 1.0]]), np.array([-0.5, 0.5])
    )
    target = Filter([1], [1, -0.5]).factors
    maker = TableMaker(ChainLaw.of(source), centre, -0.5, 1.0, target)
    posterior = response_posterior(maker, OUTCOMES, np.array([-1.75, 0.0, 1.75]) - centre, lag)
    linear = CompiledLinearReceiver(Filter([0.1]).factors, target, level, lag)
    return CompiledResponseMechanism(centre, RESPONSE, CompiledPosterior(posterior, linear)), source


@pytest.mark.parametrize(("level", "lag"), [(0.0, 2), (0.25, 0)])
def test_estimates_behind_responses_are_those_of_the_recursion(level, lag):
    mechanism, source = response_mechanism(level, lag)
    u = np.empty((3, 90))
    simulation.sample(source, 3, u, 1)
    released, estimates = simulation.simulate(mechanism, u, 3, 1)
    outcome = np.searchsorted([-1.75, 0.0, 1.75], released + 0.25)
    assert set(outcome.ravel()) == {0, 1, 2, 3}
    transition, start = np.array([[0.4, 0.6], [0.2, 0.8]]), np.array([0.25, 0.75])
    offset = filtered(np.where(np.arange(90) < lag, 0.0, level))
    for found, seen in zip(estimates, outcome, strict=True):
        likelihoods = iter(OUTCOMES[seen])
        expected = means_by_recursion(
            *(transition, start, np.array([0, 1]), np.array([-0.75, 0.25]), [1], [1, -0.5], lag, 1, 0),
            lambda n, likelihoods=likelihoods: next(likelihoods),
            np.zeros(90, int),
        )
        assert_close(found, expected + offset)


@pytest.mark.parametrize("level", [0.0, 0.25])
def test_errors_and_differences_of_a_study_are_those_of_its_paths(level):
    mechanism, source = response_mechanism(level)
    study = simulation.CompiledStudy(source, (mechanism, mechanism), 20, 90, np.float64, (1,))
    found = simulation.squared_errors(study, 3, 3, 1)
    u = np.empty((3, 112))
    simulation.sample(source, 3, u, 1)
    released, estimates = simulation.simulate(mechanism, u, 3, 1)
    offset = filtered(np.where(np.arange(112) < 2, 0.0, level))
    centred = estimates - offset
    errors = centred[:, 2:] - filtered(u - 0.25)[:, :110]
    assert found.shape == (3, 3)
    np.testing.assert_array_equal(found[:, 0], found[:, 1])
    np.testing.assert_allclose(found[:, 0], (errors[:, 20:] ** 2).mean(axis=1), rtol=1e-9)
    differences = (centred - 0.1 * released)[:, 22:112]
    np.testing.assert_allclose(found[:, 2], (differences**2).mean(axis=1), rtol=1e-9)


@pytest.mark.parametrize("cuts", [[1, 2, 3], [5], list(range(1, 61))])
@pytest.mark.parametrize(
    "name", ["three levels, late", "a little late", "bounded noise, late", "paper, a shorter first"]
)
def test_pieces_that_go_on_from_states_are_the_whole(name, cuts):
    """About a mean that the target passes, from the states of what was before; and nothing comes beyond an end."""
    linear = CompiledLinearReceiver(Filter([1]).factors, Filter(*CASES[name][2]).factors, 0.7, CASES[name][3])
    receiver, n = CompiledPosterior(posterior_of(name, 2**60), linear), 60
    released, _ = run(name, inputs(name, 3, n))
    for live, end in ((receiver, n), (receiver.ending_after(n - 9), n - 9)):
        chain = simulation.build_live_chain(live)
        states = np.zeros((3, len(chain.end)))
        states[:, : len(live.posterior.start)] = live.posterior.start
        whole, _ = simulation.continue_chain(chain, released, states, 0, 1)
        pieces, past = [], 0
        for piece in np.split(released, cuts, axis=1):
            found, states = simulation.continue_chain(chain, np.ascontiguousarray(piece), states, past, 1)
            pieces.append(found)
            past += piece.shape[1]
        assert np.array_equal(np.concatenate(pieces, axis=2), whole)
        lag, offset = CASES[name][3], signal.lfilter(*CASES[name][2], np.full(n, 0.7))
        offset = np.concatenate([np.zeros(lag), offset])[:n]
        expected = [expected_of(name, v, end)[: end + lag] for v in released]
        assert_close((whole[0] - offset)[:, : end + lag], expected, name)


def test_a_posterior_is_a_receiver_like_others():
    receiver = response_mechanism()[0].receiver
    assert (receiver.equalizer, receiver.lag, receiver.phase) == (None, 2, 0)
    assert receiver.target is receiver.linear.target
    assert receiver.cost > receiver.linear.cost
