import numpy as np
import pytest
from helpers import reference
from helpers.chains import EXAMPLES, FACTORS, LANES, ONE, TOLERANCE, assert_close, noise, paths, scipys, unit_normals
from hypothesis import given
from hypothesis import strategies as st

from dpfast._kernels.chain_builder import Chain, Term
from dpfast._kernels.chain_execute import execute
from dpfast._kernels.factors import Factors

DTYPES = pytest.mark.parametrize("dtype", [np.float64, np.float32])
EVERY = pytest.mark.parametrize("name", FACTORS)


def run(factors, x, dtype=np.float64, **options):
    """A filter on streams that a chain reads."""
    chain = Chain(dtype, 48)
    return paths(chain, [chain.filter(factors, chain.read())], *x.shape, x=x.astype(dtype), **options)[0]


@DTYPES
@EVERY
def test_a_filter_equals_scipy(name, dtype):
    for n in (1, 5, 6, 7, 47, 60):
        x = noise(3, n)
        assert_close(run(FACTORS[name], x, dtype), scipys(FACTORS[name], x), n)


@EVERY
def test_a_filter_equals_the_twin(name):
    factors, x = FACTORS[name], noise(2, 55)
    expected = [reference.direct_form(ONE, factors.recursion, reference.fir(factors.taps, row)) for row in x]
    assert_close(run(factors, x), [reference.cascade(factors.sections, row) for row in expected])


@DTYPES
@EVERY
def test_the_place_in_a_tile_leaves_no_trace_in_the_bits(name, dtype):
    x, delays = noise(2, 40), [1, 2, 3, 4, 5, 6, 45]
    expected = run(FACTORS[name], x, dtype)
    later = {delay: run(FACTORS[name], np.pad(x, [(0, 0), (delay, 0)]), dtype) for delay in delays}
    assert [delay for delay, y in later.items() if not np.array_equal(y[:, delay:], expected)] == []
    assert [delay for delay, y in later.items() if y[:, :delay].any()] == []


@EVERY
def test_a_stream_does_not_depend_on_the_others(name):
    x, factors = noise(LANES + 2, 30), FACTORS[name]
    whole, order = run(factors, x), np.random.default_rng(1).permutation(LANES + 2)
    assert np.array_equal(run(factors, x[order]), whole[order])
    alone = np.where(np.arange(LANES + 2)[:, None] == 1, x, 0.0)
    assert np.array_equal(run(factors, alone)[1], whole[1])


@EXAMPLES
@given(
    taps=st.lists(st.floats(-2, 2), min_size=1, max_size=20),
    poles=st.lists(st.floats(-0.9, 0.9), max_size=4),
    pairs=st.lists(st.tuples(st.floats(0, 0.95), st.floats(0, np.pi)), max_size=3),
    seed=st.integers(0, 99),
)
def test_stable_filters_equal_scipy(taps, poles, pairs, seed):
    sections = [[1, 0.3, -0.4, 1, -2 * r * np.cos(w), r * r] for r, w in pairs]
    factors = Factors(np.array(taps), np.reshape(sections, (-1, 6)), np.atleast_1d(np.poly(poles)))
    x = noise(2, 80, seed=seed)
    assert_close(run(factors, x), scipys(factors, x))


@EXAMPLES
@given(a=st.floats(-10, 10), b=st.floats(-10, 10))
def test_a_filter_is_linear(a, b):
    x, y = noise(2, 1, 50)
    expected = a * run(FACTORS["all"], x) + b * run(FACTORS["all"], y)
    assert_close(run(FACTORS["all"], a * x + b * y), expected)


@pytest.mark.slow_nojit
@pytest.mark.parametrize("b", [[1, 0, 0], [1, -2, 1], [1, 1.9, 0.95], [1e-4, 2e-4, 1e-4]])
@pytest.mark.parametrize("radius", [0.9, 0.999, 0.99998])
@pytest.mark.parametrize("angle", [0.0, 1e-3, 1.0, np.pi])
def test_a_section_is_as_accurate_as_its_coefficients(b, radius, angle):
    """Against extended precision, beside scipy."""
    section = np.array([[*b, 1.0, -2 * radius * np.cos(angle), radius**2]])
    factors, x = Factors(ONE, section, ONE), noise(1, 3000)
    exact = reference.cascade(section.astype(np.longdouble), x[0].astype(np.longdouble))
    scale = np.abs(exact).max()
    allowed = max(1e-13, 10 * np.abs(scipys(factors, x)[0] - exact).max() / scale)
    assert np.abs(run(factors, x)[0] - exact).max() <= allowed * scale


# --- what else a pass does ------------------------------------------------------------------------


@DTYPES
@EVERY
def test_signals_and_noise_come_in_before_and_behind_a_filter(name, dtype):
    x, chain = noise(3, 60).astype(dtype), Chain(dtype, 48)
    read = chain.read()
    u = chain.filter(FACTORS["nine taps"], read)
    minus = chain.filter(FACTORS[name], read, minus=u)
    plus = chain.filter(FACTORS[name], read, plus=Term(-0.7, u, 3))
    noisy = chain.filter(FACTORS[name], read, plus=Term(0.7))
    found = paths(chain, [minus, plus, noisy], *x.shape, x=x, seed=4)
    v = scipys(FACTORS["nine taps"], x.astype(float))
    assert_close(found[0], scipys(FACTORS[name], x - v))
    assert_close(found[1], scipys(FACTORS[name], x) - 0.7 * np.pad(v, [(0, 0), (3, 0)])[:, :60])
    assert_close(found[2], scipys(FACTORS[name], x) + 0.7 * unit_normals(4, *x.shape, dtype=dtype))


def squares(factors, x, windows, chunk=48):
    chain = Chain(x.dtype, chunk)
    read = chain.read()
    for window in windows:
        chain.filter(factors, read, square=window)
    return execute(chain, *x.shape, x=x).totals.T


@pytest.mark.slow_nojit
@DTYPES
@EVERY
def test_squares_are_summed_over_a_window(name, dtype):
    x = noise(3, 130).astype(dtype)
    windows = [range(*x) for x in ((0, 130), (3, 31), (6, 12), (7, 8), (5, 5), (47, 97), (96, 96), (100, 129))]
    found = squares(FACTORS[name], x, windows)
    for sums, window in zip(found, windows, strict=True):
        expected = np.sum(scipys(FACTORS[name], x.astype(float))[:, window.start : window.stop] ** 2, axis=1)
        np.testing.assert_allclose(sums, expected, rtol=3 * TOLERANCE[np.dtype(dtype).itemsize])
    assert np.array_equal(found, squares(FACTORS[name], x, windows, chunk=6))


def test_squares_of_float32_are_summed_in_float64():
    x = np.ones((2, 3000), np.float32)
    x[:, 0], x[:, 1:6] = 2.0**15, 0.0  # a tile to itself; beside its square float32 would not see less than 2^7
    assert squares(FACTORS["identity"], x, [range(3000)]).tolist() == [[2.0**30 + 2994] * 2]


@pytest.mark.parametrize(("name", "n"), [("identity", 0), ("nine taps", 8), ("Wiener", 24), ("comb", 40), ("all", 49)])
def test_states_are_past_inputs_two_of_each_section_and_past_outputs(name, n):
    assert FACTORS[name].n_states == n
