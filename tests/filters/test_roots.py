"""Zeros of long polynomials against numpy, closed forms and 60 digits; the iteration itself in test_spectra too."""

import warnings

import mpmath
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import signal

from dpfast import Filter, UnstableFilterError
from dpfast._support.errors import DesignError
from dpfast.filters import sections
from dpfast.filters.roots import aberth, are_surely_inside, multiply_roots, pair_roots, polynomial_roots


def distance(found, expected):
    """Hausdorff distance of two sets."""
    apart = np.abs(found[:, None] - expected)
    return max(apart.min(axis=0).max(), apart.min(axis=1).max())


POLYNOMIALS = {
    "ones": np.ones(100),
    "comb": np.concatenate([[1], np.zeros(50), [-1]]),
    "comb and delay": np.concatenate([[0, 1], np.zeros(50), [-1, 0, 0]]),
    "noise": np.random.default_rng(0).normal(size=200),
    "ramp": np.arange(1.0, 300),
    "decay": 0.99 ** np.arange(200),
    "huge": 1e150 * np.ones(60),
    "tiny end": np.concatenate([np.random.default_rng(1).normal(size=60), [1e-200]]),
    "short": np.array([1.0, -3.0, 2.0, 0.0]),
}


@pytest.mark.parametrize("coefficients", POLYNOMIALS.values(), ids=POLYNOMIALS)
def test_they_are_those_of_numpy(coefficients):
    found, expected = polynomial_roots(coefficients), np.roots(coefficients)
    assert len(found) == len(expected)
    assert distance(found, expected) <= 1e-11


def test_a_thousand_roots_of_unity():
    expected = np.exp(2j * np.pi * np.arange(1, 1000) / 1000)
    assert distance(polynomial_roots(np.ones(1000)), expected) <= 1e-13


def test_a_low_pass_has_the_roots_that_60_digits_give():
    """From 1e-2 to 1e2 and many on the circle."""
    # linear phase: the same in any order
    taps = signal.remez(61, [0, 0.1, 0.15, 0.5], [1, 0])
    with mpmath.workdps(60), warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of the order of the coefficients
        nearby = [complex(x) for x in np.roots(taps)]
        expected = mpmath.polyroots([mpmath.mpf(x) for x in taps], maxsteps=500, extraprec=400, roots_init=nearby)
    expected = np.array([complex(x) for x in expected])
    assert distance(polynomial_roots(taps), expected) <= 1e-9


coefficient = st.one_of(st.just(0.0), st.floats(-1, -1e-100), st.floats(1e-100, 1))


@given(st.lists(coefficient, min_size=34, max_size=60))
def test_every_root_is_one_of_a_polynomial_next_to_it(coefficients):
    significant = np.trim_zeros(np.array(coefficients))
    assume(len(significant) > 33)  # shorter ones are numpy's
    roots = polynomial_roots(np.array(coefficients))
    assert len(roots) == max(0, len(np.trim_zeros(np.array(coefficients), "f")) - 1)
    for z in roots[np.abs(roots) > 0]:
        powers = np.arange(len(significant))
        w, c = (z, significant[::-1]) if abs(z) <= 1 else (1 / z, significant)
        assert abs(np.sum(c * w**powers)) <= 1e-12 * np.sum(np.abs(c) * np.abs(w) ** powers)


@pytest.mark.parametrize("n", [5, 33, 300, pytest.param(2000, marks=pytest.mark.long)])
def test_a_polynomial_with_given_roots_is_multiplied_out(n):
    np.testing.assert_allclose(multiply_roots(0.999 * polynomial_roots(np.ones(n))), 0.999 ** np.arange(n), atol=1e-9)


def test_pairs_are_exact():
    rng = np.random.default_rng(0)
    upper = rng.uniform(0.1, 1, 20) * np.exp(1j * rng.uniform(0.1, 3, 20))
    noisy = np.concatenate([upper, upper.conj(), rng.uniform(-1, 1, 5)]) + 1e-13 * rng.normal(size=(2, 45)).T @ [1, 1j]
    exact = pair_roots(noisy)
    assert distance(exact, noisy) <= 1e-12
    assert np.count_nonzero(exact.imag) == 40
    np.testing.assert_array_equal(np.sort_complex(exact), np.sort_complex(exact.conj()))


def test_what_does_not_converge_is_an_error():
    def nowhere(z):
        return np.exp(z), np.exp(z), np.zeros(len(z))

    with pytest.raises(DesignError, match="all 1 zeros of a filter must be found, and 1 were not: give a shorter"):
        aberth(nowhere, np.array([0.5 + 0.1j]))


# --- all inside of a circle -------------------------------------------------------------------------


@given(st.lists(st.tuples(st.floats(0, 1.3), st.floats(0, np.pi)), min_size=1, max_size=6), st.floats(0.5, 1.0))
def test_what_is_surely_inside_is_inside(places, radius):
    roots = np.array([r * np.exp(1j * s * angle) for r, angle in places for s in (1, -1)])
    largest = np.abs(roots).max()
    surely = are_surely_inside(np.poly(roots).real, radius)
    assert not (surely and largest > radius * (1 + 1e-9))
    assert surely or largest > 0.6 * radius


@pytest.mark.parametrize("n", [10, 300, 3000])
@pytest.mark.parametrize("outside", [None, 1.0 - 1e-5, 1.01, -2.0, 1e6])
def test_one_root_outside_is_seen_in_a_long_polynomial(n, outside):
    c = np.concatenate([[1.0], 0.25 * 0.999 ** np.arange(n) / np.arange(1, n + 1) ** 1.5])  # no root outside: Σ < 1
    if outside is not None:
        c = np.convolve(c, [1, -outside])
    assert are_surely_inside(c, 1 - 2e-5) is (outside is None)


@pytest.mark.parametrize("c", [[1.0, 2.0, 1.0], [0.0, 1.0, 0.5], [1e300, -3e300], [1.0, np.inf], [5e-324, 1e-320]])
def test_what_is_not_sure_is_not_said(c):
    with np.errstate(all="ignore"):
        assert not are_surely_inside(np.array(c), 0.99)


def test_a_long_recursion_that_is_surely_stable_needs_no_roots(monkeypatch):
    monkeypatch.setattr(sections, "polynomial_roots", None)
    long = np.concatenate([[1.0], 0.4 * 0.99 ** np.arange(1000) / np.arange(2, 1002) ** 1.5])
    assert Filter([1], long).n_states == 1000
    monkeypatch.undo()
    with pytest.raises(UnstableFilterError, match=r"got a pole at 1\.5"):
        Filter([1], np.convolve(long, [1, -1.5]))
    with pytest.raises(UnstableFilterError, match=r"got a pole at 0\.99999"):
        Filter([1], np.convolve(long, [1, -0.99999]))
