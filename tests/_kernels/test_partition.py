"""Blocks that react to what was published, against the enumeration of all paths, and against blocks of one length."""

import numpy as np
import pytest
from helpers.chain_posterior import enumerate_paths, means_over_paths
from helpers.chains import LANES
from helpers.reacting_blocks import follow
from scipy import signal

import dpfast as dp
from dpfast._kernels import simulation
from dpfast._kernels.chain_builder import Chain
from dpfast._kernels.chain_execute import execute
from dpfast._kernels.integer_draws import IntegerTable
from dpfast._kernels.simulated_noise import RELEASE
from dpfast.filters.filter import Filter
from dpfast.filters.toeplitz import running_sum
from dpfast.mechanisms.chain_law import ChainLaw
from dpfast.mechanisms.partition_tables import build_partition
from dpfast.mechanisms.posterior_tables import TableMaker, block_posterior
from dpfast.privacy.integer_noise.canonical import DiscreteCanonical
from dpfast.privacy.integer_noise.geometric import TwoSidedGeometric

THREE = np.array([[0.7, 0.2, 0.1], [0.15, 0.7, 0.15], [0.05, 0.25, 0.7]])
TWO, SLOW = np.array([[0.9, 0.1], [0.3, 0.7]]), np.array([[0.97, 0.03], [0.06, 0.94]])
COIN = np.array([[0.3, 0.7], [0.3, 0.7]])
RECURSIVE, PAIR, AVERAGE = ([1, 0.5], [1, -0.9]), ([0.4, 0, 0.1], [1, -1.5, 0.7]), ([0.25] * 4, [1])
STEPS, MEAN = 8, 0.4
# transition, levels in steps, target, lag, longest, threshold, noise, steps of a horizon
CASES = {
    "slow": (SLOW, (0, 1), RECURSIVE, 0, 4, 0.13, ("geometric", 1.5), None),
    "late": (SLOW, (1, 0), PAIR, 3, 5, 0.21, ("geometric", 1.5), None),
    "three levels": (THREE, (0, 1, 3), RECURSIVE, 1, 4, 0.3, ("geometric", 0.7), None),
    "taps alone": (TWO, (0, 2), AVERAGE, 2, 6, 0.51, ("geometric", 0.7), None),
    "bounded": (TWO, (0, 1), RECURSIVE, 0, 4, 0.4, ("canonical", 1.1, 0.05), None),
    "no memory": (COIN, (0, 1), RECURSIVE, 0, 5, 0.2, ("geometric", 0.9), None),
    "every step": (SLOW, (0, 1), RECURSIVE, 1, 1, 9.0, ("geometric", 2.0), None),
    "horizon": (SLOW, (0, 1), ([1], [1, -1]), 3, 3, 0.13, ("geometric", 1.5), 5),
}  # fmt: skip
EVERY_CASE = pytest.mark.parametrize("name", CASES)


def law(noise):
    return TwoSidedGeometric(*noise[1:]) if noise[0] == "geometric" else DiscreteCanonical(*noise[1:])


def probability(noise):
    """P(N = n) up to a factor, by the formulas."""
    if noise[0] == "geometric":
        return lambda n: np.exp(-noise[1] * np.abs(n))
    epsilon, delta = noise[1:]
    tails = [(1 - delta) / (1 + np.exp(epsilon))]
    while tails[-1] > 0:
        tails.append(max(0.0, np.exp(-epsilon) * (tails[-1] - delta)))
    masses = np.append([1 - 2 * tails[0]], -np.diff(tails))
    return lambda n: np.append(masses, 0.0)[np.minimum(np.abs(n).astype(int), len(masses))]


def maker_of(name):
    transition, steps, (b, a), *_ = CASES[name]
    memory = np.zeros(2, int) if name == "no memory" else np.arange(len(steps))
    rows = transition[:1] if name == "no memory" else transition
    start = np.linalg.matrix_power(transition, 500)[0]
    start = np.ones(1) if name == "no memory" else start
    factors = Filter(b, a).factors if a != [1, -1] else running_sum(5).factors
    return TableMaker(ChainLaw(rows, memory, start, np.array(steps, float)), MEAN, 0.0, 1.0, factors)


def partition_of(name):
    *_, lag, longest, threshold, noise, n_steps = CASES[name]
    return build_partition(maker_of(name), law(noise), threshold, longest, lag, n_steps)


def run(partition, noise, u, n, seed=1, dtype="f8", chunk=480, n_threads=1):
    """What is released, about the mean, and the estimates, of inputs (streams, n)."""
    chain = Chain(dtype, chunk)
    table = IntegerTable.from_tails(*noise.tails()) if noise is not None else IntegerTable(np.zeros(4), 1.0, 0)
    released = chain.publish(partition, table, RELEASE, chain.read())
    chain.write(released)
    chain.write(chain.follow(partition, released))
    out = np.empty((2, len(u), n), dtype)
    execute(chain, len(u), n, seed=seed, x=u.astype(dtype), out=out, n_threads=n_threads)
    return out


def inputs(name, n_streams, n=STEPS):
    """Inputs of the levels; in some streams far outside of them, so that nothing is left of their probability."""
    rng, levels = np.random.default_rng(3), np.array(CASES[name][1], float)
    u = levels[np.cumsum(rng.random((n_streams, n)) < 0.2, axis=1) % len(levels)]
    u[::5] *= 9
    return u


@EVERY_CASE
def test_releases_and_estimates_are_those_of_all_paths(name):
    transition, steps, (b, a), lag, longest, threshold, noise, n_steps = CASES[name]
    n = n_steps or STEPS
    u, partition = inputs(name, 12), partition_of(name)
    v, estimates = run(partition, law(noise), u, STEPS)
    start = np.linalg.matrix_power(transition, 500)[0]
    paths, chance = enumerate_paths(transition, start, STEPS)
    levels, impulse = np.array(steps) - MEAN, signal.lfilter(b, a, np.eye(1, STEPS)[0])
    for stream in range(len(u)):
        found = follow(
            np.array(steps)[paths][:, :n],
            chance,
            probability(noise),
            threshold * law(noise).variance,
            longest,
            lambda t, length, stream=stream: np.rint(v[stream, t] + MEAN * length),
        )
        assert set(found) == set(np.flatnonzero(~np.isnan(v[stream])))
        expected = means_over_paths(paths, chance, levels, impulse, lag, found)
        np.testing.assert_allclose(estimates[stream], expected, rtol=0, atol=1e-9 * np.abs(expected).max())


def test_partitions_react():
    """The cases have blocks of several lengths, at other times in other streams, and values that cannot be."""
    for name in ("slow", "late", "three levels", "taps alone", "bounded", "horizon"):
        noise = law(CASES[name][6])
        v, _ = run(partition_of(name), noise, inputs(name, 12), STEPS)
        assert len({tuple(np.isnan(row)) for row in v}) > 1, name
    v, _ = run(partition_of("bounded"), law(CASES["bounded"][6]), inputs("bounded", 12), STEPS)
    assert np.nanmax(v) > 4 + law(CASES["bounded"][6]).largest


@EVERY_CASE
def test_what_is_released_is_the_sum_of_the_block_and_noise(name):
    """Without noise it is the sum; with it the same noise is in all that is released at a time."""
    partition, u = partition_of(name), inputs(name, 3)
    v, _ = run(partition, None, u, STEPS)
    for stream, row in zip(u - MEAN, v, strict=True):
        ends = np.flatnonzero(~np.isnan(row))
        sums = np.diff(np.cumsum(stream)[ends], prepend=0.0)
        np.testing.assert_allclose(row[ends], sums, rtol=0, atol=1e-12)
        assert len(ends)


@pytest.mark.parametrize("name", ["slow", "late", "three levels", "bounded"])
@pytest.mark.parametrize("length", [1, 3])
def test_where_the_rule_never_differs_it_is_the_posterior_of_fixed_blocks(name, length):
    """A variance that is never reached: all blocks are as long as they may be."""
    _, _, _, lag, _, _, noise, _ = CASES[name]
    maker = maker_of(name)
    partition = build_partition(maker, law(noise), 1e9, length, lag, None)
    u = inputs(name, 5, 40)
    v, estimates = run(partition, law(noise), u, 40)
    chain, out = Chain(), np.empty((1, 5, 40))
    chain.write(chain.estimate_posterior(block_posterior(maker, law(noise), length, 0, lag), chain.read()))
    execute(chain, 5, 40, x=np.nan_to_num(v), out=out, n_threads=1)
    assert (np.isnan(v) == (np.arange(1, 41) % length != 0)).all()
    np.testing.assert_allclose(estimates, out[0], rtol=0, atol=1e-11 * np.abs(out).max())


def test_independent_levels_make_blocks_of_one_length():
    """Var = .21 L of a coin, and .2 times that of the noise: the first L that reaches it."""
    noise = law(CASES["no memory"][6])
    length = int(np.ceil(0.2 * noise.variance / 0.21))
    v, _ = run(partition_of("no memory"), noise, inputs("no memory", 3), STEPS)
    assert 1 < length < 4
    assert (np.isnan(v) == (np.arange(1, STEPS + 1) % length != 0)).all()


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_bits_depend_neither_on_chunks_nor_on_threads_and_bundles(dtype):
    partition, noise = partition_of("late"), law(CASES["late"][6])
    u = inputs("late", LANES + 2, 30)
    expected = run(partition, noise, u, 30, dtype=dtype)
    for changed in ({"chunk": 12}, {"n_threads": 2}):
        np.testing.assert_array_equal(run(partition, noise, u, 30, dtype=dtype, **changed), expected)
    np.testing.assert_array_equal(run(partition, noise, u[:1], 30, dtype=dtype), expected[:, :1])


def test_single_precision_is_near():
    partition, noise, u = partition_of("three levels"), law(CASES["three levels"][6]), inputs("three levels", 3)
    single, double = (run(partition, noise, u, STEPS, dtype=x) for x in ("f4", "f8"))
    np.testing.assert_allclose(single, double, rtol=0, atol=1e-4)


def test_nothing_is_released_behind_a_horizon():
    """A study of late estimates goes on behind its last step."""
    v, _ = run(partition_of("horizon"), law(CASES["horizon"][6]), inputs("horizon", 12), STEPS)
    assert np.isnan(v[:, 5:]).all()
    assert np.isfinite(v[:, :5]).any(axis=1).all()


def test_noise_is_that_of_the_step_whatever_the_partition_is():
    """Who compares thresholds compares them on the same noise."""
    noise, found = law(CASES["slow"][6]), []
    for threshold in (0.1, 0.4):
        v, _ = run(build_partition(maker_of("slow"), noise, threshold, 5, 0, None), noise, np.zeros((4, 50)), 50)
        ends = np.where(np.isnan(v), 0, np.arange(1, 51))
        lengths = ends - np.maximum.accumulate(np.hstack([np.zeros((4, 1), int), ends[:, :-1]]), axis=1)
        found.append(v + MEAN * lengths)
    both = np.isfinite(found).all(axis=0)
    assert 20 < both.sum() < min(np.isfinite(x).sum() for x in found)
    np.testing.assert_allclose(found[0][both], found[1][both], rtol=0, atol=1e-12)
    assert len(set(found[0][both].round())) > 1


def test_a_study_sums_the_errors_of_the_paths():
    model = dp.MarkovChain(SLOW, [0, 1])
    mechanism = dp.adaptive_blocks(Filter(*RECURSIVE), dp.Privacy(1.5), model, threshold=0.2, longest=4, lag=2)
    compiled, u = mechanism.compiled(), np.empty((2, 25))
    study = simulation.CompiledStudy(model.compiled(), (compiled,), 3, 20)
    errors = simulation.squared_errors(study, 2, 7, 1)
    simulation.sample(model.compiled(), 7, u, 1)
    y = signal.lfilter(*RECURSIVE, u, axis=1)
    estimates = mechanism.simulate(u, seed=7, n_threads=1).estimate
    offset = signal.lfilter(*RECURSIVE, np.full(25, model.mean))  # of which the first estimates have less
    late = signal.lfilter(*RECURSIVE, np.where(np.arange(25) < 2, 0.0, model.mean))
    np.testing.assert_allclose(late[2:], offset[:-2], rtol=1e-12)
    expected = np.mean((estimates[:, 5 : 23 + 2] - y[:, 3:23]) ** 2, axis=1)
    np.testing.assert_allclose(errors[:, 0], expected, rtol=1e-9)


def test_what_runs_says_its_sizes():
    chain = dp.MarkovChain(SLOW, [0, 1])
    small, large = (
        dp.adaptive_blocks(Filter(*RECURSIVE), dp.Privacy(1.5), chain, threshold=0.2, longest=4, lag=x).compiled()
        for x in (0, 50)
    )
    assert 0 < small.cost < large.cost
    assert (small.horizon, small.as_matrices(), small.receiver.equalizer) == (None, None, None)
    assert small.as_chain() is small
    q = np.exp(-1.5)
    assert small.noise_steps[:2] == pytest.approx((2 * q / (1 + q), 1.0))
    over = dp.adaptive_blocks(running_sum(5), dp.Privacy(1.5), chain, threshold=0.2)
    assert (over.compiled().horizon, over.longest) == (5, 5)


def test_about_a_mean_of_zero_nothing_is_added():
    chain = dp.MarkovChain([[0.9, 0.1], [0.1, 0.9]], [-1, 1])
    mechanism = dp.adaptive_blocks(Filter([1]), dp.Privacy(1, max_change=2), chain, threshold=0.2, longest=4)
    assert chain.mean == 0
    np.testing.assert_array_equal(mechanism.simulate(np.ones(1), seed=1).estimate, [0.0])  # before the first release
