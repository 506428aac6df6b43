"""The rational half-integrator against its product of poles and zeros, in decimals of 60 digits."""

import decimal

import numpy as np
import pytest

from dpfast.filters.half_integrator import half_integrator

N = 120


def decimals():
    """Coefficients of T, and of 1/((1 - z⁻¹) T), from poles and zeros at distances 4^-j/2 · √2^±1 from 1."""
    with decimal.localcontext() as context:
        context.prec = 60
        root, one = decimal.Decimal(2).sqrt(), decimal.Decimal(1)
        middle = [decimal.Decimal(4) ** -j / 2 for j in range(31)]
        zeros, poles = [one - x * root for x in middle], [one - x / root for x in middle]
        c, sums = [one] + [0 * one] * (N - 1), [one] * N
        for p, q in zip(zeros, poles, strict=True):
            for values, zero, pole in ((c, p, q), (sums, q, p)):
                before = values[:]
                for t in range(1, N):
                    values[t] = before[t] - zero * before[t - 1] + pole * values[t - 1]
        return np.array(c), np.array(sums)


def test_the_impulse_response_is_that_of_the_product():
    c, _ = decimals()
    found = half_integrator().apply(np.eye(1, N)[0])
    np.testing.assert_allclose(found, c.astype(float), rtol=1e-13)


def test_the_inverse_has_its_sums():
    _, sums = decimals()
    found = np.cumsum(half_integrator().undo(np.eye(1, N)[0]))
    np.testing.assert_allclose(found, sums.astype(float), rtol=1e-12)
    half = half_integrator()
    by_exponentials = half.sum_weights @ (1 - half.zero_distances[:, None]) ** np.arange(N)
    np.testing.assert_allclose(by_exponentials, sums.astype(float), rtol=1e-13)


def test_energies_are_sums_of_squares():
    c, _ = decimals()
    expected = np.cumsum((c**2).astype(float))
    np.testing.assert_allclose(half_integrator().partial_energy(np.arange(1, N + 1)), expected, rtol=1e-13)
    assert half_integrator().partial_energy(np.array(2.0**75)) == pytest.approx(half_integrator().energy, rel=1e-12)


def test_all_weights_are_above_zero():
    half = half_integrator()
    assert (half.weights > 0).all()
    assert (half.sum_weights > 0).all()
    assert half.sum_weights.sum() == pytest.approx(1, rel=1e-12)


def test_it_is_near_to_the_square_root_of_a_running_sum_at_every_scale():
    half = half_integrator()
    for octave in range(1, 60):
        z = np.exp(-1j * 2.0**-octave)
        far = -np.expm1(-1j * 2.0**-octave)  # 1 - z⁻¹
        ratio = np.prod((far + half.zero_distances[:-1] * z) / (far + half.pole_distances * z))
        assert abs(ratio * np.sqrt(far)) == pytest.approx(1, abs=0.05)


def test_shapes_are_kept():
    x = np.random.default_rng(1).normal(size=(2, 3, 20))
    half = half_integrator()
    assert half.apply(x).shape == x.shape
    np.testing.assert_allclose(half.undo(half.apply(x)), x, atol=1e-12)
    assert (half.apply(x)[1, 2] == half.apply(x[1, 2])).all()
    assert half.apply(np.empty((2, 0))).shape == (2, 0)
