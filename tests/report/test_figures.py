import numpy as np
import pytest

from dpfast.report.figures import (
    figure,
    leftmost,
    logarithmic,
    lowest,
    near,
    note,
    panels,
    plot_lines,
    plot_path,
    png,
    spaced,
)
from dpfast.report.folder import Folder
from dpfast.report.styles import Style


def test_figures_are_pictures(tmp_path):
    drawn, axes = figure(2)
    t = np.arange(10.0)
    plot_path(axes[0, 0], t, t, {"one": t + 1, "two": t + 2}, "title")
    plot_lines(axes[1, 0], t + 1, {"ideal": t}, {"ideal": Style("red", "--")}, "title")
    assert [x.get_text() for x in axes[0, 0].get_legend().get_texts()] == ["true output", "one", "two"]
    assert axes[1, 0].get_lines()[0].get_linestyle() == "--"
    folder = Folder(tmp_path)
    folder.add("a.png", png(drawn))
    assert folder.write()[0].read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("high", "labels"),
    [
        (4, ["1", "2", "3"]),
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


def test_panels_fill_their_rows_and_number_the_lowest_axes():
    drawn, grid = panels([f"a long title {i}, of two parts" for i in range(7)], height=1.3, ratios=(2, 1), sharex=True)
    assert len(grid) == 7
    assert len(drawn.axes) == 14
    assert [grid.index(x) for x in leftmost(grid)] == [0, 4]
    assert [grid.index(x) for x in lowest(grid)] == [4, 5, 6]
    assert grid[0][0].get_title(loc="left") == "a long title 0,\nof two parts"
    assert all(x[1].xaxis.get_tick_params()["labelbottom"] for x in grid)
    _, full = panels(["one", "two", "three", "four", "five", "six"], height=1.3, sharex=True)
    assert [x[0].xaxis.get_tick_params()["labelbottom"] for x in full] == [False] * 3 + [True] * 3
    assert [panels(["x"] * n, height=1)[0].get_figwidth() for n in (1, 2)] == [3.5, 7]


def test_a_note_is_inside_the_figure():
    drawn, _ = panels(["one"], height=1)
    note(drawn, "", "first of all that has to be said", "", "and second what else there may be")
    assert drawn.get_suptitle() == "first of all that has to be said;\nand second what else there may be"
    other, _ = panels(["one"], height=1)
    note(other, "", "")
    assert other.get_suptitle() == ""


@pytest.mark.parametrize(
    ("places", "kept"), [([0, 1, 2, 3], [0, 1, 2, 3]), ([0, 0.1, 5, 9.9, 10], [0, 2, 4]), ([3], [0])]
)
def test_labels_are_apart_and_the_last_one_is_there(places, kept):
    assert spaced(places, 0.2) == kept


def test_what_is_far_above_the_reference_is_named():
    _, axes = figure(1)
    ax = axes[0, 0]
    near(ax, {"close": [1.0, 1.1], "far": [5.0, 6.0]}, 1.0)
    assert ax.get_ylim()[1] < 2
    assert [x.get_text() for x in ax.texts] == ["above: far 5"]
