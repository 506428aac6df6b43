import numpy as np
import pytest
import reference
from scipy import stats

from dpfast._kernels import random

# Each test below may raise a false alarm at most once in a million; the seeds are fixed.
ALARM = 1e-6
LEVELS = np.array([-1.0, 0.5, 2.0])
TRANSITION = np.array([[0.7, 0.3, 0.0], [0.1, 0.6, 0.3], [0.25, 0.25, 0.5]])


def normals(seed, first, n_streams, n_samples, purpose=random.NOISE):
    out = np.empty((n_streams, n_samples))
    random.draw_normals(random.generators(seed, first, n_streams, purpose), out)
    return out


def levels(seed, n_streams, n_samples, initial, transition, values=LEVELS):
    out, state = np.empty((n_streams, n_samples)), np.full(n_streams, -1)
    generators = random.generators(seed, 0, n_streams, random.INPUT)
    random.draw_levels(np.cumsum(initial), np.cumsum(transition, axis=1), values, state, generators, out)
    return out


# --- generators -----------------------------------------------------------------------------------


def test_xoshiro_gives_the_published_words():
    known = [641, 1573767, 3222811527, 3517856514]
    state = np.array([1, 2, 3, 4], dtype=np.uint32)
    assert [int(random.word(state)) for _ in known] == known
    assert reference.xoshiro128pp([1, 2, 3, 4], 4) == known


@pytest.mark.parametrize("start", [(1, 2, 3, 4), (2**32 - 1,) * 4, (0, 0, 0, 1), (1 << 31, 7, 1 << 31, 12345)])
def test_words_are_those_of_the_twin(start):
    state, twin = np.array(start, dtype=np.uint32), list(start)
    assert [int(random.word(state)) for _ in range(300)] == reference.xoshiro128pp(twin, 300)
    assert state.tolist() == twin


@pytest.mark.parametrize(("last", "bits"), [(0, 0), (2**32 - 1, 2**32 - 1)])
def test_uniforms_are_strictly_between_0_and_1(last, bits):
    value = random.uniform(np.array([0, 1, 0, last], dtype=np.uint32))
    assert value == (bits + 0.5) / 2**32
    assert 0 < value < 1


def test_splitmix_finaliser_is_that_of_the_published_generator():
    # splitmix64 from state zero: the finaliser of multiples of the golden gamma
    gamma = 0x9E3779B97F4A7C15
    known = [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]
    inputs = [(k * gamma) % 2**64 for k in (1, 2, 3)]
    assert [reference.splitmix_finaliser(x) for x in inputs] == known
    assert random._mix(np.array(inputs, dtype=np.uint64)).tolist() == known


@pytest.mark.parametrize("seed", [0, 1, 2**32, 2**63 - 1, 2**64, 10**30])
@pytest.mark.parametrize("purpose", [random.INPUT, random.NOISE])
def test_states_are_those_of_the_twin(seed, purpose):
    states = random.generators(seed, 5, 4, purpose)
    assert states.dtype == np.uint32
    assert states.tolist() == [reference.generator_state(seed, i, purpose) for i in range(5, 9)]


def test_generators_depend_on_seed_stream_and_purpose_alone():
    whole = random.generators(3, 0, 100, random.INPUT)
    assert np.array_equal(random.generators(3, 40, 25, random.INPUT), whole[40:65])
    assert random.generators(3, 7, 0, random.INPUT).shape == (0, 4)


def test_generators_differ_by_seed_stream_and_purpose():
    states = [random.generators(seed, 0, 1000, purpose) for seed in range(20) for purpose in (0, 1)]
    words = np.concatenate(states).astype(np.uint64)
    halves = (words[:, 0] | words[:, 1] << np.uint64(32), words[:, 2] | words[:, 3] << np.uint64(32))
    for half in halves:
        assert len(np.unique(half)) == len(half)  # a collision of 64 bits: 4e-11


def test_no_generator_starts_from_the_forbidden_state(monkeypatch):
    monkeypatch.setattr(random, "_mix", np.zeros_like)
    assert random.generators(1, 0, 3, random.INPUT).tolist() == [[1, 0, 0, 0]] * 3


def test_seed_bits_are_balanced():
    bits = np.unpackbits(random.generators(9, 0, 10_000, random.INPUT).view(np.uint8))
    z = (bits.mean() - 0.5) * 2 * np.sqrt(bits.size)
    assert abs(z) < stats.norm.isf(ALARM / 2)


# --- normals --------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [0, 1, 2, 9, 50])
def test_normals_are_those_of_the_twin(n):
    expected = np.stack([reference.normals(11, i, random.NOISE, n) for i in range(3)])
    np.testing.assert_allclose(normals(11, 0, 3, n), expected, rtol=1e-13, atol=1e-13)


def test_normals_in_even_chunks_equal_the_whole_to_the_bit():
    generators, parts = random.generators(2, 0, 3, random.NOISE), []
    for n in (2, 0, 10, 6, 7):
        parts.append(np.empty((3, n)))
        random.draw_normals(generators, parts[-1])
    assert np.array_equal(np.concatenate(parts, axis=1), normals(2, 0, 3, 25))


def test_normals_of_a_stream_do_not_depend_on_the_others():
    assert np.array_equal(normals(4, 0, 9, 20)[6:8], normals(4, 6, 2, 20))


@pytest.fixture(scope="module")
def sample():
    return normals(20250101, 0, 64, 2**17)  # 8.4 million


@pytest.mark.slow_nojit
@pytest.mark.parametrize("k", [1, 2, 3, 4, 5, 6])
def test_moments_of_normals(sample, k):
    def expected(power):
        return 0 if power % 2 else np.prod(np.arange(power - 1, 0, -2, dtype=float))

    z = (np.mean(sample**k) - expected(k)) / np.sqrt((expected(2 * k) - expected(k) ** 2) / sample.size)
    assert abs(z) < stats.norm.isf(ALARM / 2)


@pytest.mark.slow_nojit
def test_normals_pass_kolmogorov_smirnov(sample):
    assert stats.kstest(sample[:8].ravel(), stats.norm.cdf).pvalue > ALARM


@pytest.mark.slow_nojit
@pytest.mark.parametrize("phase", [slice(None), slice(0, None, 2), slice(1, None, 2)], ids=["all", "even", "odd"])
def test_normals_fill_equiprobable_bins(sample, phase):
    bins = (stats.norm.cdf(sample[:, phase].ravel()) * 4096).astype(int)
    assert stats.chisquare(np.bincount(bins, minlength=4096)).pvalue > ALARM


@pytest.mark.slow_nojit
@pytest.mark.parametrize("sigma", [1, 2, 3, 4, 4.5])
def test_tails_of_normals(sample, sigma):
    for count in (np.count_nonzero(sample > sigma), np.count_nonzero(sample < -sigma)):
        assert stats.binomtest(count, sample.size, stats.norm.sf(sigma)).pvalue > ALARM / 2


@pytest.mark.slow_nojit
def test_normals_beyond_five_sigma():
    n, count = 2**20, 0
    for i in range(48):  # 50 million samples, 29 of them expected beyond
        count += np.count_nonzero(np.abs(normals(77, i, 1, n)) > 5)
    assert stats.binomtest(count, 48 * n, 2 * stats.norm.sf(5)).pvalue > ALARM


@pytest.mark.slow_nojit
@pytest.mark.parametrize("lag", [1, 2, 3, 4, 8, 1000])
@pytest.mark.parametrize("power", [1, 2])
def test_normals_and_their_squares_are_uncorrelated_in_time(sample, lag, power):
    x = sample**power - (power == 2)
    z = np.sum(x[:, lag:] * x[:, :-lag]) / np.sqrt(x[:, lag:].size) / power  # Var(x_t x_s) = 1, and 4 for squares
    assert abs(z) < stats.norm.isf(ALARM / 2)


@pytest.mark.slow_nojit
def test_streams_are_independent(sample):
    z = np.corrcoef(sample)[np.triu_indices(len(sample), 1)] * np.sqrt(sample.shape[1])
    assert np.abs(z).max() < stats.norm.isf(ALARM / 2 / len(z))
    assert stats.kstest(z, stats.norm.cdf).pvalue > ALARM


@pytest.mark.slow_nojit
def test_purposes_and_seeds_are_independent(sample):
    other = normals(20250101, 0, 64, 2**17, random.INPUT), normals(20250102, 0, 64, 2**17)
    for x in other:
        z = np.vdot(x, sample) / np.sqrt(x.size)
        assert abs(z) < stats.norm.isf(ALARM / 4)


# --- levels ---------------------------------------------------------------------------------------


def test_levels_are_those_of_the_twin():
    pi = reference.stationary(TRANSITION)
    for i, path in enumerate(levels(5, 4, 200, pi, TRANSITION)):
        uniform = reference.uniforms(reference.xoshiro128pp(reference.generator_state(5, i, random.INPUT), 200))
        assert np.array_equal(path, reference.markov_path(pi, TRANSITION, LEVELS, uniform))


def test_independent_levels_are_those_of_the_twin():
    p = np.array([0.2, 0.5, 0.3])
    for i, path in enumerate(levels(6, 3, 200, p, p[None])):
        uniform = reference.uniforms(reference.xoshiro128pp(reference.generator_state(6, i, random.INPUT), 200))
        assert np.array_equal(path, reference.markov_path(p, [p] * 3, LEVELS, uniform))


@pytest.mark.parametrize("short", [0.0, 1e-12])
def test_probabilities_that_sum_to_less_than_one_give_the_last_level(short):
    out, state = np.empty((1, 1)), np.full(1, -1)
    generator = np.array([[0, 1, 0, 2**32 - 1]], dtype=np.uint32)  # the largest uniform
    cumulative = np.array([0.5, 1 - 2.0**-33 - short])
    random.draw_levels(cumulative, cumulative[None], np.array([3.0, 4.0]), state, generator, out)
    assert (out.item(), state.item()) == (4.0, 1)


@pytest.mark.parametrize(("bound", "j"), [(0.5 + 2.0**-32, 0), (0.5 + 2.0**-33, 1), (0.5, 1)])
def test_a_level_is_the_first_whose_cumulative_probability_exceeds_the_uniform(bound, j):
    out, state = np.empty((1, 1)), np.full(1, -1)
    generator = np.array([[0, 1, 0, 1 << 24]], dtype=np.uint32)  # the uniform is (2³¹ + 1/2) / 2³²
    cumulative = np.array([bound, 1.0])
    assert random.uniform(generator[0].copy()) == 0.5 + 2.0**-33
    random.draw_levels(cumulative, cumulative[None], np.array([3.0, 4.0]), state, generator, out)
    assert (out.item(), state.item()) == (3.0 + j, j)


@pytest.mark.slow_nojit
def test_frequencies_of_independent_levels():
    p = np.array([0.2, 0.5, 0.3])
    index = np.searchsorted(LEVELS, levels(7, 16, 100_000, p, p[None]))
    assert stats.chisquare(np.bincount(index.ravel()), p * index.size).pvalue > ALARM / 2
    pairs = np.bincount((3 * index[:, :-1] + index[:, 1:])[:, ::2].ravel())  # pairs that do not overlap
    assert stats.chisquare(pairs, np.outer(p, p).ravel() * pairs.sum()).pvalue > ALARM / 2


@pytest.mark.slow_nojit
def test_transition_frequencies():
    index = np.searchsorted(LEVELS, levels(8, 16, 100_000, reference.stationary(TRANSITION), TRANSITION))
    counts = np.bincount((3 * index[:, :-1] + index[:, 1:]).ravel(), minlength=9).reshape(3, 3)
    for row, p in zip(counts, TRANSITION, strict=True):
        assert not row[p == 0].any()
        assert stats.chisquare(row[p > 0], p[p > 0] * row.sum()).pvalue > ALARM / 3


@pytest.mark.slow_nojit
@pytest.mark.parametrize("t", [0, 1, 7])
def test_streams_of_levels_are_stationary_from_the_first_sample(t):
    pi = reference.stationary(TRANSITION)
    index = np.searchsorted(LEVELS, levels(9, 200_000, 8, pi, TRANSITION)[:, t])
    assert stats.chisquare(np.bincount(index), pi * index.size).pvalue > ALARM
