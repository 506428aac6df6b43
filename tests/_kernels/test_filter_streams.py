"""Filters that keep their state: against scipy, against chains to the bit, in any pieces, in room and beyond it."""

import numpy as np
import pytest
from helpers.chains import EXAMPLES, FACTORS, LANES, assert_close, noise, scipys
from hypothesis import given
from hypothesis import strategies as st

from dpfast._kernels import filter_streams, simulation
from dpfast._kernels.simd import lanes

DTYPES = pytest.mark.parametrize("dtype", [np.float64, np.float32])
EVERY = pytest.mark.parametrize("name", FACTORS)
LIMIT = 1e9


def push(plan, memory, now, x, y=None, state_limit=np.inf):
    """The outputs (time, streams) of a piece, and how far time is."""
    y = np.empty_like(x) if y is None else y
    now = filter_streams.push(plan.c, plan.layout, memory, now, LIMIT, state_limit, x.reshape(-1), y.reshape(-1))
    return y, now


def run(factors, pieces):
    """The outputs and the states behind pieces (time, streams)."""
    dtype, n_streams = pieces[0].dtype, pieces[0].shape[1]
    plan, now, outputs = filter_streams.plan_stream(factors, dtype), 0, []
    memory = np.zeros((plan.n_rows, n_streams), dtype)
    for piece in pieces:
        y, now = push(plan, memory, now, piece)
        outputs.append(y)
    return np.concatenate(outputs), plan.states_in(memory, now)


def whole(factors, x):
    """The same by the chain of `Filter.filter`."""
    y, states = np.empty_like(x), np.zeros((x.shape[1], factors.n_states), x.dtype)
    chain = simulation.build_filter_chain(factors, x.dtype)
    return y, simulation.filter_array(chain, x.T, states, y.T, 1)[0].T


@DTYPES
@EVERY
def test_a_filter_equals_scipy(name, dtype):
    for n in (1, 5, 6, 30):
        x = noise(n, 3)
        y, _ = run(FACTORS[name], [x.astype(dtype)])
        assert_close(y, scipys(FACTORS[name], x.T).T, n)


@DTYPES
@EVERY
def test_pieces_have_the_bits_of_a_chain(name, dtype):
    """In bundles and beside them; pieces shorter than a tile, as long as a room, and longer."""
    x = noise(64, lanes(dtype) + 2).astype(dtype)
    expected, states = whole(FACTORS[name], x)
    found, after = run(FACTORS[name], np.split(x, [1, 2, 2, 9, 24, 25]))
    assert np.array_equal(found, expected)
    assert np.array_equal(after, states)
    assert found.dtype == after.dtype == dtype


@DTYPES
@EVERY
def test_memory_from_states_goes_on_with_the_same_bits(name, dtype):
    x = noise(40, 3).astype(dtype)
    expected, after = run(FACTORS[name], [x])
    first, states = run(FACTORS[name], [x[:23]])
    plan = filter_streams.plan_stream(FACTORS[name], dtype)
    memory = plan.memory_from(states)
    assert not np.shares_memory(memory, states)
    second, now = push(plan, memory, 0, x[23:].copy())
    assert np.array_equal(np.concatenate([first, second]), expected)
    assert np.array_equal(plan.states_in(memory, now), after)


@EXAMPLES
@given(
    name=st.sampled_from(sorted(FACTORS)),
    n_streams=st.integers(1, 2 * LANES + 1),
    n=st.integers(0, 50),
    cuts=st.lists(st.integers(0, 50), max_size=6),
)
def test_no_cut_leaves_a_trace(name, n_streams, n, cuts):
    x = noise(n, n_streams)
    expected, states = run(FACTORS[name], [x])
    found, after = run(FACTORS[name], np.split(x, sorted(min(cut, n) for cut in cuts)))
    assert np.array_equal(found, expected)
    assert np.array_equal(after, states)


@EVERY
def test_outputs_may_take_the_place_of_inputs(name):
    x = noise(40, LANES + 1)
    plan = filter_streams.plan_stream(FACTORS[name], x.dtype)
    expected, _ = run(FACTORS[name], [x])
    found, _ = push(plan, np.zeros((plan.n_rows, x.shape[1])), 0, x, x)
    assert found is x
    assert np.array_equal(found, expected)


@DTYPES
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 2 * LIMIT, -2 * LIMIT])
def test_what_is_beyond_the_limits_changes_nothing(bad, dtype):
    plan = filter_streams.plan_stream(FACTORS["all"], np.dtype(dtype))
    n = lanes(dtype)
    for n_streams, t, stream in ((1, 0, 0), (n, 1, 3), (n + 1, 0, 0), (n + 1, 1, n), (2 * n - 1, 1, 2 * n - 2)):
        x, memory = noise(2, n_streams).astype(dtype), noise(plan.n_rows, n_streams).astype(dtype)
        x[t, stream] = bad
        before, y = memory.copy(), np.full_like(x, 7)
        assert push(plan, memory, 3, x, y)[1] == filter_streams.REFUSED
        assert np.array_equal(memory, before)
        assert (y == 7).all()


@DTYPES
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 2 * LIMIT])
def test_memory_beyond_its_limits_changes_nothing(bad, dtype):
    plan = filter_streams.plan_stream(FACTORS["gain and sections"], np.dtype(dtype))
    for n_streams, place in ((1, 5), (lanes(dtype), 0), (lanes(dtype) + 1, -1)):
        x, memory = noise(2, n_streams).astype(dtype), noise(plan.n_rows, n_streams).astype(dtype)
        memory.flat[place] = bad
        y = np.full_like(x, 7)
        assert push(plan, memory, 0, x, y, state_limit=LIMIT)[1] == filter_streams.REFUSED
        assert (y == 7).all()
        with np.errstate(invalid="ignore"):
            assert push(plan, memory, 0, x, y)[1] == len(x)


def test_the_limits_themselves_are_within():
    x = np.array([[LIMIT] * (LANES + 1), [-LIMIT] * (LANES + 1)])
    assert np.array_equal(run(FACTORS["identity"], [x])[0], x)


def test_rows_say_where_the_newest_is():
    """Three past inputs, six states of sections, 40 past outputs."""
    factors, x = FACTORS["all"], noise(60, 2)
    y, states = run(factors, [x])
    assert np.array_equal(states[:3], x[:-4:-1])
    assert np.array_equal(states[9:], y[:-41:-1])
