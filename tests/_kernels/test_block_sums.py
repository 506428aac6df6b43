"""The periodic Kalman filter behind block sums against its twin; what is released is tested with integer noise."""

import itertools
import math

import numpy as np
import pytest
from helpers import reference
from helpers.chains import FACTORS, LANES, NO_SECTIONS, ONE, assert_close, scipys

from dpfast._kernels import signal_sources, simulation
from dpfast._kernels.block_sums import BlockSums, PeriodicFilter
from dpfast._kernels.chain_builder import Chain
from dpfast._kernels.chain_execute import execute
from dpfast._kernels.compiled_mechanisms import CompiledBlock, CompiledBlockMechanism
from dpfast._kernels.compiled_receivers import CompiledPeriodicKalman
from dpfast._kernels.factors import Factors
from dpfast._kernels.integer_draws import IntegerTable
from dpfast._kernels.simulated_noise import RELEASE
from dpfast.privacy.integer_noise.geometric import TwoSidedGeometric

DTYPES = pytest.mark.parametrize("dtype", ["f4", "f8"])
LAW = TwoSidedGeometric(0.7).tails()


def random_filter(n_states, lengths, phase, lag, cycles=1, offsets=()):
    """A filter of random numbers, which weighs what has come by the lag and nothing else."""
    rng, slot = np.random.default_rng(n_states + lag), math.gcd(*lengths, *offsets)
    cycle, n_later, n_levels = cycles * lengths[-1], -(-lag // slot), len(lengths)
    slots = (lengths[-1] // slot,) if offsets else ()
    advance = rng.normal(size=(*slots, n_states, n_states)) * 0.4 / np.sqrt(n_states)
    gains = 0.5 * rng.normal(size=(cycle // slot, n_levels, n_states))
    for passed in range(slot, cycle + 1, slot) if offsets else ():
        for level, late in enumerate(offsets):
            gains[passed // slot - 1, level] *= (passed - late) % lengths[level] == 0
    weights = rng.normal(size=(cycle, n_states + n_levels * n_later))
    for passed, row in enumerate(weights):
        come = (passed + lag) // slot - passed // slot
        for level in range(n_levels):
            row[n_states + level * n_later + come : n_states + (level + 1) * n_later] = 0
    return PeriodicFilter(advance, gains, weights, lengths, phase, lag, offsets)


FILTERS = {
    "every step": random_filter(3, (1,), 0, 0),
    "every step, late": random_filter(3, (1,), 0, 4),
    "of five": random_filter(4, (5,), 0, 0),
    "of five, a shorter first": random_filter(4, (5,), 3, 0),
    "of five, late": random_filter(4, (5,), 2, 7),
    "of nine, a little late": random_filter(2, (9,), 0, 2),
    "two levels": random_filter(5, (3, 12), 0, 0),
    "two levels, late": random_filter(5, (2, 6), 1, 13),
    "three levels": random_filter(6, (1, 2, 8), 0, 3),
    "two cycles": random_filter(3, (4,), 0, 5, cycles=2),
    "two sums at once": random_filter(4, (6, 6), 2, 7),
    "two sums in turn": random_filter(4, (6, 6), 0, 4, offsets=(0, 3)),
    "three sums at any time": random_filter(5, (5, 5, 5), 3, 8, cycles=2, offsets=(2, 0, 4)),
    "beyond a chunk": random_filter(3, (60,), 7, 100),
}
EVERY_FILTER = pytest.mark.parametrize("name", FILTERS)


def run(name, u, dtype="f8", chunk=48, **options):
    """What is released, and estimates: (levels + 1, streams, time)."""
    kalman, chain = FILTERS[name], Chain(dtype, chunk)
    out, x = np.empty((len(kalman.lengths) + 1, *u.shape), dtype), chain.read()
    table = IntegerTable.from_tails(*LAW)
    lates = kalman.offsets or (0,) * len(kalman.lengths)
    released = [
        chain.release(BlockSums(length, (kalman.phase - late) % length, 0.0, 1.0, 0.0, 0.0, False), table, i, x)
        for i, (length, late) in enumerate(zip(kalman.lengths, lates, strict=True), start=RELEASE)
    ]
    for signal in (*released, chain.estimate(kalman, tuple(released))):
        chain.write(signal)
    execute(chain, *u.shape, x=u.astype(dtype), out=out, seed=5, **options)
    return out


def inputs(n_streams, n, seed=1):
    return np.random.default_rng(seed).integers(-2, 3, (n_streams, n)).astype(float)


@DTYPES
@EVERY_FILTER
def test_estimates_are_those_of_the_twin(name, dtype):
    *released, estimates = run(name, inputs(2, 200), dtype)
    expected = [reference.periodic_kalman(*FILTERS[name], [v[i] for v in released]) for i in range(2)]
    assert_close(estimates, expected, name)


@DTYPES
@EVERY_FILTER
def test_estimates_do_not_depend_on_chunks_or_threads_or_the_future(name, dtype):
    u = inputs(LANES + 1, 200)
    expected = run(name, u, dtype)
    for chunk in (6, 90):
        assert np.array_equal(run(name, u, dtype, chunk), expected)
    assert np.array_equal(run(name, u, dtype, n_threads=3), expected)
    assert np.array_equal(run(name, u[:1], dtype), expected[:, :1])
    assert np.array_equal(run(name, u[:, :110], dtype), expected[:, :, :110])


# --- mechanisms -----------------------------------------------------------------------------------

TARGET = Factors(np.array([1.0, 0.5]), NO_SECTIONS, ONE)


def mechanism(name, level=0.0, n_steps=None, rounds=False, weights=()):
    kalman = FILTERS[name]
    receiver = CompiledPeriodicKalman(*kalman[:4], kalman.phase, TARGET, level, kalman.lag, kalman.offsets)
    parts = itertools.zip_longest(kalman.lengths, weights, kalman.offsets)
    blocks = tuple(CompiledBlock(length, *LAW, w or (), late or 0) for length, w, late in parts)
    return CompiledBlockMechanism(0.3, blocks, -0.5, 0.25, rounds, receiver, n_steps)


@pytest.mark.parametrize("rounds", [False, True])
@pytest.mark.parametrize("name", ["of five, a shorter first", "of five, late", "two levels, late"])
def test_block_sums_are_released_about_the_mean(name, rounds):
    u, kalman = inputs(2, 100) * 0.5, FILTERS[name]
    *released, _ = simulation.simulate(mechanism(name, rounds=rounds), u, 3, 1)
    for level, length in enumerate(kalman.lengths):
        for i in range(2):
            words = reference.xoshiro128pp(reference.generator_state(3, i, RELEASE + level), 100)
            draws, total = (reference.integer(*LAW, word) for word in words), 0.0
            for t, value in enumerate(u[i], start=1):
                total += value - 0.3
                ends = (t + kalman.phase) % length == 0
                expected = total + 0.25 * next(draws) if ends else 0.0
                assert released[level][i, t - 1] == pytest.approx(expected, abs=1e-12)
                total = 0.0 if ends else total


SIGNS = {
    "of five, late": ((1.0, -1.0, 0.0, 1.0, -1.0),),
    "of nine, a little late": ((0.0, 0.0, 1.0, -1.0, 0.0, -1.0, -1.0, 1.0, 1.0),),
    "two sums at once": ((1.0, 0.0, -1.0, 0.0, 0.0, 1.0), (0.0, -1.0, 0.0, 0.0, 1.0, 0.0)),
    "three sums at any time": ((1.0, 0.0, 0.0, -1.0, 0.0), (0.0, 1.0, 0.0, 0.0, 0.0), (0.0, 0.0, -1.0, 0.0, 0.0)),
    "beyond a chunk": (tuple((-1.0) ** k for k in range(60)),),
}


@DTYPES
@pytest.mark.parametrize("rounds", [False, True])
@pytest.mark.parametrize("name", SIGNS)
def test_signed_sums_are_released_about_the_mean(name, rounds, dtype):
    """Each sum by the weights from its own beginning on, of which a first block lacks the first ones."""
    u, kalman, signs = inputs(2, 130) * 0.5, FILTERS[name], SIGNS[name]
    chain = Chain(dtype, 48)
    signals = mechanism(name, rounds=rounds, weights=signs).privatize(chain, chain.read(), None)
    for signal in signals:
        chain.write(signal)
    out = np.empty((len(signs), *u.shape), dtype)
    execute(chain, *u.shape, x=u.astype(dtype), out=out, seed=3)
    lates = kalman.offsets or (0,) * len(signs)
    for level, (weights, late) in enumerate(zip(signs, lates, strict=True)):
        for i in range(2):
            words = reference.xoshiro128pp(reference.generator_state(3, i, RELEASE + level), 130)
            draws, total = (reference.integer(*LAW, word) for word in words), 0.0
            for t, value in enumerate(u[i]):
                total += weights[(t + kalman.phase - late) % len(weights)] * (value - 0.3)
                ends = (t + 1 + kalman.phase - late) % len(weights) == 0
                expected = total + 0.25 * next(draws) if ends else 0.0
                assert out[level, i, t] == pytest.approx(expected, abs=1e-12 if dtype == "f8" else 1e-4)
                total = 0.0 if ends else total


def test_sums_with_weights_of_one_have_the_bits_of_sums_without():
    u = inputs(LANES + 1, 200) * 0.5
    for name in ("of five, late", "beyond a chunk", "two levels, late"):
        ones = tuple((1.0,) * n for n in FILTERS[name].lengths)
        plain, weighed = (simulation.simulate(mechanism(name, weights=w), u, 3, 1) for w in ((), ones))
        for a, b in zip(plain, weighed, strict=True):
            assert np.array_equal(a, b)


@pytest.mark.parametrize("level", [0.0, 0.3])
@pytest.mark.parametrize("name", ["of five, late", "two levels"])
def test_a_mechanism_adds_the_mean_through_the_target(name, level):
    kalman = FILTERS[name]
    *released, estimates = simulation.simulate(mechanism(name, level), inputs(2, 100), 3, 1)
    offset = scipys(TARGET, np.where(np.arange(100) < kalman.lag, 0.0, level))
    expected = [reference.periodic_kalman(*kalman, [v[i] for v in released]) + offset for i in range(2)]
    assert_close(estimates, expected, name)


@pytest.mark.parametrize("name", ["of five, late", "two levels"])
def test_errors_of_a_study_are_those_of_its_paths(name):
    """The source is white noise, whose mean the mechanism knows."""
    kalman, source = FILTERS[name], signal_sources.GaussianSource(FACTORS["identity"], np.empty((0, 0)), 0.3, None)
    study = simulation.CompiledStudy(source, (mechanism(name, 0.3),), 20, 90)
    found = simulation.squared_errors(study, 3, 3, 1)
    u = np.empty((3, 110 + kalman.lag))
    simulation.sample(source, 3, u, 1)
    *_, estimates = simulation.simulate(mechanism(name, 0.3), u, 3, 1)
    errors = estimates[:, kalman.lag :] - scipys(TARGET, u)[:, :110]
    np.testing.assert_allclose(found[:, 0], (errors[:, 20:110] ** 2).mean(axis=1), rtol=1e-9)


def test_block_sums_are_chains_of_a_horizon_or_none():
    sums = mechanism("of five")
    assert sums.as_chain() is sums
    assert sums.as_matrices() is None
    assert sums.receiver.equalizer is None
    assert sums.cost > sums.receiver.cost
    assert sums.noise_steps == pytest.approx((2 * LAW[0][0], 0.25, 0.25 * len(LAW[0])))
    assert (mechanism("of five").horizon, mechanism("of five", n_steps=12).horizon) == (None, 12)
