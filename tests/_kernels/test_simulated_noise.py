"""Known answers and naive twins; the statistics of random numbers have a file of their own."""

import numba
import numpy as np
import pytest
from helpers import draws, processors, reference
from hypothesis import given
from hypothesis import strategies as st

from dpfast import IndependentLevels, MarkovChain
from dpfast._kernels import simulated_noise
from dpfast._kernels._jit import OPTIONS
from dpfast._kernels.simd import lanes, store, traced
from dpfast._kernels.simulated_noise import INPUT, NOISE, RELEASE, START, STATE_WORDS, LevelTable, seed_generators

DTYPES = pytest.mark.parametrize("dtype", ["f4", "f8"])
LARGEST = 2**32 - 1


# --- generators -----------------------------------------------------------------------------------


def in_all_lanes(*state):
    return np.repeat(np.array(state, np.uint32)[:, None], lanes("u4"), axis=1)


def test_xoshiro_gives_the_published_words():
    known = [641, 1573767, 3222811527, 3517856514]
    assert (draws.words(in_all_lanes(1, 2, 3, 4), 4) == known).all()
    assert reference.xoshiro128pp([1, 2, 3, 4], 4) == known


def test_words_are_those_of_the_twin():
    width = lanes("u4")
    starts = [(LARGEST,) * 4, (0, 0, 0, 1), (1 << 31, 7, 1 << 31, 12345)]
    starts += np.random.default_rng(0).integers(0, 2**32, (width, 4)).tolist()
    states = np.array(starts[:width], np.uint32).T.copy()
    found = draws.words(states, 300)
    for lane, start in enumerate(starts[:width]):
        twin = list(start)
        assert found[lane].tolist() == reference.xoshiro128pp(twin, 300)
        assert states[:, lane].tolist() == twin


def test_splitmix_finaliser_is_that_of_the_published_generator():
    # splitmix64 from state zero: the finaliser of multiples of the golden gamma
    gamma = 0x9E3779B97F4A7C15
    known = [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]
    inputs = [(k * gamma) % 2**64 for k in (1, 2, 3)]
    assert [reference.splitmix_finaliser(x) for x in inputs] == known
    assert simulated_noise.mix(np.array(inputs, dtype=np.uint64)).tolist() == known


@pytest.mark.parametrize("seed", [0, 1, 2**32, 2**63 - 1, 2**64, 10**30])
@pytest.mark.parametrize("purpose", [INPUT, NOISE, START])
def test_states_are_those_of_the_twin(seed, purpose):
    states = seed_generators(seed, 5, 4, purpose)
    assert states.dtype == np.uint32
    assert states.T.tolist() == [reference.generator_state(seed, i, purpose) for i in range(5, 9)]


def test_generators_depend_on_seed_stream_and_purpose_alone():
    whole = seed_generators(3, 0, 100, INPUT)
    assert np.array_equal(seed_generators(3, 40, 25, INPUT), whole[:, 40:65])
    assert seed_generators(3, 7, 0, INPUT).shape == (STATE_WORDS, 0)


def test_generators_differ_by_seed_stream_and_purpose():
    states = [seed_generators(seed, 0, 1000, purpose) for seed in range(20) for purpose in (INPUT, NOISE, START)]
    words = np.concatenate(states, axis=1).astype(np.uint64)
    for half in (words[0] | words[1] << np.uint64(32), words[2] | words[3] << np.uint64(32)):
        assert len(np.unique(half)) == half.size == 60_000  # a collision of 64 bits: 1e-10


def test_no_generator_starts_from_the_forbidden_state():
    # a bijection of two numbers that differ: the halves of a state differ, and are never both zero
    low, high, low_2, high_2 = seed_generators(1, 0, 10_000, INPUT)
    assert ((low != low_2) | (high != high_2)).all()
    assert simulated_noise.mix(np.zeros(1, np.uint64)) == 0


# --- normals --------------------------------------------------------------------------------------


def normals(seed, first, n_streams, n_samples, dtype="f8"):
    """Noise of the streams first, first + 1, ...: (streams, time)."""
    states = draws.bundles(seed, first, n_streams, NOISE, dtype)
    return np.concatenate([draws.normals(x, n_samples, dtype) for x in states])[:n_streams]


@traced
def store_pairs(a, b, row, out):
    for value, place in zip(
        simulated_noise.box_muller(simulated_noise.load(a, row), simulated_noise.load(b, row)),
        (2 * row, 2 * row + 1),
        strict=True,
    ):
        store(out, place, value)


@numba.njit(**OPTIONS)
def box_muller(a, b, out):
    for row in range(len(a)):
        store_pairs(a, b, row, out)


ROUNDING = 6 * 2.0**-24  # of the radius: six units in the last place of float32
ENDS = [0, 1, 2, 255, 2**24 - 1, 2**24 + 1, 2**31 - 1, 2**31, 2**31 + 1, 2**32 - 2**8, LARGEST - 127, LARGEST]


def test_box_muller_is_that_of_the_twin():
    drawn, width = np.random.default_rng(0), lanes("u4")
    words = drawn.integers(0, 2**32, (2, 600, width)) >> drawn.integers(0, 32, (2, 600, 1))  # of all sizes
    words[:, :300] = LARGEST - words[:, :300]
    words[0, : len(ENDS)], words[1, : len(ENDS)] = np.array(ENDS)[:, None], np.resize(ENDS, width)
    (a, b), found = words.astype(np.uint32), np.empty((1200, width), np.float32)
    box_muller(a, b, found)
    first, second = found[::2].ravel(), found[1::2].ravel()
    expected = np.array([reference.box_muller(*pair) for pair in words.reshape(2, -1).T.tolist()])
    error = np.abs(np.stack([first, second], axis=1) - expected)
    assert (error <= ROUNDING * np.hypot(*expected.T)[:, None]).all()


@DTYPES
@pytest.mark.parametrize("n", [0, 1, 6, 50])
def test_normals_are_those_of_the_twin(dtype, n):
    expected = np.stack([reference.normals(11, i, NOISE, n) for i in range(2, 5)])
    np.testing.assert_allclose(normals(11, 2, 3, n, dtype=dtype), expected, rtol=0, atol=ROUNDING * 6.77)


def test_normals_are_the_same_in_both_types():
    assert np.array_equal(normals(3, 0, 40, 60), normals(3, 0, 40, 60, dtype="f4"))


def test_tiles_come_whole_and_go_on_where_they_ended():
    words, x = seed_generators(2, 0, lanes("f8"), NOISE), np.full((40, lanes("f8")), 9.0)
    for row, n in ((1, 6), (7, 0), (7, 12), (19, 7)):
        simulated_noise.fill_normals(words, 0, x, row, n)
    assert np.array_equal(x[1:31].T, normals(2, 0, lanes("f8"), 30))
    assert (x[0] == 9).all()
    assert (x[31:] == 9).all()


def test_generators_lie_in_any_rows_of_words():
    words, x = np.zeros((10, lanes("f8")), np.uint32), np.empty((12, lanes("f8")))
    words[3:7], words[7:] = seed_generators(2, 0, lanes("f8"), NOISE), 5
    simulated_noise.fill_normals(words, 3, x, 0, 12)
    assert np.array_equal(x.T, normals(2, 0, lanes("f8"), 12))
    assert (words[:3] == 0).all()
    assert (words[7:] == 5).all()


def test_normals_of_a_stream_do_not_depend_on_the_others():
    assert np.array_equal(normals(4, 0, 40, 20)[29:31], normals(4, 29, 2, 20))


# --- Laplace noise --------------------------------------------------------------------------------


def laplace(seed, first, n_streams, n_samples, dtype="f8"):
    """Laplace noise of the streams first, first + 1, ...: (streams, time)."""
    states = draws.bundles(seed, first, n_streams, RELEASE, dtype)
    return np.concatenate([draws.laplace(x, n_samples, dtype) for x in states])[:n_streams]


@DTYPES
@pytest.mark.parametrize("n", [0, 1, 6, 50])
def test_laplace_noise_is_that_of_the_twin(dtype, n):
    expected = np.stack([reference.laplace(11, i, RELEASE, n) for i in range(2, 5)])
    np.testing.assert_allclose(laplace(11, 2, 3, n, dtype=dtype), expected, rtol=6 * 2.0**-24, atol=2.0**-24)


def test_laplace_noise_is_the_same_in_both_types():
    assert np.array_equal(laplace(3, 0, 40, 60), laplace(3, 0, 40, 60, dtype="f4"))


def test_tiles_of_laplace_noise_come_whole_and_go_on_where_they_ended():
    words, x = np.zeros((10, lanes("f8")), np.uint32), np.full((40, lanes("f8")), 9.0)
    words[3:7] = seed_generators(2, 0, lanes("f8"), RELEASE)
    for row, n in ((1, 6), (7, 0), (7, 12), (19, 7)):
        simulated_noise.fill_laplace(words, 3, x, row, n)
    assert np.array_equal(x[1:31].T, laplace(2, 0, lanes("f8"), 30))
    assert (x[0] == 9).all()
    assert (x[31:] == 9).all()
    assert not np.concatenate([words[:3], words[7:]]).any()


def test_laplace_noise_of_a_stream_does_not_depend_on_the_others():
    assert np.array_equal(laplace(4, 0, 40, 20)[29:31], laplace(4, 29, 2, 20))


# --- on other processors --------------------------------------------------------------------------


def print_digest():
    import hashlib

    import numpy as np

    from dpfast._kernels import simd, simulated_noise

    digest, width = hashlib.sha256(), simd.lanes(np.float64)
    for first in range(0, 32, width):
        x = np.empty((600, width))
        simulated_noise.fill_normals(
            simulated_noise.seed_generators(1, first, width, simulated_noise.NOISE), 0, x, 0, 600
        )
        digest.update(x.T.tobytes())
    print(digest.hexdigest())


@pytest.mark.long  # normals are among the digests of other processors, too
@processors.OTHERS
def test_the_width_of_registers_leaves_no_trace_in_the_bits(tmp_path, capsys):
    """Products and sums are rounded once with FMA, and without it as without the compiler."""
    fused, rounded = (
        processors.run_on(x, print_digest, tmp_path) for x in (processors.HASWELL, processors.WITHOUT_FMA)
    )
    assert fused != rounded
    print_digest()
    assert capsys.readouterr().out.split() == (fused if processors.rounds_once() else rounded)


# --- levels ---------------------------------------------------------------------------------------

CHAINS = {
    "two": [[0.7, 0.3], [0.2, 0.8]],
    "two, independent": [[0.25, 0.75]],
    "two, one certain": [[0.0, 1.0], [0.5, 0.5]],
    "two, a rare one": [[1 - 1e-12, 1e-12], [0.5, 0.5]],
    "three": [[0.7, 0.3, 0.0], [0.1, 0.6, 0.3], [0.25, 0.25, 0.5]],
    "rare ones": [[1e-12, 1 - 2e-12, 1e-12], [0.5, 1e-12, 0.5], [1 / 3, 1 / 3, 1 / 3]],
    "five, independent": [[0.2, 0.0, 0.5, 0.1, 0.2]],
    "cycle": [[0, 1, 0], [0, 0, 1], [1, 0, 0]],
    "cycle with a pause": [[0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0.4, 0.6], [1, 0, 0, 0]],
    "one": [[1.0]],
    "short of one": [[0.3, 0.3, 0.3], [0.1, 0.2, 0.6], [0.0, 0.4, 0.5]],
    "nine": np.random.default_rng(0).dirichlet(np.ones(9), 9).tolist(),
}
EVERY_CHAIN = pytest.mark.parametrize("name", CHAINS)


def table_of(transition, levels=None):
    """Levels are 10, 11, ... unless they are given."""
    levels = np.arange(10.0, 10 + len(transition[0])) if levels is None else levels
    return LevelTable.from_cumulative(np.cumsum(transition, axis=1), levels)


def start(words, table, states):
    """Words of generators, and below them the places where states are in a table."""
    return np.vstack([words, table.find_rows(np.asarray(states))])


def expected_levels(transition, state, words):
    rows = [*transition, *[transition[-1]] * len(transition[0])]  # independent levels have one row for all states
    return reference.markov_path(state, rows, [10.0 + j for j in range(len(transition[0]))], words)


@EVERY_CHAIN
@DTYPES
def test_levels_are_those_of_the_twin(name, dtype):
    transition, width = CHAINS[name], lanes(dtype)
    states = np.arange(width) % len(transition[0])
    table = table_of(transition)
    found = draws.walk(table, start(seed_generators(5, 0, width, INPUT), table, states), 60, dtype)
    for i, path in enumerate(found):
        words = reference.xoshiro128pp(reference.generator_state(5, i, INPUT), 60)
        assert np.array_equal(path, expected_levels(transition, states[i], words))


@EVERY_CHAIN
def test_every_word_gives_the_level_that_the_twin_gives(name):
    """Around each threshold, and the least and the largest word."""
    transition, width = CHAINS[name], lanes("f8")
    bounds = [round(bound * 2**32) for bound in np.cumsum(transition, axis=1).ravel()]
    words = sorted({min(max(bound + i, 0), LARGEST) for bound in [*bounds, 0, LARGEST] for i in (-2, -1, 0, 1, 2)})
    table = table_of(transition)
    for state in range(len(transition[0])):
        for first in range(0, len(words), width):
            chosen = np.resize(np.array(words[first : first + width], np.uint32), width)
            giving = np.zeros((STATE_WORDS, width), np.uint32)
            giving[1], giving[3] = 1, chosen >> 7 | chosen << 25  # a state whose next word is the one that is chosen
            found = draws.walk(table, start(giving, table, np.full(width, state)), 1)
            assert found[:, 0].tolist() == [expected_levels(transition, state, [int(w)]).item() for w in chosen]


@st.composite
def transitions(draw):
    k = draw(st.integers(1, 7))
    weights = st.lists(st.integers(0, 4), min_size=k, max_size=k).filter(any)
    rows = np.array(draw(st.lists(weights, min_size=k, max_size=k) | st.lists(weights, min_size=1, max_size=1)))
    return rows / rows.sum(axis=1, keepdims=True)


@given(transition=transitions(), seed=st.integers(0, 1000))
def test_chains_follow_the_twin_and_never_do_what_has_no_probability(transition, seed):
    k, width, table = len(transition[0]), lanes("f8"), table_of(transition)
    states = np.arange(width) % k
    for i, path in enumerate(draws.walk(table, start(seed_generators(seed, 0, width, INPUT), table, states), 24)):
        words = reference.xoshiro128pp(reference.generator_state(seed, i, INPUT), 24)
        assert np.array_equal(path, expected_levels(transition.tolist(), states[i], words))
        before, after = [states[i], *(path[:-1] - 10).astype(int)], (path - 10).astype(int)
        assert (np.broadcast_to(transition, (k, k))[before, after] > 0).all()


@EVERY_CHAIN
def test_chains_go_on_where_they_ended(name):
    table, width = table_of(CHAINS[name]), lanes("f8")
    states = np.arange(width) % len(CHAINS[name][0])
    words, whole = (start(seed_generators(1, 0, width, INPUT), table, states) for _ in range(2))
    parts = [draws.walk(table, words, n) for n in (6, 0, 12, 6)]
    assert np.array_equal(np.concatenate(parts, axis=1), draws.walk(table, whole, 24))
    assert np.array_equal(words, whole)


@EVERY_CHAIN
def test_a_chain_does_not_depend_on_those_beside_it(name):
    table, width = table_of(CHAINS[name]), lanes("f8")
    states, order = np.arange(width) % len(CHAINS[name][0]), np.random.default_rng(0).permutation(width)
    words = start(seed_generators(1, 0, width, INPUT), table, states)
    permuted = np.ascontiguousarray(words[:, order])
    assert np.array_equal(draws.walk(table, permuted, 30), draws.walk(table, words, 30)[order])


def test_levels_keep_their_order_and_may_repeat():
    table = table_of(CHAINS["three"], np.array([5.0, -2.0, 5.0]))
    plain = table_of(CHAINS["three"])
    words = seed_generators(1, 0, lanes("f8"), INPUT)
    states = np.zeros(lanes("f8"), int)
    found, numbers = (draws.walk(t, start(words, t, states), 50) for t in (table, plain))
    assert np.array_equal(found, np.array([5.0, -2.0, 5.0])[(numbers - 10).astype(int)])


@pytest.mark.parametrize("name", ["two", "three"])
def test_a_signal_starts_from_a_state_that_is_drawn_for_it(name):
    transition, k = np.array(CHAINS[name]), len(CHAINS[name])
    levels, found = np.arange(k), MarkovChain(transition, levels=np.arange(k)).sample(40, 30, seed=8)
    for i, path in enumerate(found):
        expected = reference.stationary_path(8, i, reference.stationary(transition), transition, levels, 30)
        assert np.array_equal(path, expected)


def test_independent_levels_are_those_of_the_twin():
    p, levels = [0.2, 0.5, 0.3], [-1.0, 2.0, 4.0]
    for i, path in enumerate(IndependentLevels(levels, p).sample(5, 30, seed=8)):
        assert np.array_equal(path, reference.stationary_path(8, i, p, [p] * 3, levels, 30))
