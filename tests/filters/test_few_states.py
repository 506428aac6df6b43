"""Minimum-phase factors in few states against innovations forms by scipy, and entries of state spaces as filters."""

import itertools

import numpy as np
import pytest
from scipy import linalg

import dpfast as dp
from dpfast.filters.few_states import MinimumPhaseStates, ReducedStates, divide_left

OMEGA = np.linspace(0, np.pi, 400)


def response(a, b, c, d, omega):
    """D + C(zI - A)⁻¹B, naively."""
    return np.array([d + c @ np.linalg.inv(np.exp(1j * w) * np.eye(len(a)) - a) @ b for w in omega])


def adjoint(x):
    return np.swapaxes(x, -1, -2).conj()


def random_system(seed, n_states, n_outputs, n_inputs, radius):
    rng = np.random.default_rng(seed)
    a = rng.standard_normal((n_states, n_states))
    a *= radius / np.abs(np.linalg.eigvals(a)).max()
    shapes = [(n_states, n_inputs), (n_outputs, n_states), (n_outputs, n_inputs)]
    return (a, *(rng.standard_normal(x) for x in shapes))


def innovations(a, b, c, d):
    """The causal, causally invertible factor of the spectrum of C(zI-A)⁻¹B + D."""
    p = linalg.solve_discrete_are(a.T, c.T, b @ b.T, d @ d.T, s=b @ d.T)
    s = c @ p @ c.T + d @ d.T
    root = np.linalg.cholesky(s)
    return a, np.linalg.solve(s, (a @ p @ c.T + b @ d.T).T).T @ root, c, root


def states_of(system):
    def spectrum(omega):
        h = response(*system, omega)
        return h @ adjoint(h)

    return MinimumPhaseStates(spectrum, np.linalg.eigvals(system[0]), 12)


@pytest.mark.parametrize(("seed", "n", "radius"), [(0, 1, 0.8), (1, 2, 0.9), (2, 3, 0.97), (3, 2, 0.99)])
def test_as_many_states_as_there_are_give_the_innovations_form(seed, n, radius):
    system = random_system(seed, 4, n, n + 2, radius)
    expected = response(*innovations(*system), OMEGA)
    found = response(*states_of(system).reduce(4), OMEGA)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6 * np.abs(expected).max())


@pytest.mark.parametrize("seed", range(4))
def test_every_order_is_stable_minimum_phase_and_nearer_in_relative_error(seed):
    system = random_system(seed, 6, 2, 3, 0.95)
    whole, states, errors = response(*innovations(*system), OMEGA), states_of(system), []
    for order in range(7):
        a, b, c, d = states.reduce(order)
        zeros = np.linalg.eigvals(a - b @ np.linalg.solve(d, c))
        assert max(np.abs(np.linalg.eigvals(a)).max(initial=0), np.abs(zeros).max(initial=0)) < 1
        error = np.linalg.solve(whole, response(a, b, c, d, OMEGA)) - np.eye(2)
        errors.append(np.linalg.norm(error, 2, axis=(1, 2)).max())
    assert errors[-1] < 1e-6
    assert all(later <= 1.5 * earlier for earlier, later in itertools.pairwise(errors[:-1]))


def test_a_zero_that_is_near_to_one_is_resolved():
    """1 - (1 - 1e-4)/z needs 10⁵ samples, and a few hundred in a warped frequency."""
    distance = 1e-4
    states = MinimumPhaseStates(
        lambda omega: (np.abs(1 - (1 - distance) * np.exp(-1j * omega)) ** 2)[:, None, None], np.empty(0), 4
    )
    a, b, c, d = states.reduce(1)
    zero = np.linalg.eigvals(a - b @ np.linalg.solve(d, c)).item().real
    assert 1 - zero == pytest.approx(distance, rel=1e-6)
    assert abs(np.linalg.eigvals(a).item()) < 1e-9


@pytest.mark.parametrize("radius", [0.5, 0.99])
def test_a_matrix_behind_an_inverse_gives_itself_back(radius):
    slow = dp.Filter([0.05], [1, -0.95])
    matrix = dp.FilterMatrix([[slow, 1, 0], [dp.Filter([0, 1, 0.5]), slow * slow, -2 * slow]])
    factor = innovations(*random_system(7, 4, 2, 3, radius))
    quotient = divide_left(factor, matrix.state_space())
    found = response(*factor, OMEGA) @ response(*quotient, OMEGA)
    np.testing.assert_allclose(found, matrix.response(OMEGA), rtol=0, atol=1e-9)
    assert len(quotient[0]) <= 4 + 6  # two slow poles twice in one column, one in the next, two of the delay


@pytest.mark.parametrize("shape", [(2, 3), (3, 2), (1, 1)])
def test_a_system_of_few_states_is_found_from_its_impulse_response(shape):
    """All of its states give it back, and fewer err by at most twice the Hankel singular values that are left out."""
    system = random_system(5, 4, *shape, 0.8)
    a, b, c, d = system
    taps = np.array([d, *(c @ np.linalg.matrix_power(a, k) @ b for k in range(200))])
    states = ReducedStates(taps, 0.0, 10)
    reached, seen = linalg.solve_discrete_lyapunov(a, b @ b.T), linalg.solve_discrete_lyapunov(a.T, c.T @ c)
    sizes = np.sort(np.sqrt(np.linalg.eigvals(reached @ seen).real))[::-1]
    np.testing.assert_allclose(states.sizes[:4], sizes, rtol=1e-8)
    whole = response(*system, OMEGA)
    np.testing.assert_allclose(response(*states.reduce(4), OMEGA), whole, rtol=0, atol=1e-8 * np.abs(whole).max())
    for order in range(4):
        error = np.linalg.norm(response(*states.reduce(order), OMEGA) - whole, 2, axis=(1, 2)).max()
        assert error <= 2 * sizes[order:].sum() * (1 + 1e-9)
