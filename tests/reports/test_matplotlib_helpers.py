import io

import numpy as np
import pytest
from matplotlib.artist import Artist

from dpfast.reports.matplotlib_helpers import (
    COLUMN,
    PAGE,
    add_legend,
    add_note,
    label_axes,
    make_figure,
    plot_lines,
    plot_path,
    render_png,
    set_logarithmic,
    zoom_in,
)
from dpfast.reports.mechanism_styles import Style, choose_styles


def sizes(drawn):
    """Of all text that is seen, in points."""
    texts = drawn.findobj(lambda x: hasattr(x, "get_fontsize") and x.get_text())
    return [x.get_fontsize() for x in texts]


def test_figures_are_pictures_with_legible_text():
    drawn, axes = make_figure(2)
    t = np.arange(10.0)
    plot_path(axes[0, 0], t, t, {"LZF": t + 1, "optimal lag 2": t + 2}, "title")
    plot_lines(axes[1, 0], t, {"a": t}, {"a": Style("red")}, "title")
    label_axes(axes[1, 0], None, "$x_", "y")
    add_legend(drawn, axes[1, 0])
    assert [x.get_text() for x in axes[0, 0].get_legend().get_texts()] == ["true output", "LZF", "optimal lag 2"]
    assert render_png(drawn).startswith(b"\x89PNG")
    assert drawn.get_figwidth() == PAGE
    assert min(sizes(drawn)) >= 7


def test_a_picture_is_drawn_once_and_is_that_of_savefig():
    def drawn():
        figure, axes = make_figure(1, 2, sharey=True)
        plot_lines(axes[0, 0], [1, 2, 30], {"a": [1, 5, 90]}, {"a": Style("red")}, "title")
        set_logarithmic(axes[0, 0], "xy")
        add_legend(figure, axes[0, 0])
        return figure

    saved, figure, calls = io.BytesIO(), drawn(), []
    drawn().savefig(saved, format="png", dpi=200)
    figure.add_artist(_Counted(calls))
    assert render_png(figure) == saved.getvalue()
    assert len(calls) == 1


class _Counted(Artist):
    """What is drawn as nothing, and counts how often."""

    def __init__(self, calls):
        super().__init__()
        self.calls = calls

    def draw(self, renderer):
        self.calls.append(renderer)


def test_estimates_have_the_colours_of_their_families():
    _, axes = make_figure(1)
    names = ["private: LZF", "private: optimal lag 5"]
    plot_path(axes[0, 0], [0, 1], np.zeros(2), dict.fromkeys(names, np.ones(2)), "")
    assert [x.get_color() for x in axes[0, 0].lines] == ["#000000", "#0072B2", "#009E73"]


def test_heights_repeat_and_figures_fit_a_column():
    drawn, axes = make_figure(4, 1, width=COLUMN, height=1.5, ratios=(2, 1))
    assert axes[0, 0].get_gridspec().get_height_ratios() == [2, 1, 2, 1]
    assert drawn.get_size_inches().tolist() == [3.5, 6.5]


def test_a_legend_names_each_line_once():
    drawn, axes = make_figure(2)
    for ax in axes[:, 0]:
        plot_lines(ax, [1, 2], {"LZF": [1, 2], "DFE": [2, 3]}, choose_styles(["LZF", "DFE"]))
    add_legend(drawn, *axes[:, 0])
    assert [x.get_text() for x in drawn.legends[0].get_texts()] == ["LZF", "DFE"]


@pytest.mark.parametrize(("n_letters", "columns"), [(4, 4), (40, 2), (80, 1), (300, 1)])
def test_a_legend_has_no_more_columns_than_there_is_room_for(n_letters, columns):
    drawn, axes = make_figure(1)
    names = [f"{i}{'o' * n_letters}" for i in range(4)]
    plot_lines(axes[0, 0], [0, 1], {key: [1, 2] for key in names}, dict.fromkeys(names, Style("red")))
    add_legend(drawn, axes[0, 0], columns=4)
    (legend,) = drawn.legends
    assert legend._ncols == columns
    assert n_letters == 300 or legend.get_window_extent().width <= drawn.bbox.width


def test_an_axis_near_the_reference_names_what_is_above():
    _, axes = make_figure(1)
    ax = axes[0, 0]
    zoom_in(ax, {"a": [1.0, 1.1], "b": [np.nan, 1.9], "far": [3.0, 5.0], "none": [np.nan]}, 1.0)
    low, high = ax.get_ylim()
    assert low < 1 < 1.9 < high < 3
    assert [x.get_text() for x in ax.texts] == ["above: far 3"]
    zoom_in(ax, {"a": [1.0, 1.1], "far": [3.0, 5.0]}, np.inf)
    assert ax.get_ylim()[1] > 5


def test_many_names_above_stay_on_the_axis_and_off_the_curves():
    drawn, axes = make_figure(1)
    ax = axes[0, 0]
    far = {f"a mechanism with a name that is long, number {i}": [5.0 + i] for i in range(5)}
    zoom_in(ax, {"near": [1.0, 1.2], **far}, 1.0)
    drawn.draw_without_rendering()
    (text,) = ax.texts
    assert " ".join(text.get_text().split("\n")) == "above: " + ", ".join(f"{x} {y[0]:g}" for x, y in far.items())
    shown, whole = text.get_window_extent(), ax.get_window_extent()
    assert whole.x0 <= shown.x0
    assert ax.transData.transform((0, 1.2))[1] < shown.y0


@pytest.mark.parametrize(
    ("high", "labels"),
    [
        (4, ["1", "2", "3"]),
        (60, ["1", "2", "5", "10", "20", "50"]),
        (1e4, ["1", "10", "100", "1000", "10000"]),
    ],
)
def test_logarithmic_axes_have_plain_numbers(high, labels):
    drawn, axes = make_figure(1)
    ax = axes[0, 0]
    plot_lines(ax, [1, high], {"a": [1, high]}, {"a": Style("red")}, "$x_$ ^")
    set_logarithmic(ax, "xy")
    drawn.draw_without_rendering()
    for axis in (ax.xaxis, ax.yaxis):
        low, top = axis.get_view_interval()
        ticks = zip(axis.get_majorticklocs(), axis.get_majorticklabels(), strict=True)
        assert [x.get_text() for at, x in ticks if low <= at <= top] == labels
        assert all(x.get_text() == "" for x in axis.get_minorticklabels())
    assert ax.lines[0].get_label() == "a"


def test_notes_are_broken_after_their_parts_where_these_fit_or_else_after_words():
    part = "Least RMSE, predicted where it can be, and how far the nearest mechanism is behind"
    drawn, _ = make_figure(1, width=COLUMN)
    add_note(drawn, part, "one case has no design")
    lines = drawn.get_suptitle().split("\n")
    assert " ".join(lines) == f"{part}; one case has no design"
    assert len(lines) > 1
    assert "one case has no design" in lines[-1]
