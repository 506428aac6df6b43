"""Taps and sections along time: against scipy, against chains to the bit, in any pieces, chunks, blocks and order."""

import numpy as np
import pytest
from helpers.chains import EXAMPLES, FACTORS, LANES, NO_SECTIONS, ONE, assert_close, decaying, noise, scipys
from hypothesis import given
from hypothesis import strategies as st
from scipy import signal

from dpfast._kernels import filter_in_time, sections_in_time, simulation, taps_in_time
from dpfast._kernels._jit import DISABLE_JIT
from dpfast._kernels.factors import Factors
from dpfast._kernels.sections_in_squares import bundle_streams

DTYPES = pytest.mark.parametrize("dtype", [np.float64, np.float32])
LIMIT = 1e9
CASES = {
    **{name: factors for name, factors in FACTORS.items() if len(factors.recursion) == 1},
    "four sections": Factors(ONE, signal.butter(8, 0.3, output="sos"), ONE),
    "nine sections": Factors(ONE, signal.butter(18, 0.4, output="sos"), ONE),
    "taps and five sections": Factors(decaying(12), signal.butter(9, 0.3, output="sos"), ONE),
    "hundred taps": Factors(decaying(100), NO_SECTIONS, ONE),
}
IN_SQUARES = pytest.mark.parametrize("in_squares", [False, True], ids=["in time", "in squares"])
EVERY = pytest.mark.parametrize("name", CASES)


def run(factors, x, states, **options):
    """The output, the states behind it, and whether a number was beyond the limits."""
    out, states = options.pop("out", np.empty_like(x)), states.copy()
    plan = options.pop("plan", None) or filter_in_time.plan_in_time(factors, x.dtype)
    found = filter_in_time.filter_in_time(
        plan, x, states, out, LIMIT, options.pop("n_threads", 1), options.pop("in_squares", False)
    )
    return out, states, found


def whole(factors, x, states):
    """The same by a chain."""
    y, chain = np.empty_like(x), simulation.build_filter_chain(factors, x.dtype)
    return y, simulation.filter_array(chain, x, states, y, 1)[0]


@IN_SQUARES
@DTYPES
@EVERY
def test_a_filter_equals_scipy(name, dtype, in_squares):
    factors = CASES[name]
    for shape in ((1, 1), (1, 9), (3, 64), (2, 333), (bundle_streams(dtype) + 1, 35)):
        x = noise(*shape)
        y, _, found = run(factors, x.astype(dtype), np.zeros((len(x), factors.n_states), dtype), in_squares=in_squares)
        assert not found
        assert y.dtype == dtype
        assert_close(y, scipys(factors, x), shape)


@EXAMPLES
@given(
    name=st.sampled_from(sorted(CASES)),
    dtype=st.sampled_from([np.float64, np.float32]),
    n_streams=st.sampled_from([1, 2, 3, 5, LANES, 2 * LANES + 3]),
    n=st.integers(1, 400),
    cuts=st.lists(st.integers(0, 400), max_size=4),
    in_place=st.booleans(),
    in_squares=st.booleans(),
)
def test_pieces_have_the_bits_of_a_chain(name, dtype, n_streams, n, cuts, in_place, in_squares):
    factors, x = CASES[name], noise(n_streams, n).astype(dtype)
    states = noise(n_streams, factors.n_states, seed=1).astype(dtype)
    expected, after = whole(factors, x, states)
    pieces = []
    for piece in np.split(x, sorted({min(cut, n) for cut in cuts} - {0, n}), axis=1):
        given_x = np.ascontiguousarray(piece)
        y, states, _ = run(factors, given_x, states, in_squares=in_squares, **({"out": given_x} if in_place else {}))
        pieces.append(y)
    assert np.array_equal(np.concatenate(pieces, axis=1), expected)
    assert np.array_equal(states, after)


@DTYPES
@EVERY
def test_chunks_and_blocks_leave_no_trace(name, dtype, monkeypatch):
    """Short ones: of taps by the plan; of sections there is one for the compiler, which long signals pass."""
    factors = CASES[name]
    monkeypatch.setattr(filter_in_time, "_SLICE", 200)
    if DISABLE_JIT:
        monkeypatch.setattr(sections_in_time, "_CHUNK", 16)
    for n_streams, n in ((3, 190), (2, 500 if DISABLE_JIT else 9001)):
        x, plan = noise(n_streams, n).astype(dtype), filter_in_time.plan_in_time(factors, np.dtype(dtype))
        if plan.taps is not None:
            plan = plan._replace(taps=plan.taps._replace(chunk=plan.taps.tile))
        states = noise(n_streams, factors.n_states, seed=1).astype(dtype)
        y, found_states, _ = run(factors, x, states, plan=plan)
        expected, after = whole(factors, x, states)
        assert np.array_equal(y, expected)
        assert np.array_equal(found_states, after)


@IN_SQUARES
@pytest.mark.parametrize("n_threads", [1, 2, 3])
def test_threads_leave_no_trace(n_threads, in_squares, monkeypatch):
    monkeypatch.setattr(filter_in_time, "_WORTH_A_THREAD", 1)
    monkeypatch.setattr(filter_in_time, "BLOCK", 64)
    factors, x = CASES["taps and five sections"], noise(3 * LANES + 5, 30)
    states = noise(len(x), factors.n_states, seed=1)
    y, after, _ = run(factors, x, states, n_threads=n_threads, in_squares=in_squares)
    expected = whole(factors, x, states)
    assert np.array_equal(y, expected[0])
    assert np.array_equal(after, expected[1])


def test_arrays_lie_in_any_order():
    factors, x = CASES["taps and five sections"], noise(4, 50)
    states = noise(4, factors.n_states, seed=1)
    expected, after, _ = run(factors, x, states)
    read_only = x.copy()
    read_only.setflags(write=False)
    orders = [np.asfortranarray, lambda x: np.repeat(x, 2, axis=1)[:, ::2], lambda x: np.repeat(x, 2, axis=0)[::2]]
    for order in orders:
        y, found, _ = run(factors, order(x), states, out=order(np.empty_like(x)))
        assert np.array_equal(y, expected)
        assert np.array_equal(found, after)
    assert np.array_equal(run(factors, read_only, states)[0], expected)


@IN_SQUARES
@DTYPES
@pytest.mark.parametrize("name", ["identity", "four sections", "nine sections", "nine taps", "taps and five sections"])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 2 * LIMIT, -2 * LIMIT])
def test_what_is_beyond_the_limits_is_found(bad, name, dtype, in_squares):
    factors, side = CASES[name], bundle_streams(dtype)
    many = side, 18, (0, 16, 17, 18 * side - 19, 18 * side - 1)
    for n_streams, n, places in ((1, 3, range(3)), (3, 37, (0, 35, 36, 37, 73, 74, 75, 110)), (1, 190, (0, 189)), many):
        for place in places:
            x = noise(n_streams, n).astype(dtype)
            x.flat[place] = bad
            with np.errstate(invalid="ignore"):
                states = np.zeros((n_streams, factors.n_states), dtype)
                assert run(factors, x, states, in_squares=in_squares)[2], (n, place)


@pytest.mark.parametrize("taps", [[200.0, -300.0], [1000.0]])
def test_the_limits_themselves_are_within_and_outputs_know_none(taps):
    x = np.array([[LIMIT] * 60, [-LIMIT] * 60])
    factors = Factors(np.array(taps), signal.butter(9, 0.3, output="sos"), ONE)
    y, _, found = run(factors, x, np.zeros((2, factors.n_states)))
    assert not found
    assert np.abs(y).max() > LIMIT


def test_the_table_has_taps_shifted_from_lane_to_lane():
    plan = taps_in_time.plan_taps(np.array([1.0, 2.0]), np.dtype(np.float32))
    width = plan.table.shape[1]
    assert plan.table.shape == (width + 1, width)
    assert all(plan.table[:, lane].tolist() == [0] * lane + [2, 1] + [0] * (width - 1 - lane) for lane in range(width))
    assert plan.tile % width == plan.chunk % plan.tile == 0
