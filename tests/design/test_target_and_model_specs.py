import json

import numpy as np
import pytest

import dpfast as dp
from dpfast.design.target_and_model_specs import parse_any_target, parse_model, parse_target, parse_toeplitz


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


# --- models ---------------------------------------------------------------------------------------


def test_a_table_describes_a_target_too():
    assert parse_target({"b": [1, 2], "a": [1, -0.5]}) == dp.Filter([1, 2], [1, -0.5])
    with pytest.raises(ValueError, match=r"^target has the unknown key 'c': the valid keys are b, a$"):
        parse_target({"b": [1], "c": [1]})
    with pytest.raises(ValueError, match=r"^target cannot be used: .*'b'"):
        parse_target({"a": [1]})
    with pytest.raises(ValueError, match=r"^target must be text, got 3"):
        parse_target(3)


@pytest.mark.parametrize(
    ("spec", "model"),
    [
        ("markov:0.7,0.3;0.2,0.8@-0.5,0.5", dp.MarkovChain([[0.7, 0.3], [0.2, 0.8]], [-0.5, 0.5])),
        (
            {"kind": "markov", "transition": [[0.7, 0.3], [0.2, 0.8]], "levels": [-0.5, 0.5]},
            dp.MarkovChain([[0.7, 0.3], [0.2, 0.8]], [-0.5, 0.5]),
        ),
        ("levels:0,1,4@0.5,0.3,0.2", dp.IndependentLevels([0, 1, 4], [0.5, 0.3, 0.2])),
        ({"kind": "levels", "levels": [0, 1], "probabilities": [0.5, 0.5]}, dp.IndependentLevels([0, 1], [0.5, 0.5])),
        ("arma:2,1/1,-0.5@3", dp.ARMA([2, 1], [1, -0.5], mean=3)),
        ("arma:2", dp.ARMA([2])),
        ("arma:2@-1", dp.ARMA([2], mean=-1)),
        (
            {"kind": "arma", "b": [1], "a": [1, -0.5], "innovation_std": 2, "mean": 1, "levels": [-20, 20]},
            dp.ARMA([1], [1, -0.5], innovation_std=2, mean=1, levels=[-20, 20]),
        ),
    ],
)
def test_model_specifications(spec, model):
    found = parse_model(spec, "public")
    assert type(found) is type(model)
    assert (found.shaping, found.mean, found.variance) == (model.shaping, model.mean, model.variance)
    np.testing.assert_array_equal(found.levels, model.levels)
    assert found.source == "public"


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("", "model must be markov:"),
        ("ar:1", "model must be markov:"),
        (3, "model must be text, got 3"),
        ("markov:0.5,0.5;0.5,0.5", "does not describe a markov model"),
        ("markov:1,0;0,1@0,1", "irreducible"),
        ("levels:0,1@0.5,0.6", "sum to one"),
        ("arma:1/1,-2", "pole"),
        ("arma:1/1,-0.5@x", "does not describe an? arma model"),
        ({}, "model.kind must be one of 'markov', 'levels', 'arma', got None"),
        ({"kind": "arma", "c": 1}, "model has the unknown key 'c': the valid keys are b, a, innovation_std"),
        ({"kind": "arma", "b": "1"}, "model cannot be used: b must"),
        ({"kind": "levels", "levels": [0, 1]}, "model cannot be used: .*probabilities"),
        ({"kind": "arma", "b": [1], "source": "secret"}, "model cannot be used: source must be one of"),
    ],
)
def test_bad_models_are_named(spec, message):
    with pytest.raises(ValueError, match=message):
        parse_model(spec)


def test_the_source_of_a_model_is_said_once():
    table = {"kind": "arma", "b": [1], "source": "public"}
    assert parse_model(table).source == "public"
    with pytest.raises(ValueError, match="the source of model must be said once"):
        parse_model(table, "fitted-from-private")


# --- targets over a horizon -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("running-sum:3", [1, 1, 1]),
        ("polynomial-decay:0.5:2", [1, 2**-0.5]),
        ({"coefficients": [1, 2]}, [1, 2]),
        ({"coefficients": [1, 2], "horizon": 3}, [1, 2, 0]),
    ],
)
def test_targets_over_a_horizon(spec, expected):
    for parse in (parse_toeplitz, parse_any_target):
        assert parse(spec).coefficients.tolist() == pytest.approx(expected, rel=1e-15)


def test_any_target_may_be_a_filter():
    assert parse_any_target("exponential:0.5") == dp.Filter([0.5], [1, -0.5])
    assert parse_any_target({"b": [1, 2]}) == dp.Filter([1, 2])


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("running-sum", "target must be running-sum:1024"),
        ("running-sum:0", "target 'running-sum:0' does not describe one over a horizon: horizon must be"),
        ("running-sum:many", "target 'running-sum:many' does not describe one over a horizon"),
        ("polynomial-decay:3", "target must be running-sum:1024"),
        ("polynomial-decay:-1:3", "target 'polynomial-decay:-1:3' does not describe one over a horizon: power must be"),
        ({"coefficients": [0]}, "target cannot be used: coefficients must not all be zero"),
        ({"coefficients": [1], "b": [1]}, "target has the unknown key 'b'"),
        (3, "target must be text"),
    ],
)
def test_what_is_no_target_over_a_horizon_is_named(spec, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        parse_toeplitz(spec)


def test_a_filter_is_asked_for_where_a_horizon_is_none():
    with pytest.raises(ValueError, match=r"^target must be a filter here, without a horizon: moving-average:12"):
        parse_target("running-sum:8")
