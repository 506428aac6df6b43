import numpy as np
import pytest

from dpfast.report.figures import Style, figure, logarithmic, plot_lines, plot_magnitudes, plot_path, png
from dpfast.report.folder import Folder


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
