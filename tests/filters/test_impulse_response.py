"""Impulse responses: the bits of scipy, whichever way they are found."""

import numpy as np
import pytest
from scipy import signal

from dpfast._kernels.factors import Factors
from dpfast.filters.impulse_response import impulse_response


@pytest.mark.parametrize("scale", [0.4, 1.5], ids=["decays", "grows"])
@pytest.mark.parametrize(("n_sections", "n"), [(1, 1), (1, 128), (1, 129), (3, 42), (3, 43), (2, 2000)])
def test_an_impulse_response_has_the_bits_of_scipy(n_sections, n, scale):
    draws = np.random.default_rng(n)
    taps, recursion = draws.normal(size=4), np.array([1, 0.3, -0.2])
    sections = draws.normal(size=(n_sections, 6)) * scale
    sections[:, 3] = 1
    x = np.zeros(n)
    x[:4] = taps[:n]
    with np.errstate(over="ignore", invalid="ignore"):
        expected = signal.sosfilt(sections, x)
        found = impulse_response(Factors(taps, sections, np.ones(1)), n)
        assert found.tobytes() == expected.tobytes()
        found = impulse_response(Factors(taps, sections, recursion), n)
        assert found.tobytes() == signal.lfilter([1.0], recursion, expected).tobytes()


def test_nothing_is_the_response_of_no_samples():
    assert impulse_response(Factors(np.ones(2), np.empty((0, 6)), np.ones(1)), 0).shape == (0,)
