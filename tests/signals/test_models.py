import math

import numpy as np
import pytest
from helpers.chains import paths
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import linalg, signal

from dpfast import ARMA, DesignError, Filter, IndependentLevels, MarkovChain
from dpfast._kernels.chain_builder import Chain
from dpfast.signals import markov_spectrum

OMEGA = np.linspace(0, np.pi, 101)
# |z| of a standard normal is above 5.7 with probability 1.2e-8: with up to 80 comparisons a test, a false alarm has
# probability below 1e-6. Seeds are fixed.
SIGMAS = 5.7

lazy = [[0.75, 0.25], [0.25, 0.75]]
chains = {
    "paper": (lazy, [-0.5, 0.5]),
    "skewed": ([[0.9, 0.1], [0.4, 0.6]], [0, 1]),
    "alternating": ([[0.1, 0.9], [0.8, 0.2]], [0, 1]),
    "three": ([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]], [0, 1, 5]),
    "rotating": ([[0.1, 0.8, 0.1], [0.1, 0.1, 0.8], [0.8, 0.1, 0.1]], [0, 1, -2]),
    "unsorted": ([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]], [3, -1, 2]),
    "duplicate levels": ([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]], [1, 0, 1]),
    "four": (linalg.circulant([0.6, 0.3, 0.05, 0.05]), [0, 1, 4, 2]),
    "five": (0.5 * np.eye(5) + 0.1 * linalg.circulant([0, 3, 1, 1, 0]), [1, 2, 0, 7, -3]),
    "one mode of three": (0.6 * np.eye(4) + 0.1, [0, 1, 2, 5]),
    "symmetric lump": ([[0.6, 0.2, 0.2], [0.2, 0.5, 0.3], [0.2, 0.3, 0.5]], [0, 1, 1]),
    "independent": ([[0.3, 0.2, 0.5]] * 3, [0, 1, 5]),
    "shift register": ([[0.7, 0.3, 0, 0], [0, 0, 0.7, 0.3], [0.7, 0.3, 0, 0], [0, 0, 0.7, 0.3]], [0, 1, 3, 4]),
    "slow": ([[0.9999, 0.0001], [0.0002, 0.9998]], [0, 1]),
    "big levels": (lazy, [1e6, 1e6 + 1]),
}
every_chain = pytest.mark.parametrize(("transition", "levels"), chains.values(), ids=chains)


def stationary(transition):
    """A left eigenvector by 60 squarings of the transition matrix."""
    p = np.array(transition, float)
    for _ in range(60):
        p = p @ p
        p /= p.sum(axis=1, keepdims=True)
    return p[0]


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


def worst_z(samples, expected):
    """Largest |mean - expected| over the axis 0, in standard errors."""
    error = samples.std(axis=0, ddof=1) / math.sqrt(len(samples))
    return np.abs((samples.mean(axis=0) - expected) / error).max()


# --- Markov chains --------------------------------------------------------------------------------


@every_chain
def test_moments_of_a_chain(transition, levels):
    chain, pi = MarkovChain(transition, levels), stationary(transition)
    mean = pi @ np.array(levels, float)
    assert chain.mean == pytest.approx(mean, rel=1e-9, abs=1e-12)
    assert chain.variance == pytest.approx(pi @ (np.array(levels) - mean) ** 2, rel=1e-8)


@every_chain
def test_psd_of_a_chain_is_that_of_its_autocovariances(transition, levels):
    r = autocovariances(transition, levels, 150_000 if transition is chains["slow"][0] else 2000)
    found, expected = MarkovChain(transition, levels).psd(OMEGA), psd(r, OMEGA)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-8 * expected.max())


@every_chain
def test_shaping_of_a_chain_is_a_minimum_phase_factor_of_its_psd(transition, levels):
    chain = MarkovChain(transition, levels)
    np.testing.assert_allclose(np.abs(chain.shaping.response(OMEGA)) ** 2, chain.psd(OMEGA), rtol=1e-9)
    assert is_minimum_phase(chain.shaping)
    assert chain.shaping.h2_norm() ** 2 == pytest.approx(chain.variance, rel=1e-8)


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


def test_levels_far_from_zero_keep_their_digits():
    near, far = (MarkovChain(chains["three"][0], np.array([0.0, 1, 5]) + x) for x in (0, 1e15))
    assert far.variance == pytest.approx(near.variance, rel=1e-12)
    assert IndependentLevels([1e15, 1e15 + 1], [0.5, 0.5]).variance == 0.25


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


def test_levels_of_a_chain_are_sorted_and_distinct():
    chain = MarkovChain(*chains["duplicate levels"])
    pi = stationary(chains["duplicate levels"][0])
    assert chain.levels.tolist() == [0, 1]
    np.testing.assert_allclose(chain.probabilities, [pi[1], pi[0] + pi[2]], rtol=1e-12)
    assert MarkovChain(*chains["unsorted"]).levels.tolist() == [-1, 2, 3]


def test_rows_of_a_chain_are_scaled_to_sum_to_one():
    chain = MarkovChain(np.array(lazy) * (1 + 5e-10), [0, 1])
    np.testing.assert_allclose(chain.transition.sum(axis=1), 1, rtol=0, atol=1e-15)


@pytest.mark.slow_nojit
@every_chain
def test_samples_of_a_chain_are_stationary_from_the_first(transition, levels):
    u = MarkovChain(transition, levels).sample(20_000, 3, seed=7)
    pi, p = stationary(transition), np.array(transition)
    for level in np.unique(levels):
        probability = pi[np.array(levels) == level].sum()
        z = ((u == level).mean(axis=0) - probability) / math.sqrt(probability * (1 - probability) / len(u))
        assert np.abs(z).max() < SIGMAS
    assert np.isin(u, levels).all()
    centred = np.array(levels) - pi @ levels
    r = centred * pi @ p @ centred, centred * pi @ p @ p @ centred
    x = u - pi @ levels
    assert worst_z(np.column_stack([x[:, 0] * x[:, 1], x[:, 1] * x[:, 2], x[:, 0] * x[:, 2]]), [r[0], *r]) < SIGMAS


@pytest.mark.slow_nojit
def test_transitions_of_a_chain_have_their_frequencies():
    transition, levels = chains["rotating"]
    u = MarkovChain(transition, levels).sample(20, 5000, seed=3)
    for i, before in enumerate(levels):
        after = u[:, 1:][u[:, :-1] == before]
        for j, level in enumerate(levels):
            p = transition[i][j]
            assert abs((after == level).mean() - p) < SIGMAS * math.sqrt(p * (1 - p) / len(after))


@pytest.mark.parametrize(
    ("transition", "levels", "message"),
    [
        ([[1, 0], [0, 1]], [0, 1], "irreducible.* 2 parts.* no way from state 0 to state 1"),
        ([[0.5, 0.5], [0, 1]], [0, 1], "irreducible"),
        ([[0, 1], [1, 0]], [0, 1], "aperiodic.* modulus 1 "),
        ([[0, 1, 0], [0, 0, 1], [1, 0, 0]], [0, 1, 2], "aperiodic"),
        ([[1 - 1e-6, 1e-6], [1e-6, 1 - 1e-6]], [0, 1], r"mixing.* modulus 0\.999998.* limit is 0\.99998"),
        ([[0.5, 0.6], [0.5, 0.5]], [0, 1], r"stochastic.* row 0 with sum 1\.1"),
        ([[0.5, 0.5], [1.5, -0.5]], [0, 1], "stochastic.* smallest entry -0.5"),
        ([[0.5, 0.5]], [0, 1], r"a row and a column for each of the 2 levels, got shape \(1, 2\)"),
        (lazy, [0, 1, 2], r"each of the 3 levels, got shape \(2, 2\)"),
        (lazy, [[0, 1]], r"levels must have 1 dimension, got shape \(1, 2\)"),
        ([0.5, 0.5], [0, 1], "transition must have 2 dimensions"),
        ([[]], [], "transition must not be empty"),
        ([[0.5, math.nan], [0.5, 0.5]], [0, 1], "transition must be finite"),
        (lazy, [0, math.inf], "levels must be finite"),
        (lazy, ["a", "b"], "levels must hold real numbers"),
        (lazy, [1, 1], "levels must not all be equal"),
        ([[1]], [3], "levels must not all be equal"),
        (np.full((3, 3), 1 / 3), [0.1] * 3, "levels must not all be equal"),
    ],
)
def test_bad_chains_are_refused(transition, levels, message):
    with pytest.raises(ValueError, match=message):
        MarkovChain(transition, levels)


# --- independent levels ---------------------------------------------------------------------------


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


# --- ARMA -----------------------------------------------------------------------------------------

armas = {
    "white": ([2], [1]),
    "moving average": ([1, 0.5, 0.25], [1]),
    "AR(1)": ([1], [1, -0.9]),
    "AR(2)": ([1], [1, -1.2, 0.72]),
    "ARMA": ([1, 0.4], [1, -0.5, 0.06]),
    "long AR": ([1], [1] + [0] * 39 + [-0.5]),
}
every_arma = pytest.mark.parametrize(("b", "a"), armas.values(), ids=armas)


def arma_autocovariances(b, a, n):
    h = signal.lfilter(b, a, np.eye(1, 5000)[0])
    return np.array([h[: len(h) - k] @ h[k:] for k in range(n)])


@every_arma
def test_moments_and_psd_of_arma(b, a):
    model = ARMA(b, a, innovation_std=3, mean=-2)
    assert model.mean == -2
    assert model.variance == pytest.approx(9 * arma_autocovariances(b, a, 1)[0], rel=1e-9)
    np.testing.assert_allclose(model.psd(OMEGA), 9 * np.abs(signal.freqz(b, a, OMEGA)[1]) ** 2, rtol=1e-9)
    assert model.levels is None
    assert model.probabilities is None


@pytest.mark.slow_nojit
@every_arma
def test_samples_of_arma_are_stationary_from_the_first(b, a):
    x = ARMA(b, a, mean=10, innovation_std=2).sample(8000, 4, seed=11) - 10
    r = 4 * arma_autocovariances(b, a, 4)
    products = np.stack([x[:, i] * x[:, j] for i in range(4) for j in range(i + 1)], axis=1)
    expected = [r[i - j] for i in range(4) for j in range(i + 1)]
    assert worst_z(x, 0) < SIGMAS
    assert worst_z(products, expected) < SIGMAS


@pytest.mark.slow_nojit
def test_samples_of_slow_arma_are_stationary_from_the_first():
    a = np.poly([0.9998, 0.9])
    x = ARMA([1], a).sample(8000, 3, seed=2)
    variance = (1 + a[2]) / ((1 - a[2]) * ((1 + a[2]) ** 2 - a[1] ** 2))
    assert worst_z(x**2, variance) < SIGMAS


@pytest.mark.slow_nojit
def test_samples_are_rounded_to_the_nearest_level():
    model = ARMA([1], [1, -0.5], levels=[3, 0, -3, 3])
    u = model.sample(50, 1000, seed=1)
    plain = ARMA([1], [1, -0.5]).sample(50, 1000, seed=1)
    assert model.levels.tolist() == [-3, 0, 3]
    np.testing.assert_array_equal(u, 3 * np.clip(np.round(plain / 3), -1, 1))
    np.testing.assert_allclose(model.probabilities.sum(), 1)
    assert model.probabilities[0] == model.probabilities[2] < model.probabilities[1]


def test_levels_far_from_the_mean_keep_probabilities():
    probabilities = ARMA([0.001], levels=[-100, 100], mean=50).probabilities
    assert probabilities.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("b", "options", "message"),
    [
        # the paper's printed spectrum: variance 1 on ±1/2
        ([math.sqrt(0.75)], {"levels": [-0.5, 0.5]}, r"variance of at most 0\.25, got a spectrum with variance 1:"),
        ([0.5], {"levels": [0, 1], "mean": 0.2}, r"at most 0\.16, got"),
        ([0.5], {"levels": [0, 1], "mean": 2}, "at most 0, got"),
        ([0.5], {"levels": [1]}, "at most 0, got"),
    ],
)
def test_spectra_that_an_alphabet_cannot_have_are_refused(b, options, message):
    with pytest.raises(DesignError, match=message):
        ARMA(b, [1, -0.5], **options)


def test_an_alphabet_may_just_have_the_variance():
    assert ARMA([math.sqrt(3) / 4], [1, -0.5], levels=[-0.5, 0.5]).variance == pytest.approx(0.25, rel=1e-12)


@pytest.mark.parametrize(
    ("b", "a", "options", "message"),
    [
        ([0], [1], {}, "b must not be all zeros"),
        ([1], [1, -1], {}, "stable"),
        ([1], [1], {"innovation_std": 0}, "innovation_std must be"),
        ([1], [1], {"mean": math.nan}, "mean must be"),
        ([1], [1], {"levels": []}, "levels must not be empty"),
        ([1], [1], {"levels": ["a"]}, "levels must hold real numbers"),
    ],
)
def test_bad_arma_is_refused(b, a, options, message):
    with pytest.raises(ValueError, match=message):
        ARMA(b, a, **options)


# --- fits -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("a", [[1], [1, -0.9], [1, -1.2, 0.72], [1, 0.5, 0, -0.3]])
def test_fit_recovers_an_autoregression(a):
    n = 100_000
    u = 5 + 2 * signal.lfilter([1], a, np.random.default_rng(0).standard_normal((2, n)))[:, 1000:]
    model = ARMA.fit(u, len(a) - 1)
    # standard errors of the coefficients are below 1/√(2n)
    np.testing.assert_allclose(model.shaping.a, a, atol=SIGMAS / math.sqrt(2 * (n - 1000)) + 1e-4)
    assert model.shaping.b[0] == pytest.approx(2, abs=0.03)
    assert model.mean == pytest.approx(u.mean())


@given(st.lists(st.integers(-5, 5), min_size=3, max_size=60), st.integers(0, 8))
def test_fits_are_stable_and_keep_the_sample_variance(u, order):
    assume(len(set(u)) > 1 and order < len(u))
    model = ARMA.fit(u, order)
    assert (np.abs(model.shaping.poles) < 1).all()
    assert model.variance == pytest.approx(np.var(u), rel=1e-6)


def test_fit_solves_the_yule_walker_equations():
    u = np.random.default_rng(1).standard_normal((3, 50)).cumsum(axis=1)
    x = u - u.mean()
    r = np.array([(x[:, : 50 - k] * x[:, k:]).sum() / 150 for k in range(4)])
    np.testing.assert_allclose(ARMA.fit(u, 3).shaping.a[1:], -linalg.solve(linalg.toeplitz(r[:3]), r[1:]), rtol=1e-9)


def test_fit_of_order_0_is_white():
    model = ARMA.fit([1, 2, 4, 1], 0)
    assert model.shaping.is_fir
    assert (model.mean, model.variance) == (2, pytest.approx(1.5))


@pytest.mark.parametrize(
    ("u", "order", "message"),
    [
        ([1, 2], 2, r"with more than 2 samples, got \(2,\)"),
        (np.ones((2, 3, 4)), 1, r"time.* got \(2, 3, 4\)"),
        ([], 0, "u must not be empty"),
        ([3, 3, 3], 1, "u must not be constant"),
        (np.full(1000, 0.1), 2, "u must not be constant"),
        (np.full(997, 7.3), 0, "u must not be constant"),
        ([1.0], 0, "u must not be constant"),
        ([1, math.nan], 0, "u must be finite"),
        ([1, 2, 3], -1, "order must be an integer"),
        ([1, 2, 3], 1.0, "order must be an integer"),
        (["a", "b"], 0, "u must hold real numbers"),
    ],
)
def test_bad_observations_are_refused(u, order, message):
    with pytest.raises(ValueError, match=message):
        ARMA.fit(u, order)


@pytest.mark.parametrize("order", [1, 2, 20])
@pytest.mark.parametrize("u", [np.sin(0.3 * np.arange(100_000)), np.linspace(0, 1, 300_000)], ids=["sine", "trend"])
def test_fit_of_an_almost_predictable_stream_is_stable_or_says_so(u, order):
    try:
        model = ARMA.fit(u, order)
    except ValueError as error:
        assert "u must" in str(error) or "order must" in str(error)  # noqa: PT017
    else:
        assert model.variance == pytest.approx(u.var(), rel=1e-2)


def test_fit_keeps_levels():
    assert ARMA.fit([0, 1, 1, 0, 1], 1, levels=[1, 0]).levels.tolist() == [0, 1]


# --- sampling -------------------------------------------------------------------------------------

models = {
    "chain": MarkovChain(*chains["three"]),
    "independent": IndependentLevels([0, 1], [0.3, 0.7]),
    "arma": ARMA([1, 0.3], [1, -0.9], mean=3),
    "arma on levels": ARMA([1], [1, -0.5], levels=[-2, 0, 2]),
    "long ma": ARMA(np.ones(40)),
}
every_model = pytest.mark.parametrize("model", models.values(), ids=models)


@every_model
@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (0, 0), (1, 1), (3, 7)])
def test_samples_have_their_shape(model, shape):
    assert model.sample(*shape, seed=0).shape == shape


@every_model
def test_stream_depends_on_seed_and_index_alone(model):
    many = model.sample(40, 50, seed=9)
    np.testing.assert_array_equal(model.sample(3, 50, seed=9), many[:3])
    np.testing.assert_array_equal(model.sample(40, 20, seed=9), many[:, :20])
    chain = Chain()
    one = paths(chain, [model.compiled().add_to(chain)], 1, 50, seed=9, first=17)
    np.testing.assert_array_equal(one[0, 0], many[17])
    assert len(np.unique(many, axis=0)) == 40
    assert not np.array_equal(model.sample(40, 50, seed=10), many)


@every_model
def test_a_generator_gives_the_seed(model):
    first, again = (model.sample(2, 9, seed=np.random.default_rng(1)) for _ in range(2))
    np.testing.assert_array_equal(first, again)


@pytest.mark.parametrize(
    ("n_streams", "n_samples", "seed", "message"),
    [
        (-1, 1, 0, "n_streams must be"),
        (1, 1.5, 0, "n_samples must be"),
        (1, 1, None, "seed must be"),
        (1, 1, -1, "seed"),
    ],
)
def test_bad_sizes_are_refused(n_streams, n_samples, seed, message):
    with pytest.raises(ValueError, match=message):
        models["chain"].sample(n_streams, n_samples, seed=seed)


@every_model
def test_models_are_frozen(model):
    with pytest.raises(AttributeError):
        model.mean = 0.0
    if model.levels is not None:
        assert not model.levels.flags.writeable
        assert not model.probabilities.flags.writeable


def test_arrays_of_the_caller_are_copied():
    transition, levels = np.array(lazy), np.array([0.0, 1.0])
    chain = MarkovChain(transition, levels)
    transition[0], levels[0] = [0, 1], 5
    assert chain.transition[0].tolist() == [0.75, 0.25]
    assert chain.levels.tolist() == [0, 1]
    assert transition.flags.writeable
