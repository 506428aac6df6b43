import math

import numpy as np
import pytest
from helpers.stream_statistics import SIGMAS

from dpfast import IndependentLevels

OMEGA = np.linspace(0, np.pi, 101)


def test_moments_of_independent_levels():
    coin = IndependentLevels([3, 0, 1], [0.25, 0.5, 0.25])
    assert (coin.mean, coin.variance) == (1.0, 1.5)
    assert coin.levels.tolist() == [0, 1, 3]
    assert coin.probabilities.tolist() == [0.5, 0.25, 0.25]
    np.testing.assert_allclose(coin.psd(OMEGA), 1.5)


@pytest.mark.slow_nojit
def test_samples_of_independent_levels():
    probabilities = np.array([0.2, 0.5, 0.3])
    u = IndependentLevels([0, 1, 3], probabilities).sample(200, 300, seed=5)
    frequencies = np.array([(u == level).mean() for level in (0, 1, 3)])
    z = (frequencies - probabilities) / np.sqrt(probabilities * (1 - probabilities) / u.size)
    assert np.abs(z).max() < SIGMAS
    x = (u - 1.4) / math.sqrt(1.64)
    products = x[:, 1:] * x[:, :-1]
    assert abs(products.mean()) * math.sqrt(products.size) < SIGMAS


@pytest.mark.parametrize(
    ("levels", "probabilities", "message"),
    [
        ([0, 0], [0.5, 0.5], "levels must be distinct"),
        ([0, 1, 2], [0.5, 0.5], "one for each of the 2 probabilities, got 3"),
        ([0, 1], [0.5, 0.4], r"sum to one, got a sum of 0\.9"),
        ([0, 1], [1.5, -0.5], "non-negative"),
        ([0, 1], [1, 0], "a constant stream"),
        ([2], [1], "a constant stream"),
        ([0.1, 0.7, 0.9], [0, 1, 0], "a constant stream"),
        ([0, 1], [math.nan, 1], "probabilities must be finite"),
        ([], [], "levels must not be empty"),
    ],
)
def test_bad_levels_are_refused(levels, probabilities, message):
    with pytest.raises(ValueError, match=message):
        IndependentLevels(levels, probabilities)
