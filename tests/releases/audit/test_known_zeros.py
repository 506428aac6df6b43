"""Tests of noise: each against a naive twin, how often all of them are wrong together, and what they see."""

import itertools
import math

import numpy as np
import pytest
from helpers.covers import long_but
from scipy import stats

import dpfast as dp
from dpfast.privacy.discrete_gaussian_accounting import Sigma
from dpfast.releases.audit import noise_statistics as tests
from dpfast.releases.audit.expected_laws import expect
from dpfast.releases.audit.known_zeros import Silence
from dpfast.releases.noise import Noise

SIGMAS = [Sigma(33, 4), Sigma(5, 1), Sigma(645, 1), Sigma(2**21 + 1, 1), Sigma(2**39 + 1, 0)]
EVERY_SIGMA = pytest.mark.parametrize("sigma", SIGMAS, ids=lambda x: f"{x.std:.6g}")


def drawn(sigma, *shape):
    noise = Noise(sigma)
    noise.ready(math.prod(shape))
    return noise.take(math.prod(shape)).reshape(shape)


def naive_law(sigma):
    most = math.ceil(14 * sigma.std)
    k = np.arange(-most, most + 1)
    weights = [math.exp(-x * x / (2 * sigma.std**2)) for x in k.tolist()]
    return k, np.array(weights) / math.fsum(weights)


# --- one by one -----------------------------------------------------------------------------------


@EVERY_SIGMA
def test_the_bound_of_sigma_is_that_of_a_chi_squared_variable(sigma):
    z = drawn(sigma, 5000)
    expected = math.sqrt(sum(int(x) ** 2 for x in z) / stats.chi2.ppf(1e-3, 5000))
    assert expect(sigma).std_bound(z, 1e-3) == pytest.approx(expected, rel=1e-12)


def test_the_smallest_lack_that_is_found_is_found_so_often():
    """Chi-squared variables of a σ that is too small by just that."""
    lack = expect(SIGMAS[0]).largest_lack(5000, 1e-2, 0.9)
    square = stats.chi2.rvs(5000, size=20_000, random_state=1) * (1 - lack) ** 2
    found = np.count_nonzero(square / stats.chi2.ppf(1e-2, 5000) < 1)
    assert abs(found / 20_000 - 0.9) < 6 * math.sqrt(0.09 / 20_000)
    assert expect(SIGMAS[0]).largest_lack(3 * 2**17, 0.01 / 15, 0.99) < 0.02


@pytest.mark.parametrize("sigma", SIGMAS[:3], ids=lambda x: f"{x.std:g}")
def test_residues_and_cells_have_the_probabilities_of_the_law(sigma):
    z, (k, p) = drawn(sigma, 20_000), naive_law(sigma)
    found = []
    for m in (2, 3, 5, 7):
        expected = [p[k % m == r].sum() * z.size for r in range(m)]
        found.append(stats.chisquare([np.count_nonzero(z % m == r) for r in range(m)], expected).pvalue)
    assert tests.residues_p_value(z, expect(sigma)) == pytest.approx(min(1, 4 * min(found)), rel=1e-6)
    below = np.cumsum(p)
    ends = sorted({int(k[np.argmax(below >= i / 64)]) for i in range(1, 64)})
    cells = [(-(10**9), ends[0]), *itertools.pairwise(ends), (ends[-1], 10**9)]
    counts = [np.count_nonzero((a < z) & (z <= b)) for a, b in cells]
    expected = [z.size * p[(a < k) & (k <= b)].sum() for a, b in cells]
    assert tests.law_p_value(z, expect(sigma)) == pytest.approx(stats.chisquare(counts, expected).pvalue, rel=1e-6)


@pytest.mark.parametrize("sigma", SIGMAS[:3], ids=lambda x: f"{x.std:g}")
def test_zeros_are_counted_against_the_binomial_distribution(sigma):
    z, (k, p) = drawn(sigma, 4000), naive_law(sigma)
    count = int((z == 0).sum())
    assert tests.zeros_p_value(z, expect(sigma)) == pytest.approx(
        stats.binom.sf(count - 1, 4000, p[k == 0][0]), rel=1e-9
    )
    assert tests.zeros_p_value(np.ones(9, np.int64), expect(sigma)) == 1


def scored(z, sigma):
    return tests.standardize(z, np.zeros(z.shape, int), [expect(sigma)])


def test_correlations_are_those_of_all_products():
    sigma, rng = Sigma(5, 0), np.random.default_rng(1)
    x, y = rng.integers(-9, 9, (2, 3, 10)), rng.integers(-9, 9, (3, 10))
    square, lags = 25, range(10)

    def circular(a, b, lag):
        return sum(int(a[t]) * int(b[(t + lag) % 10]) for t in range(10))

    def p_value(scores):
        return min(1, 2 * len(scores) * stats.norm.sf(max(map(abs, scores))))

    steps, streams = [], []
    for part in x:
        own = (sum(circular(row, row, lag) for row in part) / square for lag in range(1, 6))
        steps += [score / math.sqrt(30 * (1 + (lag == 5))) for lag, score in enumerate(own, 1)]
        for lag in range(6):
            pairs = sum(circular(part[i], part[j], lag) for i in range(3) for j in range(3) if i != j)
            streams.append(pairs / square / math.sqrt(60 * (1 + (lag in (0, 5)))))
    assert tests.steps_p_value([scored(z, sigma) for z in x]) == pytest.approx(p_value(steps))
    assert tests.streams_p_value([scored(z, sigma) for z in x]) == pytest.approx(p_value(streams))
    same = [sum(circular(a, b, lag) for a, b in zip(x[0], y, strict=True)) / square / math.sqrt(30) for lag in lags]
    mixed = [circular(x[0].sum(axis=0), y.sum(axis=0), lag) / square / (3 * math.sqrt(10)) for lag in lags]
    assert tests.releases_p_value(scored(x[0], sigma), scored(y, sigma)) == pytest.approx(p_value(same + mixed))


# --- together -------------------------------------------------------------------------------------


def alarms(sigma, miss, streams, n):
    """Which tests speak of honest noise."""
    series = [drawn(sigma, streams, n) for _ in range(3)]
    noise, scores = np.concatenate(series).ravel(), [scored(x, sigma) for x in series]
    return [
        expect(sigma).std_bound(noise, miss) < sigma.std,
        *(
            test(noise, expect(sigma)) < miss
            for test in (tests.residues_p_value, tests.zeros_p_value, tests.law_p_value)
        ),
        tests.steps_p_value(scores) < miss,
        tests.streams_p_value(scores) < miss,
        tests.releases_p_value(*scores[:2]) < miss,
    ]


def rates(repetitions, miss, streams, n):
    return np.sum([alarms(SIGMAS[i % len(SIGMAS)], miss, streams, n) for i in range(repetitions)], axis=0)


@pytest.mark.parametrize("repetitions", long_but([140, 300], [140]))
def test_honest_noise_is_accused_as_seldom_as_is_said(repetitions):
    """Each test, and all together; a false alarm of this one has a probability below 1e-6."""
    miss = 0.05
    found = rates(repetitions, miss, 2, 512)
    assert found.max() <= stats.binom.isf(1e-7, repetitions, miss)
    assert found.sum() > 0.2 * miss * 7 * repetitions  # they are no weaker than need be


@pytest.mark.long
def test_honest_noise_is_accused_as_seldom_as_is_said_at_the_size_of_an_audit():
    repetitions, miss = 300, 0.05
    found = rates(repetitions, miss, 2, 2**16)
    assert found.max() <= stats.binom.isf(1e-7, repetitions, miss)


@pytest.mark.long
def test_a_sound_mechanism_is_violated_no_more_often_than_the_confidence_says():
    """All attacks of whole audits; at half of the confidence, as 1 % would take thousands of them."""
    plan = dp.exact(dp.zero_forcing(dp.Filter([1], [1, -0.7]), dp.Privacy(1, 1e-6)), dp.Inputs(0, 20))
    repetitions = 100
    found = sum(dp.audit(plan, n_runs=2000, confidence=0.5, seed=i).violated for i in range(repetitions))
    assert found <= stats.binom.isf(1e-6, repetitions, 0.5)


def more_even(rng, z):
    z[(z % 2 == 1) & (rng.random(z.shape) < 0.01)] += 1
    return z


def some_again(rng, z):
    """1 in 40 of the values of the first batch, 1000 steps later."""
    again = rng.random(z[0].shape) < 0.025
    z[0] = np.where(again, np.roll(z[0], 1000, axis=1), z[0])
    return z


def some_in_both(rng, z):
    z[0, 1] = np.where(rng.random(z[0, 1].shape) < 0.05, np.roll(z[0, 0], 7), z[0, 1])
    return z


def some_in_two(rng, z):
    z[1] = np.where(rng.random(z[1].shape) < 0.025, np.roll(z[0], 7, axis=1), z[1])
    return z


def few_zeros(rng, z):
    z[rng.random(z.shape) < 7e-4] = 0
    return z


SMALL = {
    "sigma": (lambda rng, z: np.rint(z * (1 - 0.0063)), lambda z, s, m: s.std_bound(z.ravel(), m) < s.std),
    "even": (more_even, lambda z, s, m: tests.residues_p_value(z, s) < m),
    "zeros": (few_zeros, lambda z, s, m: tests.zeros_p_value(z, s) < m),
    "steps": (some_again, lambda z, s, m: tests.steps_p_value(tuple(z / s.std)) < m),
    "streams": (some_in_both, lambda z, s, m: tests.streams_p_value(tuple(z / s.std)) < m),
    "releases": (some_in_two, lambda z, s, m: tests.releases_p_value(*(z[:2] / s.std)) < m),
}


@pytest.mark.parametrize(("least", "repetitions"), [(5, 8), pytest.param(16, 20, marks=pytest.mark.long)])
@pytest.mark.parametrize(("fault", "test"), SMALL.values(), ids=SMALL)
def test_the_faults_that_the_page_says_are_seen_are_seen(fault, test, least, repetitions):
    """Each with a probability of about 99 %; that fewer are seen has one of 1e-6. Seeded."""
    rng, sigma, seen = np.random.default_rng(3), Sigma(8863709, 17), 0
    for _ in range(repetitions):
        z = fault(rng, np.rint(rng.normal(size=(3, 2, 2**16)) * sigma.std)).astype(np.int64)
        seen += test(z, expect(sigma), 0.01 / 15)
    assert seen >= least


@pytest.mark.parametrize(
    "inputs",
    [
        dp.Inputs(0, 10, unit=0.1, centre=0.3),
        pytest.param(dp.Inputs(0, 20, n_streams=5, streams_per_person=3), marks=pytest.mark.long),
        pytest.param(dp.Inputs(-0.5, 1.5, unit=0.25, centre=0.25, missing=0), marks=pytest.mark.long),
        dp.Inputs(10, 20, centre=15, n_streams=1000, streams_per_person=20),
    ],
)
def test_known_zeros_are_zeros_whatever_is_declared(monkeypatch, inputs):
    monkeypatch.setattr(Noise, "take", lambda self, n: np.zeros(n, np.int64))
    plan = dp.exact(dp.zero_forcing(dp.Filter([1], [1, -0.7]), dp.Privacy(1, 1e-2)), inputs)
    silence = Silence.publish(plan)
    n_streams = min(8, max(2, inputs.n_streams))
    assert [x.shape[0] for x in silence.series] == [n_streams] * 3
    assert silence.noise_of(0).size > 3 * 2**17 * 0.99
    assert not silence.noise_of(0).any()
