"""Sections of roots, against scipy's to the last bit."""

import numpy as np
import pytest
from scipy import signal

from dpfast.filters.pairing import pair_roots


def roots(rng):
    """Complex pairs, some of one real part, and real roots, mixed up and sometimes rounded as np.roots does."""
    pairs = rng.uniform(0, 1.2, rng.integers(0, 9)) * np.exp(1j * rng.uniform(0, np.pi))
    if rng.random() < 0.3:
        pairs = rng.uniform(-1, 1) + 1j * rng.uniform(0.01, 1, len(pairs))
    found = np.concatenate([pairs, pairs.conj(), rng.uniform(-1, 1, rng.integers(0, 6))])
    rng.shuffle(found)
    if rng.random() < 0.5:
        found = found * (1 + 1e-15 * rng.standard_normal(len(found)))
    return np.roots(np.poly(found).real) if len(found) and rng.random() < 0.3 else found


def test_sections_are_those_of_scipy_to_the_bit():
    rng = np.random.default_rng(1)
    checked = 0
    while checked < 500:
        zeros, poles = roots(rng), roots(rng)
        try:
            expected = signal.zpk2sos(zeros, poles, 1.7)
        except ValueError:
            with pytest.raises(ValueError, match="conjugate"):
                pair_roots(zeros, poles, 1.7)
            continue
        if len(zeros) or len(poles):
            assert pair_roots(zeros, poles, 1.7).tobytes() == expected.tobytes()
            checked += 1


@pytest.mark.parametrize(("zeros", "poles"), [([0.5, -0.5, 0.5, -0.3], []), ([0.1, 0.1, -0.1], [0.5j, -0.5j, 0.5])])
def test_roots_as_near_as_each_other_make_the_same_filter(zeros, poles):
    b, a = signal.sos2tf(pair_roots(zeros, poles, 2.0))
    n = len(a)
    np.testing.assert_allclose(b, np.pad(2 * np.poly(zeros), (0, n))[:n], atol=1e-15)
    np.testing.assert_allclose(a, np.pad(np.poly(poles) if poles else [1.0], (0, n))[:n], atol=1e-15)


@pytest.mark.parametrize("wrong", [[0.5j], [0.5 + 0.1j, 0.5 - 0.2j], [0.5 + 0.1j, 0.5 + 0.1j]])
def test_roots_without_their_conjugates_are_refused(wrong):
    with pytest.raises(ValueError, match="roots must be real or come in conjugate pairs"):
        pair_roots(wrong, [], 1.0)
