"""Spectra fitted to sums: what is expected of a periodogram against dense covariances, fits against the truth."""

import numpy as np
import pytest
from scipy import linalg, signal

import dpfast as dp
from dpfast.design.adaptive.sum_spectrum import SumCircle, SumLikelihood, SumPeriodogram

WEIGHTS = np.array([[0, 0, 1, 1.0], [1, 1, 1, 1.0]])  # of the latest input first: two sums of a cycle of 4 steps
MODEL = dp.ARMA([0.5, 0.2], [1, -0.7])


def sums_of(u, cycle):
    """Sums of blocks of 2 and of 4, at the end of each cycle: the first two steps, and all four."""
    x = u.reshape(len(u), -1, cycle)
    return np.stack([x[:, :, :2].sum(axis=2), x.sum(axis=2)], axis=2)


def test_an_expected_periodogram_is_that_of_the_covariance():
    cycle, length = 4, 10
    circle = SumCircle.of(WEIGHTS, cycle, np.array([0.3, 0.5]), 0.1, length, reach=400)
    linear = np.zeros((length * 2, length * cycle))
    for c in range(length):
        linear[2 * c : 2 * c + 2, c * cycle : (c + 1) * cycle] = WEIGHTS[:, ::-1]
    taps = MODEL.shaping.impulse(400)
    covariance = np.array([taps[: 400 - k] @ taps[k:] for k in range(length * cycle)])
    dense = linear @ (linalg.toeplitz(covariance) + 0.1 * np.eye(length * cycle)) @ linear.T
    dense += np.diag(np.tile([0.3, 0.5], length))
    waves = np.exp(-2j * np.pi * np.outer(np.arange(length // 2 + 1), np.arange(length)) / length) / length**0.5
    expected = np.einsum("ka,aibj,kb->kij", waves, dense.reshape(length, 2, length, 2), waves.conj())
    np.testing.assert_allclose(circle.expect(MODEL.psd(circle.omega)) + circle.noise, expected, atol=1e-9)


def test_a_periodogram_is_of_whole_segments():
    rng = np.random.default_rng(1)
    sums = rng.normal(size=(3, 21, 2))
    found = SumPeriodogram.of(sums)
    z = np.fft.rfft(sums[:, 1:], axis=1)
    np.testing.assert_allclose(found.ordinates, np.einsum("ski,skj->kij", z, z.conj()) / 60)
    assert (found.length, found.n_segments) == (20, 3)
    parts = SumPeriodogram.in_time(sums, 5)
    assert [x.length for x in parts] == [4] * 5
    np.testing.assert_allclose(SumPeriodogram.join(parts).mean, sums[:, 1:].mean(axis=(0, 1)))


@pytest.mark.parametrize("pole", [0.0, 0.8])
def test_a_fit_finds_the_spectrum_and_the_mean(pole):
    rng, cycle, n = np.random.default_rng(2), 4, 1500
    u = 0.7 + signal.lfilter([1], [1, -pole], rng.normal(size=(2, n * cycle + 200)))[:, 200:]
    sums = sums_of(u, cycle)
    data = SumPeriodogram.of(sums + rng.normal(size=sums.shape) * 0.5)
    circle = SumCircle.of(WEIGHTS, cycle, np.full(2, 0.25), 0.0, data.length, reach=100)
    fit = SumLikelihood(circle, data).fit(None)
    assert len(fit.a) - 1 == (pole > 0)
    assert fit.a[-1] == pytest.approx(-pole if pole else 1, abs=0.06)
    assert fit.innovation_std == pytest.approx(1, rel=0.08)
    assert fit.mean == pytest.approx(0.7, abs=5 * (1 / (1 - pole)) / (2 * n * cycle) ** 0.5)
    if not pole:
        return
    # a shape that somebody assumed is taken where it explains as much
    shape = 4 / np.abs(np.polynomial.polynomial.polyval(np.exp(-1j * circle.omega), [1, -pole])) ** 2
    scaled = SumLikelihood(circle, data).fit(shape)
    assert scaled.a is None
    assert scaled.psd / shape == pytest.approx(0.25, rel=0.1)


def test_what_is_all_noise_has_no_signal():
    rng = np.random.default_rng(3)
    data = SumPeriodogram.of(rng.normal(size=(1, 500, 2)))
    circle = SumCircle.of(WEIGHTS, 4, np.ones(2), 0.0, data.length, reach=10)
    fit = SumLikelihood(circle, data).fit(None)
    assert circle.mean(fit.psd) < 0.05
    assert abs(fit.mean) < 0.1


def test_a_mean_that_sums_do_not_show_is_left():
    data = SumPeriodogram.of(np.random.default_rng(4).normal(size=(1, 100, 1)))
    circle = SumCircle.of(np.array([[1.0, -1.0]]), 2, np.array([0.5]), 0.0, data.length, reach=10)
    assert SumLikelihood(circle, data).fit(None).mean == 0
