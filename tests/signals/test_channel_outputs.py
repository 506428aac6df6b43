"""Outputs of several streams over time, against sums over impulse responses."""

import numpy as np
import pytest

import dpfast as dp
from dpfast.signals import channel_outputs

AR, MA = [[[0.5, 0.2], [-0.3, 0.6]]], [[[0.4, -0.1], [0.2, 0.3]]]
SIGMA = np.array([[1.0, 0.6], [0.6, 2.0]])
MODEL = dp.VectorARMA(AR, MA, innovation_covariance=SIGMA)
TARGET = dp.FilterMatrix([[dp.Filter([1, 0.5], [1, -0.7]), dp.Filter([0.3])], [0, dp.Filter([0, 1], [1, 0.4])]])


def autocovariances(n):
    """R_k = Σ_s h_{s+k} Σ h_sᵀ, the response h by the recursion of the model."""
    h = [np.eye(2), np.array(AR[0]) + np.array(MA[0])]
    while len(h) < 400:
        h.append(np.array(AR[0]) @ h[-1])
    return [sum(h[s + k] @ SIGMA @ h[s].T for s in range(400 - n)) for k in range(n)]


def test_autocovariances_are_those_of_the_impulse_response():
    for n in (1, 2, 9):
        found = channel_outputs.autocovariance_of(MODEL, n)
        np.testing.assert_allclose(found, np.moveaxis(autocovariances(n), 0, -1), rtol=1e-12)
    apart = dp.ARMA([1, 0.3], [1, -0.5]), dp.ARMA([2.0])
    together = dp.VectorARMA.independent(apart)
    np.testing.assert_allclose(
        channel_outputs.autocovariance_of(apart, 6), channel_outputs.autocovariance_of(together, 6), atol=1e-12
    )


@pytest.mark.parametrize("n", [1, 7])
def test_variances_from_rest_are_sums_over_all_pairs_of_times(n):
    r, f = autocovariances(n), TARGET.impulse(n)
    expected = np.zeros(2)
    for a in range(2):
        for t in range(n):
            for j in range(t + 1):
                for k in range(t + 1):
                    between = r[k - j] if k >= j else r[j - k].T  # E x_{t-j} x_{t-k}ᵀ
                    expected[a] += f[a, :, j] @ between @ f[a, :, k] / n
    np.testing.assert_allclose(channel_outputs.output_variances(TARGET, MODEL, n), expected, rtol=1e-12)
    settled = channel_outputs.output_variances(TARGET, MODEL)
    np.testing.assert_allclose(channel_outputs.output_variances(TARGET, MODEL, 10**7), settled, rtol=1e-5)
