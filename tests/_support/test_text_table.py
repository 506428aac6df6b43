import csv

from dpfast._support.text_table import Table

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
