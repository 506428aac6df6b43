"""Targets of several streams, and a model of each, from text."""

import numpy as np
import pytest

import dpfast as dp
from dpfast.design.channel_target_specs import mixes_streams, parse_matrix, parse_models

MEAN = np.full(4, 0.25)


@pytest.mark.parametrize(
    ("spec", "gains"),
    [
        ("total:moving-average:4", [[1, 1, 1]]),
        ("differences:moving-average:4", [[-1, 1, 0], [0, -1, 1]]),
        ("each:moving-average:4", np.eye(3)),
        ([["moving-average:4", 0, 0], [0, 0, {"b": MEAN.tolist()}]], [[1, 0, 0], [0, 0, 1]]),
    ],
)
def test_a_target_mixes_streams_behind_one_filter(spec, gains):
    target = parse_matrix(spec, 3)
    np.testing.assert_allclose(target.impulse(6), np.multiply.outer(np.array(gains, float), [*MEAN, 0, 0]), atol=1e-15)
    assert mixes_streams(spec)


def test_without_a_filter_and_with_gains_nothing_is_smoothed():
    assert parse_matrix("total", 2).apply([[1, 2], [3, 4]]).tolist() == [[4, 6]]
    assert parse_matrix([[1, -0.5]], 2).apply([[1, 2], [4, 4]]).tolist() == [[-1, 0]]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("moving-average:4", "target must say what becomes of several streams, .*: say each:moving-average:4"),
        ("total:moving-average:0", "does not describe a filter"),
        ("total:average", "target must be moving-average"),
        ([[1, 1], [1]], "target must be rows of 2 entries"),
        ([1, 1], "target must be rows of 2 entries"),
        ([[1, True]], "target must be text"),
        ({"b": [1]}, "target must say what becomes of several streams"),
    ],
)
def test_what_describes_no_target_is_named(spec, message):
    with pytest.raises(ValueError, match=message):
        parse_matrix(spec, 2)


def test_one_stream_has_no_differences():
    with pytest.raises(ValueError, match="groups must be at least 2 for the target 'differences', got 1"):
        parse_matrix("differences", 1)


def test_a_model_is_that_of_all_streams_or_of_one():
    one, table = "arma:1/1,-0.5@3", {"kind": "levels", "levels": [0, 1], "probabilities": [0.5, 0.5]}
    assert [x.mean for x in parse_models(one, "public", 2)] == [3, 3]
    assert [x.mean for x in parse_models(table, "assumed", 2)] == [0.5, 0.5]
    found = parse_models([one, table], "public", 2)
    assert [type(x) for x in found] == [dp.ARMA, dp.IndependentLevels]
    assert {x.source for x in found} == {"public"}
    with pytest.raises(ValueError, match="model must be one for all streams, or one for each of the 3, got 2"):
        parse_models([one, one], "assumed", 3)
