import re

import numpy as np
import pytest

from dpfast.reports.release.chart_axes import step_ticks
from dpfast.reports.release.estimate_chart import MOST_COLUMNS, GroupPanel, draw_panels

NASTY = '<b onload="x">&"'


def drawn(estimate, half=None, title="EWR"):
    estimate = np.asarray(estimate, float)
    return draw_panels([GroupPanel(title, estimate, half)], step_ticks(0, len(estimate)), lambda i: f"step {i}")


def path(text, kind):
    (found,) = re.findall(rf'<path class="{kind}" d="([^"]*)"/>', text)
    return found


def points(d):
    """Corners of a path of horizontal and vertical lines."""
    x, y, found = 0, 0, []
    for kind, numbers in re.findall(r"([MVH])([\d -]+)", d):
        if kind == "M":
            x, y = map(int, numbers.split())
        elif kind == "V":
            y = int(numbers)
        else:
            x = int(numbers)
        found.append((x, y))
    return found


def test_few_steps_are_stairs_at_their_values():
    corners = points(path(drawn([0, 1, 4], 1.0), "estimate"))
    assert [x for x, _ in corners] == [0, 3333, 3333, 6667, 6667, 10_000]
    y = [corners[i][1] for i in (0, 2, 4)]
    assert (y[0] - y[1]) / (y[0] - y[2]) == pytest.approx(1 / 4, abs=0.01)  # downwards
    band = {y for _, y in points(path(drawn([0, 1, 4], 1.0), "band"))}
    scale = (y[0] - y[2]) / 4
    assert max(band) == pytest.approx(y[0] + scale, abs=1)
    assert min(band) == pytest.approx(y[2] - scale, abs=1)


def test_many_steps_are_the_least_and_the_largest_of_each_stretch():
    estimate = np.random.default_rng(1).normal(size=100_003)
    estimate[77_777] = 50.0  # a single step, which nothing hides
    text = drawn(estimate)
    corners = points(path(text, "range"))
    assert len(corners) == 4 * MOST_COLUMNS
    assert min((y, abs(x - 7777)) for x, y in corners) < (46, 20)  # at its place, below the room of a twentieth
    assert ">40</text>" in text
    assert len(text) < 45_000
    assert 'class="band"' not in text


def circles(text):
    """Places and texts of points: parts of the width, pixels from the top, what is said."""
    found = re.findall(r'<circle cx="([\d.]+)%" cy="(\d+)" r="7"><title>([^<]*)</title></circle>', text)
    return [(float(x), int(y), words) for x, y, words in found]


def test_values_of_steps_lie_on_their_stairs():
    text = drawn([0, 1, 4], 1.25)
    found = circles(text)
    assert [words for _, _, words in found] == ["step 0: 0 ± 1.25", "step 1: 1 ± 1.25", "step 2: 4 ± 1.25"]
    assert [x for x, _, _ in found] == pytest.approx([100 / 6, 50, 500 / 6], abs=0.02)
    stairs = [y for _, y in points(path(text, "estimate"))][::2]
    assert [y for _, y, _ in found] == pytest.approx([14 + 0.15 * y for y in stairs], abs=1)  # of 1000 in 150 pixels
    assert 'aria-label="3 values of EWR, by arrow keys"' in text


def test_values_of_stretches_are_the_least_and_the_largest():
    estimate = np.random.default_rng(2).normal(size=60_017)
    found = circles(drawn(estimate))
    assert len(found) == 100
    starts = []
    for x, _, words in found:
        first, last, low, high = re.fullmatch(r"step (\d+) to step (\d+): (\S+) to (\S+)", words).groups()
        stretch = estimate[int(first) : int(last) + 1]
        assert len(stretch) in {100, 101}
        assert (float(low), float(high)) == pytest.approx((stretch.min(), stretch.max()), rel=1e-4)
        assert x == pytest.approx(100 * (int(first) + 50) / len(estimate), abs=0.02)
        starts.append(int(first))
    assert starts[0] == 0
    assert int(last) == len(estimate) - 1
    assert np.diff(starts).max() <= 2 * np.diff(starts).min()  # from all along it


def test_many_groups_have_fewer_values_each():
    panels = [GroupPanel(str(i), np.arange(400.0)) for i in range(24)]
    text = draw_panels(panels, step_ticks(0, 400), str)
    assert len(circles(text)) == 24 * (1500 // 24)


@pytest.mark.parametrize("value", [0.0, 5.0, -3e9, 1e-12])
def test_one_step_and_one_value_have_a_line(value):
    text = drawn([value])
    assert points(path(text, "estimate"))[0][0] == 0
    assert points(path(text, "estimate"))[-1] == (10_000, 500)
    assert text.count("<text ") >= 2


def test_names_are_escaped():
    text = drawn([1, 2], title=NASTY)
    assert NASTY not in text
    assert "&lt;b onload=&quot;x&quot;&gt;&amp;&quot;" in text
