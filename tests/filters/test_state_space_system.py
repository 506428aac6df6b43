"""Matrices of filters in state space, against plain loops, scipy and python-control."""

import pickle

import control
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import linalg, signal

import dpfast as dp
from dpfast._kernels import shared_states
from dpfast.filters.state_space import frequency_response


def random_matrices(rng, n, p, m, radius=0.9):
    a = rng.standard_normal((n, n))
    a *= radius / np.abs(np.linalg.eigvals(a)).max(initial=1e-9)
    return a, rng.standard_normal((n, m)), rng.standard_normal((p, n)), rng.standard_normal((p, m))


def naive_run(a, b, c, d, u, s):
    """Outputs (p, time) for u (m, time) from a state, and the state behind them."""
    y = []
    for x in u.T:
        y.append(c @ s + d @ x)
        s = a @ s + b @ x
    return np.array(y).reshape(-1, len(c)).T, s


def naive_impulse(a, b, c, d, n):
    power, h = b, [d]
    for _ in range(n - 1):
        h.append(c @ power)
        power = a @ power
    return np.stack(h, axis=-1)


@pytest.mark.parametrize("seed", range(10))
def test_it_runs_as_a_plain_loop_does(seed):
    rng = np.random.default_rng(seed)
    n, p, m = rng.integers([0, 1, 1], [9, 5, 5])
    matrices = random_matrices(rng, n, p, m)
    found = dp.FilterMatrix.from_state_space(*matrices)
    assert (found.shape, found.n_states, found.shares_states) == ((p, m), n, True)
    u, zi = rng.standard_normal((3, 7, m, 40)), rng.standard_normal((3, 7, n))
    y, zf = found.filter(u, zi)
    assert y.shape == (3, 7, p, 40)
    for i, j in np.ndindex(3, 7):
        wanted, end = naive_run(*matrices, u[i, j], zi[i, j])
        np.testing.assert_allclose(y[i, j], wanted, atol=1e-11)
        np.testing.assert_allclose(zf[i, j], end, atol=1e-11)
    np.testing.assert_allclose(found.impulse(30), naive_impulse(*matrices, 30), atol=1e-12)
    assert all(np.array_equal(x, y) for x, y in zip(found.state_space(), matrices, strict=True))


@given(st.integers(0, 2**31), st.lists(st.integers(0, 9), max_size=4))
@settings(max_examples=30)
def test_pieces_give_the_bits_of_the_whole(seed, lengths):
    rng = np.random.default_rng(seed)
    found = dp.FilterMatrix.from_state_space(*random_matrices(rng, 4, 2, 3))
    u = rng.standard_normal((2, 3, sum(lengths)))
    whole, zf = found.filter(u)
    state, parts, first = None, [np.empty((2, 2, 0))], 0
    for n in lengths:
        y, state = found.filter(u[..., first : first + n], state)
        parts.append(y)
        first += n
    assert np.array_equal(np.concatenate(parts, axis=-1), whole)
    assert state is None or np.array_equal(state, zf)


def test_a_stream_has_the_same_bits_among_any_others_and_on_any_threads(monkeypatch):
    rng = np.random.default_rng(0)
    found = dp.FilterMatrix.from_state_space(*random_matrices(rng, 5, 2, 3))
    u = rng.standard_normal((70, 3, 50))
    whole = found.apply(u)
    for i in 0, 15, 16, 69:
        assert np.array_equal(found.apply(u[i]), whole[i])
    monkeypatch.setattr(shared_states, "_WORTH_A_THREAD", 1)
    monkeypatch.setattr(shared_states, "_SLICE", 11)  # samples between two looks at whether to stop
    monkeypatch.setenv("DPFAST_NUM_THREADS", "3")
    assert np.array_equal(found.apply(u), whole)
    locked = u.copy()
    locked.setflags(write=False)
    assert np.array_equal(found.apply(locked), whole)
    assert np.array_equal(found.apply(np.asfortranarray(u)), whole)


@pytest.mark.parametrize("seed", range(4))
def test_systems_of_other_packages_keep_their_states(seed):
    rng = np.random.default_rng(seed)
    matrices = random_matrices(rng, 4, 2, 3)
    for system in signal.dlti(*matrices), control.ss(*matrices, True), control.ss(*matrices, 0.1):
        found = dp.FilterMatrix.from_system(system)
        assert found == dp.FilterMatrix.from_state_space(*matrices)
        assert found.n_states == 4
    with pytest.raises(ValueError, match="system must be in discrete time"):
        dp.FilterMatrix.from_system(control.ss(*matrices))
    static = dp.FilterMatrix.from_system(control.ss([], [], [], [[1.0, 2.0]], True))
    assert static.apply([[1.0], [3.0]]).tolist() == [[7.0]]
    assert (static.n_states, static.h2_norm(), static.hinf_norm()) == (0, 5**0.5, pytest.approx(5**0.5))


@pytest.mark.parametrize("seed", range(4))
def test_responses_and_norms(seed):
    rng = np.random.default_rng(seed)
    a, b, c, d = random_matrices(rng, 6, 2, 3, radius=0.99)
    found = dp.FilterMatrix.from_state_space(a, b, c, d)
    omega = np.linspace(-np.pi, np.pi, 20_001)
    z = np.exp(1j * omega)[:, None, None]
    wanted = c @ np.linalg.solve(z * np.eye(6) - a, np.broadcast_to(b, (len(z), *b.shape))) + d
    np.testing.assert_allclose(found.response(omega), wanted, atol=1e-10)
    np.testing.assert_allclose(found.response(0.3), found.response([[0.3]])[0, 0])
    observed = linalg.solve_discrete_lyapunov(a.T, c.T @ c)
    norms = np.sqrt(np.diag(b.T @ observed @ b + d.T @ d))
    np.testing.assert_allclose(found.column_norms(), norms, rtol=1e-10)
    assert found.h2_norm() == pytest.approx(np.linalg.norm(norms), rel=1e-10)
    peak = np.linalg.svd(wanted, compute_uv=False)[:, 0].max()
    assert peak <= found.hinf_norm() <= peak * (1 + 1e-4)
    np.testing.assert_allclose(np.sort(np.abs(found.poles)), np.sort(np.abs(np.linalg.eigvals(a))))
    settled = found.settling_time(1e-6)
    size = np.abs(naive_impulse(a, b, c, d, 4000))
    assert (size[..., settled:] <= 1e-6 * size.max(axis=-1, keepdims=True)).all()
    assert (size[..., settled - 1] > 1e-6 * size.max(axis=-1)).any()


def test_a_delay_line_is_no_less_exact_for_its_cluster_of_poles():
    n = 80
    found = dp.FilterMatrix.from_state_space(np.eye(n, k=-1), np.eye(n, 1), np.eye(1, n)[:, ::-1])
    omega = np.linspace(0, np.pi, 50)
    np.testing.assert_allclose(found.response(omega)[:, 0, 0], np.exp(-1j * n * omega), atol=1e-12)
    assert found.column_norms()[0] == pytest.approx(1, rel=1e-14)
    assert found.settling_time(0.5) == n + 1


def test_entries_are_filters_and_zero_where_nothing_gets_through():
    a, b = np.diag([0.5, -0.3]), np.array([[1.0, 0], [0, 2]])
    found = dp.FilterMatrix.from_state_space(a, b, [[1, 0], [1, 1]])
    assert found.links().tolist() == [[True, False], [True, True]]
    assert found[0, 1] == dp.Filter([0.0])
    entries = dp.FilterMatrix(found.rows)
    assert entries.n_states > found.n_states == 2
    np.testing.assert_allclose(entries.impulse(20), found.impulse(20), atol=1e-14)
    assert entries != found
    assert entries.links().tolist() == found.links().tolist()


@pytest.mark.parametrize(("recursive", "late"), [(0, 1), (0, 7), (3, 1), (3, 12), (5, 4)])
@pytest.mark.parametrize("lines", [1, 2])
def test_responses_of_what_ends_in_a_delay_line(recursive, late, lines):
    """Its states see those before them alone; the one before the first of them sees it where there is a loop."""
    rng = np.random.default_rng(recursive + late)
    a, b, c, d = random_matrices(rng, recursive + late, 2, 3)
    a[:, recursive:] = np.eye(len(a), k=-lines)[:, recursive:]
    omega = np.linspace(0, np.pi, 7)
    for matrix in (a, a + 0.1 * np.eye(len(a), k=1), np.where(a == 1, 0.5, a)):
        wanted = [c @ np.linalg.solve(np.exp(1j * w) * np.eye(len(a)) - matrix, b) + d for w in omega]
        np.testing.assert_allclose(frequency_response(matrix, b, c, d, omega), wanted, rtol=1e-10, atol=1e-10)


def test_responses_of_differences_in_a_chain_keep_their_digits():
    """As taps they are binomial coefficients of alternating signs: of 30 differences the largest is 1.6e8."""
    n = 30
    a, c = -np.tril(np.ones((n, n)), -1), -np.ones((1, n))
    found = frequency_response(a, np.ones((n, 1)), c, np.ones((1, 1)), np.array([0.7, 1.0, 3.0]))
    np.testing.assert_allclose(np.abs(found[:, 0, 0]), (2 * np.sin([0.35, 0.5, 1.5])) ** n, rtol=1e-11)


@pytest.mark.parametrize(("p", "m"), [(2, 3), (3, 2)])
def test_a_filter_or_a_gain_times_it(p, m):
    rng = np.random.default_rng(p)
    found = dp.FilterMatrix.from_state_space(*random_matrices(rng, 4, p, m))
    smooth, u = dp.Filter([0.1, 0.2], [1, -0.9]), rng.standard_normal((m, 50))
    for product in smooth * found, found * smooth:
        assert product.n_states == 4 + min(p, m) * smooth.n_states
        np.testing.assert_allclose(product.apply(u), smooth.apply(found.apply(u)), atol=1e-12)
    np.testing.assert_allclose((found * 3).apply(u), 3 * found.apply(u), atol=1e-12)
    assert (2.0 * found).n_states == 4


def test_it_is_immutable_equal_and_pickled():
    rng = np.random.default_rng(0)
    matrices = random_matrices(rng, 4, 2, 3)
    found = dp.FilterMatrix.from_state_space(*matrices)
    again = pickle.loads(pickle.dumps(found))
    assert again == found
    assert hash(again) == hash(found)
    assert repr(found) == "<FilterMatrix from 3 inputs to 2 outputs, 4 states>"
    matrices[0][:] = 0
    found.state_space()[0][:] = 0
    assert again == found


@pytest.mark.parametrize("adjacency", ["one_input", "each_input_same_time", "each_input"])
@pytest.mark.parametrize("seed", range(3))
def test_its_sensitivity_is_that_of_its_entries(adjacency, seed):
    rng = np.random.default_rng(seed)
    found = dp.FilterMatrix.from_state_space(*random_matrices(rng, 4, 2, 3))
    demand = dp.Privacy(1, 0.05, max_change=[1, 2, 0.5], adjacency=adjacency)
    assert demand.sensitivity(found) == pytest.approx(demand.sensitivity(dp.FilterMatrix(found.rows)), rel=1e-9)


def test_a_target_in_state_space_is_designed_for_as_its_entries_are():
    slow = dp.FilterMatrix.from_state_space([[0.95]], [[0.05, 0.05, 0.05]], [[0.95]], [[0.05, 0.05, 0.05]])
    demand = dp.Privacy(1, 0.05, adjacency="one_input")
    wanted = dp.zero_forcing(dp.total(3) * dp.Filter([0.05], [1, -0.95]), demand)
    assert dp.zero_forcing(slow, demand).predicted_mse == pytest.approx(wanted.predicted_mse, rel=1e-6)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([[0.5]], [[1, 2]], [[1]], [[1]]), r"a, b, c, d must have the shapes \(n, n\).*got \(\(1, 1\), \(1, 2\)"),
        (([[0.5, 1]], [[1]], [[1]]), "a, b, c, d must have the shapes"),
        (([0.5], [[1]], [[1]]), "a must have 2 dimensions"),
        (([[0.5]], [[np.nan]], [[1]]), "b must be finite"),
        (([[1.0]], [[1]], [[1]]), r"every pole of modulus at most .*, got a pole at 1"),
        (([[0.5]], np.zeros((1, 0)), [[1]]), "a, b, c, d must have the shapes"),
    ],
)
def test_wrong_matrices_are_named(arguments, words):
    with pytest.raises(ValueError, match=words):
        dp.FilterMatrix.from_state_space(*arguments)
