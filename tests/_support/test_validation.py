import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas
import pytest

from dpfast._support import validation
from dpfast._support.errors import MissingExtraError

SECRET = 8675309.125  # a datum that no message may show


@pytest.mark.parametrize("value", [1, 0.5, np.float32(2), np.int64(3), Fraction(1, 2), Decimal("0.5"), np.array(2.0)])
def test_number_accepts_every_real_type(value):
    result = validation.number("x", value)
    assert type(result) is float
    assert result == float(value)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, "1", b"1", None, True, np.True_, 1j, [1], 10**400])
def test_number_refuses_what_is_no_finite_number(value):
    with pytest.raises(ValueError, match=r"^x must be a finite number, got "):
        validation.number("x", value)


@pytest.mark.parametrize(
    ("bounds", "value", "wording"),
    [
        ({"above": 0}, 0, "x must be a finite number above 0, got 0"),
        ({"above": 0}, -1.5, "x must be a finite number above 0, got -1.5"),
        ({"above": 0, "below": 1}, 1, "x must be a number strictly between 0 and 1, got 1"),
        ({"above": 0, "below": 1}, 0, "x must be a number strictly between 0 and 1, got 0"),
    ],
)
def test_number_keeps_its_bounds_and_says_which(bounds, value, wording):
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        validation.number("x", value, **bounds)
    assert str(caught.value) == wording


@pytest.mark.parametrize("value", [2, np.int32(2), np.uint64(2)])
def test_integer_accepts_integers(value):
    result = validation.integer("n", value, 2)
    assert type(result) is int
    assert result == 2


@pytest.mark.parametrize("value", [1, -5, 2.0, "2", None, True, np.True_, math.nan, [2]])
def test_integer_refuses_the_rest(value):
    with pytest.raises(ValueError, match=r"^n must be an integer, at least 2, got "):
        validation.integer("n", value, 2)


@pytest.mark.parametrize("value", [-1, 0.5, None, "0", 10_001])
def test_lag_is_a_count_of_samples(value):
    assert validation.lag(0) == 0
    with pytest.raises(ValueError, match=r"^lag must be an integer, at least 0 and at most 10000, got "):
        validation.lag(value)


@pytest.mark.parametrize("value", ["Soft", "", None, 1, ["soft"]])
def test_choice_lists_the_words(value):
    assert validation.choice("decision", "soft", ("sign", "soft")) == "soft"
    with pytest.raises(ValueError, match=r"^decision must be one of 'sign', 'soft', got "):
        validation.choice("decision", value, ("sign", "soft"))


@pytest.mark.parametrize(
    ("value", "described"),
    [
        (np.array([[SECRET]]), "a ndarray of shape (1, 1)"),
        ([SECRET] * 3, "a list of length 3"),
        ((SECRET,), "a tuple of length 1"),
        ({"x": SECRET}, "a dict of length 1"),
        (pandas.Series([SECRET]), "a Series of shape (1,)"),
        (np.float64(2.5), "np.float64(2.5)"),
        ("word", "'word'"),
        (np.float16, "<class 'numpy.float16'>"),
        (np.ndarray, "<class 'numpy.ndarray'>"),
    ],
)
def test_messages_show_scalars_and_only_the_size_of_data(value, described):
    assert str(validation.fail("x", "right", value)) == f"x must be right, got {described}"


def test_long_values_are_cut_in_messages():
    assert len(str(validation.fail("x", "short", "a" * 1000))) < 120


@pytest.mark.parametrize("value", [[1, 2], (1.5,), np.arange(3), [True, False], np.float32([1]), range(4), []])
def test_array_is_a_float_copy(value):
    result = validation.array("u", value)
    assert result.dtype == np.float64
    np.testing.assert_array_equal(result, np.asarray(value, dtype=float))


def test_array_copies_and_leaves_the_callers_alone():
    given = np.ones(3)
    result = validation.freeze(validation.array("u", given))
    given[0] = 7
    assert result.tolist() == [1, 1, 1]
    assert given.flags.writeable
    assert not result.flags.writeable


@pytest.mark.parametrize(
    ("value", "options", "message"),
    [
        ([[SECRET], [1, 2]], {}, "u must be an array of numbers, got rows of unequal length"),
        (["a"], {}, "u must hold real numbers, got dtype <U1: convert it"),
        ([SECRET + 1j], {}, "u must hold real numbers, got dtype complex128: convert it"),
        ([None, SECRET], {}, "u must hold real numbers, got dtype object: convert it"),
        (
            np.array(["2020-01-01"], dtype="M8[D]"),
            {},
            r"u must hold real numbers, got dtype datetime64\[D\]: convert it",
        ),
        ([SECRET], {"ndim": 2}, r"u must have 2 dimensions, got shape \(1,\)"),
        ([[SECRET]], {"ndim": 1}, r"u must have 1 dimension, got shape \(1, 1\)"),
        ([], {"empty": False}, r"u must not be empty, got shape \(0,\)"),
        ([1.0, 8675309e50], {}, r"u must be at most 1e\+50 in magnitude, got 1 larger values: scale it"),
        (np.ma.masked_array([SECRET, 1], [1, 0]), {}, "u must not have masked values: fill or remove them"),
        ([SECRET, math.nan, math.inf], {}, "u must be finite, got 2 NaN or infinite values: remove or replace them"),
    ],
)
def test_array_says_what_is_wrong_and_shows_no_data(value, options, message):
    with pytest.raises(ValueError, match=f"^{message}$") as caught:
        validation.array("u", value, **options)
    assert "8675309" not in str(caught.value)


def test_array_of_extended_precision_that_overflows_is_refused():
    with np.errstate(over="ignore"), pytest.raises(ValueError, match="u must be finite"):
        validation.array("u", np.array([np.longdouble("1e4000")]))


@pytest.mark.parametrize("value", [0, 1, np.int64(5), 2**200])
def test_seed_is_an_integer(value):
    assert validation.seed(value) == int(value)


def test_seed_is_drawn_from_a_generator():
    first, again = np.random.default_rng(1), np.random.default_rng(1)
    assert validation.seed(first) == validation.seed(again)
    assert validation.seed(first) != validation.seed(np.random.default_rng(1))


@pytest.mark.parametrize("value", [None, -1, 1.5, "1", True, np.random.RandomState(1)])
def test_other_seeds_are_refused(value):
    with pytest.raises(ValueError, match=r"^seed must be an integer, at least 0, or a generator of numpy.*, got "):
        validation.seed(value)


def test_optional_names_the_extra():
    assert validation.optional("math", "plot") is math
    with pytest.raises(MissingExtraError, match=r"this needs no_such_module: pip install 'dpfast\[plot\]'"):
        validation.optional("no_such_module.sub", "plot")


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("optimall", "; did you mean optimal?"),
        ("OPTIMAL", "; did you mean optimal?"),
        ("optimal_f", "; did you mean optimal_factorization?"),
        ("o", ""),
        ("", ""),
        ("robust", "; did you mean robust?"),
        ("nothing of the kind", ""),
        (3, ""),
        (None, ""),
    ],
)
def test_the_word_that_was_meant_is_told_where_one_is_near(word, meant):
    assert validation.did_you_mean(word, ["optimal", "optimal_factorization", "robust"]) == meant
