"""Errors told by sums: exact where the periodogram is what is foreseen, moved to the truth where it is not."""

import numpy as np
import pytest

import dpfast as dp
from dpfast.design.adaptive.sum_errors import ErrorResponses, SumErrors
from dpfast.design.adaptive.sum_spectrum import SumCircle, SumPeriodogram

WEIGHTS = np.array([[0, 0, 1, 1.0], [1, 1, 1, 1.0]])
FORESEEN = dp.ARMA([1.0], [1, -0.9])
RESPONSES = ErrorResponses(np.random.default_rng(1).normal(size=(4, 30)), 0.2)


def circle_of(length=64, noise=0.01):
    return SumCircle.of(WEIGHTS, 4, np.full(2, noise), 0.0, length, reach=100)


def data_of(circle, psd, bias=0.0, n_segments=1000):
    ordinates = circle.expect(psd) + circle.noise
    ordinates[0] += circle.length * bias**2 * np.outer(circle.rise, circle.rise)
    return SumPeriodogram(ordinates, bias * circle.rise, circle.length, n_segments)


def truth(circle, psd, bias=0.0):
    distortion = RESPONSES.distortion(circle.n_angles)
    return RESPONSES.noise + circle.mean(psd * distortion) + bias**2 * distortion[0]


@pytest.mark.parametrize("bias", [0.0, 2.0])
def test_what_was_foreseen_is_not_corrected(bias):
    circle = circle_of()
    psd = FORESEEN.psd(circle.omega)
    found, _ = SumErrors(circle, psd, bias, 10**6).estimate(RESPONSES, data_of(circle, psd, bias))
    assert found.mse == pytest.approx(truth(circle, psd, bias))
    assert 0 < found.hidden < found.mse


def test_what_differs_slowly_is_corrected_to_the_truth():
    """Twice the power at low frequencies, which the sums show."""
    circle = circle_of()
    psd = FORESEEN.psd(circle.omega)
    true = psd * np.where(circle.omega < np.pi / 4, 2.0, 1.0)
    found, _ = SumErrors(circle, psd, 0.0, 10**6).estimate(RESPONSES, data_of(circle, true))
    assert found.mse == pytest.approx(truth(circle, true), rel=0.1)
    assert truth(circle, true) > 1.5 * truth(circle, psd)


def test_a_distortion_is_the_mean_of_squared_responses():
    n = 16
    folded = np.pad(RESPONSES.lost, ((0, 0), (0, 2))).reshape(4, 2, 16).sum(axis=1)
    expected = (np.abs(np.fft.fft(folded, axis=1)) ** 2).mean(axis=0)[: n // 2 + 1]
    np.testing.assert_allclose(RESPONSES.distortion(n), expected)


def test_the_variance_is_that_of_estimates_of_normal_sums():
    """Over 3,000 periodograms of normal sums; a standard deviation is known within 5 σ of 1.3 % of itself."""
    rng, circle = np.random.default_rng(2), circle_of()
    psd = FORESEEN.psd(circle.omega)
    errors = SumErrors(circle, psd, 0.0, 10**6)
    weights, _ = errors.weigh(RESPONSES.distortion(circle.n_angles))
    root = np.linalg.cholesky(errors.random)
    real = np.zeros((len(root), 1), bool)
    real[[0, -1]] = True  # where ordinates are of real numbers
    corrections, variances = [], []
    for _ in range(3000):
        x, y = rng.normal(size=(2, len(root), 2))
        w = np.where(real, x, (x + 1j * y) / 2**0.5)
        z = np.einsum("kij,kj->ki", root, w)
        data = SumPeriodogram(np.einsum("ki,kj->kij", z, z.conj()), np.zeros(2), circle.length, 1)
        corrections.append(errors.correct(weights, data))
        variances.append(errors.variance(weights, data))
    assert np.std(corrections) == pytest.approx(np.mean(variances) ** 0.5, rel=0.1)
    assert abs(np.mean(corrections)) < 5 * np.std(corrections) / 3000**0.5
