"""Integer noise and randomised response as chains draw them: twins of the bits, exact bins, chunks and threads.

Seeds are fixed. A comparison of counts raises a false alarm once in 1e9; there are fewer than thirty.
"""

import math

import numpy as np
import pytest
from helpers import reference
from helpers.chains import FACTORS, LANES, NO_SECTIONS, ONE
from scipy import stats

from dpfast._kernels import compiled_mechanisms, integer_draws, randomized_response, simulation
from dpfast._kernels.block_sums import BlockSums
from dpfast._kernels.chain_builder import Chain
from dpfast._kernels.chain_execute import execute
from dpfast._kernels.compiled_mechanisms import CompiledBlock
from dpfast._kernels.compiled_receivers import CompiledLinearReceiver
from dpfast._kernels.factors import Factors
from dpfast._kernels.randomized_response import TwoLevelResponse
from dpfast._kernels.simd import lanes
from dpfast._kernels.simulated_noise import RELEASE, STATE_WORDS, seed_generators
from dpfast.privacy.integer_noise.canonical import DiscreteCanonical
from dpfast.privacy.integer_noise.geometric import TwoSidedGeometric
from dpfast.privacy.integer_noise.staircase import Staircase

ALARM = 1e-9
DTYPES = pytest.mark.parametrize("dtype", ["f4", "f8"])
LAWS = {
    "geometric": TwoSidedGeometric(1.0),
    "wide": TwoSidedGeometric(0.015),
    "of three values": TwoSidedGeometric(30.0),
    "canonical": DiscreteCanonical(math.log(3), 0.05),
    "certain": TwoSidedGeometric(1000.0),
    "staircase": Staircase(3.0, 4),
}
EVERY_LAW = pytest.mark.parametrize("name", LAWS)


def block_of(name, length=1):
    return CompiledBlock(length, *LAWS[name].tails())


def expected_noise(name, seed, stream, n, purpose=RELEASE):
    words = reference.xoshiro128pp(reference.generator_state(seed, stream, purpose), n)
    return [reference.integer(*LAWS[name].tails(), word) for word in words]


def is_law(found, probabilities):
    """Counts of integers against a law: a dictionary, of all that is not rare."""
    drawn = dict(zip(*np.unique(found, return_counts=True), strict=True))
    frequent = {n: p for n, p in probabilities.items() if p * found.size > 20}
    counts = np.array([drawn.get(n, 0) for n in frequent] + [found.size])
    counts[-1] -= counts[:-1].sum()
    expected = np.array([p * found.size for p in frequent.values()] + [0.0])
    expected[-1] = max(found.size - expected.sum(), 0.0)
    if expected[-1] < 20:  # too few for a bin of their own
        assert stats.poisson.sf(counts[-1] - 1, expected[-1]) > ALARM
        counts, expected = counts[:-1], expected[:-1] * (counts[:-1].sum() / expected[:-1].sum())
    return len(counts) == 1 or stats.chisquare(counts, expected).pvalue > ALARM


# --- integers -------------------------------------------------------------------------------------


@EVERY_LAW
def test_integers_are_those_of_the_twin(name):
    found = simulation.draw_integers(block_of(name), 7, 2, 5, 40)
    assert found.tolist() == [expected_noise(name, 7, i, 40) for i in range(2, 7)]


@pytest.mark.slow_nojit
@EVERY_LAW
def test_integers_follow_the_law(name):
    law, found = LAWS[name], simulation.draw_integers(block_of(name), 20250101, 0, 64, 5000)
    reach = len(law.tails()[0]) + 1
    assert np.array_equal(found, np.rint(found))
    n = np.arange(-reach, reach + 1)
    assert is_law(found, dict(zip(n, np.exp(law.log_probability(n)), strict=True)))


def state_that_draws(words):
    """States of generators whose next words are these."""
    state = np.zeros((STATE_WORDS, len(words)), np.uint32)
    state[1], state[3] = 1, words >> np.uint32(7) | words << np.uint32(25)
    return state


@EVERY_LAW
def test_every_word_gives_the_integer_that_the_twin_gives(name):
    """Around thresholds, and the first and the last word of each sign."""
    width, (tails, step), table = lanes("f8"), LAWS[name].tails(), block_of(name).table()
    bounds = [0, 2**31, *(round(p * 2**32) for p in (*tails[:5], *tails[-5:]))]
    near = {(b + i) % 2**32 for b in bounds for i in (-2, -1, 0, 1)}
    words = sorted(near | {2**32 - 1 - x for x in near})
    half = np.uint32(1 << table.n_halves >> 1)
    draws = integer_draws.Draws(0, 0, len(table.thresholds), table.n_halves, half, step)
    for first in range(0, len(words), width):
        chosen, x = np.resize(np.array(words[first : first + width], np.uint32), width), np.zeros((1, width))
        integer_draws.draw_integer(state_that_draws(chosen), draws, table.thresholds.astype(np.uint32), x, 0)
        assert x[0].tolist() == [reference.integer(tails, step, int(w)) for w in chosen]


@pytest.mark.parametrize("n", [0, 1, 3, 4, 5, 1024, 1025, 2047, 2048])
def test_tables_have_whole_steps_of_a_count_or_of_halves(n):
    table = integer_draws.IntegerTable.from_tails(np.append(np.linspace(0.4, 0.1, n), [1e-10, 0.0]), 3.0)
    assert table.step == 3
    assert table.n_halves == (0 if n <= 1024 else 11 if n <= 2047 else 12)
    assert len(table.thresholds) == (-(-n // 4) * 4 if n <= 1024 else 2**table.n_halves - 1)
    assert table.thresholds[:n].tolist() == np.rint(np.linspace(0.4, 0.1, n) * 2**32).tolist()
    assert not table.thresholds[n:].any()


def test_integers_of_a_stream_depend_on_seed_and_number_alone():
    whole = simulation.draw_integers(block_of("wide"), 3, 0, 3 * LANES + 1, 50)
    assert np.array_equal(simulation.draw_integers(block_of("wide"), 3, 5, 2, 30), whole[5:7, :30])
    assert not np.array_equal(simulation.draw_integers(block_of("wide"), 4, 0, 1, 50), whole[:1])
    assert simulation.draw_integers(block_of("wide"), 3, 0, 0, 5).shape == (0, 5)


# --- block sums -----------------------------------------------------------------------------------


def released(u, blocks, name, dtype="f8", chunk=48, **options):
    """What a chain releases of two levels with the same blocks, (2, streams, time)."""
    chain, out = Chain(dtype, chunk), np.empty((2, *u.shape), dtype)
    table, x = block_of(name).table(), chain.read()
    for level in range(2):
        chain.write(chain.release(blocks, table, RELEASE + level, x))
    execute(chain, *u.shape, x=u.astype(dtype), out=out, seed=5, **options)
    return out


def expected_release(u, blocks, noise):
    """unit (sum of the block + noise) + shift where a block ends, zero elsewhere; a draw for each block."""
    total, found, draws = blocks.before, [], iter(noise)
    for t, value in enumerate(u, start=1):
        steps = (value - blocks.offset) / blocks.unit
        total += round(steps) if blocks.rounds else steps
        ends = (t + blocks.phase) % blocks.length == 0
        found.append(blocks.unit * (total + next(draws)) + blocks.shift if ends else 0.0)
        total = 0.0 if ends else total
    return found


BLOCKS = {
    "every step": BlockSums(1, 0, 0.0, 1.0, 0.0, 0.0, rounds=False),
    "of five": BlockSums(5, 0, -0.5, 1.0, 1.5, 0.0, rounds=False),
    "a shorter first": BlockSums(7, 3, 2.0, 0.5, -4.0, 2.0, rounds=False),
    "rounded": BlockSums(4, 0, 0.0, 0.25, 0.5, 0.0, rounds=True),
    "longer than a chunk": BlockSums(60, 11, 0.0, 1.0, 0.0, 0.0, rounds=False),
}


@DTYPES
@pytest.mark.parametrize("blocks", BLOCKS.values(), ids=BLOCKS)
def test_releases_are_sums_of_blocks_with_a_draw_each(blocks, dtype):
    u = np.random.default_rng(2).integers(-3, 4, (3, 130)) * 0.5
    u += np.random.default_rng(3).choice([-0.1, 0.1], u.shape) * blocks.rounds
    found = released(u, blocks, "geometric", dtype)
    for level in range(2):
        for stream in range(3):
            noise = expected_noise("geometric", 5, stream, 130, RELEASE + level)
            expected = expected_release(u[stream].tolist(), blocks, noise)
            np.testing.assert_allclose(found[level, stream], expected, rtol=1e-5 if dtype == "f4" else 1e-12)


@DTYPES
@pytest.mark.parametrize("blocks", BLOCKS.values(), ids=BLOCKS)
def test_releases_do_not_depend_on_chunks_or_threads(blocks, dtype):
    u = np.random.default_rng(3).normal(size=(2 * LANES + 1, 130))
    expected = released(u, blocks, "staircase", dtype)
    for chunk in (6, 90, 192):
        assert np.array_equal(released(u, blocks, "staircase", dtype, chunk), expected)
    assert np.array_equal(released(u, blocks, "staircase", dtype, n_threads=3), expected)
    assert np.array_equal(released(u[:2], blocks, "staircase", dtype), expected[:, :2])
    assert np.array_equal(released(u[:, :100], blocks, "staircase", dtype), expected[:, :, :100])


# --- randomised response --------------------------------------------------------------------------

RESPONSES = {
    "half": TwoLevelResponse(0.0, 0.25, 0.75, 2.0, 1.0, 0.5),
    "no delta": TwoLevelResponse(0.5, 0.0, 0.6, 3.0, 1.5, -0.25),
    "nearly always": TwoLevelResponse(-1.0, 0.01, 1 - 1e-12, 1.25, 1.0, 0.0),
    "told": TwoLevelResponse(0.0, 1 - 1e-12, 1.0, 1.0, 0.5, 0.0),
}
EVERY_RESPONSE = pytest.mark.parametrize("response", RESPONSES.values(), ids=RESPONSES)


def responses(u, response, dtype="f8", chunk=48, **options):
    chain, out = Chain(dtype, chunk), np.empty((1, *u.shape), dtype)
    chain.write(chain.respond(response, RELEASE, chain.read()))
    execute(chain, *u.shape, x=u.astype(dtype), out=out, **({"seed": 5} | options))
    return out[0]


def expected_response(u, response, words):
    """About the middle, the sizes with the signs of the levels or of the others."""
    sizes = response.told_size, response.true_size
    return [
        response.shift + reference.response(response.told, response.true, sizes, x >= response.middle, word)
        for x, word in zip(u, words, strict=True)
    ]


@DTYPES
@EVERY_RESPONSE
def test_responses_are_those_of_the_twin(response, dtype):
    u = np.random.default_rng(4).choice([-1.0, 0.5], (3, 100))
    u[:, ::7] = response.middle  # counts as the upper level
    u[:, 1::7] = response.middle - 1e-4  # as the lower one
    for stream, found in enumerate(responses(u, response, dtype)):
        words = reference.xoshiro128pp(reference.generator_state(5, stream, RELEASE), 100)
        assert found.tolist() == expected_response(u[stream], response, words)


@EVERY_RESPONSE
def test_every_word_gives_the_response_that_the_twin_gives(response):
    """Around each threshold, and the least and the largest word."""
    width, largest = lanes("f8"), 2**32 - 1
    bounds = [0, largest, *(round(p * 2**32) for p in (response.told, response.true))]
    words = sorted({min(max(b + i, 0), largest) for b in bounds for i in (-2, -1, 0, 1, 2)})
    table = np.array([min(round(p * 2**32), largest) for p in (response.told, response.true)], np.uint32)
    numbers = randomized_response.ResponseNumbers(
        0, 0, response.middle, response.told_size, response.true_size, response.shift
    )
    for first in range(0, len(words), width):
        chosen = np.resize(np.array(words[first : first + width], np.uint32), width)
        x = np.full((12, width), response.middle + 1)
        randomized_response.respond(state_that_draws(chosen), numbers, table, x, 0, 6, 1)
        upper = [response.middle + 1] * width
        assert x[6].tolist() == expected_response(upper, response, [int(w) for w in chosen])
        assert (x[:6] == response.middle + 1).all()


def test_what_has_no_probability_is_never_published():
    """Without a delta nothing is told for certain, and no word is below the threshold."""
    chain = Chain()
    chain.respond(RESPONSES["no delta"], RELEASE, chain.read())
    chain.respond(RESPONSES["told"], RELEASE, chain.read())
    assert [list(x) for x in chain.tables] == [[0, round(0.6 * 2**32)], [2**32 - 1, 2**32 - 1]]


def test_generators_of_responses_go_on_where_they_ended():
    response, width = RESPONSES["half"], lanes("f8")
    numbers = randomized_response.ResponseNumbers(0, 0, response.middle, 2.0, 1.0, 0.5)
    table, words = np.array([2**30, 3 * 2**30], np.uint32), seed_generators(1, 0, width, RELEASE)
    x = np.ones((24, width))
    randomized_response.respond(words, numbers, table, x, 0, 12, 6)
    randomized_response.respond(words, numbers, table, x, 6, 18, 6)
    for lane in range(width):
        drawn = reference.xoshiro128pp(reference.generator_state(1, lane, RELEASE), 12)
        assert x[12:, lane].tolist() == expected_response([1.0] * 12, response, drawn)


@pytest.mark.slow_nojit
@EVERY_RESPONSE
@pytest.mark.parametrize("level", [-2.0, 2.0])
def test_responses_follow_their_probabilities(response, level):
    found = responses(np.full((64, 3000), level), response, seed=20250101)
    sign = math.copysign(1, level)
    law = {
        response.shift + sign * response.told_size: response.told,
        response.shift + sign * response.true_size: response.true - response.told,
        response.shift - sign * response.true_size: 1 - response.true,
    }
    assert is_law(found, law)


@DTYPES
def test_responses_do_not_depend_on_chunks_or_threads(dtype):
    u, response = np.random.default_rng(5).normal(size=(2 * LANES + 1, 130)), RESPONSES["half"]
    expected = responses(u, response, dtype)
    for chunk in (6, 90, 192):
        assert np.array_equal(responses(u, response, dtype, chunk), expected)
    assert np.array_equal(responses(u, response, dtype, n_threads=3), expected)
    assert np.array_equal(responses(u[3:5], response, dtype, first=3), expected[3:5])
    assert np.array_equal(responses(u[:, :100], response, dtype), expected[:, :100])
    assert not np.array_equal(responses(u, response, dtype, seed=6), expected)


# --- mechanisms -----------------------------------------------------------------------------------

PLAIN = CompiledLinearReceiver(Factors(np.array([2.0]), NO_SECTIONS, ONE), FACTORS["identity"], 0.0, 0)
INPUTS = np.random.default_rng(6).choice([-0.5, 0.5, 1.5], (3, 100))


def simulated(mechanism):
    """What is published of the inputs, which the receiver of the mechanism doubles."""
    v, estimates = simulation.simulate(mechanism, INPUTS, 9, 1)
    assert np.array_equal(estimates, 2 * v)
    return v


INPUT_NOISE = {  # and how often it is not zero, and how large then
    "Gaussian": (compiled_mechanisms.CompiledMechanism(0.25, FACTORS["identity"], 0.7, PLAIN), None),
    "lattice": (
        compiled_mechanisms.CompiledLatticeMechanism(
            0.25, CompiledBlock(1, np.array([0.2, 0.1]), 3.0), 0, 0.5, 0, PLAIN
        ),
        (0.4, 1.5, 3.0),
    ),
    "Laplace": (compiled_mechanisms.CompiledLaplaceMechanism(0.25, 3.0, PLAIN), None),
    "response": (compiled_mechanisms.CompiledResponseMechanism(0.25, RESPONSES["half"], PLAIN), (0.25, 3.0, 3.0)),
}


@pytest.mark.parametrize(("mechanism", "steps"), INPUT_NOISE.values(), ids=INPUT_NOISE)
def test_mechanisms_with_noise_on_inputs_are_chains_without_an_end(mechanism, steps):
    assert mechanism.as_chain() is mechanism
    assert mechanism.as_matrices() is None
    assert mechanism.horizon is None
    assert mechanism.noise_steps == (steps if steps is None else pytest.approx(steps))
    assert mechanism.cost > PLAIN.cost
    assert PLAIN.equalizer is None


def test_a_mechanism_on_a_lattice_publishes_inputs_with_integers():
    block = block_of("staircase")
    found = simulated(compiled_mechanisms.CompiledLatticeMechanism(0.25, block, -0.5, 1.0, False, PLAIN))
    expected = [x - 0.25 + np.array(expected_noise("staircase", 9, i, 100)) for i, x in enumerate(INPUTS)]
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def test_a_mechanism_on_a_lattice_rounds_real_inputs():
    block = block_of("staircase")
    found = simulated(compiled_mechanisms.CompiledLatticeMechanism(0.25, block, 0.0, 0.4, True, PLAIN))
    steps = [np.rint(x / 0.4) + expected_noise("staircase", 9, i, 100) for i, x in enumerate(INPUTS)]
    np.testing.assert_allclose(found, 0.4 * np.array(steps) - 0.25, rtol=1e-12, atol=1e-12)


def test_a_mechanism_with_laplace_noise_publishes_inputs_with_it():
    found = simulated(compiled_mechanisms.CompiledLaplaceMechanism(0.25, 3.0, PLAIN))
    expected = [x - 0.25 + 3 * reference.laplace(9, i, RELEASE, 100) for i, x in enumerate(INPUTS)]
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)  # logarithms are in float32


def test_a_mechanism_of_responses_publishes_them_about_the_mean():
    response = RESPONSES["half"]
    found = simulated(compiled_mechanisms.CompiledResponseMechanism(0.25, response, PLAIN))
    for i, x in enumerate(INPUTS):
        words = reference.xoshiro128pp(reference.generator_state(9, i, RELEASE), 100)
        expected = np.array(expected_response(x, response, words)) - 0.25
        np.testing.assert_allclose(found[i], expected, rtol=1e-12, atol=1e-12)
