import json

import numpy as np
import pytest

import dpfast as dp
from dpfast.specs import parse_target


@pytest.mark.parametrize(
    ("spec", "b", "a"),
    [
        ("moving-average:4", [0.25] * 4, [1]),
        ("exponential:0.75", [0.25], [1, -0.75]),
        ("ba:1,0.995/1,-0.995", [1, 0.995], [1, -0.995]),
        ("ba:1,-1", [1, -1], [1]),
        ("ba:2/4,1", [0.5], [1, 0.25]),
    ],
)
def test_target_specifications(spec, b, a):
    assert parse_target(spec) == dp.Filter(b, a)


def test_target_from_a_file(tmp_path):
    path = tmp_path / "target.json"
    path.write_text(json.dumps({"b": [1, 2], "a": [1, -0.5]}))
    assert parse_target(str(path)) == dp.Filter([1, 2], [1, -0.5])


@pytest.mark.parametrize(
    "spec",
    [
        "moving-average:0",
        "moving-average:99999999999",
        "moving-average:x",
        "exponential:1",
        "exponential:",
        "ba:1/0,1",
        "ba:",
        "ba:1/1,-2",
        "nothing",
    ],
)
def test_bad_targets_are_named(spec):
    with pytest.raises(ValueError, match="target"):
        parse_target(spec)


@pytest.mark.parametrize("content", ["", "[1]", "{}", '{"b": "x"}', '{"b": []}', '{"b": [1], "a": [1, -2]}', "\x00"])
def test_bad_target_files_are_one_clear_error(tmp_path, content):
    path = tmp_path / "target.json"
    path.write_text(content)
    with pytest.raises(ValueError, match=r"\w+ .+"):
        parse_target(str(path))


def test_parse_target_moving_average_sums_to_one():
    assert np.isclose(parse_target("moving-average:7").b.sum(), 1)
