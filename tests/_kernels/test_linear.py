import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st
from scipy import signal

from dpfast import Filter
from dpfast._kernels import linear
from dpfast._kernels.linear import Factors

ONE, NO_SECTIONS = np.ones(1), np.empty((0, 6))
SECTIONS = signal.butter(5, 0.3, output="sos")
RECURSION = np.poly([0.9, -0.5, 0.3 + 0.4j, 0.3 - 0.4j]).real

FACTORS = {
    "identity": Factors(ONE, NO_SECTIONS, ONE),
    "gain": Factors(np.array([-2.5]), NO_SECTIONS, ONE),
    "FIR": Factors(np.array([1.0, -0.5, 0.0, 0.25]), NO_SECTIONS, ONE),
    "sections": Factors(ONE, SECTIONS, ONE),
    "recursion": Factors(ONE, NO_SECTIONS, RECURSION),
    "gain and recursion": Factors(np.array([0.1]), NO_SECTIONS, RECURSION),
    "all": Factors(np.array([0.5, 1.0, -0.3]), SECTIONS, RECURSION),
}


def noise(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def run(factors, x, state=None):
    y = x.copy()
    linear.run(factors, np.zeros((len(x), factors.n_states)) if state is None else state, y)
    return y


def scipys(factors, x):
    y = signal.lfilter(factors.taps, factors.recursion, x)
    return signal.sosfilt(factors.sections, y) if len(factors.sections) else y


@pytest.mark.parametrize("name", FACTORS)
@pytest.mark.parametrize("n", [1, 2, 3, 200])
def test_run_equals_scipy(name, n):
    x = noise(3, n)
    np.testing.assert_allclose(run(FACTORS[name], x), scipys(FACTORS[name], x), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", FACTORS)
def test_run_equals_the_twin(name):
    factors, x = FACTORS[name], noise(2, 60)
    for y, row in zip(run(factors, x), x, strict=True):
        expected = reference.direct_form(ONE, factors.recursion, reference.fir(factors.taps, row))
        np.testing.assert_allclose(y, reference.cascade(factors.sections, expected), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", FACTORS)
def test_a_stream_does_not_depend_on_the_others(name):
    x = noise(4, 50)
    assert np.array_equal(run(FACTORS[name], x)[2:3], run(FACTORS[name], x[2:3]))


@pytest.mark.parametrize("name", FACTORS)
@pytest.mark.parametrize("shape", [(0, 5), (2, 0), (0, 0)])
def test_nothing_leaves_the_state_as_it_was(name, shape):
    state = noise(shape[0], FACTORS[name].n_states)
    before = state.copy()
    assert run(FACTORS[name], noise(*shape), state).shape == shape
    assert np.array_equal(state, before)


@pytest.mark.parametrize("name", FACTORS)
@given(cuts=st.lists(st.integers(0, 40), max_size=8))
def test_chunks_equal_the_whole_to_the_bit(name, cuts):
    factors, x = FACTORS[name], noise(2, 40)
    state, whole_state = np.zeros((2, factors.n_states)), np.zeros((2, factors.n_states))
    parts = [run(factors, part, state) for part in np.split(x, sorted(cuts), axis=1)]
    assert np.array_equal(np.concatenate(parts, axis=1), run(factors, x, whole_state))
    assert np.array_equal(state, whole_state)


@pytest.mark.parametrize("name", FACTORS)
def test_the_state_is_that_of_state_space(name):
    factors, x = FACTORS[name], noise(1, 30)
    a, b, c, d = Filter.from_factors(*factors).state_space()
    assert len(a) == factors.n_states
    state, expected = np.zeros((1, factors.n_states)), np.zeros(factors.n_states)
    for t in range(30):
        y = run(factors, x[:, t : t + 1], state)
        np.testing.assert_allclose(y.item(), (c @ expected + d @ x[0, t : t + 1]).item(), rtol=1e-11, atol=1e-11)
        expected = a @ expected + b @ x[0, t : t + 1]
        np.testing.assert_allclose(state[0], expected, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("order", [1, 2, 7, 40])
def test_filters_of_any_order_equal_scipy(order):
    roots = 0.9 * np.exp(2j * np.pi * (np.arange(order) + 0.5) / order)  # order 40 runs as one recursion
    f, x = Filter([0.5, 1, 2], np.poly(roots).real), noise(2, 300)
    np.testing.assert_allclose(run(f.factors, x), signal.lfilter(f.b, f.a, x), rtol=1e-10, atol=1e-10)


@given(
    taps=st.lists(st.floats(-2, 2), min_size=1, max_size=6),
    poles=st.lists(st.floats(-0.95, 0.95), max_size=4),
    pairs=st.lists(st.tuples(st.floats(0, 0.95), st.floats(0, np.pi)), max_size=3),
    seed=st.integers(0, 99),
)
def test_stable_filters_equal_scipy(taps, poles, pairs, seed):
    sections = np.array([[1, 0.3, -0.4, 1, -2 * r * np.cos(w), r * r] for r, w in pairs]).reshape(-1, 6)
    factors, x = Factors(np.array(taps), sections, np.atleast_1d(np.poly(poles))), noise(1, 80, seed=seed)
    expected = scipys(factors, x)
    np.testing.assert_allclose(run(factors, x), expected, rtol=1e-9, atol=1e-10 * (1 + np.abs(expected).max()))


@given(a=st.floats(-10, 10), b=st.floats(-10, 10))
def test_run_is_linear(a, b):
    x, y = noise(1, 50), noise(1, 50, seed=1)
    expected = a * run(FACTORS["all"], x) + b * run(FACTORS["all"], y)
    np.testing.assert_allclose(run(FACTORS["all"], a * x + b * y), expected, atol=1e-10)


@pytest.mark.parametrize(("start", "stop"), [(0, 7), (2, 5), (3, 3), (6, 7), (5, 2)])
def test_add_squares_adds_the_squares_of_the_window(start, stop):
    x, total = noise(3, 7), np.arange(3.0)
    linear.add_squares(x, start, stop, total)
    np.testing.assert_allclose(total, np.arange(3) + np.sum(x[:, start:stop] ** 2, axis=1), rtol=1e-14)
