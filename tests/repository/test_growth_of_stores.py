"""The picture and the tables of stores, and the pushes that they show, at their least."""

import json

from benchmarks.growth import stores, stores_picture
from benchmarks.harness import stores_table
from benchmarks.harness.results_table import ROOT

PUBLISHED = json.loads((ROOT / stores_table.FOUND).read_text(encoding="utf-8"))
CASES = [("streams", None, n) for n in stores.DECADES]
CASES += [("steps", kept, n) for kept in stores.KEPT for n in stores.DECADES]


def test_what_is_published_goes_from_one_to_a_million_streams_and_steps():
    assert (stores.DECADES[0], stores.DECADES[-1]) == (1, 10**6)
    assert [(x["group"], x.get("kept"), x["n"]) for x in PUBLISHED] == CASES


def test_the_page_shows_the_tables_of_what_is_published():
    text = (ROOT / "docs/measurements/performance.md").read_text(encoding="utf-8")
    assert f"<!-- stores -->\n{stores_table.read_tables(ROOT)}\n<!-- end stores -->" in text
    assert "(performance/stores.png)" in text


def test_pushes_of_one_stream_are_measured_where_it_has_so_many_steps(monkeypatch):
    monkeypatch.setattr(stores, "SINGLE", 2)
    monkeypatch.setattr(stores, "OPENINGS", 1)
    rows = stores.measure_steps("the last 1,000", [1, 10])
    assert [(x["group"], x["kept"], x["n"]) for x in rows] == [("steps", "the last 1,000", n) for n in (1, 10)]
    assert all(x["push"] > 0 and x["opening"] > 0 and x["bytes"] > 0 for x in rows)


def test_the_picture_has_a_panel_for_each_figure_and_is_written_with_the_tables(tmp_path):
    drawn = stores_picture.draw(PUBLISHED)
    assert [len(ax.lines) for ax in drawn.axes] == [1, 1, 1, 1, 2, 2]
    page, folder = tmp_path / "performance.md", tmp_path / "performance"
    page.write_text("<!-- stores -->\nold\n<!-- end stores -->\n", encoding="utf-8")
    folder.mkdir()
    stores_picture.main([str(ROOT / stores_table.FOUND), str(folder)])
    assert (folder / "stores.png").read_bytes()[:4] == b"\x89PNG"
    assert page.read_text(encoding="utf-8") == (
        f"<!-- stores -->\n{stores_table.tables(PUBLISHED)}\n<!-- end stores -->\n"
    )


def test_the_table_has_a_line_for_each_number():
    row = {"group": "streams", "n": 1000, "seconds": 0.002, "processor": 0.001, "opening": 0.05}
    row |= {"bytes": 10.2, "written": 64.0, "MB": 230.0}
    step = {"group": "steps", "n": 10, "push": 500.0, "opening": 0.01, "bytes": 4096}
    found = stores_table.tables([row, step | {"kept": "all"}, step | {"kept": "a few", "push": 400.0}])
    assert "| 1,000 | 1000 | 10.2 | 64 | 230 | 2 | 50 |" in found
    assert "| steps | µs a push, all kept | µs a push, a few kept | ms to open, all kept |" in found
    assert "| 10 | 500 | 400 | 10 | 10 | 4.1 | 4.1 |" in found
