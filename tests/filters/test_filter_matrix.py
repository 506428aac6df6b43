"""Matrices of filters, against scipy and python-control, and against loops over their entries."""

import pickle

import control
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import linalg, signal

import dpfast as dp

SLOW, QUICK = dp.Filter([0.05], [1, -0.95]), dp.Filter([0.2], [1, -0.8])
TARGET = dp.FilterMatrix([[SLOW, SLOW, SLOW], [QUICK, -1 * QUICK, 0]])


def random_system(seed, n=4, p=2, m=3):
    """A stable system in state space."""
    rng = np.random.default_rng(seed)
    a = rng.standard_normal((n, n))
    a *= 0.9 / np.abs(np.linalg.eigvals(a)).max()
    return a, rng.standard_normal((n, m)), rng.standard_normal((p, n)), rng.standard_normal((p, m))


@pytest.mark.parametrize("seed", range(8))
def test_a_system_in_state_space_gives_what_scipy_gives(seed):
    rng = np.random.default_rng(seed)
    n, p, m = rng.integers(1, [6, 4, 5])
    system = random_system(seed, n, p, m)
    found = dp.FilterMatrix.from_system(signal.dlti(*system))
    u = rng.standard_normal((m, 50))
    _, y, _ = signal.dlsim(signal.dlti(*system), u.T)
    assert found.shape == (p, m)
    np.testing.assert_allclose(found.apply(u), y.T, atol=1e-9)
    again = dp.FilterMatrix.from_system(control.ss(*found.state_space(), True))
    np.testing.assert_allclose(again.apply(u), y.T, atol=1e-6)
    np.testing.assert_allclose(dp.FilterMatrix.from_system(control.ss(*system, True)).apply(u), y.T, atol=1e-9)


def test_transfer_functions_of_python_control_are_read_output_by_output():
    num, den = [[[1], [2, 0]], [[0], [1, 3]]], [[[1, -0.5], [1, 0.2]], [[1], [1, 0, 0.4]]]
    system = control.tf(num, den, True)
    found = dp.FilterMatrix.from_system(system)
    omega = np.linspace(0, np.pi, 9)
    wanted = np.array([system(np.exp(1j * x)) for x in omega])
    np.testing.assert_allclose(found.response(omega), wanted, atol=1e-12)
    alone = dp.FilterMatrix.from_system(signal.dlti([1.0], [1.0, -0.5]))
    assert alone.shape == (1, 1)
    assert alone[0, 0] == dp.Filter.from_system(signal.dlti([1.0], [1.0, -0.5]))
    with pytest.raises(ValueError, match="discrete time"):
        dp.FilterMatrix.from_system(control.tf(num, den))


@given(st.integers(0, 2**31), st.lists(st.integers(0, 9), max_size=4))
@settings(max_examples=30)
def test_pieces_give_the_bits_of_the_whole(seed, lengths):
    found = dp.FilterMatrix.from_system(signal.dlti(*random_system(seed % 50)))
    u = np.random.default_rng(seed).standard_normal((2, 3, sum(lengths)))
    whole, zf = found.filter(u)
    state, parts, first = None, [np.empty((2, 2, 0))], 0
    for n in lengths:
        y, state = found.filter(u[..., first : first + n], state)
        parts.append(y)
        first += n
    assert np.array_equal(np.concatenate(parts, axis=-1), whole)
    assert state is None or np.array_equal(state, zf)


def test_channels_may_be_permuted_and_scaled():
    u, order, scale = np.random.default_rng(0).standard_normal((3, 40)), [2, 0, 1], np.array([2.0, -1.0, 0.5])
    permuted = dp.FilterMatrix([[row[j] * scale[j] for j in order] for row in TARGET.rows])
    np.testing.assert_allclose(permuted.apply(u[order]), TARGET.apply(scale[:, None] * u), atol=1e-12)
    assert permuted.h2_norm() == pytest.approx(
        np.sqrt(sum((scale[j] * TARGET[i, j].h2_norm()) ** 2 for i in range(2) for j in range(3)))
    )


@pytest.mark.parametrize("seed", range(5))
def test_norms(seed):
    a, b, c, d = random_system(seed)
    found = dp.FilterMatrix.from_system(signal.dlti(a, b, c, d))
    gramian = linalg.solve_discrete_lyapunov(a, b @ b.T)
    assert found.h2_norm() ** 2 == pytest.approx(np.trace(c @ gramian @ c.T + d @ d.T), rel=1e-9)
    z = np.exp(1j * np.linspace(0, np.pi, 20001))
    responses = c @ np.linalg.solve(z[:, None, None] * np.eye(4) - a, np.broadcast_to(b, (len(z), *b.shape))) + d
    peak = np.linalg.svd(responses, compute_uv=False)[:, 0].max()
    assert peak <= found.hinf_norm() <= peak * (1 + 1e-5)


def test_one_input_and_output_are_a_filter():
    u = np.random.default_rng(1).standard_normal((5, 1, 30))
    alone = dp.FilterMatrix([[SLOW]])
    assert np.array_equal(alone.apply(u)[:, 0], SLOW.apply(u[:, 0]))
    assert (alone.h2_norm(), alone.n_states) == (SLOW.h2_norm(), SLOW.n_states)
    assert alone.hinf_norm() == pytest.approx(SLOW.hinf_norm(), rel=3e-9)
    assert np.array_equal(alone.impulse(9)[0, 0], SLOW.impulse(9))


def test_totals_and_differences():
    u = np.random.default_rng(2).standard_normal((4, 3, 7))
    np.testing.assert_allclose(dp.total(3).apply(u)[:, 0], u.sum(1), atol=1e-14)
    np.testing.assert_allclose(dp.differences(3).apply(u), np.diff(u, axis=1), atol=1e-14)
    smooth = dp.total(3) * SLOW
    np.testing.assert_allclose(smooth.apply(u)[:, 0], SLOW.apply(u.sum(1)), atol=1e-12)
    assert smooth == SLOW * dp.total(3) == dp.FilterMatrix([[1.0 * SLOW] * 3])


def test_they_are_immutable_equal_and_pickled():
    again = pickle.loads(pickle.dumps(TARGET))
    assert again == TARGET
    assert hash(again) == hash(TARGET)
    assert TARGET != dp.total(3)
    assert TARGET.__eq__(3) is NotImplemented
    assert repr(TARGET) == "<FilterMatrix from 3 inputs to 2 outputs, 10 states>"
    for act in (lambda: setattr(TARGET, "_rows", 1), lambda: delattr(TARGET, "_rows")):
        with pytest.raises(AttributeError, match="cannot be changed: make another one"):
            act()


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([], "rows must be a row of filters for each output"),
        ("x", "rows must be a row of filters"),
        (SLOW, "rows must be a row of filters"),
        ([SLOW], r"rows\[0\] must be a sequence of filters"),
        ([[]], r"rows\[0\] must be a sequence of filters"),
        ([[1, 2], [3]], r"rows must all have an entry for each input, got rows of \[2, 1\] entries"),
        ([[1, "x"]], r"rows\[0\]\[1\] must be a number, or a Filter"),
        ([[1, True]], r"rows\[0\]\[1\] must be a number, or a Filter"),
        ([[1, np.nan]], r"rows\[0\]\[1\] must be"),
    ],
)
def test_wrong_rows_are_named(rows, words):
    with pytest.raises(ValueError, match=words):
        dp.FilterMatrix(rows)


@pytest.mark.parametrize(
    ("u", "words"),
    [
        (np.zeros((5, 3)), r"u must have the shape \(\.\.\., 3, time\), 3 channels, got \(5, 3\): transpose it"),
        (np.zeros((2, 5)), r"u must have the shape \(\.\.\., 3, time\), 3 channels, got \(2, 5\)$"),
        (np.zeros(3), "got "),
        (1.0, r"u must be an array \(\.\.\., m, time\)"),
        (np.full((3, 2), np.nan), "u"),
    ],
)
def test_wrong_channels_are_named(u, words):
    with pytest.raises(ValueError, match=words):
        TARGET.apply(u)


def test_wrong_states_and_numbers_of_streams_are_named():
    with pytest.raises(ValueError, match=r"zi must have the shape \(4, 10\) \(\.\.\., n_states\), got \(10,\)"):
        TARGET.filter(np.zeros((4, 3, 2)), np.zeros(10))
    with pytest.raises(ValueError, match="m must be"):
        dp.total(0)
    with pytest.raises(ValueError, match="m must be"):
        dp.differences(1)
