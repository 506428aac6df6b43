import re

import numpy as np
import pytest

from dpfast.reports.release.chart_axes import step_ticks
from dpfast.reports.release.estimate_chart import MOST_COLUMNS, GroupPanel, draw_panels

NASTY = '<b onload="x">&"'


def drawn(estimate, half=None, title="EWR"):
    estimate = np.asarray(estimate, float)
    return draw_panels([GroupPanel(title, estimate, half)], step_ticks(0, len(estimate)))


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
    assert len(text) < 30_000
    assert "band" not in text.replace("a band", "")


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
