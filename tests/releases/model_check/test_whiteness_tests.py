"""Chances, against the laws of scipy and closed forms; false alarms on white noise."""

import numpy as np
import pytest
from scipy import stats

from dpfast.releases.model_check.whiteness_tests import NORMAL, _chance_of_sum, find_departures


def test_equal_weights_have_the_gamma_law():
    for n, count, factor in ((1, 9, 2.1), (3, 40, 0.6), (1, 300, 1.1)):
        law = stats.gamma(n * count, scale=1 / n)
        expected = 2 * min(law.cdf(factor * count), law.sf(factor * count))
        found = _chance_of_sum(np.full(count, factor), np.ones(count), 0.0, n)
        assert found == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize("weights", [np.linspace(0.05, 1, 12), 0.8 ** np.arange(8)])
def test_chances_of_unequal_weights_are_near_the_exact_ones(weights):
    """A sum of exponentials of different means has a closed form."""

    def above(x):
        factors = [np.prod([w / (w - o) for o in weights if o != w]) * np.exp(-x / w) for w in weights]
        return sum(factors)

    for x in np.linspace(1.5, 4, 6) * weights.sum():
        found = _chance_of_sum(np.full(len(weights), x / weights.sum()), weights, 0.0, 1)
        assert found == pytest.approx(2 * above(x), rel=0.03)
    for x in np.array([0.2, 0.3, 0.4]) * weights.sum():
        found = _chance_of_sum(np.full(len(weights), x / weights.sum()), weights, 0.0, 1)
        assert found == pytest.approx(2 * (1 - above(x)), rel=0.03)


def test_a_kurtosis_widens_the_law_of_a_power():
    ordinates, weights = np.full(50, 1.5), np.ones(50)
    assert _chance_of_sum(ordinates, weights, 100.0, 1) > 10 * _chance_of_sum(ordinates, weights, 0.0, 1)


@pytest.mark.parametrize(("n_streams", "time"), [(1, 8), (2, 31), (1, 400)])
def test_white_values_are_rarely_found_to_be_others(n_streams, time):
    """2,000 tries at 1 %: more than 49 by a chance of 1e-7."""
    rng, rise = np.random.default_rng(3), np.exp(-np.arange(time) / 5) + 0.1
    share = np.linspace(1, 0.1, 65)
    found = [find_departures(rng.normal(size=(n_streams, time)), rise, share, NORMAL) for _ in range(2000)]
    for name in ("p_mean", "p_variance", "p_spectrum"):
        assert sum(getattr(x, name) < 0.01 for x in found) <= 49


def test_each_departure_is_found_where_it_is():
    rng, rise, share = np.random.default_rng(4), np.ones(600), np.ones(9)
    white = rng.normal(size=(2, 600))
    mean = find_departures(white + 0.3, rise, share, NORMAL)
    assert mean.p_mean < 1e-10 < min(mean.p_variance, mean.p_spectrum)
    assert mean.mean_error == pytest.approx(0.3, abs=4 * mean.mean_deviation)
    line = find_departures(white + 0.6 * np.cos(2 * np.pi * np.arange(600) / 24), rise, share, NORMAL)
    assert line.p_spectrum < 1e-10 < line.p_mean
    assert line.line.longest == pytest.approx(24)
    loud = find_departures(1.3 * white, rise, share, NORMAL)
    assert loud.p_variance < 1e-6
    assert loud.signal_ratio == pytest.approx(1.69, abs=0.3)
    opposite = find_departures(white + np.array([[0.3], [-0.3]]), rise, share, NORMAL)  # the means of streams
    assert opposite.p_mean < 1e-9


def test_a_mean_that_is_not_seen_is_not_judged():
    found = find_departures(np.random.default_rng(5).normal(size=(1, 50)), np.zeros(50), np.ones(9), NORMAL)
    assert (found.mean_error, found.p_mean) == (None, 1.0)


def test_too_few_values_have_no_spectrum():
    found = find_departures(np.array([[0.3, 1.0]]), np.ones(2), np.ones(9), NORMAL)
    assert (found.p_variance, found.p_spectrum, found.bands, found.line) == (1.0, 1.0, (), None)


def test_what_is_far_beyond_any_law_has_no_chance():
    assert _chance_of_sum(np.full(9, 1e200), np.ones(9), 0.0, 2) == 0
    assert _chance_of_sum(np.full(9, 1e-200), np.ones(9), 0.0, 2) == 0
