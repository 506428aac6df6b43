"""What a command prints of the files that it has written."""

from dpfast._support.output_folder import OutputFolder
from dpfast.cli.output import write_files


def test_the_page_is_where_to_begin_if_there_is_one(tmp_path):
    table, page = OutputFolder(str(tmp_path / "a")), OutputFolder(str(tmp_path / "b"))
    table.add("audit.csv", "1")
    for name in ("study.csv", "report.html"):
        page.add(name, "1")
    assert write_files(table, "found").split() == ["found", "Written:", str(tmp_path / "a" / "audit.csv")]
    csv, html = (tmp_path / "b" / name for name in ("study.csv", "report.html"))
    words = " ".join(write_files(page, "found").split())
    assert words.startswith(f"found Written: {csv}, {html} Begin with {html}, in a browser")
