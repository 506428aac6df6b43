"""Fourier vectors, random signs, and their products with a target."""

import math

import numpy as np
import pytest

from dpfast import DesignError
from dpfast.design.horizon.transform_matrices import check_steps, fourier_basis, random_signs, rows_of_product
from dpfast.filters.toeplitz import Toeplitz, running_sum


def explicit_fourier(n):
    """All real Fourier vectors by their definition, normalised by their own lengths."""
    t = np.arange(n)
    waves = [np.ones(n)]
    for j in range(1, n // 2 + 1):
        waves.append(np.cos(2 * np.pi * j * t / n))
        waves.append(np.sin(2 * np.pi * j * t / n))
    return np.array([w / np.linalg.norm(w) for w in waves[:n]])


@pytest.mark.parametrize("n", [1, 2, 3, 4, 7, 8, 31, 64])
def test_fourier_vectors_are_the_real_orthonormal_ones(n):
    for k in range(1, n + 1):
        rows = fourier_basis(n, k)
        assert rows.shape == (k, n)
        np.testing.assert_allclose(rows, explicit_fourier(n)[:k], atol=1e-13)
    np.testing.assert_allclose(rows @ rows.T, np.eye(n), atol=1e-13)


def test_fourier_vectors_of_many_steps_are_orthonormal():
    rows = fourier_basis(4096, 301)
    np.testing.assert_allclose(rows @ rows.T, np.eye(301), atol=1e-13)


def test_fourier_coefficients_are_those_of_numpy():
    x = np.random.default_rng(1).normal(size=60)
    spectrum = np.fft.rfft(x) / math.sqrt(60)
    got = fourier_basis(60, 60) @ x
    np.testing.assert_allclose(got[0], spectrum[0].real, atol=1e-13)
    np.testing.assert_allclose(got[1:-1:2], math.sqrt(2) * spectrum[1:-1].real, atol=1e-13)
    np.testing.assert_allclose(got[2::2], -math.sqrt(2) * spectrum[1:-1].imag, atol=1e-13)
    np.testing.assert_allclose(got[-1], spectrum[-1].real, atol=1e-13)


def test_dense_transforms_have_a_longest_horizon():
    check_steps(4096)
    with pytest.raises(DesignError, match="from 1 to 4096 steps for a transform of the whole series, got 4097"):
        check_steps(4097)
    check_steps(2, shortest=2)
    with pytest.raises(DesignError, match="from 2 to 4096 steps for a transform of the whole series, got 1"):
        check_steps(1, shortest=2)


def test_random_signs_are_public_and_balanced():
    phi = random_signs(50, 400, 3)
    np.testing.assert_array_equal(phi, random_signs(50, 400, 3))
    assert (np.abs(phi) == 50**-0.5).all()
    assert abs((phi > 0).mean() - 0.5) < 5.5 / math.sqrt(4 * phi.size)  # 4e-8 for a fair coin
    assert not np.array_equal(phi, random_signs(50, 400, 4))


@pytest.mark.parametrize("f", [[1.0, 1, 1, 1, 1], [2.0, -1, 0.5, 0, 0.25], [0, 1.0, 0.5, 0.25, 3]])
def test_rows_times_the_target(f):
    rows = np.random.default_rng(4).normal(size=(3, 5))
    dense = np.array([[f[t - s] if t >= s else 0.0 for s in range(5)] for t in range(5)])
    np.testing.assert_allclose(rows_of_product(rows, Toeplitz(f)), rows @ dense, atol=1e-13)


def test_the_source_s_bounds_of_the_sensitivity_hold():
    """Of k Fourier coefficients √k Δ₂, of m projections √m Δ₁; both norms of the target itself."""
    for target in (running_sum(64), Toeplitz(0.8 ** np.arange(50)), Toeplitz([1.0, -1.0], 32)):
        f, n = target.coefficients, target.horizon
        for k in (1, 2, 5, 16, n):
            l1 = np.abs(rows_of_product(fourier_basis(n, k), target)).sum(axis=0).max()
            assert l1 <= math.sqrt(k) * np.linalg.norm(f) * (1 + 1e-12)
            l1 = np.abs(rows_of_product(random_signs(k, n, k), target)).sum(axis=0).max()
            assert l1 <= math.sqrt(k) * np.abs(f).sum() * (1 + 1e-12)
