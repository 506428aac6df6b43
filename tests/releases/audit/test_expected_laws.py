"""Laws that noise is expected to have, beside sums over all integers; how often tests of honest noise are wrong."""

import math

import numpy as np
import pytest
from scipy import stats

from dpfast.privacy.canonical_table import canonical_table
from dpfast.privacy.discrete_gaussian_accounting import Sigma
from dpfast.privacy.geometric_rate import GeometricRate
from dpfast.privacy.response_table import response_table
from dpfast.releases.audit import noise_statistics as tests
from dpfast.releases.audit.expected_laws import expect
from dpfast.releases.noise import Noise

SMALL = {
    "Gaussian": Sigma(33, 4),
    "geometric 3": GeometricRate(3, 0),
    "geometric 1/4": GeometricRate(1, 2),
    "canonical": canonical_table(1.0, 0.05),
    "response": response_table(1.0, 0.05),
    "response, never certain": response_table(2.0, 0.0),
}
LAWS = {**SMALL, "geometric 1/4096": GeometricRate(1, 12), "geometric 2^-40": GeometricRate(1, 40)}


def probabilities(law):
    """Integers and their probabilities, as definitions say."""
    if isinstance(law, Sigma):
        n = np.arange(-60, 61)
        p = np.exp(-(n**2) / (2 * law.std**2))
    elif isinstance(law, GeometricRate):
        n = np.arange(-400, 401)
        p = np.exp(-np.abs(n) * float(law.per_step))
    else:
        n, p = np.array(law.values), np.array([float(x) for x in law.probabilities])
    return n, p / math.fsum(p)


def drawn(law, *shape):
    noise = Noise(law)
    noise.ready(math.prod(shape))
    return noise.take(math.prod(shape)).reshape(shape)


@pytest.mark.parametrize("law", SMALL.values(), ids=SMALL)
def test_moments_and_probabilities_are_those_of_all_integers(law):
    expected, (n, p) = expect(law), probabilities(law)
    mean = p @ n
    variance = p @ (n - mean) ** 2
    assert expected.mean == pytest.approx(mean, abs=1e-12)
    assert expected.std == pytest.approx(math.sqrt(variance), rel=1e-9)
    assert expected.spread == pytest.approx(math.sqrt(p @ (n - mean) ** 4 / variance**2 - 1), rel=2e-2)
    assert expected.zero == pytest.approx(p[n == 0][0], rel=1e-9)
    likely = p > 1e-12
    logs = expected.log_probability(n[likely])
    assert logs - logs.max() == pytest.approx(np.log(p[likely] / p.max()), abs=1e-6)
    few, chances = expected.few_values
    assert chances.sum() == pytest.approx(1)
    ends, below = expected.cells()
    assert below == pytest.approx([p[n <= x].sum() for x in ends], rel=1e-9)
    assert set(few) >= set(n[p > 1e-9])


@pytest.mark.parametrize("name", ["geometric 1/4096", "geometric 2^-40"])
def test_cells_of_many_values_are_equally_full(name):
    law = expect(LAWS[name])
    q, (ends, below) = math.exp(-float(LAWS[name].per_step)), law.cells()
    upper = [q ** (int(x) + 1) / (1 + q) if x >= 0 else 1 - q ** (-int(x)) / (1 + q) for x in ends]
    assert 1 - below == pytest.approx(upper, rel=1e-9)
    assert np.diff(below) == pytest.approx(1 / 64, rel=0.1)


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_honest_noise_is_accused_as_seldom_as_is_said(law):
    """Each test; that it speaks more often has a probability below 1e-7."""
    expected, miss, repetitions, found = expect(law), 0.05, 60, np.zeros(7)
    for _ in range(repetitions):
        series = [drawn(law, 2, 512) for _ in range(3)]
        noise = np.concatenate(series).ravel()
        scores = [tests.standardize(x, np.zeros(x.shape, int), [expected]) for x in series]
        found += np.array(
            [
                expected.std_bound(noise, miss) < expected.std,
                tests.residues_p_value(noise, expected) < miss,
                tests.zeros_p_value(noise, expected) < miss,
                tests.law_p_value(noise, expected) < miss,
                tests.steps_p_value(scores) < miss,
                tests.streams_p_value(scores) < miss,
                tests.releases_p_value(*scores[:2]) < miss,
            ]
        )
    assert found.max() <= stats.binom.isf(1e-8, repetitions, miss)


@pytest.mark.parametrize("name", ["geometric 3", "geometric 1/4", "canonical"])
def test_a_spread_that_is_too_small_is_found_as_often_as_is_said(name):
    """The power is that of a normal variable, here of 400 means."""
    law, n = expect(LAWS[name]), 4000
    lack, values = law.largest_lack(n, 1e-2, 0.9), probabilities(LAWS[name])
    rng = np.random.default_rng(1)
    z = rng.choice(values[0], (400, n), p=values[1]) * (1 - lack)
    found = sum(law.std_bound(x, 1e-2) < law.std for x in z)
    assert abs(found / 400 - 0.9) < 0.1


def test_what_never_comes_is_found_at_once():
    noise, law = drawn(canonical_table(1.0, 0.05), 1000), expect(canonical_table(1.0, 0.05))
    assert law.log_probability(np.array([9, -4, 0])).tolist()[:2] == [-math.inf, -math.inf]
    assert tests.law_p_value(noise, law) > 0
    noise[7] = 9
    assert tests.law_p_value(noise, law) == 0
    answers, law = drawn(response_table(1.0, 0.0), 1000), expect(response_table(1.0, 0.0))
    assert tests.residues_p_value(answers, law) > 0
    assert tests.zeros_p_value(answers, law) == 1
    answers[7] = 5
    assert tests.residues_p_value(answers, law) == 0
    answers[7] = 0
    assert tests.zeros_p_value(answers, law) == 0
