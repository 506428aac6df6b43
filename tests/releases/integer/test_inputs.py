"""What is declared of the data, against rational arithmetic that imports nothing from the package."""

import math
import time
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dpfast.releases.integer.inputs import LARGEST, Inputs

INTEGERS = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64, np.bool_]
UNITS = st.sampled_from([1, 2, 5, Fraction(1, 2), Fraction(1, 3), Fraction(3, 10), "0.25"])


def exactly(value, inputs):
    """Half up, clamped, less the centre."""
    unit, low, high, centre = (Fraction(getattr(inputs, x)) for x in ("unit", "low", "high", "centre"))
    if isinstance(value, float) and math.isnan(value):
        value = Fraction(inputs.missing)
    if isinstance(value, float) and math.isinf(value):
        value = high if value > 0 else low
    rounded = math.floor(Fraction(value) / unit + Fraction(1, 2))
    return int(min(max(rounded, low / unit), high / unit) - centre / unit)


@st.composite
def declarations(draw, **more):
    unit = Fraction(draw(UNITS))
    low = draw(st.integers(-1000, 1000))
    high = draw(st.integers(low + 1, 2000))
    centre = draw(st.integers(low, high))
    return Inputs(low * unit, high * unit, unit=unit, centre=centre * unit, **more)


@given(declarations(), st.sampled_from(INTEGERS).flatmap(lambda t: hnp.arrays(t, st.integers(0, 6))))
def test_integers_of_every_dtype_are_those_of_rational_arithmetic(inputs, u):
    assert inputs.integers(u).tolist() == [[exactly(int(x), inputs) for x in u]]


@given(declarations(missing=None), st.data())
def test_floats_are_those_of_rational_arithmetic_and_nan_counts_as_declared(inputs, data):
    power_of_two = inputs.unit.denominator & (inputs.unit.denominator - 1) == 0 and inputs.unit.numerator in (1, 2)
    assume(power_of_two)  # else the quotient of floats is rounded
    inputs = Inputs(inputs.low, inputs.high, unit=inputs.unit, centre=inputs.centre, missing=inputs.high)
    dtype = data.draw(st.sampled_from([np.float16, np.float32, np.float64]))
    u = data.draw(hnp.arrays(dtype, st.integers(0, 6), elements=st.floats(width=np.dtype(dtype).itemsize * 8)))
    assert inputs.integers(u).tolist() == [[exactly(float(x), inputs) for x in u]]


@pytest.mark.parametrize("value", [0.49999999999999994, -0.5, -0.5000000000000001, 0.5, 1.5, 2.5, 4503599627370495.5])
def test_halves_go_up_and_what_is_next_to_them_does_not_move(value):
    inputs = Inputs(-10, 10, missing=0)
    assert inputs.integers(np.array([value])).tolist() == [[exactly(value, inputs)]]


@given(st.floats(-50, 50), st.floats(0, 3), st.sampled_from([1, 0.5, 2, 0.1, 0.3]), st.sampled_from([0.5, 1, 1.7, 3]))
@example(0.49999999999999994, 1.0, 1, 1)
def test_a_change_of_a_value_moves_its_integer_no_further_than_declared(u, share, unit, max_change):
    """The law that the guarantee rests on, for measurements."""
    inputs = Inputs(-100 * Fraction(str(unit)), 100 * Fraction(str(unit)), unit=unit, multiples=False, missing=0)
    other = u + min(share, 1) * max_change
    assume(abs(Fraction(other) - Fraction(u)) <= Fraction(str(max_change)))
    a, b = inputs.integers(np.array([u, other]))[0]
    assert abs(b - a) <= inputs.change(max_change)


@given(declarations(), st.integers(-(10**6), 10**6), st.integers(0, 40))
def test_multiples_move_by_whole_units(inputs, k, units):
    u = np.array([[exact_float(k * inputs.unit), exact_float((k + units) * inputs.unit)]])
    declared = Inputs(inputs.low, inputs.high, unit=inputs.unit, centre=inputs.centre, missing=inputs.low)
    a, b = declared.integers(u)[0]
    assume(units > 0)
    assert abs(b - a) <= declared.change(float(units * inputs.unit) * (1 + 1e-9))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.longdouble])
def test_what_a_type_of_floats_cannot_hold_does_not_warn(dtype):
    """Warnings are errors here: numbers beyond float64, signalling NaN, and ranges that the type has not."""
    inputs = Inputs(-5, 10**6 + 1, missing=10**6 + 1)
    largest = np.finfo(dtype).max
    signalling = {
        np.float16: np.array([0x7C01], np.uint16),
        np.float32: np.array([0x7F800001], np.uint32),
        np.float64: np.array([0x7FF0000000000001], np.uint64),
    }
    bits = signalling.get(dtype)
    none = np.array([np.nan], dtype) if bits is None else bits.view(dtype)
    u = np.concatenate([none, np.array([largest, -largest, np.finfo(dtype).smallest_subnormal, 3], dtype)])
    assert inputs.integers(u).tolist() == [[10**6 + 1, min(int(largest), 10**6 + 1), -5, 0, 3]]


@given(st.fractions(Fraction(1, 10**30), 10**6), st.integers(-50, 50), st.integers(1, 2**39), st.data())
def test_integers_on_a_lattice_of_any_fraction(unit, low, steps, data):
    """In products that fit into 64 bits, and in those that do not."""
    inputs = Inputs(low * unit, (low + steps) * unit, unit=unit, centre=low * unit)
    dtype = data.draw(st.sampled_from([np.uint8, np.int64, np.uint64]))
    u = data.draw(hnp.arrays(dtype, 4))
    assert inputs.integers(u).tolist() == [[exactly(int(x), inputs) for x in u]]


def test_no_integer_takes_longer_than_another():
    """Large ones took 3.5 times as long as small ones as objects of Python."""
    inputs, arrays = Inputs(0, 2**38), [np.full((1, 20_000), value) for value in (0, 2**62)]

    def seconds(u):
        start = time.thread_time()  # not what other processes take
        inputs.integers(u)
        return time.thread_time() - start

    small, large = (min(times) for times in zip(*([seconds(u) for u in arrays] for _ in range(50)), strict=True))
    assert large < 2 * small


def exact_float(x):
    return float(x)


@given(low=st.integers(-LARGEST, LARGEST - 1), high=st.integers(-LARGEST + 1, LARGEST))
@example(-128, 127)
@example(-129, 0)
@example(0, 128)
@example(-LARGEST, LARGEST)
def test_the_smallest_dtype_holds_the_whole_range_and_no_smaller_one_does(low, high):
    assume(low < high)
    inputs = Inputs(low, high, centre=low if low > 0 else min(high, 0))
    bits = [8 * x for x in (1, 2, 4, 8) if all(-(2 ** (8 * x - 1)) <= y < 2 ** (8 * x - 1) for y in inputs.range)]
    assert inputs.dtype == np.dtype(f"int{bits[0]}")


def test_the_largest_change():
    assert Inputs(0, 40).change(1) == 1
    assert Inputs(0, 40, unit=0.5).change(1) == 2
    assert Inputs(0, 3, unit=0.1).change(0.3) == 3  # 0.3 / 0.1 is 2.9999999999999996 in floats
    assert Inputs(0, 40, multiples=False).change(1) == 2
    assert Inputs(0, 40, multiples=False).change(1.5) == 2
    assert Inputs(0, 2).change(7) == 2  # the range is narrower
    assert Inputs(0, 2, centre=1).change(7) == 2


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((0, 0), {}, "low must be below high, and both at most"),
        ((3, 2), {}, "low must be below high"),
        ((0, LARGEST + 1), {}, r"at most 2\*\*40 units"),
        ((0, 10), {"unit": 0}, r"unit must be from 1e-50 to 1e\+50, got 0"),
        ((0, 10), {"unit": -1}, "unit must be from"),
        ((0, Fraction(9, 10**60)), {"unit": Fraction(1, 10**60)}, "unit must be from"),  # not as a float
        ((0, 10**400), {"unit": 10**400}, "unit must be from"),
        ((0, 10), {"unit": "1"}, "unit must be a finite number, got '1'"),
        ((0, 10), {"unit": 3}, "high must be a multiple of the unit 3, got 10: the nearest are 9 and 12"),
        ((0, 10), {"centre": 0.5}, "centre must be a multiple of the unit 1, as low is, got 1/2"),
        ((0, 10), {"centre": 11}, "centre must be in the range from 0 to 10, got 11"),
        ((0, 10), {"missing": -1}, "missing must be in the range"),
        ((0, np.nan), {}, "high must be a finite number, got nan"),
        ((0, Decimal("inf")), {}, "high must be a finite number, got Decimal"),
        ((0, 10), {"n_streams": 0}, "n_streams must be an integer, at least 1"),
        ((0, 10), {"n_streams": 2, "streams_per_person": 3}, "streams_per_person must be an integer, .* at most 2"),
        ((0, 10), {"multiples": 1}, "multiples must be True or False, got 1"),
    ],
)
def test_declarations_that_make_no_sense(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        Inputs(*arguments, **options)


def test_a_unit_larger_than_an_event_is_refused():
    with pytest.raises(ValueError, match=r"unit must be at most the largest change of an event, 0\.5"):
        Inputs(0, 10).change(0.5)


WITHOUT_DTYPE = [[1, 2], [[1], [2, 3]], (1,), 3, None, "counts", [2**70], {"a": 1}, np.ma.array([1, 2])]
FLOATS = np.array([0.0, 1.0])
DTYPES = [FLOATS, *(np.array([x]) for x in (1j, "3", None, 2**70, np.datetime64("2013-01-01")))]


@pytest.mark.parametrize("u", WITHOUT_DTYPE, ids=repr)
def test_what_has_no_dtype_of_its_own_is_refused(u):
    """Else the dtype, and with it a refusal, would depend on the values."""
    with pytest.raises(ValueError, match=r"u must be an array of numbers, not masked, .* got \w+"):
        Inputs(0, 10).check("u", u)


@pytest.mark.parametrize("u", DTYPES, ids=lambda x: str(x.dtype))
def test_other_dtypes_are_refused_by_their_type(u):
    with pytest.raises(ValueError, match=r"u must be of an integer dtype, or of floats where .*missing.* got dtype"):
        Inputs(0, 10).check("u", u)


@pytest.mark.parametrize(("n", "shape"), [(1, (2, 3)), (1, ()), (1, (1, 1, 1)), (2, (3,)), (2, (3, 2)), (3, (3, 3, 1))])
def test_other_shapes_are_refused_with_the_shape(n, shape):
    with pytest.raises(ValueError, match=rf"chunk must be of shape \({n}, time\).* got shape"):
        Inputs(0, 10, n_streams=n).check("chunk", np.zeros(shape, int))


def test_a_table_of_more_columns_than_are_declared_is_told_what_to_declare():
    table = pandas.DataFrame(np.zeros((600, 2), int), columns=["door", "lift"])
    with pytest.raises(ValueError, match=r"got shape \(2, 600\): Inputs\(n_streams=2\) declares as many streams"):
        Inputs(0, 10).check("u", table)
    with pytest.raises(ValueError, match=r"got shape \(3, 2\): transpose it"):
        Inputs(0, 10, n_streams=2).check("u", np.zeros((3, 2), int))


def test_messages_show_no_values():
    for u in (np.array(["secret"]), np.array([12345.0]), np.ma.array([12345]), [12345], np.full((2, 2), 12345)):
        with pytest.raises(ValueError, match="u must be") as error:
            Inputs(0, 10).check("u", u)
        assert "12345" not in str(error.value)
        assert "secret" not in str(error.value)


@given(declarations(n_streams=3, streams_per_person=2, multiples=False))
def test_what_is_written_comes_back(inputs):
    assert Inputs.from_public(inputs.public()) == inputs
