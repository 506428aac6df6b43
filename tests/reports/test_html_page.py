import base64
import math
import re
import struct

import pytest
from helpers import pages

from dpfast import Filter, IndependentLevels, MarkovChain, Privacy
from dpfast._support import html_fragments as html
from dpfast._support.text_table import Estimate, Table
from dpfast.reports import html_page, page_script
from dpfast.reports.glossary import describe_model, describe_task
from dpfast.reports.matplotlib_helpers import make_figure

NASTY = """<script>alert("1")</script> & '"><img src=x onerror=alert(1)> &lt;"""


def cells(text, tag):
    """(attributes, text) of all cells."""
    return re.findall(rf"<{tag}( [^>]*)?>([^<]*)</{tag}>", text)


def test_all_text_is_escaped_wherever_it_stands():
    drawn, _ = make_figure(1)
    table = Table((NASTY, "x"), ((NASTY, 1.0),))
    parts = [
        *(
            html.paragraphs(NASTY),
            html.items([NASTY]),
            html_page.code(NASTY),
            html_page.facts({NASTY: NASTY}),
        ),
        *(html_page.table(table, NASTY, where=NASTY), html_page.picture(drawn, NASTY)),
    ]
    sections = {f"{NASTY} {i}": [part] for i, part in enumerate(parts)}
    found = pages.checked(html_page.page(NASTY, sections, lead=NASTY, banner=NASTY))
    assert [x["alt"] for x in found.all("img")] == [NASTY]
    assert found.all("div")[1]["aria-label"] == NASTY
    assert found.headings == list(sections)
    # window, banner, title, lead; paragraph, item, code, name and fact, head and cell of the table, caption
    assert found.text.count(NASTY) == 4 + 3 + 2 + 2 + 1


def test_a_name_that_is_no_text_does_not_stop_a_page():
    text = html_page.page("caf\udce9", {})
    assert "<h1>caf?</h1>" in text.encode("utf-8").decode()


def test_language_headings_and_links_to_sections():
    text = html_page.page("title", {"One": [html.paragraphs("1")], "Empty": [], "Two & more": [html.paragraphs("2")]})
    found = pages.checked(text)
    assert found.all("html") == [{"lang": "en"}]
    assert found.headings == ["One", "Two & more"]
    assert [x["href"] for x in found.all("a")] == ["#one", "#two-more"]
    assert [tag for tag, _ in found.tags if tag in {"h1", "h2", "h3"}] == ["h1", "h2", "h2"]
    assert "<nav" not in html_page.page("title", {"One": [html.paragraphs("1")]})


def test_paragraphs_are_parted_by_empty_lines():
    assert html.paragraphs("a\nb\n \n\nc") == "<p>a\nb</p>\n<p>c</p>"
    assert html.paragraphs("") == ""


def test_every_cell_is_there_with_labels_as_given_and_figures_to_the_right():
    table = Table(("ε", "kind", "RMSE"), ((0.5, "a|b", 1.23456789), (1.0, "c", math.nan), (None, "d", None)))
    text = html_page.table(table, "results", where="x.csv", n_headers=2)
    head = ' class="number" scope="{}"', ' scope="{}"'
    columns = [(head[0].format("col"), "ε"), (head[1].format("col"), "kind"), (head[0].format("col"), "RMSE")]
    read = [' data-value="0.5"', "", ' data-value="1.0"', "", ' data-value=""', ""]
    shown = enumerate(["0.5", "a|b", "1", "c", "–", "d"])
    labels = [(head[i % 2].format("row") + read[i], x) for i, x in shown]
    assert cells(text, "th") == columns + labels
    figures = [("1.23456789", "1.2346"), ("", "–"), ("", "–")]
    assert cells(text, "td") == [(f' class="number" data-value="{x}"', y) for x, y in figures]


@pytest.mark.parametrize(
    ("given", "read"),
    [
        (1e-7, "1e-07"),
        (math.inf, "Infinity"),
        (-math.inf, "-Infinity"),
        (12, "12"),
        ("20", "20"),
        ("1.25 … 1.5", "1.25"),
        (Estimate(1.25, 1.0, 1.5), "1.25"),
        ("1e-6", "1e-6"),
        ("", ""),
        (None, ""),
        ("smoother", None),
        ("1, 2", None),
        ("2013-01-01", None),
        (True, None),
    ],
)
def test_machines_read_numbers_in_full_nothing_or_text(given, read):
    text = html_page.table(Table(("n", "x"), (("a", given),)), "numbers", where="x.csv")
    found = pages.Page(text).all("td")[0]
    assert found.get("data-value") == read


def test_a_page_without_tables_to_sort_or_points_runs_no_script():
    plain = html_page.page("x", {"y": [html_page.facts({'class="sortable"': 'class="points"'})]})
    assert "script" not in plain
    pages.checked(plain)


def test_the_script_asks_for_nothing_and_makes_no_code_of_text():
    script = page_script.SCRIPT
    reaching = "fetch", "XMLHttpRequest", "WebSocket", "EventSource", "Beacon", "import", "location", "open(", "src"
    coding = "eval", "Function", "innerHTML", "outerHTML", "insertAdjacent", "document.write", "setTimeout", "http"
    assert not [x for x in (*reaching, *coding) if x in script]
    assert "</" not in script
    assert script.isascii()


@pytest.mark.parametrize(
    ("n", "shown", "said"),
    [
        (15, 15, None),
        (16, 16, "16 rows."),
        (200, 200, "200 rows."),
        (201, 200, "The first 200 of 201 rows: all are in x.csv."),
    ],
)
def test_long_tables_are_cut_and_say_so(n, shown, said):
    text = html_page.table(Table(("n",), tuple((i,) for i in range(n))), "numbers", where="x.csv")
    assert [x for _, x in cells(text, "th")[1:]] == [str(i) for i in range(shown)]
    assert re.findall('<p class="note">(.*)</p>', text) == ([said] if said else [])


def test_a_picture_is_inside_the_page_in_its_proportions():
    drawn, _ = make_figure(1, width=5, height=2)
    (img,) = pages.checked(html_page.page("x", {"y": [html_page.picture(drawn, "a line", "drawn")]})).all("img")
    data = base64.b64decode(img["src"].partition(",")[2])
    assert data.startswith(b"\x89PNG")
    width, height = struct.unpack(">II", data[16:24])
    assert int(img["width"]) / int(img["height"]) == pytest.approx(width / height, rel=0.01)
    assert img["alt"] == "a line"


def test_versions_are_those_that_are_imported():
    import numba
    import numpy
    import scipy

    import dpfast

    found = html_page.list_versions()
    for module in (dpfast, numpy, scipy, numba):
        assert found[module.__name__] == module.__version__


def test_a_task_in_words():
    told = describe_task(Filter([1, 1 / 3]), Privacy(0.5, 1e-6, max_events=3))
    assert told["target"] == "b = 1, 0.333333; a = 1"
    assert (told["epsilon"], told["delta"], told["max events"], told["calibration"]) == ("0.5", "1e-06", "3", "exact")
    assert describe_task(Filter([1.0] * 20), Privacy(1, 0.1))["target"].endswith("1, …, 1 (20 numbers); a = 1")


def test_a_model_in_words():
    assert describe_model(IndependentLevels([0, 1], [0.75, 0.25], source="public")) == (
        "IndependentLevels; mean 0.25; variance 0.1875; levels 0, 1; spectrum shaped by b = 0.433013; a = 1; public"
    )
    assert describe_model(MarkovChain([[0.75, 0.25], [0.25, 0.75]], [-0.5, 0.5])).startswith(
        "MarkovChain; mean 0; variance"
    )
