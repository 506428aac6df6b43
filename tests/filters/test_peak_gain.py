"""Largest gains against closed forms."""

import numpy as np
import pytest

from dpfast.filters.peak_gain import fft_points, hinf_norm


@pytest.mark.parametrize("root", [0.5, 0.99999 * np.exp(1.2345j), -0.9999])
def test_a_narrow_peak_is_found(root):
    root = complex(root)
    found = hinf_norm(lambda w: 1 / np.abs(1 - root * np.exp(-1j * w)), np.array([root]), np.zeros(9))
    assert found == pytest.approx(1 / (1 - abs(root)), rel=2e-9)
    assert found >= 1 / (1 - abs(root))


def test_a_broad_peak_between_the_angles_of_the_grid_is_found():
    gain = lambda w: 2 + np.cos(w - 0.777)  # noqa: E731
    assert hinf_norm(gain, np.empty(0, complex), gain(np.linspace(0, np.pi, 65))) == pytest.approx(3, rel=2e-9)


def test_zero_has_no_peak():
    assert hinf_norm(np.zeros_like, np.empty(0, complex), np.zeros(9)) == 0


@pytest.mark.parametrize("order", [0, 1, 10])
def test_an_fft_is_long_enough_for_the_order(order):
    assert fft_points(order) >= 64 * (order + 1)
    assert np.log2(fft_points(order)) % 1 == 0
