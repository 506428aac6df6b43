"""The picture of growth, with figures that are made up, and its cases at their least."""

import json
import math
from pathlib import Path

import pytest

from benchmarks.growth import measure, picture

CASES = [(group, name) for group, curves in measure.GROUPS.items() for name in curves]


@pytest.mark.parametrize(("group", "name"), CASES)
def test_a_case_runs(group, name, monkeypatch):
    monkeypatch.setattr(measure, "LEAST_SECONDS", 0.0)
    make, values, count = measure.GROUPS[group][name]
    nanoseconds, memory = measure.measure(make, values[0])
    assert 0 < nanoseconds < math.inf
    assert count(values[0]) >= 1
    assert memory >= 0


def test_what_grows_does_so_as_the_issue_asks():
    spans = {group: {(v[0], v[-1]) for _, v, _ in curves.values()} for group, curves in measure.GROUPS.items()}
    assert (10**3, 10**9) in spans["samples"]
    assert (spans["streams"], spans["order"], spans["taps"]) == ({(1, 10**6)}, {(1, 64)}, {(1, 4096)})


def made_up():
    return [
        {"group": group, "name": name, "n": n, "ns": 3.0 + n % 7, "MB": n / 1e6}
        for group, name in CASES
        for n in measure.GROUPS[group][name][1]
    ]


def test_the_picture_has_a_column_for_what_grows_and_a_line_for_each_case(tmp_path):
    drawn = picture.draw(made_up())
    assert len(drawn.axes) == 8
    assert [len(ax.lines) for ax in drawn.axes] == 2 * [len(x) for x in measure.GROUPS.values()]
    (tmp_path / "growth.json").write_text(json.dumps(made_up()), encoding="utf-8")
    picture.main([str(tmp_path / "growth.json"), str(tmp_path)])
    assert (tmp_path / "growth.png").read_bytes()[:4] == b"\x89PNG"


def test_the_picture_that_is_published_shows_every_case():
    found = Path(picture.__file__).parents[2] / "docs/measurements/performance/growth.json"
    rows = json.loads(found.read_text(encoding="utf-8"))
    assert [(x["group"], x["name"], x["n"]) for x in rows] == [(x["group"], x["name"], x["n"]) for x in made_up()]
