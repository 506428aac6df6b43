"""Statistics of exact discrete Gaussians: a quick run, and a long one of 64 times as many (``pytest -m long``).

Seeds are fixed. A comparison raises a false alarm once in 1e9, and a run makes fewer than a thousand.
"""

import itertools
import random
from fractions import Fraction

import numpy as np
import pytest
from helpers import reference
from scipy import stats

from dpfast._kernels import discrete_gaussian
from dpfast._kernels.discrete_gaussian import NOTHING, Law

ALARM = 1e-9
SEED = 20250101
SIGMAS = {
    "0.6": (19_661, 15),
    "2.3": (2_411_725, 20),
    "12.7": (203, 4),
    "322.5": (645, 1),
    "1e6": (1_000_000, 0),
    "2^30": (2**30, 0),
}
BLOCK = 1 << 20
TWIN = 20_000  # samples of the slow twins

pytestmark = pytest.mark.slow_nojit


def is_normal(z):
    """A number that should be standard normal."""
    return abs(z) < stats.norm.isf(ALARM / 2)


def drawn(a, j, n_blocks=1, *, n=BLOCK, seed=SEED):
    """Blocks of samples from seeded words."""
    rng, law, thresholds = np.random.default_rng([seed, a, j]), Law.from_fraction(a, j), discrete_gaussian.make_table(6)
    for _ in range(n_blocks):
        out = np.empty(n, np.int64)
        words = rng.integers(2**32, size=10 * n + 1000, dtype=np.uint32)
        assert discrete_gaussian.draw(words, thresholds, law, out)[::2] == (n, NOTHING)
        yield out


def upper_tail(sigma, z):
    """P(n >= z) for integers z: sums, or for large sigma the midpoint rule, of relative error 1 / (24 sigma²)."""
    if sigma > 1e4:
        return stats.norm.sf((np.asarray(z) - 0.5) / sigma)
    far = int(40 * sigma)
    weights = np.exp(-0.5 * (np.arange(-far, far + 1) / sigma) ** 2)
    sums = np.cumsum(weights[::-1])[::-1]
    return np.append(sums, 0)[np.clip(np.asarray(z) + far, 0, 2 * far + 1)] / sums[0]


def moment(sigma, power):
    """E n^power / sigma^power."""
    if sigma > 1e4:
        return stats.norm.moment(power)
    far = int(40 * sigma)
    scaled = np.arange(-far, far + 1) / sigma
    weights = np.exp(-0.5 * scaled**2)
    return (weights * scaled**power).sum() / weights.sum()


QUICK = ("0.6", "12.7", "2^30")


@pytest.fixture(
    scope="module",
    params=[
        *(pytest.param((name, 1), id=f"quick-{name}") for name in QUICK),
        *(pytest.param((name, 64), id=f"long-{name}", marks=pytest.mark.long) for name in SIGMAS),
    ],
)
def tally(request):
    """What is counted in each block, summed."""
    name, n_blocks = request.param
    a, j = SIGMAS[name]
    sigma = a / 2**j
    edges = np.unique(np.rint(sigma * stats.norm.ppf(np.linspace(0, 1, 1025)[1:-1])).astype(np.int64))
    tails = np.ceil(sigma * np.array([2, 3, 4, 4.5, 5])).astype(np.int64)
    total = dict.fromkeys(["cells", "above", "below", "powers", "products"], 0)
    for x in drawn(a, j, n_blocks):
        scaled = x / sigma
        total["cells"] += np.bincount(np.searchsorted(edges, x, side="right"), minlength=len(edges) + 1)
        total["above"] += np.array([np.count_nonzero(x >= z) for z in tails])
        total["below"] += np.array([np.count_nonzero(x <= -z) for z in tails])
        total["powers"] += np.array([np.sum(x) for x in itertools.accumulate([scaled] * 6, np.multiply)])
        total["products"] += np.array([np.dot(scaled[lag:], scaled[:-lag]) for lag in (1, 2, 4096)])
    return total | {"n": n_blocks * BLOCK, "sigma": sigma, "edges": edges, "tails": tails}


def test_cells_are_filled_as_the_exact_probabilities_say(tally):
    above = np.concatenate([[1.0], upper_tail(tally["sigma"], tally["edges"]), [0.0]])
    expected = -np.diff(above) * tally["n"]
    few = expected < 20
    counts = np.append(tally["cells"][~few], tally["cells"][few].sum())
    expected = np.append(expected[~few], expected[few].sum())
    counts, expected = counts[expected > 0], expected[expected > 0]
    assert len(counts) > 2
    assert stats.chisquare(counts, expected * counts.sum() / expected.sum()).pvalue > ALARM


def test_tails(tally):
    probabilities = upper_tail(tally["sigma"], tally["tails"])
    for side in ("above", "below"):
        for count, p in zip(tally[side], probabilities, strict=True):
            assert stats.binomtest(int(count), tally["n"], p).pvalue > ALARM


def test_moments(tally):
    for k in range(1, 7):
        mean = moment(tally["sigma"], k)
        spread = np.sqrt((moment(tally["sigma"], 2 * k) - mean**2) * tally["n"])
        assert is_normal((tally["powers"][k - 1] - mean * tally["n"]) / spread)


def test_samples_are_uncorrelated(tally):
    for product in tally["products"]:
        assert is_normal(product / np.sqrt(tally["n"]) / moment(tally["sigma"], 2))


@pytest.mark.parametrize(
    ("sigma", "n_blocks"),
    [("2.3", 1), *(pytest.param(name, 64, marks=pytest.mark.long) for name in ("0.6", "2.3", "12.7"))],
)
def test_neighbouring_integers_have_the_right_ratio(sigma, n_blocks):
    """P(z) / P(z + 1) = exp((2 z + 1) / (2 sigma²)), which is what privacy is about."""
    a, j = SIGMAS[sigma]
    counts = sum(np.bincount(x[abs(x) <= 40] + 40, minlength=81) for x in drawn(a, j, n_blocks))
    checked = 0
    for z, (here, beyond) in enumerate(itertools.pairwise(counts.tolist()), start=-40):
        if min(here, beyond) > 20:
            p = 1 / (1 + np.exp(-(2 * z + 1) / 2 / (a / 2**j) ** 2))  # that it is z, if it is z or z + 1
            assert stats.binomtest(here, here + beyond, p).pvalue > ALARM
            checked += 1
    assert checked >= 4


# --- twins ----------------------------------------------------------------------------------------


def agree(first, second):
    """Whether two samples may be of one law: chi-square of a table of about 40 cells that are equally full."""
    edges = np.unique(np.quantile(second, np.linspace(0, 1, 41)[1:-1], method="nearest"))
    counts = [np.bincount(np.searchsorted(edges, x, side="right"), minlength=len(edges) + 1) for x in (first, second)]
    table = np.array(counts)
    return stats.chi2_contingency(table[:, table.sum(axis=0) > 20]).pvalue > ALARM


@pytest.mark.parametrize(
    ("sigma", "n_twin"),
    [("2.3", TWIN // 2), *(pytest.param(name, 16 * TWIN, marks=pytest.mark.long) for name in ("0.6", "2.3", "322.5"))],
)
def test_the_algorithm_of_canonne_kamath_and_steinke_draws_the_same(sigma, n_twin):
    (a, j), rng = SIGMAS[sigma], random.Random(SEED)
    twin = [reference.discrete_gaussian(Fraction(a, 2**j), rng) for _ in range(n_twin)]
    (own,) = drawn(a, j)
    assert agree(np.array(twin), own)
    assert not agree(np.array(twin) + max(1, round(a / 2**j / 10)), own)


@pytest.mark.parametrize("sigma", ["0.6", "2.3", "322.5"])
def test_opendp_draws_the_same(sigma):
    """Its measurement draws from the operating system, without a seed; not a dependency of the tests."""
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib")
    a, j = SIGMAS[sigma]
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float)
    theirs = np.array(dp.m.make_gaussian(*space, scale=a / 2**j)([0] * 5 * TWIN))
    (own,) = drawn(a, j)
    assert agree(theirs, own)
