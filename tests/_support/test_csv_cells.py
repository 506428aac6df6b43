import csv
import io
import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpfast._support.csv_cells import csv_lines, round_to_error, unescape

FORMULAS = [
    *[
        "=1+1",
        "+1+1",
        "-1-1",
        "@SUM(A1)",
        "=",
        "-",
        "+",
        "@",
        "-x",
        "=cmd|' /C calc'!A0",
        "-1_0",
        "--1",
        "+-1",
        "-1e",
        "-.",
        "-1;",
        "-1;=1",
        "-1;2-1",
        "-1;;2",
    ],
    *[" =1", "\t=1", "\n=1", "\r=1", "'=1", "''=1", "' =1", "\uff1d1+1", "-\u0661", "-inf", "'-1"],
]
OTHERS = [
    "",
    "a",
    "a=1",
    "1-1",
    "'s-Gravenhage",
    "-1",
    "-2;22",
    "-2;-1;0",
    "+1",
    "-1.5",
    "-.5e-7",
    "+49123",
    "-1E5",
    "2013-01-01",
    "#x",
    "'",
]


@pytest.mark.parametrize("text", FORMULAS)
def test_formulas_have_an_apostrophe(text):
    ((cell,),) = csv.reader(io.StringIO(csv_lines([(text,)]), newline=""), strict=True)
    assert cell == "'" + text
    assert unescape(cell) == text


@pytest.mark.parametrize("text", OTHERS)
def test_others_have_none(text):
    assert next(csv.reader([csv_lines([(text,)])])) == [text]
    assert unescape(text) == text


def test_numbers_stay_numbers():
    row = [-1, -1.5, -1e-300, np.float64(-2.5), np.int64(-3), True, None]
    assert csv_lines([row]) == "-1,-1.5,-1e-300,-2.5,-3,True,\n"


texts = st.text(st.sampled_from("=+-@' \t1.e5x\uff1d,\""), max_size=6)


@given(st.lists(texts, min_size=1, max_size=4))
def test_every_text_comes_back_and_none_is_a_formula(several):
    row = next(csv.reader([csv_lines([["x", *several]])], strict=True))[1:]
    assert [unescape(cell) for cell in row] == several
    for cell in row:
        assert not re.match(r"\s*[=+\-@\uff1d]", cell) or re.fullmatch(r"[+-][\d.e+-]+", cell)


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        (0.3, "1.235"),
        (0.0999, "1.2346"),
        (1.0, "1.23"),
        (250.0, "1.0"),
        (0.0, "1.2345678901234567"),
        (None, "1.2345678901234567"),
    ],
)
def test_steps_are_at_most_a_hundredth_of_the_error(error, shown):
    assert round_to_error([1.2345678901234567, math.nan], error) == [shown, None]
