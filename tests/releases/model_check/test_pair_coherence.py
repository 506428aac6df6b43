"""Coherences and correlations against their laws, and dependence that is found at any lag."""

import numpy as np
import pytest
from scipy import stats

from dpfast.releases.model_check.pair_coherence import Ordinates, coherence_bands, find_tie, rank_ties


def ordinates(z):
    """Of many series (v, time)."""
    count = z.shape[-1]
    half = (count - 1) // 2
    return Ordinates(np.fft.rfft(z)[:, 1 : half + 1], 2 * np.pi * np.arange(1, half + 1) / count, count)


def test_bands_are_octaves_and_all_below_them():
    assert coherence_bands(1) == []
    assert coherence_bands(17) == [slice(8, 17), slice(4, 8), slice(0, 4), slice(0, 17), slice(0, 8)]


@pytest.mark.parametrize("time", [12, 101])
def test_of_independent_series_chances_are_uniform_at_most(time):
    """Whatever one of them is: here a walk. 4,000 tries, beside a binomial law at 1e-6."""
    rng = np.random.default_rng(1)
    white, walk = rng.normal(size=(4000, time)), np.cumsum(rng.normal(size=(4000, time)), axis=1)
    found = rank_ties(ordinates(white), ordinates(walk))
    for level in (0.1, 0.01, 0.001):
        assert (found < level).sum() <= stats.binom.isf(1e-6, 4000, level)
    assert (found < 0.1).sum() > 80  # bands and lags overlap, so that Bonferroni is not exact, and not much too large


def test_chances_are_those_of_the_laws_of_beta():
    """Of four ordinates there is one band, and nine lags: all by the formulas, in time."""
    rng = np.random.default_rng(2)
    x, y = (z - z.mean(axis=1, keepdims=True) for z in rng.normal(size=(2, 300, 9)))
    size = np.sqrt((x**2).sum(axis=1) * (y**2).sum(axis=1))
    correlations = [(np.roll(x, -k, axis=1) * y).sum(axis=1) / size for k in range(9)]
    of_lags = 9 * stats.beta(1 / 2, 7 / 2).sf(np.square(correlations)).min(axis=0)
    one, other = ordinates(x), ordinates(y)
    coherence = np.abs((one.values * other.values.conj()).sum(axis=1)) ** 2 / (size * 9 / 2) ** 2
    expected = np.minimum(1, 2 * np.minimum(of_lags, stats.beta(1, 3).sf(coherence)))
    np.testing.assert_allclose(rank_ties(one, other), expected)


@pytest.mark.parametrize("lag", [0, 1, 7, -300])
@pytest.mark.parametrize("time", [800, 801])
def test_a_dependence_is_found_at_any_lag(lag, time):
    rng = np.random.default_rng(3)
    y = rng.normal(size=(1, time))
    x = 0.5 * np.roll(y, lag, axis=1) + rng.normal(size=(1, time))
    one, other = ordinates(x), ordinates(y)
    tie = find_tie(one, other, (0, 2))
    assert tie.p_value < 1e-12
    assert tie.channels == (0, 2)
    assert tie.lag == (lag or None)
    assert tie.correlation == pytest.approx(0.5 / 1.25**0.5, abs=0.1)
    assert tie.p_value == rank_ties(one, other)[0]


def test_a_dependence_of_slow_changes_is_found_where_no_lag_tells_it():
    """Only below a twentieth of the frequencies, and of a phase that is random there: 20 of 400 ordinates."""
    rng = np.random.default_rng(4)
    x, y = ordinates(rng.normal(size=(1, 801))), ordinates(rng.normal(size=(1, 801)))
    y.values[:, :16] = np.exp(1j) * x.values[:, :16] + 0.3 * y.values[:, :16]
    tie = find_tie(x, y, (0, 1))
    assert tie.p_value < 1e-9
    assert (tie.lag, tie.periods[0]) == (None, pytest.approx(801))
    assert tie.coherence > 0.8


def test_a_certain_dependence_has_no_chance_and_is_named():
    x = ordinates(np.random.default_rng(4).normal(size=(1, 400)))
    tie = find_tie(x, x._replace(values=-3 * x.values), (0, 1))
    assert (tie.p_value, tie.lag) == (0.0, None)
    assert (tie.coherence, tie.correlation) == (pytest.approx(1), pytest.approx(-1))


def test_too_few_values_have_no_coherence():
    one = ordinates(np.ones((1, 3)))
    assert find_tie(one, one, (0, 1)) is None
    assert rank_ties(one, one).tolist() == [1.0]
