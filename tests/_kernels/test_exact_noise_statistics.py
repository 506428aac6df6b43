"""Statistics of exact noise: a quick run, and a long one of 64 times as many (``pytest -m long``).

Seeds are fixed. A comparison raises a false alarm once in 1e9, and a run makes fewer than a thousand.
"""

import abc
import itertools
import math
import random
from fractions import Fraction

import numpy as np
import pytest
from helpers import reference
from scipy import stats

from dpfast._kernels import discrete_gaussian, table_draws, two_sided_geometric
from dpfast._kernels.exact_decisions import NOTHING
from dpfast.privacy.canonical_table import canonical_table
from dpfast.privacy.response_table import response_table

ALARM = 1e-9
SEED = 20250101
BLOCK = 1 << 20
TWIN = 20_000  # samples of the slow twins

pytestmark = pytest.mark.slow_nojit


class Law(abc.ABC):
    """A law of integers with a scale: what is drawn, and what should be."""

    is_symmetric = True
    n_powers: int  # whose means are nearly normal
    words_per_sample: int

    def __init__(self, numerator, j):
        self.pair, self.ratio = (numerator, j), Fraction(numerator, 2**j)

    @abc.abstractmethod
    def draw(self, words, out):
        """Fill `out` from words."""

    def edges(self):
        """Where cells begin, from the second one on: about a thousand that are equally full, or fewer."""
        return np.unique(np.rint(self.scale * self.quantile(np.linspace(0, 1, 1025)[1:-1])).astype(np.int64))

    def tails(self):
        """Where tails begin."""
        return np.ceil(self.scale * np.array(self.places)).astype(np.int64)

    def blocks(self, n_blocks=1, *, n=BLOCK):
        """Blocks of samples from seeded words."""
        rng = np.random.default_rng([SEED, *self.pair])
        for _ in range(n_blocks):
            out = np.empty(n, np.int64)
            words = rng.integers(2**32, size=self.words_per_sample * n + 1000, dtype=np.uint32)
            assert self.draw(words, out)[::2] == (n, NOTHING)
            yield out

    def weights(self):
        """Integers as far as they matter, as parts of the scale, and their probabilities."""
        far = math.ceil(self.reach * self.scale)
        n = np.arange(-far, far + 1)
        weights = self.density(n)
        return n / self.scale, weights / weights.sum()

    def moment(self, power):
        """E n^power / scale^power."""
        if self.scale > 1e4:
            return self.continuous_moment(power)
        n, weights = self.weights()
        return (weights * n**power).sum()


class Gaussian(Law):
    """The discrete Gaussian; its scale is its standard deviation."""

    n_powers, words_per_sample, reach = 6, 10, 40
    continuous_moment = staticmethod(stats.norm.moment)
    quantile = staticmethod(stats.norm.ppf)
    places = (2, 3, 4, 4.5, 5)

    @property
    def scale(self):
        return float(self.ratio)

    def density(self, n):
        return np.exp(-0.5 * (n / self.scale) ** 2)

    def draw(self, words, out):
        law = discrete_gaussian.Law.from_fraction(*self.pair)
        return discrete_gaussian.draw(words, discrete_gaussian.make_table(6), law, out)

    def upper_tail(self, z):
        """P(n >= z) for integers z: sums, or for large scales the midpoint rule, of relative error 1 / (24 sigma²)."""
        if self.scale > 1e4:
            return stats.norm.sf((np.asarray(z) - 0.5) / self.scale)
        sums = np.cumsum(self.weights()[1][::-1])[::-1]
        return np.append(sums, 0)[np.clip(np.asarray(z) + len(sums) // 2, 0, len(sums))]

    def twin(self, rng):
        return reference.discrete_gaussian(self.ratio, rng)

    def measurement(self, dp):
        space = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float)
        return dp.m.make_gaussian(*space, scale=self.scale)


class Geometric(Law):
    """The two-sided geometric; its scale is that of the Laplace law."""

    n_powers, words_per_sample, reach = 4, 20, 60
    quantile = staticmethod(stats.laplace.ppf)
    places = (2, 4, 6, 8, 10)

    @property
    def scale(self):
        return float(1 / self.ratio)

    @staticmethod
    def continuous_moment(power):
        return 0.0 if power % 2 else math.factorial(power)

    def density(self, n):
        return np.exp(-np.abs(n) / self.scale)

    def draw(self, words, out):
        return two_sided_geometric.draw_geometric(words, two_sided_geometric.GeometricLaw.from_rate(*self.pair), out)

    def upper_tail(self, z):
        """P(n >= z): q^z / (1 + q) above zero."""
        z, q = np.asarray(z), math.exp(-1 / self.scale)
        far = np.exp(-np.where(z > 0, z, 1 - z) / self.scale) / (1 + q)
        return np.where(z > 0, far, 1 - far)

    def twin(self, rng):
        return reference.discrete_laplace(self.ratio.denominator, rng, self.ratio.numerator)

    def measurement(self, dp):
        space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
        return dp.m.make_laplace(*space, scale=self.scale)


class Table(Law):
    """What a table has, value by value; its scale is its standard deviation, or 1 for answers."""

    n_powers, words_per_sample = 4, 2

    def __init__(self, law, pair):
        self.law, self.pair, self.is_symmetric = law, pair, law.values[0] < 0
        self.p = np.array([float(p) for p in law.probabilities])
        self.sums = list(zip(law.values, itertools.accumulate(law.weights), strict=True))

    @property
    def scale(self):
        return float(self.law.variance) ** 0.5 if self.law.values[0] < 0 else 1.0

    def edges(self):
        return np.array(self.law.values[1:])

    def tails(self):
        return np.array([n for n in self.law.values if n > 0])

    def weights(self):
        return np.array(self.law.values) / self.scale, self.p

    def density(self, n):
        return np.array([dict(zip(self.law.values, self.p, strict=True)).get(x, 0.0) for x in np.asarray(n).tolist()])

    def draw(self, words, out):
        return table_draws.draw_table(words, table_draws.CutTable.from_weights(self.law.values, self.law.weights), out)

    def upper_tail(self, z):
        """P(n >= z), exactly."""
        law = self.law
        pairs = list(zip(law.values, law.probabilities, strict=True))
        return np.array([float(sum(p for n, p in pairs if n >= x)) for x in np.asarray(z).tolist()])

    def twin(self, rng):
        """The first value whose summed weights are above a random number."""
        u = rng.getrandbits(self.law.bits)
        return next(n for n, s in self.sums if u < s)


LAWS = {
    "Gaussian 0.6": Gaussian(19_661, 15),
    "Gaussian 2.3": Gaussian(2_411_725, 20),
    "Gaussian 12.7": Gaussian(203, 4),
    "Gaussian 322.5": Gaussian(645, 1),
    "Gaussian 1e6": Gaussian(1_000_000, 0),
    "Gaussian 2^30": Gaussian(2**30, 0),
    "geometric 3": Geometric(3, 0),
    "geometric 1": Geometric(1, 0),
    "geometric 0.3": Geometric(322_122_547, 30),
    "geometric 1/20": Geometric(53_687_091, 30),
    "geometric 2e-5": Geometric(10_737_418, 39),
    "geometric 2^-40": Geometric(1, 40),
    "canonical ln 3": Table(canonical_table(math.log(3), 0.05), (100, 1)),
    "canonical 1": Table(canonical_table(1.0, 0.001), (100, 2)),
    "canonical 0.01": Table(canonical_table(0.01, 0.001), (100, 3)),
    "response 1": Table(response_table(1.0, 0.01), (100, 4)),
    "response 3": Table(response_table(3.0, 0.0), (100, 5)),
}


def is_normal(z):
    """A number that should be standard normal."""
    return abs(z) < stats.norm.isf(ALARM / 2)


QUICK = ("Gaussian 0.6", "Gaussian 12.7", "Gaussian 2^30", "geometric 1", "geometric 1/20", "geometric 2e-5")
QUICK += ("canonical ln 3", "canonical 0.01", "response 1")


@pytest.fixture(
    scope="module",
    params=[
        *(pytest.param((name, 1), id=f"quick-{name}") for name in QUICK),
        *(pytest.param((name, 64), id=f"long-{name}", marks=pytest.mark.long) for name in LAWS),
    ],
)
def tally(request):
    """What is counted in each block, summed."""
    name, n_blocks = request.param
    law = LAWS[name]
    edges, tails = law.edges(), law.tails()
    thirds = edges[[len(edges) // 3, 2 * len(edges) // 3]]
    total = dict.fromkeys(["cells", "above", "below", "powers", "products", "pairs"], 0)
    for x in law.blocks(n_blocks):
        scaled = x / law.scale
        total["cells"] += np.bincount(np.searchsorted(edges, x, side="right"), minlength=len(edges) + 1)
        total["above"] += np.array([np.count_nonzero(x >= z) for z in tails])
        total["below"] += np.array([np.count_nonzero(x <= -z) for z in tails])
        powers = itertools.accumulate([scaled] * law.n_powers, np.multiply)
        total["powers"] += np.array([np.sum(x) for x in powers])
        centred = scaled - law.moment(1)
        total["products"] += np.array([np.dot(centred[lag:], centred[:-lag]) for lag in (1, 2, 4096)])
        third = np.searchsorted(thirds, x, side="right")
        total["pairs"] += np.bincount(3 * third[:-1:2] + third[1::2], minlength=9).reshape(3, 3)
    return total | {"n": n_blocks * BLOCK, "law": law, "edges": edges, "tails": tails}


def test_cells_are_filled_as_the_exact_probabilities_say(tally):
    above = np.concatenate([[1.0], tally["law"].upper_tail(tally["edges"]), [0.0]])
    expected = -np.diff(above) * tally["n"]
    few = expected < 20
    counts = np.append(tally["cells"][~few], tally["cells"][few].sum())
    expected = np.append(expected[~few], expected[few].sum())
    counts, expected = counts[expected > 0], expected[expected > 0]
    assert len(counts) >= 2
    assert stats.chisquare(counts, expected * counts.sum() / expected.sum()).pvalue > ALARM


def test_tails(tally):
    probabilities = tally["law"].upper_tail(tally["tails"])
    for side in ("above", "below") if tally["law"].is_symmetric else ("above",):
        for count, p in zip(tally[side], probabilities, strict=True):
            assert stats.binomtest(int(count), tally["n"], p).pvalue > ALARM


def test_moments(tally):
    for k in range(1, tally["law"].n_powers + 1):
        mean = tally["law"].moment(k)
        spread = np.sqrt((tally["law"].moment(2 * k) - mean**2) * tally["n"])
        assert is_normal((tally["powers"][k - 1] - mean * tally["n"]) / spread)


def test_samples_are_uncorrelated(tally):
    variance = tally["law"].moment(2) - tally["law"].moment(1) ** 2
    for product in tally["products"]:
        assert is_normal(product / np.sqrt(tally["n"]) / variance)


def test_neighbouring_samples_are_independent(tally):
    """In which third of the law each of two is, over all pairs that share no sample."""
    pairs = tally["pairs"][np.ix_(tally["pairs"].sum(axis=1) > 20, tally["pairs"].sum(axis=0) > 20)]
    assert pairs.sum() == pytest.approx(tally["n"] / 2, rel=1e-3)
    assert min(pairs.shape) > 1
    assert stats.chi2_contingency(pairs, correction=False).pvalue > ALARM


@pytest.mark.parametrize(
    ("name", "n_blocks"),
    [
        ("Gaussian 2.3", 1),
        ("geometric 0.3", 1),
        ("canonical 1", 1),
        *(
            pytest.param(name, 64, marks=pytest.mark.long)
            for name in (
                *("Gaussian 0.6", "Gaussian 2.3", "Gaussian 12.7", "geometric 3", "geometric 1", "geometric 0.3"),
                *("canonical ln 3", "canonical 1"),
            )
        ),
    ],
)
def test_neighbouring_integers_have_the_right_ratio(name, n_blocks):
    """P(z) / P(z + 1), which is what privacy is about."""
    law = LAWS[name]
    counts = sum(np.bincount(x[abs(x) <= 40] + 40, minlength=81) for x in law.blocks(n_blocks))
    densities, checked = law.density(np.arange(-40, 41)), 0
    for (here, beyond), (p, q) in zip(itertools.pairwise(counts.tolist()), itertools.pairwise(densities), strict=True):
        if min(here, beyond) > 20:
            assert stats.binomtest(here, here + beyond, p / (p + q)).pvalue > ALARM
            checked += 1
    assert checked >= 4


# --- twins ----------------------------------------------------------------------------------------


def agree(first, second):
    """Whether two samples may be of one law: chi-square of a table of about 40 cells that are equally full."""
    edges = np.unique(np.quantile(second, np.linspace(0, 1, 41)[1:-1], method="nearest"))
    counts = [np.bincount(np.searchsorted(edges, x, side="right"), minlength=len(edges) + 1) for x in (first, second)]
    table = np.array(counts)
    return stats.chi2_contingency(table[:, table.sum(axis=0) > 20]).pvalue > ALARM


LONG_TWINS = ("Gaussian 0.6", "Gaussian 2.3", "Gaussian 322.5", "geometric 1", "geometric 0.3", "geometric 2e-5")
LONG_TWINS += ("canonical ln 3", "canonical 1", "response 1", "response 3")


@pytest.mark.parametrize(
    ("name", "n_twin"),
    [
        ("Gaussian 2.3", TWIN // 2),
        ("geometric 0.3", TWIN),
        ("canonical 1", TWIN),
        ("response 1", TWIN),
        *(pytest.param(name, 16 * TWIN, marks=pytest.mark.long) for name in LONG_TWINS),
    ],
)
def test_a_twin_draws_the_same(name, n_twin):
    """The algorithms of Canonne, Kamath and Steinke; of a table, a look at one value after the other."""
    law, rng = LAWS[name], random.Random(SEED)
    twin = np.array([law.twin(rng) for _ in range(n_twin)])
    (own,) = law.blocks()
    assert agree(twin, own)
    assert not agree(twin + max(1, round(law.scale / 5)), own)


@pytest.mark.parametrize("name", ["Gaussian 0.6", "Gaussian 2.3", "Gaussian 322.5", "geometric 1", "geometric 1/20"])
def test_opendp_draws_the_same(name):
    """Its measurement draws from the operating system, without a seed; not a dependency of the tests."""
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib")
    theirs = np.array(LAWS[name].measurement(dp)([0] * 5 * TWIN))
    (own,) = LAWS[name].blocks()
    assert agree(theirs, own)
