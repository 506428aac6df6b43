import math

import numpy as np
import pytest
from helpers.markov_chains import CHAINS, every_chain, stationary
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dpfast import DesignError, Filter, MarkovChain
from dpfast.signals import markov_spectrum

OMEGA = np.linspace(0, np.pi, 101)


def autocovariances(transition, levels, n):
    """Brute force: r(τ) = Σ_ij π_i c_i P^τ_ij c_j."""
    p, pi = np.array(transition, float), stationary(transition)
    centred = np.array(levels, float) - pi @ levels
    r, value = [], centred
    for _ in range(n):
        r.append((pi * centred) @ value)
        value = p @ value
        value = value - pi @ value
    return np.array(r)


def psd(r, omega):
    return r[0] + 2 * np.cos(np.outer(omega, np.arange(1, len(r)))) @ r[1:]


def is_minimum_phase(f):
    return (np.abs(f.zeros) <= 1 + 1e-6).all()


@every_chain
def test_psd_of_a_chain_is_that_of_its_autocovariances(transition, levels):
    n, omega = (150_000, OMEGA[::20]) if transition is CHAINS["slow"][0] else (2000, OMEGA)
    found, expected = MarkovChain(transition, levels).psd(omega), psd(autocovariances(transition, levels, n), omega)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-8 * expected.max())


@every_chain
def test_shaping_of_a_chain_is_a_minimum_phase_factor_of_its_psd(transition, levels):
    chain = MarkovChain(transition, levels)
    np.testing.assert_allclose(np.abs(chain.shaping.response(OMEGA)) ** 2, chain.psd(OMEGA), rtol=1e-9)
    assert is_minimum_phase(chain.shaping)
    assert chain.shaping.h2_norm() ** 2 == pytest.approx(chain.variance, rel=1e-8)


@settings(max_examples=10)
@given(st.integers(2, 5), st.integers(0, 2**32))
def test_psd_and_shaping_of_random_chains(k, seed):
    rng = np.random.default_rng(seed)
    transition, levels = rng.dirichlet(np.ones(k), size=k), rng.standard_normal(k)
    moduli = np.sort(np.abs(np.linalg.eigvals(transition)))
    assume(moduli[-2] < 0.99)
    chain = MarkovChain(transition, levels)
    expected = psd(autocovariances(transition, levels, 4000), OMEGA)
    np.testing.assert_allclose(chain.psd(OMEGA), expected, rtol=1e-9, atol=1e-11 * expected.max())
    assert is_minimum_phase(chain.shaping)


def birth_and_death(k, up, down):
    """Transition matrix, and the stationary distribution in closed form."""
    transition = np.diag([up] * (k - 1), 1) + np.diag([down] * (k - 1), -1)
    pi = (up / down) ** np.arange(k)
    return transition + np.diag(1 - transition.sum(axis=1)), pi / pi.sum()


def psd_by_resolvent(transition, pi, levels, omega):
    centred, k = levels - pi @ levels, len(pi)
    z = np.exp(-1j * omega)[:, None, None]
    columns = np.broadcast_to(centred[:, None], (len(omega), k, 1))
    solved = np.linalg.solve(np.eye(k) - (transition - pi) * z, columns)[:, :, 0]
    return 2 * (solved @ (pi * centred)).real - pi @ centred**2


@pytest.mark.parametrize("k", [10, 20, 25, 40, 80])
@pytest.mark.parametrize(("up", "down"), [(0.2, 0.3), (0.05, 0.06), (0.45, 0.5)])
def test_chains_of_births_and_deaths(k, up, down):
    transition, pi = birth_and_death(k, up, down)
    chain = MarkovChain(transition, np.arange(k))
    np.testing.assert_allclose(chain.probabilities, pi, rtol=1e-11)
    omega = np.concatenate([OMEGA, np.geomspace(1e-6, 0.1, 50)])
    expected = psd_by_resolvent(transition, pi, np.arange(k), omega)
    np.testing.assert_allclose(chain.psd(omega), expected, rtol=0, atol=1e-9 * expected.max())
    assert is_minimum_phase(chain.shaping)


@pytest.mark.parametrize("k", [12, 16, 20, 30, 60])
@pytest.mark.parametrize("concentration", [0.05, 1.0])
def test_random_chains_of_many_states(k, concentration):
    rng = np.random.default_rng(k)
    transition, levels = 0.99 * rng.dirichlet(np.full(k, concentration), k) + 0.01 / k, rng.standard_normal(k)
    chain = MarkovChain(transition, levels)
    expected = psd_by_resolvent(transition, stationary(transition), levels, OMEGA)
    np.testing.assert_allclose(chain.psd(OMEGA), expected, rtol=0, atol=1e-9 * expected.max())
    assert is_minimum_phase(chain.shaping)


def test_a_chain_whose_levels_hardly_tell_its_states_apart_is_of_low_order():
    """States of a fast chain are soon forgotten: their number is not the order of the filter."""
    rng = np.random.default_rng(0)
    assert MarkovChain(rng.dirichlet(np.ones(50), 50), np.arange(50)).shaping.order <= 8


@pytest.mark.parametrize("taps", [[1, 1, 1, 1, 1], [1, -math.sqrt(2), 1]], ids=["sum", "notch"])
def test_chains_that_remember_coin_flips(taps):
    """The level is an FIR of the last flips: a spectrum with zeros on the circle."""
    m = len(taps)
    states = np.array([[(i >> j) & 1 for j in range(m)] for i in range(2**m)])
    transition = np.zeros((2**m, 2**m))
    for i in range(2**m):
        for flip in (0, 1):
            transition[i, ((i << 1) | flip) % 2**m] = 0.5
    chain = MarkovChain(transition, states @ np.array(taps, float))
    expected = np.abs(Filter(taps).response(OMEGA)) ** 2 / 4
    np.testing.assert_allclose(chain.psd(OMEGA), expected, atol=1e-7 * expected.max())


def test_states_that_are_never_visited_are_refused():
    with pytest.raises(DesignError, match=r"a probability above 1e-200, got .* rarer ones: leave them out"):
        MarkovChain(birth_and_death(60, 1e-7, 0.5)[0], np.arange(60))


def test_a_spectrum_that_cannot_be_factored_is_an_error(monkeypatch):
    monkeypatch.setattr(markov_spectrum, "_MAX_DOUBLINGS", 1)
    with pytest.raises(DesignError, match="chain of 30 states could not be factored"):
        MarkovChain(birth_and_death(30, 0.45, 0.5)[0], np.arange(30))


@pytest.mark.parametrize("e", [1e-2, 1e-3, 1e-4, 1.2e-5])
@pytest.mark.parametrize("k", [2, 3, 4])
def test_slow_chains_with_equal_eigenvalues(k, e):
    # (1 - ke) I + e 11': one eigenvalue 1 - ke, k - 1 times; r(τ) = (1 - ke)^τ var
    eigenvalue = 1 - k * e
    levels = np.array([0.0, 1, 2, 5])[:k]
    chain = MarkovChain(eigenvalue * np.eye(k) + e, levels)
    expected = levels.var() * (1 - eigenvalue**2) / np.abs(1 - eigenvalue * np.exp(-1j * OMEGA)) ** 2
    assert chain.variance == pytest.approx(levels.var(), rel=1e-6)
    np.testing.assert_allclose(chain.psd(OMEGA), expected, rtol=1e-8)


def test_spectrum_of_a_chain_with_a_zero_on_the_circle():
    # u_t = x_t - x_{t-1} of a fair coin x: |1 - e^{-iω}|²/4
    transition = np.array([[0.5, 0.5, 0, 0], [0, 0, 0.5, 0.5]] * 2)
    chain = MarkovChain(transition, [0, 1, -1, 0])
    assert chain.variance == pytest.approx(0.5)
    np.testing.assert_allclose(chain.psd(OMEGA), np.sin(OMEGA / 2) ** 2, atol=1e-8)
    assert is_minimum_phase(chain.shaping)
