import csv

import pytest

from dpfast._support.text_table import Estimate, Table

TABLE = Table(("name", "value", "text"), (("a|b", 1.23456789, "x, y"), ("long name", None, 'quote "')))


def test_text_shows_five_digits_and_a_dash_for_none():
    lines = TABLE.text().split("\n")
    assert lines[2].split() == ["a|b", "1.2346", "x,", "y"]
    assert "–" in lines[3]
    assert len({line.index(x) + len(x) for line, x in zip(lines[2:], ("1.2346", "–"), strict=True)}) == 1


def test_a_table_may_be_without_some_columns():
    table = Table(("a", "b", "c"), ((1, 2, 3), (4, 5, None)))
    assert table.without({"b", "d"}) == Table(("a", "c"), ((1, 3), (4, None)))
    assert table.without(()) == table


def test_csv_keeps_full_precision_and_survives_commas_and_quotes():
    text = TABLE.csv(["one", "two"])
    assert text.startswith("# one\n# two\n")
    rows = list(csv.DictReader(text.split("\n")[2:-1]))
    assert [float(rows[0]["value"]), rows[1]["value"]] == [1.23456789, ""]
    assert [row["text"] for row in rows] == ["x, y", 'quote "']


def test_what_a_spreadsheet_would_compute_is_text_in_csv():
    table = Table(("=a", "-b"), (("=1+1", -1.5), ("@x", "-0.25"), ("-2+3", None)))
    assert table.csv() == "'=a,'-b\n'=1+1,-1.5\n'@x,-0.25\n'-2+3,\n"
    assert "'" not in table.text() + table.markdown()


def test_markdown_keeps_its_columns_when_a_cell_has_a_bar():
    for line in TABLE.markdown().split("\n"):
        assert line.replace("\\|", "").count("|") == len(TABLE.columns) + 1


ERRORS = Table(
    ("name", "rmse", "low", "high", "after"),
    (
        ("a", 1.0, 0.9, 1.1, "x"),
        ("b", 20, 10, 30.5, "x"),
        ("c", "failed", None, None, "x"),
        ("d", float("nan"), 1.0, 2.0, "x"),
        ("e", 5.0, None, 7.0, "x"),
        ("f", 6.0, 1.0, None, "x"),
    ),
)


def test_a_figure_and_its_interval_share_a_cell():
    joined = ERRORS.join_interval("rmse", 0.95)
    assert joined.columns == ("name", "rmse [95 % interval]", "after")
    assert joined.rows[0] == ("a", Estimate(1.0, 0.9, 1.1), "x")
    assert [x[1] for x in joined.cells()] == [
        "1.0000 [0.90000, 1.1000]",
        "20 [10, 30.500]",
        "failed",
        "–",
        "5.0000",
        "6.0000",
    ]
    assert joined.numeric() == joined.first(1).numeric() == [False, True, False]


@pytest.mark.parametrize("n", [0, 6, 7, 30])
def test_an_interval_is_in_print_wherever_its_figure_is(n):
    """Were its ends columns of their own, they would be left out for want of room while the figure stays."""
    names = "name", "rmse", *(f"column{i:03}" for i in range(n)), "low", "high"
    text = Table(names, (("a", 1.25, *range(n), 1.125, 1.5),)).join_interval("rmse", 0.99).text()
    row = next(x for x in text.split("\n") if x.startswith("a "))
    assert "  1.2500 [1.1250, 1.5000]" in row
    assert max(map(len, text.split("\n"))) <= 100


GRID = Table(
    ("place", "word", "name", *(f"number{i}" for i in range(8))),
    (
        *((place, word, "c" * 20, *(x + 0.5 for x in range(8))) for word in (1, 2) for place in ("here", "there")),
        ("here", None, "constant", *[1.5] * 8),
        (None, None, "other", *[2.5] * 8),
    ),
)


def test_columns_become_headings_before_figures_are_left_out_and_rows_are_gathered_below_them():
    text = GRID.text(heads=["place", "word"], rest="a.csv").split("\n")
    assert max(map(len, text)) <= 100
    assert text[0].split() == [x for x in GRID.columns if x != "place"]
    assert [x.split()[:2] for x in text[2:]] == [
        ["–", "other"],
        *([], ["place", "here"], ["1", "c" * 20], ["2", "c" * 20], ["–", "constant"]),
        *([], ["place", "there"], ["1", "c" * 20], ["2", "c" * 20]),
    ]


def test_a_table_with_room_has_no_headings():
    table = GRID.without([f"number{i}" for i in range(4)])
    assert table.text(heads=["place", "word"]) == table.text()


def test_what_matters_little_is_left_out_before_columns_become_headings():
    assert "\n\n" not in GRID.text(aside=["number3", "number4"], heads=["place", "word"])
