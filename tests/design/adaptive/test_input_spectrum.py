"""Whittle's likelihood against closed forms, Yule-Walker and sums by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import linalg, signal

from dpfast.design.adaptive.input_spectrum import (
    MAX_LENGTH,
    Periodogram,
    Whittle,
    expected_periodogram,
    join_periodograms,
)

RNG = np.random.default_rng


def angles(length):
    return np.linspace(0, np.pi, length // 2 + 1)


def power(b, a, omega):
    return np.abs(signal.freqz(b, a, worN=omega)[1]) ** 2


def data(ordinates, n_segments=1):
    return Periodogram(np.asarray(ordinates), 0.0, 2 * (len(ordinates) - 1), n_segments)


# --- periodograms ---------------------------------------------------------------------------------


def test_ordinates_are_those_of_the_sum_by_hand():
    v = RNG(1).normal(size=(3, 83)) + 2
    parts = Periodogram.from_parts(v, 4)
    assert [x.length for x in parts] == [20] * 4
    assert [x.n_segments for x in parts] == [3] * 4
    for i, part in enumerate(parts):
        piece = v[:, 3 + 20 * i : 23 + 20 * i]  # the rest is left out at the start
        waves = np.exp(-1j * np.outer(np.arange(11) * 2 * np.pi / 20, np.arange(20)))
        np.testing.assert_allclose(part.ordinates, (np.abs(waves @ piece.T) ** 2).mean(axis=1) / 20, rtol=1e-10)
        assert part.mean == pytest.approx(piece.mean())
        assert part.average(part.ordinates) == pytest.approx((piece**2).mean())  # Parseval


def test_subtracting_a_mean_is_the_same_before_and_after():
    v = RNG(2).normal(size=(2, 100)) + 1.5
    (before,), (after,) = Periodogram.from_parts(v - 0.7, 1), Periodogram.from_parts(v, 1)
    np.testing.assert_allclose(after.about(0.7).ordinates, before.ordinates, atol=1e-10)
    assert after.about(0.7).mean == pytest.approx(before.mean)


def test_parts_join_to_the_average_of_all_segments():
    v = RNG(3).normal(size=(2, 120))
    whole = join_periodograms(Periodogram.from_parts(v, 3))
    (alone,) = Periodogram.from_parts(v.reshape(6, 40), 1)
    np.testing.assert_allclose(whole.ordinates, alone.ordinates, rtol=1e-12)
    assert (whole.n_segments, whole.length) == (6, 40)


def test_long_parts_are_cut_into_segments():
    (part,) = Periodogram.from_parts(RNG(4).normal(size=(1, 3 * MAX_LENGTH)), 1)
    assert (part.length, part.n_segments) == (MAX_LENGTH, 3)


def test_the_expected_periodogram_is_the_sum_by_hand():
    length, taps = 16, np.array([1.0, -0.4, 0.3])
    covariance = np.correlate(taps, taps, "full")[2:]
    by_hand = covariance[0] + sum(
        2 * (1 - k / length) * covariance[k] * np.cos(k * angles(length)) for k in range(1, len(taps))
    )
    np.testing.assert_allclose(expected_periodogram(power(taps, 1, angles(2 * length)), length), by_hand, rtol=1e-12)


def test_the_expected_periodogram_of_a_coloured_signal_is_that_of_the_average():
    length, a = 64, [1.0, -0.97]
    x = signal.lfilter([1.0], a, RNG(5).normal(size=(20_000, length + 400)), axis=1)[:, 400:]
    ordinates = (np.abs(np.fft.rfft(x, axis=1)) ** 2).mean(axis=0) / length
    foreseen = expected_periodogram(power([1.0], a, angles(32 * length)), length)
    # 33 averages of 20,000 exponential draws: 6 standard errors
    np.testing.assert_allclose(ordinates / foreseen, 1, atol=6 * np.sqrt(2 / 20_000))
    assert np.abs(power([1.0], a, angles(length)) / foreseen - 1).max() > 0.3  # leakage is not small here


# --- fits -----------------------------------------------------------------------------------------


@given(st.integers(0, 2**32), st.floats(0.1, 10))
def test_white_input_behind_a_flat_prefilter_has_the_mean_ordinate(seed, noise):
    ordinates = (1 + noise) * RNG(seed).exponential(size=201)
    (fit,) = Whittle(np.ones(201), noise, data(ordinates)).fit_orders(0)
    mean = (2 * ordinates[1:].sum() - ordinates[-1]) / 399
    assert fit.innovation_std**2 == pytest.approx(max(mean - noise, 0), abs=3e-3 * (1 + noise))


@given(
    st.floats(0, 0.95),
    st.floats(0.05, 3.0),
    st.floats(0.1, 3),
    st.floats(0.05, 5),
    st.floats(-0.9, 0.9),
)
def test_the_spectrum_of_an_autoregression_gives_it_back(radius, angle, innovation, noise, pole):
    """At its own expected data the likelihood is largest at the truth, whatever is in front of it."""
    length = 1024
    a = np.array([1, -2 * radius * np.cos(angle), radius**2])
    gain = power([1.0], [1, -pole], angles(length))
    truth = innovation**2 * power([1.0], a, angles(length)) * gain + noise
    fit = Whittle(gain, noise, data(truth, 1000)).fit_orders(2)[2]
    fitted = fit.innovation_std**2 * power([1.0], fit.a, angles(length)) * gain + noise
    np.testing.assert_allclose(fitted / truth, 1, atol=5e-3)


def test_without_noise_it_is_yule_walker():
    a = [1.0, -1.2, 0.6]
    u = signal.lfilter([1.0], a, RNG(6).normal(size=50_200))[200:]
    r = np.array([u[: len(u) - k] @ u[k:] for k in range(3)]) / len(u)
    by_hand = linalg.solve_toeplitz(r[:2], r[1:])
    fit = Whittle(np.ones(5001), 1e-8, join_periodograms(Periodogram.from_parts(u[None], 5))).fit_orders(2)[2]
    np.testing.assert_allclose(-fit.a[1:], by_hand, atol=3e-3)
    assert fit.innovation_std == pytest.approx(1, abs=0.02)


def test_the_fit_is_a_maximum_and_higher_orders_fit_no_worse():
    v = signal.lfilter([1.0], [1, -0.6, 0.3], RNG(7).normal(size=(1, 5000))) + RNG(8).normal(size=(1, 5000))
    whittle = Whittle(np.ones(501), 1.0, join_periodograms(Periodogram.from_parts(v, 5)))
    fits = whittle.fit_orders(5)
    values = [x.log_likelihood for x in fits]
    assert values == sorted(values)
    for fit in fits[:3]:
        for k in range(len(fit.parameters)):
            for step in (-0.05, 0.05):
                moved = fit.parameters + step * np.eye(len(fit.parameters))[k]
                assert whittle.log_likelihood(moved) < fit.log_likelihood
    assert whittle.log_likelihood(fits[2].parameters) == pytest.approx(fits[2].log_likelihood)


def test_a_line_gives_a_stable_fit():
    v = 10 * np.sin(0.3 * np.arange(4000))[None] + 0.1 * RNG(9).normal(size=(1, 4000))
    for fit in Whittle(np.ones(401), 0.01, join_periodograms(Periodogram.from_parts(v, 5))).fit_orders(6):
        assert np.abs(np.roots(fit.a)).max(initial=0) < 1 - 1 / 1000
        assert np.isfinite(fit.log_likelihood)


def test_noise_alone_is_not_worth_a_parameter():
    for seed in range(20):
        v = 2 * RNG(seed).normal(size=(1, 3000))
        whittle = Whittle(np.ones(301), 4.0, join_periodograms(Periodogram.from_parts(v, 5)))
        best = max(map(whittle.score, whittle.fit_orders(2)))
        # 20 draws of half a chi squared of a few degrees against half of ln 3000: 3e-4 each
        assert best < whittle.signal_log_likelihood(np.zeros(301))
