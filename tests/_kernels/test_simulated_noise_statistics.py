"""Statistics of the random numbers: a quick run, and a long one of 64 times as many (``pytest -m long``).

Seeds are fixed. A comparison raises a false alarm once in 1e9, and a run makes fewer than a thousand.
"""

from collections import Counter

import numpy as np
import pytest
from helpers import draws, reference
from scipy import special, stats

from dpfast import MarkovChain
from dpfast._kernels.simd import lanes
from dpfast._kernels.simulated_noise import INPUT, NOISE, RELEASE, START, LevelTable, seed_generators

ALARM = 1e-9
SEED = 20250101
N_STREAMS, N_SAMPLES = 64, 65_538  # of a block: 4.2 million, in whole tiles
FINE, COARSE, SIDE = 16, 12, 6  # bits of equally likely cells: in fine, of one number, on each side for two
SIGMAS = [1, 2, 3, 4, 4.5, 5, 5.5]
LAGS = [1, 2, 3, 4, 8, 1000]
INDEPENDENT = [("noise", "input"), ("noise", "start"), ("input", "start"), ("noise", "next seed")]
RUNS = [pytest.param(1, id="quick"), pytest.param(64, id="long", marks=pytest.mark.long)]  # blocks

pytestmark = pytest.mark.slow_nojit


def is_normal(z):
    """A number that should be standard normal."""
    return abs(z) < stats.norm.isf(ALARM / 2)


def is_even(counts):
    """Counts of cells that should be equally likely."""
    return stats.chisquare(counts.ravel()).pvalue > ALARM


def cells(numbers, bits):
    """How many numbers of FINE bits begin with each of so many bits."""
    return np.bincount((numbers >> FINE - bits).ravel(), minlength=1 << bits)


def pairs(first, second):
    """The same for pairs, of which each begins with SIDE bits."""
    return cells((first >> FINE - SIDE << FINE - SIDE) + (second >> SIDE), 2 * SIDE)


def over_blocks(n_blocks, tally):
    """Sum of what is counted in each block."""
    total = Counter()
    for _ in range(n_blocks):
        for name, value in tally().items():
            total[name] = total[name] + value
    return total


def independence(draw, number, dtype):
    """Pairs of one stream for two purposes and of two seeds, as numbers of FINE bits."""
    kinds = {"noise": (SEED, NOISE), "input": (SEED, INPUT), "start": (SEED, START), "next seed": (SEED + 1, NOISE)}
    states = {kind: draws.bundles(seed, 0, lanes(dtype), purpose, dtype)[0] for kind, (seed, purpose) in kinds.items()}

    def tally():
        numbers = {kind: number(draw(state, N_SAMPLES)) for kind, state in states.items()}
        return {f"{a}, {b}": pairs(numbers[a], numbers[b]) for a, b in INDEPENDENT}

    return tally


# --- words ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=RUNS)
def words(request):
    """Counts of random words."""
    states = draws.bundles(SEED, 0, N_STREAMS, NOISE, "u4")

    def first_bits(x):
        return (x >> 32 - FINE).astype(int)

    independent = independence(draws.words, first_bits, "u4")

    def tally():
        x = np.concatenate([draws.words(state, N_SAMPLES) for state in states])
        high, low = first_bits(x), (x % (1 << FINE)).astype(int)
        return {
            "high bits": cells(high, COARSE),
            "low bits": np.bincount((low % (1 << COARSE)).ravel(), minlength=1 << COARSE),
            "one word and the next": pairs(high[:, ::2], high[:, 1::2]),
            "high and low bits of the next": pairs(high[:, ::2], low[:, 1::2]),
            "one stream and the next": pairs(high[::2], high[1::2]),
            **independent(),
        }

    return over_blocks(request.param, tally)


WORD_COUNTS = [
    "high bits",
    "low bits",
    "one word and the next",
    "high and low bits of the next",
    "one stream and the next",
    *map(", ".join, INDEPENDENT),
]


@pytest.mark.parametrize("name", WORD_COUNTS)
def test_words_fill_all_cells_evenly(words, name):
    assert is_even(words[name])


def test_bits_of_seeds_are_balanced():
    bits = np.unpackbits(seed_generators(9, 0, 10_000, INPUT).view(np.uint8))
    assert is_normal((bits.mean() - 0.5) * 2 * np.sqrt(bits.size))


# --- normals --------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=RUNS)
def normals(request):
    """Sums and counts of standard normals."""
    states = draws.bundles(SEED, 0, N_STREAMS, NOISE)

    def ranks(x):
        return (special.ndtr(x) * (1 << FINE)).astype(int)

    independent = independence(draws.normals, ranks, "f8")

    def powers(x):
        power, sums = np.ones_like(x), []
        for _ in range(6):
            power *= x
            sums.append(power.sum())
        return np.array(sums)

    def products(x):
        return np.array([np.einsum("it,it->", x[:, lag:], x[:, :-lag]) for lag in LAGS])

    def tally():
        x = np.ascontiguousarray(np.concatenate([draws.normals(state, N_SAMPLES) for state in states]))
        rank, square = ranks(x), x * x
        return {
            "n": x.size,
            "powers": powers(x),
            "first of two": cells(rank[:, ::2], FINE),
            "second of two": cells(rank[:, 1::2], FINE),
            "above": np.array([np.count_nonzero(x > sigma) for sigma in SIGMAS]),
            "below": np.array([np.count_nonzero(x < -sigma) for sigma in SIGMAS]),
            "products": products(x),
            "products of squares": products(square - 1),
            "products of streams": np.einsum(
                "it,jt->ij", x, x
            ),  # no BLAS: its threads and those of other tests wait for each other
            "two of the same words": pairs(rank[:, ::2], rank[:, 1::2]),
            "two of different words": pairs(rank[:, 1:-1:2], rank[:, 2::2]),
            "one stream and the next": pairs(rank[::2], rank[1::2]),
            **independent(),
        }

    total = over_blocks(request.param, tally)
    total["all"] = total["first of two"] + total["second of two"]
    total["blocks"] = request.param
    return total


@pytest.mark.parametrize("k", [1, 2, 3, 4, 5, 6])
def test_moments_of_normals(normals, k):
    def moment(power):
        return 0 if power % 2 else special.factorial2(power - 1)

    spread = np.sqrt((moment(2 * k) - moment(k) ** 2) * normals["n"])
    assert is_normal((normals["powers"][k - 1] - moment(k) * normals["n"]) / spread)


PHASES = pytest.mark.parametrize("phase", ["all", "first of two", "second of two"])


@PHASES
def test_normals_fill_equally_likely_bins(normals, phase):
    assert is_even(normals[phase].reshape(1 << COARSE, -1).sum(axis=1))


@PHASES
def test_normals_pass_kolmogorov_smirnov(normals, phase):
    counts = normals[phase]
    distance = np.abs(np.cumsum(counts) / counts.sum() - np.arange(1, 1 + (1 << FINE)) / (1 << FINE)).max()
    assert stats.kstwobign.sf(distance * np.sqrt(counts.sum())) > ALARM


@pytest.mark.parametrize("side", ["above", "below"])
@pytest.mark.parametrize("sigma", SIGMAS)
def test_tails_of_normals(normals, sigma, side):
    count = int(normals[side][SIGMAS.index(sigma)])
    assert stats.binomtest(count, normals["n"], stats.norm.sf(sigma)).pvalue > ALARM


@pytest.mark.parametrize("lag", LAGS)
def test_normals_and_their_squares_are_uncorrelated_in_time(normals, lag):
    n = normals["blocks"] * N_STREAMS * (N_SAMPLES - lag)
    assert is_normal(normals["products"][LAGS.index(lag)] / np.sqrt(n))
    assert is_normal(normals["products of squares"][LAGS.index(lag)] / np.sqrt(4 * n))


def test_streams_of_normals_are_uncorrelated(normals):
    z = normals["products of streams"][np.triu_indices(N_STREAMS, 1)] / np.sqrt(normals["blocks"] * N_SAMPLES)
    assert np.abs(z).max() < stats.norm.isf(ALARM / 2 / len(z))
    assert stats.kstest(z, stats.norm.cdf).pvalue > ALARM


NORMAL_PAIRS = [
    "two of the same words",
    "two of different words",
    "one stream and the next",
    *map(", ".join, INDEPENDENT),
]


@pytest.mark.parametrize("name", NORMAL_PAIRS)
def test_pairs_of_normals_fill_all_cells_evenly(normals, name):
    assert is_even(normals[name])


# --- Laplace noise --------------------------------------------------------------------------------

SIZES = [1e-4, 0.5, 2, 5, 8, 10, 12]
LAPLACE_PAIRS = ["one number and the next", "one stream and the next", "a sign and a size"]


@pytest.fixture(scope="module", params=RUNS)
def laplace(request):
    """Sums and counts of Laplace noise of scale one."""
    states = draws.bundles(SEED, 0, N_STREAMS, RELEASE)

    def tally():
        x = np.concatenate([draws.laplace(state, N_SAMPLES) for state in states])
        rank = (stats.laplace.cdf(x) * (1 << FINE)).astype(int)
        size = (-np.expm1(-np.abs(x)) * (1 << FINE - 1)).astype(int)
        return {
            "n": x.size,
            "bins": cells(rank, COARSE),
            "above": np.array([np.count_nonzero(x > size) for size in SIZES]),
            "below": np.array([np.count_nonzero(x < -size) for size in SIZES]),
            "one number and the next": pairs(rank[:, ::2], rank[:, 1::2]),
            "one stream and the next": pairs(rank[::2], rank[1::2]),
            "a sign and a size": cells(np.where(x < 0, size, size + (1 << FINE - 1)), COARSE),
            "squares": np.array([(x * x).sum()]),
        }

    return over_blocks(request.param, tally)


def test_laplace_noise_fills_equally_likely_bins(laplace):
    assert is_even(laplace["bins"])


@pytest.mark.parametrize("side", ["above", "below"])
@pytest.mark.parametrize("size", SIZES)
def test_tails_of_laplace_noise(laplace, size, side):
    count = int(laplace[side][SIZES.index(size)])
    assert stats.binomtest(count, laplace["n"], stats.laplace.sf(size)).pvalue > ALARM


def test_laplace_noise_has_the_variance_two(laplace):
    """E x^4 = 24: a square has the variance 20."""
    assert is_normal((laplace["squares"][0] - 2 * laplace["n"]) / np.sqrt(20 * laplace["n"]))


@pytest.mark.parametrize("name", LAPLACE_PAIRS)
def test_pairs_of_laplace_noise_fill_all_cells_evenly(laplace, name):
    assert is_even(laplace[name])


# --- levels ---------------------------------------------------------------------------------------

CHAINS = {
    "two": [[0.7, 0.3], [0.2, 0.8]],
    "three": [[0.7, 0.3, 0.0], [0.1, 0.6, 0.3], [0.25, 0.25, 0.5]],
    "independent": [[0.2, 0.5, 0.3]],
    "many": np.full((1, 1 << COARSE), 0.5**COARSE),
}


@pytest.mark.parametrize("n_blocks", RUNS)
@pytest.mark.parametrize("name", CHAINS)
def test_levels_follow_their_probabilities(name, n_blocks):
    transition, k = np.array(CHAINS[name]), len(CHAINS[name][0])
    table = LevelTable.from_cumulative(np.cumsum(transition, axis=1), np.arange(float(k)))
    first, counts = np.zeros(lanes("f8"), int), 0
    for words in draws.bundles(SEED, 0, 32, INPUT):
        before, start = first[:, None], np.vstack([words, table.find_rows(first)])
        for _ in range(n_blocks):
            path = np.concatenate([before, draws.walk(table, start, N_SAMPLES).astype(int)], axis=1)
            before, row = path[:, -1:], path[:, :-1] if len(transition) > 1 else 0
            counts = counts + np.bincount((row * k + path[:, 1:]).ravel(), minlength=transition.size)
    for row, p in zip(counts.reshape(transition.shape), transition, strict=True):
        assert not row[p == 0].any()
        assert stats.chisquare(row[p > 0], p[p > 0] * row.sum()).pvalue > ALARM


@pytest.mark.parametrize("t", [0, 1, 6])
@pytest.mark.parametrize("name", ["two", "three"])
def test_chains_are_stationary_from_the_first_sample(name, t):
    transition, k = np.array(CHAINS[name]), len(CHAINS[name])
    out = MarkovChain(transition, levels=np.arange(k)).sample(200_000, 8, seed=9)
    expected = reference.stationary(transition)[:, None] * transition
    counts = np.bincount((out[:, t] * k + out[:, t + 1]).astype(int), minlength=k * k)
    assert stats.chisquare(counts[expected.ravel() > 0], expected[expected > 0] * len(out)).pvalue > ALARM
