"""Tables for a terminal: never wider than 100 columns, and nothing of what is not left out is lost."""

import itertools
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpfast._support.table_layout import break_text, display_width, lay_out
from dpfast._support.text_table import Table

TEXTS = st.text("aε東 |-", max_size=40) | st.text("ab ", max_size=300)
NUMBERS = st.floats(-1e9, 1e9) | st.integers(-(10**9), 10**9) | st.none()


@st.composite
def tables(draw):
    kinds = [TEXTS, *draw(st.lists(st.sampled_from([TEXTS, NUMBERS]), max_size=20))]
    names = draw(st.lists(TEXTS, min_size=len(kinds), max_size=len(kinds)))
    return Table(tuple(names), tuple(draw(st.lists(st.tuples(*kinds), max_size=4))))


def columns_taken(line):
    """Count the columns of a line in a terminal, in which the one wide letter of these tables takes two."""
    return len(line.replace("東", "to"))


@given(tables(), st.data())
def test_no_line_of_a_table_is_wider_than_a_terminal(table, data):
    aside = data.draw(st.lists(st.sampled_from(table.columns), max_size=3))
    assert max(map(columns_taken, table.text(aside=aside, rest="a.csv").split("\n"))) <= 100


@given(tables())
def test_what_is_not_left_out_is_there_to_the_last_letter(table):
    names = [f"{i} {name}" for i, name in enumerate(table.columns)]
    cells = table.cells()
    shown = lay_out(names, cells, table.numeric())
    kept = [i for i, name in enumerate(names) if name not in shown.left_out]
    wanted = "".join("".join([names[i], *(row[i] for row in cells)]) for i in kept)
    rule = next(x for x in shown.lines if set(x) <= {"-", " "})
    found = "".join(shown.lines).replace(rule, "", 1)
    assert 0 in kept
    assert Counter("".join(found.split())) == Counter("".join(wanted.split()))


def test_a_table_that_fits_stands_as_it_is():
    columns, rows = ["name", "predicted RMSE", "remark"], [["x" * 40, "1.5000", "y" * 42], ["b", "10.5", ""]]
    assert lay_out(columns, rows, [False, True, False], ["remark"]).lines == [
        "name" + " " * 38 + "predicted RMSE  remark",
        "-" * 40 + "  " + "-" * 14 + "  " + "-" * 42,
        "x" * 40 + "          1.5000  " + "y" * 42,
        "b" + " " * 39 + "            10.5",
    ]


def test_a_table_of_one_column_more_than_a_terminal_is_broken():
    columns, rows = ["name", "predicted RMSE", "remark"], [["x" * 40, "1.5000", "y" * 43], ["b", "10.5", ""]]
    shown = lay_out(columns, rows, [False, True, False], ["remark"])
    assert shown.left_out == []
    assert shown.lines[0].split() == ["predicted"]
    assert max(map(len, shown.lines)) == 40 + 2 + 9 + 2 + 43


def test_headings_are_broken_first_and_stand_above_the_rule():
    shown = lay_out(["name", *["long heading"] * 9], [["x", *["1.5000"] * 9]], [False, *[True] * 9])
    assert shown.left_out == []
    assert [x.split() for x in shown.lines[:2]] == [["long"] * 9, ["name", *["heading"] * 9]]


def test_texts_are_broken_next_and_go_on_below_themselves():
    rows = [["input perturbation (integer noise)", *["1.5000"] * 10], ["LZF", *["2.5000"] * 10]]
    shown = lay_out(["name", *["number"] * 10], rows, [False, *[True] * 10])
    assert [x[:20].rstrip() for x in shown.lines[2:]] == ["input perturbation", "  (integer noise)", "LZF"]
    assert shown.left_out == []


def test_columns_that_matter_least_are_left_out_first_and_named_with_where_they_are():
    columns = ["name", *(f"column{i:08}" for i in range(10))]
    table = Table(tuple(columns), (("x", *range(10)),))
    text = table.text(aside=[columns[4], columns[2]], rest="all.csv")
    out = [columns[2], columns[4], *columns[-2:]]
    assert [x for x in columns if x not in text.split("\n")[0].split()] == out
    assert max(map(len, text.split("\n"))) <= 100
    note = text.split("Left out for want of room: ")[1].replace("\n", " ")
    assert note == f"{', '.join(out)}. all.csv has all columns."


@given(TEXTS, st.integers(4, 60))
def test_a_broken_text_has_the_same_words_unless_they_are_too_long(text, width):
    lines = break_text(text, width)
    assert all(columns_taken(x) <= width for x in lines)
    assert "".join("".join(lines).split()) == "".join(text.split())
    if all(columns_taken(x) <= width for x in text.split()):
        assert " ".join(lines).split() == text.split()
        broken = itertools.pairwise(x.strip() for x in lines)
        assert all(columns_taken(a) + 1 + columns_taken(b.split()[0]) > width for a, b in broken)


@pytest.mark.parametrize(("text", "width"), [("abc", 3), ("東京", 4), ("e\u0301", 1), ("ε – …", 5), ("\uff21", 2)])
def test_wide_letters_take_two_columns_and_accents_none(text, width):
    assert display_width(text) == width
