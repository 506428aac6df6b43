"""Kernels of a few lines, compiled, against NumPy on the same arrays."""

from fractions import Fraction
from types import SimpleNamespace
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest
from helpers import processors
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import from_dtype
from llvmlite import ir

from dpfast._kernels import simd
from dpfast._kernels._jit import DISABLE_JIT, OPTIONS
from dpfast._kernels.simd import (
    Symbol,
    fma,
    gather,
    interleave,
    lanes,
    load,
    load_each,
    load_run,
    permute,
    repeat,
    rotate_left,
    separate,
    store,
    store_each,
    store_run,
    traced,
    transpose,
    width,
)

FLOATS = [np.dtype(f"f{size}") for size in (4, 8)]
UNSIGNED = [np.dtype(f"u{size}") for size in (1, 2, 4, 8)]
INTEGERS = [np.dtype(f"i{size}") for size in (1, 2, 4, 8)] + UNSIGNED
DTYPES = FLOATS + INTEGERS
JIT_ONLY = pytest.mark.skipif(DISABLE_JIT, reason="about the compiler")


def compiled(function):
    """A kernel that calls a traced function; not kept on disk, so that every run of the tests traces anew."""
    inner = traced(function)
    return numba.njit(**OPTIONS)(lambda *values: inner(*values))


def each_dtype(dtypes, quick=()):
    """Each is compiled: where some are named, the others wait for the long session."""
    later = {dtype for dtype in dtypes if quick and str(dtype) not in quick}
    marked = [pytest.param(x, marks=pytest.mark.long) if x in later else x for x in dtypes]
    return pytest.mark.parametrize("dtype", marked, ids=str)


def some_rows(dtype, n, seed=0):
    """Small whole numbers in rows, each lane and row its own."""
    x = np.random.default_rng(seed).permutation(n * lanes(dtype)) % 100
    return x.reshape(n, lanes(dtype)).astype(dtype)


def assert_same(found, expected):
    """The same numbers, and zeros of the same sign."""
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))


# --- operators and ufuncs -------------------------------------------------------------------------


def common(a, b):
    c = a < b
    return {
        "+": a + b,
        "-": a - b,
        "*": a * b,
        "negative": -a,
        "numbers on the right": (a + 3) * 2 - 1,
        "numbers on the left": 1 - (3 + 2 * a),
        "number as wide": a + a.dtype.type(3),
        "<": np.where(a < b, a, b),
        "<=": np.where(a <= b, b, a),
        ">": np.where(a > b, a, b),
        ">=": np.where(a >= b, b, a),
        "> number": np.where(a > 3, a, b),
        "number >": np.where(3 > a, a, b),
        "&": np.where(c & (a > 3), a, b),
        "|": np.where(c | (a > 3), a, b),
        "^": np.where(c ^ (a > 3), a, b),
        "where number": np.where(c, a, 3),
        "where numbers": np.where(c, np.full_like(a, 5), 3),
        "where truth": np.where(a.dtype.itemsize > 0, a, b),
        "any": np.where(np.any(a > b), a, b),
        "any of none": np.where(np.any(c & (a > b)), a, b),
        "any of all": np.where(np.any(a < a + 1), a, b),
        "full_like": np.full_like(a, 7),
    }


def of_floats(a, b):
    return {
        "/": a / b,
        "number /": 2 / a,
        "sqrt": np.sqrt(a),
        "rint": np.rint(a),
        "copysign": np.copysign(a, b),
        # which zero is the smaller one, nobody says: + 0 makes them one
        "fmin": np.fmin(a, b) + 0,
        "fmax": np.fmax(a, b) + 0,
        "fmax number": np.fmax(a, -1.5),
        "half": a * 0.5,
        "tenth": a + 0.1,
        "infinity": np.where(a < np.inf, a, b),
    }


def of_integers(a, b):
    return {
        "bits &": a & b,
        "bits |": a | b,
        "bits ^": a ^ b,
        "<<": a << (b & 7),
        ">>": a >> (b & 7),
        "<< number": a << 3,
        ">> number": a >> 3,
        "largest": a ^ int(np.iinfo(a.dtype).max),
        "fma": fma(a, b, 3),
    }


def of_unsigned(a, b):
    return {f"rotated {n}": rotate_left(a, n) for n in (1, a.dtype.itemsize * 8 - 1)}


def everything(a, b):
    results = common(a, b)
    results |= of_floats(a, b) if a.dtype.kind == "f" else of_integers(a, b)
    return results | (of_unsigned(a, b) if a.dtype.kind == "u" else {})


@compiled
def operate(x, out):
    for i, value in enumerate(everything(load(x, 0), load(x, 1)).values()):
        store(out, i, value)


@each_dtype(DTYPES, quick=("float32", "float64", "int8", "int64", "uint32"))
@given(data=st.data())
def test_operators_and_ufuncs_are_those_of_numpy(dtype, data):
    halves = st.integers(-9, 9).map(lambda k: k / 2) if dtype.kind == "f" else st.integers(0, 9)
    numbers = st.lists(from_dtype(dtype) | halves, min_size=1, max_size=13)
    x = np.stack([np.resize(np.array(data.draw(numbers), dtype), lanes(dtype)) for _ in range(2)])
    with np.errstate(all="ignore"):
        expected = everything(*x)
        found = np.empty((len(expected), lanes(dtype)), dtype)
        operate(x, found)
    for (name, value), row in zip(expected.items(), found, strict=True):
        assert value.dtype == dtype, name
        assert_same(row, value)


def rounded_once(a, b, c):
    """The float nearest to the exact a b + c."""
    exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
    near = a.dtype.type(float(exact))
    around = [np.nextafter(near, a.dtype.type(-np.inf)), near, np.nextafter(near, a.dtype.type(np.inf))]
    return min(around, key=lambda x: (abs(Fraction(float(x)) - exact), int(x.view(f"u{x.itemsize}")) % 2))


@compiled
def multiply_add(x, out):
    store(out, 0, fma(load(x, 0), load(x, 1), load(x, 2)))
    store(out, 1, fma(load(x, 0), 3, load(x, 2)))
    store(out, 2, fma(0.1, load(x, 1), 0.7))


@each_dtype(FLOATS)
def test_fma_rounds_once_where_the_cpu_can(dtype):
    x = np.random.default_rng(0).normal(size=(3, lanes(dtype))).astype(dtype)
    x[2] -= x[0] * x[1]  # which leaves what was rounded away
    found, tenth, rest = np.empty_like(x), *(np.full_like(x[0], value) for value in (0.1, 0.7))
    multiply_add(x, found)
    for row, (a, b, c) in zip(found, [x, (x[0], np.full_like(x[0], 3), x[2]), (tenth, x[1], rest)], strict=True):
        once = [rounded_once(*values) for values in zip(a, b, c, strict=True)]
        assert_same(row, once if processors.rounds_once() else a * b + c)


def test_fma_of_numbers_is_a_number():
    assert fma(2.0, 3.0, 4.0) == 10.0


# --- conversions ----------------------------------------------------------------------------------


@compiled
def convert(sources, masked, targets):
    for x, target in zip(sources, targets, strict=True):
        store(target, 0, load(x, 0).astype(target.dtype))
        store(target, 1, (load(masked, 0) > 1).astype(target.dtype))
        store(target, 2, load(x, 0))  # converts by itself


def convertible(source, target, n):
    """Numbers of all sizes; of floats those that an integer can keep when their fraction is gone."""
    random = np.random.default_rng(0)
    if source.kind != "f":
        return random.integers(0, 256, n * source.itemsize, np.uint8).view(source)
    if target.kind == "f":
        numbers = np.array([1e-320, -1e-45, 3e38, -1e300, np.inf, np.nan, -0.0, 0.1, 1 / 3])
        return np.resize(numbers, n).astype(source)
    scale = float(np.iinfo(target).max) * 2.0 ** -random.integers(0, 8 * target.itemsize, n)
    return (random.uniform(np.sign(np.iinfo(target).min) * 0.99, 0.99, n) * scale).astype(source)


@each_dtype(DTYPES, quick=("float32", "float64", "int64", "uint32"))
def test_conversions_are_those_of_numpy(dtype):
    n = lanes(dtype)
    targets, masked = tuple(np.empty((3, n), target) for target in DTYPES), some_rows(dtype, 1)
    with np.errstate(all="ignore"):
        sources = tuple(convertible(dtype, target, n)[None] for target in DTYPES)
        convert(sources, masked, targets)
        for x, target in zip(sources, targets, strict=True):
            expected = [x[0].astype(target.dtype), (masked[0] > 1).astype(target.dtype), x[0].astype(target.dtype)]
            assert_same(target, expected)


@compiled
def reinterpret(x, out, back):
    row = load(x, 0)
    store(out, 0, row.view(out.dtype))
    store(back, 0, (row.view(out.dtype) ^ 1).view(row.dtype))


@pytest.mark.parametrize(("dtype", "bits"), [("f4", "i4"), ("f4", "u4"), ("f8", "i8"), ("f8", "u8"), ("i4", "u4")])
def test_views_are_the_same_bits(dtype, bits):
    x = (np.random.default_rng(0).normal(size=(1, lanes(dtype))) * 1e8).astype(dtype)
    out, back = np.empty_like(x, bits), np.empty_like(x)
    reinterpret(x, out, back)
    assert np.array_equal(out, x.view(bits))
    assert np.array_equal(back.view(bits), x.view(bits) ^ np.array(1, bits))


# --- arrays ---------------------------------------------------------------------------------------


@compiled
def exchange(x, i, out, j):
    store(out, j, load(x, i))
    store(out, j + 1, load(x, i + 1))


@each_dtype(DTYPES, quick=("float32", "int8", "uint64"))
def test_rows_are_loaded_and_stored_anywhere(dtype):
    x, n = some_rows(dtype, 5), lanes(dtype)
    whole = np.zeros(4 * n + 1, dtype)
    out = whole[1:].reshape(4, n)  # not from the beginning of a register
    exchange(x, 3, out, 1)
    assert np.array_equal(out, [0 * x[0], x[3], x[4], 0 * x[0]])


def test_arrays_may_be_read_only():
    x, out = some_rows("f8", 2), np.zeros((2, lanes("f8")))
    x.flags.writeable = False
    exchange(x, 0, out, 0)
    assert np.array_equal(out, x)


@compiled
def load_as_wide(x, words, out):
    store(out, 0, load(words, 1, load(x, 0)))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_words_are_as_wide_as_the_row_that_they_belong_to(dtype):
    n = lanes(dtype)
    words, out = np.arange(3 * n, dtype=np.uint32).reshape(3, n), np.zeros((1, n), np.uint32)
    load_as_wide(np.zeros((1, n), dtype), words, out)
    assert np.array_equal(out[0], words[1])


@compiled
def move_run(x, i, t, out, j, s):
    store_run(out, (j, s), 1, load_run(x, (i, t), 1, 5))


STRIDED = {
    "whole": lambda x: x,
    "part": lambda x: x[2:, 3:],
    "every other": lambda x: x[::2],
    "reversed": lambda x: x[::-1],
    "one for all": lambda x: np.broadcast_to(x[0], x.shape),
}


@pytest.mark.parametrize("layout", STRIDED)
@each_dtype([np.dtype("f4"), np.dtype("f8"), np.dtype("i8")], quick=("float64",))
def test_runs_of_arrays_in_any_order(layout, dtype):
    x, out = (STRIDED[layout](np.arange(first, first + 108).reshape(9, 12).astype(dtype)) for first in (0, 200))
    if layout == "one for all":
        out = out.copy()
    expected = out.copy()
    expected[1, 2:7] = x[3, 1:6]
    move_run(x, 3, 1, out, 1, 2)
    assert np.array_equal(out, expected)


@compiled
def move_column(x, out):
    store_run(out, (1, 2, 3), 2, load_run(x, (2, 0, 1), 2, 4))


def test_runs_are_in_the_first_place_of_axes_after_theirs():
    """As in arrays whose last axis is there for the compiler only."""
    x, out = np.arange(120).reshape(4, 3, 10), np.zeros((2, 5, 8), np.int64)
    expected = out.copy()
    expected[1, 2, 3:7] = x[2, 0, 1:5]
    move_column(*(np.lib.stride_tricks.as_strided(a[..., None], (*a.shape, 2), (*a.strides, 0)) for a in (x, out)))
    assert np.array_equal(out, expected)


@compiled
def move_each(x, i, out, j):
    store_each(out, [(j, 2), (j + 1, 0), (j, 2)], load_each(x, [(i, 1), (i + 1, 0), (2, 3)]))


def test_elements_of_several_places_become_a_row_and_elements_again():
    """Of two for one place, the first stays."""
    x, out = np.arange(60).reshape(10, 6)[::-1, ::-1], np.zeros((4, 3), np.int64)
    expected = out.copy()
    expected[1, 2], expected[2, 0] = x[5, 1], x[6, 0]
    move_each(x, 5, out, 1)
    assert np.array_equal(out, expected)


@compiled
def sum_elements(x, i, line, out):
    total = x[i, 1] + x[i + 1, 0] + line[i] + x.shape[0]
    store(out, 0, np.full_like(load(out, 0), total))


def test_elements_of_arrays_in_any_order():
    x, line, out = np.arange(60).reshape(10, 6), np.arange(100, 110), np.zeros((1, lanes("i8")), np.int64)
    for a, b in [(x, line), (x[::2, 1::2], line[::-1]), (x[1:6, ::-1], line[::2])]:
        sum_elements(a, 2, b, out)
        assert (out == a[2, 1] + a[3, 0] + b[2] + len(a)).all()


@compiled
def pick(table, indices, out):
    row = load(indices, 0, load(out, 0))
    store(out, 0, gather(table, row))
    store(out, 1, gather(table, row + width(row), 3))


INDICES = [(dtype, indices) for dtype in ("f4", "f8", "u4") for indices in ("u4", "i4", "i8")]
QUICK_INDICES = [("f4", "i4"), ("f8", "u4"), ("u4", "i8")]


@pytest.mark.parametrize(
    ("dtype", "indices"),
    [pytest.param(*x, marks=() if x in QUICK_INDICES else pytest.mark.long) for x in INDICES],
)
def test_gather_takes_an_element_for_each_lane(dtype, indices):
    n, table = lanes(dtype), np.arange(300).astype(dtype) + 7
    places = np.random.default_rng(0).integers(0, 50, (1, n)).astype(indices)
    for t in (table, table[::2], table[::-1]):
        out = np.zeros((2, n), dtype)
        pick(t, places, out)
        assert np.array_equal(out, [t[places[0]], t[places[0] + n + 3]])


@pytest.mark.parametrize("n", [1, 2, 4, 16])
@pytest.mark.parametrize("dtype", ["f8", "u4"])
def test_transpose_turns_rows_into_columns(n, dtype):
    @compiled
    def turn(x):
        for i, row in enumerate(transpose([load_run(x, (i, 0), 1, n) for i in range(n)])):
            store_run(x, (i, 0), 1, row)

    x = np.arange(n * n).reshape(n, n).astype(dtype)
    expected = x.T.copy()
    turn(x)
    assert np.array_equal(x, expected)


@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_every_other_number_is_separated_and_put_back(dtype):
    @compiled
    def turn(x, y):
        evens, odds = separate(load(x, 0), load(x, 1))
        store(y, 0, evens)
        store(y, 1, odds)
        for row, value in enumerate(interleave(evens, odds)):
            store(y, 2 + row, value)

    n = lanes(dtype)
    x, y = np.arange(2 * n, dtype=dtype).reshape(2, n), np.full((4, n), -1, dtype)
    turn(x, y)
    assert np.array_equal(y[:2], [x.ravel()[::2], x.ravel()[1::2]])
    assert np.array_equal(y[2:], x)


def test_permute_takes_lanes_in_any_order():
    @compiled
    def turn(x):
        store_run(x, (1, 0), 1, permute(load_run(x, (0, 0), 1, 4), [2, 0, 3, 3]))

    x = np.array([[10.0, 11, 12, 13], [0, 0, 0, 0]])
    turn(x)
    assert x[1].tolist() == [12, 10, 13, 13]


# --- repeat ---------------------------------------------------------------------------------------


@compiled
def fibonacci(n, out):
    one = np.full_like(load(out, 0), 1)
    for i, row in enumerate(repeat(n, lambda _, a, b: (b, a + b), one, one)):
        store(out, i, row)


@pytest.mark.parametrize("dtype", ["i8", "f8", "u4"])
@pytest.mark.parametrize("n", [-1, 0, 1, 2, 10])
def test_repeat_carries_values_from_step_to_step(dtype, n):
    out = np.zeros((2, lanes(dtype)), dtype)
    fibonacci(n, out)
    known = [1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144]
    assert (out.T == known[max(0, n) :][:2]).all()


@compiled
def sum_rows(x, n, out):
    """Row i counts i + 1 times."""

    def outer(i, total, n_steps):
        def inner(j, total, n_steps):
            return total + load(x, i), n_steps + 1

        return repeat(i + 1, inner, total, n_steps)

    zero = np.full_like(load(x, 0), 0)
    for i, value in enumerate(repeat(n, outer, zero, zero)):
        store(out, i, value)


@pytest.mark.parametrize("n", [0, 1, 4])
def test_repeat_inside_repeat(n):
    x, out = some_rows("f8", 5), np.zeros((2, lanes("f8")))
    sum_rows(x, n, out)
    weights = np.arange(1, n + 1)
    assert np.array_equal(out[0], weights @ x[:n])
    assert (out[1] == weights.sum()).all()


@compiled
def fill_while(x, n):
    repeat(n, lambda i: store(x, i, np.full_like(load(x, i), i)) or ())
    repeat(n < 2, lambda _: store(x, 3, load(x, 3) + 1) or ())
    repeat(2, lambda i: store(x, 4 + i, load(x, 4 + i) + i) or ())


@pytest.mark.parametrize("n", [0, 1, 2, 3])
def test_repeat_without_values_and_for_a_truth(n):
    x = np.full((6, lanes("i8")), 9)
    fill_while(x, n)
    assert np.array_equal(x[:, 0], [*range(n), *[9] * (3 - n), 9 + (n < 2), 9, 10])
    assert (x == x[:, :1]).all()


# --- what a traced function takes and gives -------------------------------------------------------


class Pair(NamedTuple):
    low: Any
    high: Any

    def middle(self):
        return (self.low + self.high) * 0.5


@traced
def split(x, row):
    a, b = load(x, row), load(x, row + 1)
    return Pair(np.fmin(a, b), np.fmax(a, b)), a < b, (row + 2, x[0, 1])


@traced
def join(x, row, pair, mask, number):
    store(x, row, np.where(mask, pair.middle(), number))


@numba.njit(**OPTIONS)
def split_and_join(x):
    pair, mask, (row, number) = split(x, 0)
    join(x, row, pair, mask, number)
    join(x, row + 1, Pair(pair.high, pair.high), mask, 2.0)


def test_named_tuples_rows_masks_and_numbers_pass_through_kernels():
    x = some_rows("f8", 4)
    a, b, *_ = x.copy()
    split_and_join(x)
    assert np.array_equal(x[2], np.where(a < b, (a + b) / 2, a[1]))
    assert np.array_equal(x[3], np.where(a < b, np.maximum(a, b), 2))


@traced
def advance(x, row, tile):
    return tuple(value + load(x, row) for value in tile)


@traced
def start(x):
    return load(x, 0), load(x, 1)


@traced
def keep(x, tile):
    for i, value in enumerate(tile):
        store(x, i, value)


@numba.njit(**OPTIONS)
def accumulate(x, n):
    tile = start(x)
    for i in range(n):
        tile = advance(x, i, tile)
    keep(x, tile)


@pytest.mark.parametrize("n", [0, 5])
def test_rows_are_variables_of_kernels(n):
    x = some_rows("f8", 5)
    expected = x.copy()
    expected[:2] += x[:n].sum(axis=0)
    accumulate(x, n)
    assert np.array_equal(x, expected)


@JIT_ONLY
def test_what_does_not_fit_into_registers_begins_with_a_cache_line():
    """Whoever calls: rows across two lines made the same chain up to a sixth slower."""
    kernel = compiled(lambda x: store(x, 0, load(x, 1)))
    kernel(some_rows("f8", 2))
    (code,) = kernel.inspect_llvm().values()
    assert "alignstack" in code


seen = []


@traced
def literals(x, n, word, truth):
    seen[:] = [type(n), type(word), type(truth)]
    rows = [load(x, i) for i in range(n)]
    store(x, 0, sum(rows[1:], rows[0]) if word == "sum" and truth else rows[0])


@numba.njit(**OPTIONS)
def with_literals(x):
    literals(x, 3, "sum", True)


def test_literal_arguments_are_values_of_python():
    x = some_rows("f8", 4)
    expected = x[:3].sum(axis=0)
    with_literals(x)
    assert np.array_equal(x[0], expected)
    assert seen == [int, str, bool]


def test_the_python_of_a_traced_function_runs_on_arrays():
    x = some_rows("f8", 3)
    expected = x.copy()
    expected[0] += x[1] + x[2]
    literals.python(x, 3, "sum", True)
    assert np.array_equal(x, expected)
    assert literals.__name__ == "literals"
    assert split.__doc__ is None


# --- errors ---------------------------------------------------------------------------------------


def symbol(dtype, n_lanes=4):
    """A row of nothing in particular."""
    builder = ir.IRBuilder(ir.Function(ir.Module(), ir.FunctionType(ir.VoidType(), []), "f").append_basic_block())
    dtype = np.dtype(dtype)
    return Symbol(builder, ir.Constant(simd._llvm_type(dtype, n_lanes), ir.Undefined), dtype, n_lanes)


def test_symbols_say_what_they_are():
    assert [repr(symbol("f4")), repr(symbol("i8", 0))] == ["float32 x 4", "int64 number"]


MIXED = {
    "floats": (lambda a: a + symbol("f8"), "f4"),
    "float and integer": (lambda a: a + symbol("i4"), "f4"),
    "signed and unsigned": (lambda a: a + symbol("u4"), "i4"),
    "compared": (lambda a: a < symbol("u8"), "u4"),
    "chosen": (lambda a: np.where(a < a, a, symbol("i8")), "i4"),
    "chosen by numbers": (lambda a: np.where(a, a, a), "i4"),
    "chosen by more lanes": (lambda a: np.where(a > 0, symbol("f8", 0), 1), "f8"),
    "fma": (lambda a: fma(a, symbol("f8"), 1), "f4"),
    "full_like": (lambda a: np.full_like(a, symbol("f8")), "f4"),
    "repeat": (lambda a: repeat(symbol("i8", 0), lambda i, x: (x.astype("f8"),), a), "f4"),
    "widths": (lambda a: a + symbol("f4", 8), "f4"),
    "integer and float number": (lambda a: a + 0.5, "i4"),
    "integer and number of NumPy": (lambda a: a + np.float32(1), "i4"),
    "strong number of NumPy": (lambda a: a * np.float64(1), "f4"),
    "truth and number": (lambda a: (a > 0) & 1, "f4"),
}


@pytest.mark.parametrize("case", MIXED)
def test_types_and_widths_do_not_mix_by_themselves(case):
    operate, dtype = MIXED[case]
    with pytest.raises(TypeError, match=r"meets .*: convert one with astype"):
        operate(symbol(dtype))


IMPOSSIBLE = {
    "%": (lambda x: x % 2, "f8"),
    "sin": (np.sin, "f8"),
    "~": (lambda x: ~x, "u4"),
    "==": (lambda x: x == x, "f8"),
    "bits of floats": (lambda x: x & x, "f8"),
    "quotient of integers": (lambda x: x / 2, "i4"),
    "root of integers": (np.sqrt, "i4"),
    "largest of integers": (lambda x: np.fmax(x, x), "u4"),
    "sum of truths": (lambda x: (x > 0) + (x > 1), "f8"),
    "minus a truth": (lambda x: -(x > 0), "f8"),
    "reduce": (np.add.reduce, "f8"),
    "out": (lambda x: np.add(x, x, out=np.zeros(4)), "f8"),
    "cumsum": (np.cumsum, "f8"),
    "full_like of another type": (lambda x: np.full_like(x, 1, dtype=np.int64), "f8"),
    "where of numbers": (lambda x: np.where(x > 0, 1.0, 2.0), "f8"),
    "number as truth": (lambda x: x.astype(bool), "i4"),
    "complex": (lambda x: x.astype(complex), "f8"),
    "half": (lambda x: x.astype(np.float16), "f8"),
}


@pytest.mark.parametrize("case", IMPOSSIBLE)
def test_what_rows_cannot_do_is_a_type_error(case):
    operate, dtype = IMPOSSIBLE[case]
    with pytest.raises(TypeError):
        operate(symbol(dtype))


def test_numbers_that_a_row_cannot_hold_are_an_error():
    with pytest.raises(OverflowError):
        symbol("u1") + 256


def test_repeat_needs_as_many_values_as_it_gives():
    with pytest.raises(ValueError, match="argument 2"):
        repeat(symbol("i8", 0), lambda i, x: (x, x), symbol("f8"))


@JIT_ONLY
def test_errors_in_kernels_are_those_of_python():
    with pytest.raises(TypeError, match=r"float32 x [0-9]+ meets float64 x [0-9]+: convert"):
        compiled(lambda x, y: store(x, 0, load(x, 0) + load(y, 0)))(some_rows("f4", 1), some_rows("f8", 1))


@JIT_ONLY
@pytest.mark.parametrize("array", [np.zeros((2, 16), order="F"), np.zeros((2, 16), bool)])
def test_arrays_in_fortran_order_and_of_truths_are_refused(array):
    with pytest.raises(numba.TypingError, match="arrays of numbers, of layout C or A"):
        compiled(lambda x: store(x, 0, load(x, 1)))(array)


@JIT_ONLY
def test_what_says_that_it_gives_nothing_is_traced_once():
    """Numba wants the type of a result before; only for that it would be traced into nowhere."""
    traces = []

    def copy_back(x) -> None:
        traces.append(x)
        store(x, 0, load(x, 1))

    x = some_rows("f8", 2)
    compiled(copy_back)(x)
    assert np.array_equal(x[0], x[1])
    assert len(traces) == 1


# --- the processor --------------------------------------------------------------------------------


@JIT_ONLY
def test_two_registers_make_a_row():
    assert {dtype.itemsize * lanes(dtype) for dtype in DTYPES} == {2 * simd.register_bytes()}


def print_widths():
    from dpfast._kernels import simd

    print(simd.register_bytes(), simd.lanes("f4"), simd.lanes("f8"))


PROCESSORS = pytest.mark.parametrize(
    ("processor", "width"),
    [
        (processors.AVX512, 64),
        (processors.HASWELL, 32),
        (processors.WITHOUT_FMA, 16),
        (processors.WITHOUT_COMPILER, 64),
    ],
)


@processors.OTHERS
@PROCESSORS
def test_registers_are_those_of_the_processor(monkeypatch, processor, width):
    if "CPU_NAME" in processor:
        tuples = "x86_64-unknown-linux-gnu", processor["CPU_NAME"], processor["CPU_FEATURES"]
        codegen = SimpleNamespace(magic_tuple=lambda: tuples)
        target = SimpleNamespace(target_context=SimpleNamespace(codegen=lambda: codegen))
        monkeypatch.setattr(simd, "cpu_target", target)
    monkeypatch.setattr(simd, "DISABLE_JIT", "DISABLE_JIT" in processor)
    monkeypatch.setattr(simd, "register_bytes", simd.register_bytes.__wrapped__)
    assert (simd.register_bytes(), lanes("f4"), lanes("f8")) == (width, width // 2, width // 4)


@pytest.mark.long
@processors.OTHERS
@PROCESSORS
def test_a_process_has_the_registers_of_its_processor(processor, width, tmp_path):
    found = processors.run_on(processor, print_widths, tmp_path)
    assert found == [str(x) for x in (width, width // 2, width // 4)]
