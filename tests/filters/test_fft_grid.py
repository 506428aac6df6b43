"""How fine a grid for an FFT is, and responses there, against those of filters angle by angle."""

import math

import numpy as np
import pytest

import dpfast as dp
from dpfast.filters.fft_grid import LONG, circle_mean, circle_response, fft_angles, fft_length
from dpfast.mechanisms.receivers.linear import LinearReceiver


def test_fft_length_covers_the_decay():
    for slowest in (0.0, 0.5, 0.99, 0.9999):
        n = fft_length(slowest)
        assert slowest**n <= math.exp(-39.9)
        assert n & (n - 1) == 0


def test_the_mean_over_the_circle_is_that_of_all_angles():
    values = np.random.default_rng(2).random((33, 3))
    whole = np.concatenate([values, values[1:-1]])
    np.testing.assert_allclose(circle_mean(values), whole.mean(axis=0), rtol=1e-14)


SECTIONS = dp.Filter([1, 0.4], [1, -1.2, 0.72])


def test_long_factors_have_the_response_of_the_filter_angle_by_angle(monkeypatch):
    n = 2**15
    filter = SECTIONS * dp.Filter([2.0, 1.0], 0.995 ** np.arange(2 * LONG))
    expected = filter.response(fft_angles(n))
    receiver = LinearReceiver(filter, SECTIONS, 0.0, 0)
    monkeypatch.setattr(dp.Filter, "response", None)
    np.testing.assert_allclose(circle_response(filter, n), expected, rtol=1e-11)
    np.testing.assert_array_equal(receiver.response_on_circle(n), circle_response(filter, n))


@pytest.mark.parametrize("n_taps", [4, 3 * LONG])
def test_short_filters_and_those_that_a_circle_would_cut_have_it_angle_by_angle(n_taps):
    filter, n = SECTIONS * dp.Filter(0.999 ** np.arange(n_taps)), 2 * LONG
    np.testing.assert_array_equal(circle_response(filter, n), filter.response(fft_angles(n)))


def test_a_smoother_has_it_at_the_same_angles():
    smoother = dp.lmmse(dp.Filter([1], [1, -0.5]), dp.Privacy(1, 1e-6), dp.ARMA([1], [1, -0.3])).receiver
    np.testing.assert_array_equal(smoother.response_on_circle(64), smoother.response(fft_angles(64)))
