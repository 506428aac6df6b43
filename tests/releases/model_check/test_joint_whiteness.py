"""Tests of channels that should be white: those of one channel where there is one, and laws of scipy."""

import numpy as np
import pytest
from scipy import stats

from dpfast.releases.model_check.joint_whiteness import Means, WhiteChannels
from dpfast.releases.model_check.whiteness_tests import NORMAL, Excess, find_departures, rank_departures


def undrawn(many, rng):
    raise AssertionError


def white(z, rises, shares, excess=NORMAL):
    return WhiteChannels(z, rises, shares, excess, undrawn, z.size)


@pytest.mark.parametrize("excess", [NORMAL, Excess(9.0, 1.0)])
def test_one_channel_is_judged_as_it_is_alone(excess):
    rng, rise, share = np.random.default_rng(1), np.exp(-np.arange(90) / 9) + 0.1, np.linspace(1, 0.1, 33)
    for _ in range(20):
        z = rng.normal(size=(1, 90)) + 0.1
        alone = find_departures(z, rise, share, excess)
        found = white(z, rise[None, None], share[None], excess).compare(1e-9)
        assert found.chances == pytest.approx(alone.chances, rel=1e-9)
        assert (found.mean_errors[0], found.mean_deviations[0]) == (
            pytest.approx(alone.mean_error),
            pytest.approx(alone.mean_deviation),
        )
        (powers,) = found.powers
        assert powers.signal_ratio == pytest.approx(alone.signal_ratio)
        assert [x.ratio for x in powers.bands] == pytest.approx([x.ratio for x in alone.bands])
        one = white(z, rise[None, None], share[None], excess)
        ranks = one._rank(z[None], Means.of(one.rises))
        np.testing.assert_allclose(ranks[:, 1:], np.minimum(1, rank_departures(z[None], rise, share, excess)[:, 1:]))


def test_each_test_has_its_chance_over_all_channels():
    """Of white channels: 1,500 tries at 2 %, each test: more by a chance of 1e-6 at most."""
    rng = np.random.default_rng(2)
    rises, shares = (
        rng.normal(size=(2, 3, 50)) + np.array([1.0, 0.5])[:, None, None],
        np.linspace(1, 0.2, 27)[None].repeat(3, 0),
    )
    found = np.array([white(rng.normal(size=(3, 50)), rises, shares).compare(1e-9).chances for _ in range(1500)])
    assert ((found < 0.02).sum(axis=0) <= stats.binom.isf(1e-6, 1500, 0.02)).all()
    assert ((found < 0.2).sum(axis=0) > 30).all()  # and none is far too large


@pytest.mark.parametrize(("errors", "alone"), [([0.3, -0.2], False), ([0.3, 0.0], True)])
def test_means_of_two_inputs_are_told_apart_by_least_squares(errors, alone):
    """Their chance is that of both together, or of the one alone that is off."""
    rng = np.random.default_rng(8)
    rises = rng.normal(size=(2, 3, 400))
    z = rng.normal(size=(3, 400)) + np.tensordot(errors, rises, 1)
    found = white(z, rises, np.ones((3, 9))).compare(1e-9)
    flat = rises.reshape(2, -1)
    expected, *_ = np.linalg.lstsq(flat.T, z.ravel(), rcond=None)
    np.testing.assert_allclose(found.mean_errors, expected)
    np.testing.assert_allclose(found.mean_deviations, np.sqrt(np.diag(np.linalg.inv(flat @ flat.T))))
    whole = stats.chi2(2).sf(float(z.ravel() @ flat.T @ expected))
    each = 2 * stats.norm.sf(np.abs(expected / found.mean_deviations)).min() * 2
    assert (each < whole) == alone
    assert found.chances[0] == pytest.approx(2 * min(whole, each), rel=1e-6, abs=0)


def test_means_that_add_the_same_are_not_told_apart():
    """Of two inputs in one channel, of which one adds twice as much, and of a third one that adds nothing."""
    rises = np.ones((3, 1, 100)) * np.array([1.0, 2.0, 0.0])[:, None, None]
    z = np.random.default_rng(4).normal(size=(1, 100)) + 0.3
    found = white(z, rises, np.ones((1, 9))).compare(1e-9)
    assert np.isnan(found.mean_errors).all()
    assert found.chances[0] == pytest.approx(stats.chi2(1).sf(z.sum() ** 2 / 100))


def test_without_what_means_add_nothing_is_said_of_them():
    found = white(np.random.default_rng(5).normal(size=(2, 60)), np.zeros((2, 2, 60)), np.ones((2, 9))).compare(1e-9)
    assert found.chances[0] == 1
    assert np.isnan(found.mean_errors).all()


def test_a_wrong_channel_is_the_one_that_is_named():
    z = np.random.default_rng(6).normal(size=(3, 500))
    z[1] *= 1.4
    found = white(z, np.ones((1, 3, 500)), np.ones((3, 9))).compare(1e-3)
    assert [x.p_variance < 1e-4 for x in found.powers] == [False, True, False]
    assert found.chances[1] == pytest.approx(3 * found.powers[1].p_variance)
    assert found.powers[1].signal_ratio == pytest.approx(1.96, rel=0.2)
    assert found.chances[3] > 1e-3
    z[2] = 0.5 * z[0] + z[2]
    tie = min(white(z, np.ones((1, 3, 500)), np.ones((3, 9))).compare(1e-3).ties, key=lambda x: x.p_value)
    assert tie.channels == (0, 2)
