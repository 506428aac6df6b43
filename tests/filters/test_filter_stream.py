"""Filters that keep their state, as users push them: the bits of Filter.filter, kinds of arrays, copies, refusals."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import signal

import dpfast as dp

FILTERS = {
    "one": dp.Filter([1.0]),
    "taps": dp.Filter([0.5, -1.0, 2.0]),
    "three poles": dp.Filter(*signal.butter(3, 0.2)),
    "delay and sections": dp.Filter([0, 0, 3, 1], [1, -0.5]),
    "long recursion": dp.Filter([1, 1], [1] + [0] * 39 + [-0.9]),
    "all": dp.Filter(np.ones(5)) * dp.Filter([0, 1], [1] + [0] * 35 + [0.5]) * dp.Filter([1, 0.5], [1, -0.9]),
}
every_filter = pytest.mark.parametrize("f", FILTERS.values(), ids=FILTERS)
dtypes = pytest.mark.parametrize("dtype", [np.float64, np.float32])
LOW_PASS = FILTERS["three poles"]


def noise(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


@settings(max_examples=40)
@given(
    name=st.sampled_from(sorted(FILTERS)),
    dtype=st.sampled_from([np.float64, np.float32]),
    n_streams=st.integers(1, 70),
    lengths=st.lists(st.integers(0, 60), min_size=1, max_size=5),
    seed=st.integers(0, 99),
)
def test_pieces_have_the_bits_of_the_whole(name, dtype, n_streams, lengths, seed):
    f, x = FILTERS[name], noise(sum(lengths), n_streams, seed=seed).astype(dtype)
    stream = f.stream(n_streams, dtype=dtype)
    found = np.concatenate([stream.push(piece) for piece in np.split(x, np.cumsum(lengths[:-1]))])
    y, zf = f.filter(x.T, dtype=dtype)
    assert np.array_equal(found, y.T)
    assert np.array_equal(stream.state, zf.T)
    assert found.dtype == stream.state.dtype == stream.dtype == dtype
    assert found.shape == x.shape
    assert stream.state.shape == (f.n_states, n_streams)


@every_filter
def test_steps_have_the_bits_of_the_whole(f):
    x, stream = noise(50, 3), f.stream(3)
    steps = [stream.push(step) for step in x]
    assert {step.shape for step in steps} == {(3,)}
    assert np.array_equal(steps, f.filter(x.T).y.T)


def test_the_output_is_that_of_scipy():
    b, a = signal.butter(3, 0.2)
    x = noise(200, 5)
    np.testing.assert_allclose(LOW_PASS.stream(5).push(x), signal.lfilter(b, a, x, axis=0), atol=1e-13)


@given(st.floats(-1e-300, 1e-300))
def test_what_is_below_normal_numbers_counts_as_zero_as_it_does_elsewhere(tiny):
    x = np.full((8, 2), tiny)
    assert np.array_equal(LOW_PASS.stream(2).push(x), LOW_PASS.filter(x.T).y.T)


# --- kinds of input and output --------------------------------------------------------------------


def read_only(x):
    x = x.copy()
    x.setflags(write=False)
    return x


def unaligned(x):
    raw = np.empty(x.nbytes + 1, np.uint8)
    view = raw[1:].view(x.dtype).reshape(x.shape)
    view[...] = x
    return view


@pytest.mark.parametrize(
    "kind",
    [
        np.ndarray.tolist,
        pd.DataFrame,
        read_only,
        unaligned,
        np.asfortranarray,
        lambda x: np.repeat(x, 2, axis=1)[:, ::2],
        lambda x: x.astype(">f8"),
        lambda x: x.astype(np.int8),
    ],
)
def test_numbers_of_every_kind_are_taken(kind):
    x = np.round(10 * noise(9, 4))
    stream, expected = LOW_PASS.stream(4), LOW_PASS.filter(x.T).y.T
    first, rest = stream.push(kind(x)[:5]) if kind is not pd.DataFrame else stream.push(kind(x[:5])), kind(x[5:])
    assert np.array_equal(np.concatenate([first, stream.push(rest)]), expected)


@dtypes
@pytest.mark.parametrize("shape", [(6, 4), (4,), (1, 4), (0, 4)])
def test_outputs_go_where_one_says(shape, dtype):
    x = noise(*shape).astype(dtype)
    expected = LOW_PASS.stream(4, dtype=dtype).push(x)
    assert expected.shape == shape
    wide = np.zeros((*shape[:-1], 8), dtype)
    backwards = np.zeros(shape, dtype)[::-1]
    for out in (np.empty_like(x), x.copy(), np.empty_like(x)[:], wide[..., ::2], backwards):
        assert LOW_PASS.stream(4, dtype=dtype).push(x, out) is out
        assert np.array_equal(out, expected)
    assert LOW_PASS.stream(4, dtype=dtype).push(x, out=x) is x
    assert np.array_equal(x, expected)


def test_outputs_may_overlap_inputs():
    both = noise(12, 3)
    x, out = both[:-2], both[2:]
    expected = LOW_PASS.stream(3).push(x)
    LOW_PASS.stream(3).push(x, out)
    assert np.array_equal(out, expected)


# --- what it keeps --------------------------------------------------------------------------------


@every_filter
@pytest.mark.parametrize(
    "again", [dp.FilterStream.copy, copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
def test_a_copy_goes_on_by_itself(f, again):
    x, stream = noise(70, 3), f.stream(3)
    stream.push(x[:29])
    other = again(stream)
    assert np.array_equal(other.state, stream.state)
    stream.push(100 * x)
    assert np.array_equal(other.push(x[29:]), f.filter(x.T).y.T[29:])


def test_a_state_is_a_copy():
    stream = LOW_PASS.stream(2)
    stream.push([1.0, 2.0])
    before = stream.state
    stream.state[...] = 0
    assert before.any()
    assert np.array_equal(stream.state, before)


def test_it_shows_what_it_is():
    stream = LOW_PASS.stream(3, dtype="float32")
    assert (stream.n_streams, stream.dtype) == (3, np.float32)
    assert repr(stream) == "<FilterStream of 3 streams, 4 states each, float32>"


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n_streams", "shape", "message"),
    [
        (5, (5, 100), r"\(time, 5\) or, for one step, \(5,\), got \(5, 100\): time comes first here, transpose it"),
        (5, (100,), r"\(time, 5\) .* got \(100,\): time comes first here$"),
        (1, (100,), r"several steps of one stream as x\[:, None\]"),
        (5, (7, 100), r"got \(7, 100\): time comes first here$"),
        (5, (2, 3, 5), r"got \(2, 3, 5\)"),
        (5, (0,), r"got \(0,\)"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(n_streams, shape, message):
    with pytest.raises(ValueError, match=message):
        LOW_PASS.stream(n_streams).push(np.zeros(shape))


@dtypes
@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (np.nan, "x must be finite, got 1 NaN"),
        (-np.inf, "x must be finite"),
        (1e60, "x must be (finite|at most 1e.50 in magnitude)"),
        ("a", "x must hold real numbers"),
        (1j, "x must hold real numbers"),
    ],
)
def test_what_is_no_number_is_refused_and_changes_nothing(bad, message, dtype):
    stream, x = LOW_PASS.stream(3, dtype=dtype), [[1, 2, 3], [4, 5, bad]]
    stream.push([[1, 2, 3]])
    before, out = stream.state, np.full((2, 3), 7, dtype)
    with pytest.raises(ValueError, match=message):
        stream.push(x, out)
    assert (out == 7).all()
    assert np.array_equal(stream.state, before)
    assert np.array_equal(stream.push([1, 0, 2]), LOW_PASS.filter([[1, 1], [2, 0], [3, 2]], dtype=dtype).y[:, 1])


@pytest.mark.parametrize(
    ("out", "message"),
    [
        (np.empty(4), r"out must be an array of shape \(2, 3\) and dtype float64"),
        (np.empty((2, 3), np.float32), "out must be an array of shape"),
        ([[0.0] * 3] * 2, "out must be an array of shape"),
        (read_only(np.empty((2, 3))), "out must be writeable"),
    ],
)
def test_places_for_outputs_that_do_not_fit_are_refused(out, message):
    with pytest.raises(ValueError, match=message):
        LOW_PASS.stream(3).push(np.zeros((2, 3)), out)


@pytest.mark.parametrize("n_streams", [0, -1, 1.5, True])
def test_there_is_at_least_one_stream(n_streams):
    with pytest.raises(ValueError, match="n_streams must be an integer, at least 1"):
        LOW_PASS.stream(n_streams)


def test_dtypes_are_those_of_filter():
    with pytest.raises(ValueError, match=r"dtype must be numpy\.float64 or numpy.float32"):
        LOW_PASS.stream(1, dtype=int)
    with pytest.raises(ValueError, match="dtype must be float64 here"):
        dp.Filter.from_zpk([], [0.9999] * 3, 1.0).stream(1, dtype=np.float32)
