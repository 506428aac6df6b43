"""White channels against dense algebra, and against the whitening of one channel."""

import numpy as np
import pytest
from helpers.wrong_models import together
from scipy import linalg

import dpfast as dp
from dpfast.releases.model_check.joint_whitening import (
    JointWhitening,
    filter_channels,
    whitening_from_start,
    whitening_when_settled,
)
from dpfast.releases.model_check.whitening import covariance_when_settled, whiten
from dpfast.signals.channel_outputs import autocovariance_of

TAPS = np.random.default_rng(1).normal(size=(2, 3, 5))
MODEL = together(0.6)


def dense(n):
    """The covariance of n steps of TAPS ∗ x + noise from the first step on, by sums over all pairs of times."""
    a, c, k = MODEL.a, MODEL.c, MODEL.state_cross_covariance
    r = [MODEL.covariance, *(c @ np.linalg.matrix_power(a, i) @ k for i in range(n))]
    passed = np.zeros((n, 2, n, 3))
    for t in range(n):
        for i in range(min(5, t + 1)):
            passed[t, :, t - i] = TAPS[..., i]
    x = np.array([[r[t - s] if t >= s else r[s - t].T for s in range(n)] for t in range(n)])
    signal = (
        passed.reshape(2 * n, 3 * n) @ x.transpose(0, 2, 1, 3).reshape(3 * n, 3 * n) @ passed.reshape(2 * n, 3 * n).T
    )
    return signal + 0.7 * np.eye(2 * n)


def test_the_first_steps_are_white_as_dense_algebra_has_it():
    whitening = whitening_from_start(autocovariance_of(MODEL, 12), TAPS, 0.7, 12)
    np.testing.assert_allclose(whitening.factor @ whitening.factor.T, dense(12), rtol=1e-10, atol=1e-12)
    x = np.random.default_rng(2).normal(size=(4, 2, 12))
    expected = [linalg.solve_triangular(np.linalg.cholesky(dense(12)), y.T.ravel(), lower=True) for y in x]
    np.testing.assert_allclose(whitening.whiten(x), np.array(expected).reshape(4, 12, 2).swapaxes(1, 2))


def test_settled_steps_have_the_covariance_of_late_ones():
    """Of steps 5 to 12 from the first on: behind four steps taps of five have settled."""
    whitening = whitening_when_settled(autocovariance_of(MODEL, 8 + 5), TAPS, 0.7, 8)
    np.testing.assert_allclose(whitening.factor @ whitening.factor.T, dense(12)[8:, 8:], rtol=1e-10, atol=1e-12)


def test_later_steps_are_predicted_from_as_many_before_them():
    whitening = whitening_when_settled(autocovariance_of(MODEL, 6 + 5), TAPS, 0.7, 6)
    x = np.random.default_rng(3).normal(size=(1, 2, 20))
    found = whitening.whiten(x)
    for first in range(1, 15):  # each by the last of six steps
        part = whitening.whiten(x[..., first : first + 6])[..., -1]
        np.testing.assert_allclose(found[..., first + 5], part, atol=1e-12)


def test_one_channel_is_white_as_it_is_alone():
    model, taps = dp.ARMA([1], [1, -0.5]), np.array([1.0, 0.5, 0.2])
    one = whitening_when_settled(autocovariance_of((model,), 30 + 3), taps[None, None], 0.3, 30)
    x = np.random.default_rng(4).normal(size=(3, 90))
    expected = whiten(x, covariance_when_settled(model, taps, 0.3, 30))
    np.testing.assert_allclose(one.whiten(x[:, None])[:, 0], expected, atol=1e-12)


def test_the_share_of_the_noise_is_one_where_there_is_no_signal():
    alone = JointWhitening(2, np.kron(np.eye(4), np.diag([2.0, 3.0])))  # white already, of variance 4 and 9
    np.testing.assert_allclose(alone.noise_gain(9), np.tile([[1 / 4], [1 / 9]], 9))


@pytest.mark.parametrize("time", [3, 40])
def test_channels_are_filtered_as_by_convolution(time):
    x = np.random.default_rng(5).normal(size=(2, 3, time))
    expected = [[sum(np.convolve(TAPS[a, i], y[i])[:time] for i in range(3)) for a in range(2)] for y in x]
    np.testing.assert_allclose(filter_channels(TAPS, x), expected, atol=1e-12)
