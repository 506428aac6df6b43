"""The table of kills, of a report that is made up."""

import json
from xml.sax.saxutils import quoteattr

import pytest

from benchmarks.harness import kills_table

PAGE = "Before\n\n<!-- kills -->\nold\n<!-- end kills -->\n\nAfter\n"
GOOD = {"what": "killed", "arbiter": "SQLite", "engine": "alone", "depth": 0, "times": 900, "steps": 1000, "seen": 1200}
GOOD |= {"twice": 0, "lost": 0, "disordered": 0}
NAIVE = GOOD | {"arbiter": "none", "twice": 25}


def run(folder, *rows):
    """The exit code, and the page that it leaves."""
    report, page = folder / "report.xml", folder / "page.md"
    noted = "".join(f'<property name="engines" value={quoteattr(json.dumps(row))} />' for row in rows)
    other = '<property name="another" value="no row" />'
    report.write_text(
        f"<testsuites><testsuite><testcase><properties>{other}{noted}</properties></testcase></testsuite></testsuites>"
    )
    page.write_text(PAGE, encoding="utf-8")
    return kills_table.main([str(report)], page), page.read_text(encoding="utf-8")


def test_depths_of_one_kind_are_a_row(tmp_path):
    code, page = run(tmp_path, GOOD, GOOD | {"depth": 50, "times": 200}, NAIVE)
    assert code == 0
    assert "| killed | SQLite | alone | 0 to 50 steps | 1,100 | 2,000 | 2,400 | 0 | 0 | 0 |\n" in page
    assert (
        "| killed | *none: noise in the operator* | alone | 0 steps | 900 | 1,000 | 1,200 | **25** | 0 | 0 |\n" in page
    )
    assert page.startswith("Before")
    assert page.endswith("After\n")
    assert "old" not in page


@pytest.mark.parametrize("fault", ["twice", "lost", "disordered"])
def test_a_reader_who_saw_what_must_not_be_fails_it(tmp_path, capsys, fault):
    assert run(tmp_path, GOOD | {fault: 1}, NAIVE) == (1, PAGE)
    assert "killed, SQLite, alone" in capsys.readouterr().err


def test_an_operator_with_noise_inside_that_is_not_found_fails_it(tmp_path, capsys):
    assert run(tmp_path, GOOD, NAIVE | {"twice": 0}) == (1, PAGE)
    assert "killed, none, alone" in capsys.readouterr().err
