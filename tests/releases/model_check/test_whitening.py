"""White values, against dense algebra; covariances, against their definition."""

import numpy as np
import pytest
from scipy import linalg

import dpfast as dp
from dpfast.releases.model_check.whitening import covariance_from_start, covariance_when_settled, whiten

MODEL = dp.ARMA([1.0, 0.4], [1, -0.8], mean=3.0)
TAPS = np.array([3.0, -1.0, 2.0, 0.5])


def autocovariance(lag):
    """Of b = 1, .4 and a pole of .8, by the sum of products of the impulse response."""
    h = np.concatenate([[1.0], 1.2 * 0.8 ** np.arange(400)])
    return float(h[: len(h) - lag] @ h[lag:])


@pytest.mark.parametrize("from_start", [True, False])
def test_covariances_are_the_sums_that_define_them(from_start):
    n = 7
    naive = np.zeros((n, n))
    for s in range(n):
        for t in range(n):
            for i, g in enumerate(TAPS):
                for j, h in enumerate(TAPS):
                    if not from_start or (i <= s and j <= t):
                        naive[s, t] += g * h * autocovariance(abs((s - i) - (t - j)))
    naive += 2.5 * np.eye(n)
    found = (covariance_from_start if from_start else covariance_when_settled)(MODEL, TAPS, 2.5, n)
    np.testing.assert_allclose(found, naive, rtol=1e-10)


def test_the_first_values_are_white_by_the_whole_covariance():
    x = np.random.default_rng(1).normal(size=(3, 6))
    covariance = covariance_from_start(MODEL, TAPS, 2.5, 6)
    expected = np.linalg.solve(np.linalg.cholesky(covariance), x.T).T
    np.testing.assert_allclose(whiten(x, covariance), expected, rtol=1e-10)


def test_later_values_are_the_errors_of_prediction_from_as_many_earlier_ones():
    x = np.random.default_rng(2).normal(size=(2, 40))
    covariance = covariance_when_settled(MODEL, TAPS, 2.5, 5)
    inner, cross = covariance[:4, :4], covariance[:4, 4]
    taps = np.linalg.solve(inner, cross)
    deviation = (covariance[4, 4] - cross @ taps) ** 0.5
    expected = [(x[:, t] - x[:, t - 4 : t] @ taps) / deviation for t in range(5, 40)]
    np.testing.assert_allclose(whiten(x, covariance)[:, 5:].T, expected, rtol=1e-9)


def test_what_is_left_of_a_long_signal_is_white():
    """Its covariance is the unit matrix, as that of the signal is known."""
    long = covariance_when_settled(MODEL, TAPS, 2.5, 60)
    rows = whiten(linalg.cholesky(long, lower=True).T, long[:30, :30])  # columns of the factor, as 60 streams
    np.testing.assert_allclose(rows.T @ rows, np.eye(60), atol=1e-3)
