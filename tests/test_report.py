import csv

import numpy as np
import pytest

from dpfast.errors import DataError
from dpfast.report import Folder, Style, Table, figure, logarithmic, plot_lines, plot_magnitudes, plot_path, png

TABLE = Table(("name", "value", "text"), (("a|b", 1.23456789, "x, y"), ("long name", None, 'quote "')))


def test_text_shows_five_digits_and_a_dash_for_none():
    lines = TABLE.text().split("\n")
    assert lines[2].split() == ["a|b", "1.2346", "x,", "y"]
    assert "–" in lines[3]
    assert len({line.index(x) + len(x) for line, x in zip(lines[2:], ("1.2346", "–"), strict=True)}) == 1


def test_csv_keeps_full_precision_and_survives_commas_and_quotes():
    text = TABLE.csv(["one", "two"])
    assert text.startswith("# one\n# two\n")
    rows = list(csv.DictReader(text.split("\n")[2:-1]))
    assert [float(rows[0]["value"]), rows[1]["value"]] == [1.23456789, ""]
    assert [row["text"] for row in rows] == ["x, y", 'quote "']


def test_markdown_keeps_its_columns_when_a_cell_has_a_bar():
    for line in TABLE.markdown().split("\n"):
        assert line.replace("\\|", "").count("|") == len(TABLE.columns) + 1


def test_folder_writes_nothing_before_write(tmp_path):
    folder = Folder(tmp_path / "new" / "deep")
    folder.add("a.txt", "text")
    folder.add("b.bin", b"bytes")
    assert not folder.path.parent.exists()
    assert [x.name for x in folder.write()] == ["a.txt", "b.bin"]
    assert (folder.path / "a.txt").read_text() == "text"
    assert (folder.path / "b.bin").read_bytes() == b"bytes"


def test_folder_overwrites_whole_files_and_leaves_no_temporary_ones(tmp_path):
    for content in ("first and longer", "second"):
        folder = Folder(tmp_path)
        folder.add("a.txt", content)
        folder.write()
    assert [(x.name, x.read_text()) for x in tmp_path.iterdir()] == [("a.txt", "second")]


def test_all_files_are_written_or_none(tmp_path):
    folder = Folder(tmp_path)
    folder.add("a.txt", "text")
    folder.add("b.txt", "text")
    (tmp_path / "b.txt").mkdir()
    with pytest.raises(
        DataError, match=r"cannot write to the folder .*b.txt is there, and no regular file; choose another one"
    ):
        folder.write()
    assert [x.name for x in tmp_path.iterdir()] == ["b.txt"]


def test_links_are_not_replaced(tmp_path):
    (tmp_path / "real.txt").write_text("kept")
    (tmp_path / "a.txt").symlink_to(tmp_path / "real.txt")
    folder = Folder(tmp_path)
    folder.add("a.txt", "text")
    with pytest.raises(DataError, match=r"a.txt is there, and no regular file"):
        folder.write()
    assert (tmp_path / "a.txt").is_symlink()
    assert (tmp_path / "real.txt").read_text() == "kept"


def test_a_folder_that_cannot_be_written_is_refused_at_once(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(DataError, match=r"cannot write to the folder .*file"):
        Folder(tmp_path / "file" / "sub")
    with pytest.raises(DataError, match="cannot write"):
        Folder(tmp_path / "file")


def test_figures_are_pictures(tmp_path):
    drawn, axes = figure(2)
    t = np.arange(10.0)
    plot_path(axes[0, 0], t, t, {"one": t + 1, "two": t + 2}, "title")
    plot_magnitudes(axes[1, 0], t + 1, {"ideal": t, "realised": t}, "title")
    assert [x.get_text() for x in axes[0, 0].get_legend().get_texts()] == ["true output", "one", "two"]
    assert axes[1, 0].get_lines()[0].get_linestyle() == "--"
    folder = Folder(tmp_path)
    folder.add("a.png", png(drawn))
    assert folder.write()[0].read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("high", "labels"),
    [
        (4, ["1", "2", "3", "4"]),
        (60, ["1", "2", "5", "10", "20", "50"]),
        (1e4, ["1", "10", "100", "1000", "10000"]),
    ],
)
def test_logarithmic_axes_have_plain_numbers(high, labels):
    drawn, axes = figure(1)
    ax = axes[0, 0]
    plot_lines(ax, [1, high], {"a": [1, high]}, {"a": Style("red")}, title="$x_$ ^")
    logarithmic(ax, "xy")
    drawn.draw_without_rendering()
    for axis in (ax.xaxis, ax.yaxis):
        low, top = axis.get_view_interval()
        ticks = zip(axis.get_majorticklocs(), axis.get_majorticklabels(), strict=True)
        assert [x.get_text() for at, x in ticks if low <= at <= top] == labels
        assert all(x.get_text() == "" for x in axis.get_minorticklabels())
    assert ax.lines[0].get_label() == "a"
