"""Points of pictures: where they are drawn, and with the numbers that were drawn."""

import io
import re

import numpy as np
import pytest
from helpers import pages
from matplotlib.image import imread

from dpfast.reports import hover_points, html_page
from dpfast.reports.hover_points import find_points, name_values
from dpfast.reports.matplotlib_helpers import make_figure, render_png

RED = "#ff0000"


def texts(drawn):
    render_png(drawn, dpi=20)
    return [[x.text for x in points] for points in find_points(drawn)]


def find_red(drawn):
    """The middle of all red pixels, in parts of the picture."""
    pixels = imread(io.BytesIO(render_png(drawn)), format="png")
    rows, columns = np.nonzero((pixels[..., 0] > 0.8) & (pixels[..., 1:3].max(axis=2) < 0.2))
    return (columns.mean() + 0.5) / pixels.shape[1], (rows.mean() + 0.5) / pixels.shape[0]


@pytest.mark.parametrize("scale", ["linear", "log"])
@pytest.mark.parametrize("panel", [0, 3])
def test_a_point_is_where_its_marker_is_drawn(panel, scale):
    drawn, axes = make_figure(2, 2)
    ax = axes.ravel()[panel]
    ax.set(xlim=(1, 50), ylim=(1, 9), xscale=scale, title="with a title", ylabel="and a label")
    ax.plot([7], [3], color=RED, marker="s", label="dot")
    wanted = find_red(drawn)
    ((point,),) = find_points(drawn)
    assert (point.x, point.y) == pytest.approx(wanted, abs=2e-3)
    assert point.text == ("dot: 7, and a label 3")


def test_in_the_page_a_point_is_at_that_part_of_the_picture():
    drawn, axes = make_figure(1)
    axes[0, 0].plot([1, 2], [3, 4], label="line")
    page = pages.checked(html_page.page("x", {"y": [html_page.picture(drawn, "a line")]}))
    (img,), (svg,) = page.all("img"), page.all("svg")
    assert svg["viewbox"] == f"0 0 {img['width']} {img['height']}"
    wanted = [(x.x * int(img["width"]), x.y * int(img["height"])) for x in find_points(drawn)[0]]
    shown = [(float(x["cx"]), float(x["cy"])) for x in page.all("circle")]
    assert np.allclose(shown, wanted, atol=0.51)
    assert len({x for x, _ in shown}) == 2


def test_lines_have_their_label_or_name_and_rules_have_no_points():
    drawn, axes = make_figure(1)
    ax = axes[0, 0]
    ax.plot([1, 2], [10, 20], label="optimal")
    ax.plot([1, 2], [10, 20])
    name_values(ax.lines[-1], "optimal, predicted")
    ax.plot([1, 2], [10, 20])
    ax.axhline(12)
    assert texts(drawn) == [
        ["optimal: 1, 10", "optimal: 2, 20"],
        ["optimal, predicted: 1, 10", "optimal, predicted: 2, 20"],
    ]


def test_axes_are_named_as_anywhere_in_their_row_and_column_without_units():
    drawn, axes = make_figure(2, 2)
    axes[0, 1].plot([1], [2], label="a")
    axes[0, 0].set_ylabel("RMSE")
    axes[1, 0].set_ylabel("other")
    axes[1, 1].set_xlabel("lag (samples)")
    assert texts(drawn) == [["a: lag 1, RMSE 2"]]


def test_places_that_are_labelled_one_by_one_are_named_by_their_label():
    drawn, axes = make_figure(1)
    axes[0, 0].plot([0, 2, 3.71828], [1, 2, 3], label="a")
    axes[0, 0].set_xticks([0, 3.71828], ["0", "∞"])
    assert texts(drawn) == [["a: 0, 1", "a: 2, 2", "a: ∞, 3"]]


def test_times_are_times():
    drawn, axes = make_figure(1)
    axes[0, 0].plot(np.datetime64("2013-12-31T22:00") + np.arange(2) * np.timedelta64(90, "m"), [0.5, 1e-9], label="y")
    assert texts(drawn) == [["y: 2013-12-31 22:00, 0.5", "y: 2013-12-31 23:30, 1e-09"]]


def test_what_is_out_of_sight_or_not_a_number_has_no_point():
    drawn, axes = make_figure(1)
    axes[0, 0].plot([1, 2, 3, 4], [1, np.nan, 1e9, 2], label="y")
    axes[0, 0].set_ylim(0, 3)
    assert texts(drawn) == [["y: 1, 1", "y: 4, 2"]]


def test_of_long_lines_there_are_points_from_all_along_them():
    drawn, axes = make_figure(1)
    for name in ("a", "b"):
        axes[0, 0].plot(range(10_000), np.zeros(10_000), label=name)
    found = texts(drawn)
    assert [len(x) for x in found] == [hover_points._MOST_OF_LINE] * 2
    assert (found[0][0], found[0][-1]) == ("a: 0, 0", "a: 9999, 0")
    places = [int(re.search(r"\d+", x)[0]) for x in found[0]]
    assert np.ptp(np.diff(places)) <= 1


def test_a_picture_of_many_lines_has_not_more_points_than_a_page_can_bear():
    drawn, axes = make_figure(1)
    for name in range(60):
        axes[0, 0].plot(range(500), np.zeros(500), label=f"line {name}")
    assert sum(map(len, texts(drawn))) <= hover_points._MOST


def test_named_bars_are_points_with_half_their_lesser_side_around_them():
    drawn, axes = make_figure(1)
    axes[0, 0].bar(3, 1)
    (bar,) = axes[0, 0].bar(1, 2, color=RED)
    name_values(bar, "ε 1: optimal")
    wanted = find_red(drawn)
    ((point,),) = find_points(drawn)
    assert (point.x, point.y) == pytest.approx(wanted, abs=2e-3)
    assert point.text == "ε 1: optimal"
    extent = bar.get_window_extent()
    assert point.around == pytest.approx(min(extent.width, extent.height) / 2 / drawn.bbox.width)


def test_a_picture_without_lines_has_no_drawing_over_it():
    drawn, _ = make_figure(1)
    assert "<svg" not in html_page.picture(drawn, "nothing")
