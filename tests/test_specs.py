import json
from pathlib import Path

import numpy as np
import pytest

import dpfast as dp
from dpfast.specs import OF_DESIGN, parse_model, parse_target, request


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
    with pytest.raises(ValueError, match=r"^target must not have the word 'c': it knows b, a$"):
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
        ({"kind": "arma", "c": 1}, "model must not have the word 'c': it knows b, a, innovation_std"),
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


# --- settings -------------------------------------------------------------------------------------

NEEDED = {"target": "moving-average:3", "epsilon": 1.0, "delta": 1e-5, "model": "arma:1/1,-0.5"}
LOG = "when,place\n" + "".join(
    f"2020-01-01T{h:02}:{m:02},{'ab'[m % 2]}\n" for h in range(24) for m in range(0, 60, 7 + h % 5)
)


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text(LOG)
    return {"fit": str(path), "time": "when", "period": "30min", "order": 2}


def toml(tmp_path, text):
    path = tmp_path / "settings.toml"
    path.write_text(text)
    return str(path)


def test_what_is_not_said_has_the_defaults_of_the_python_interface():
    found = request(None, NEEDED | {"lag": None, "max_change": None})
    assert found.task.privacy == dp.Privacy(1.0, 1e-5)
    assert (found.task.lag, found.task.tolerance, found.choose, found.out) == (0, 1e-3, None, "dpfast-design")
    assert found.sources == {}
    assert found.task.model.source == "assumed"


def test_a_file_has_the_words_of_the_command_line_and_arguments_go_before_it(tmp_path):
    path = toml(
        tmp_path,
        """
        epsilon = 2
        delta = 1e-6
        max-change = 3.5
        max_events = 2
        min-separation = 4
        calibration = "paper"
        lag = 7
        tolerance = 0.01
        choose = "LZF"
        out = "there"
        [target]
        b = [1]
        a = [1, -0.5]
        [model]
        kind = "levels"
        levels = [0, 1]
        probabilities = [0.5, 0.5]
        [sources]
        model = "public"
        max-change = "public"
        lag = "public"
        """,
    )
    found = request(path, {"lag": 9, "sources": [("lag", "assumed")]})
    assert found.task.privacy == dp.Privacy(
        2, 1e-6, max_change=3.5, max_events=2, min_separation=4, calibration="paper"
    )
    assert (found.task.lag, found.task.tolerance, found.choose, found.out) == (9, 0.01, "LZF", "there")
    assert found.task.target == dp.Filter([1], [1, -0.5])
    assert isinstance(found.task.model, dp.IndependentLevels)
    assert found.task.model.source == "public"
    assert found.sources == {"max_change": "public", "lag": "assumed"}


def test_the_file_in_the_documentation_is_one(tmp_path):
    page = (Path(__file__).parents[1] / "docs" / "design.md").read_text(encoding="utf-8")
    found = request(toml(tmp_path, page.split("```toml\n")[1].split("```")[0]), {})
    assert found.task.lag == 5
    assert found.sources == {"target": "public"}
    words = [word.replace("_", "-") for word in OF_DESIGN]
    assert [word for word in words if f"`{word}`" not in page] == []


def test_what_a_file_says_of_a_value_goes_with_the_value(tmp_path):
    text = """
        target = "ba:1/1,-0.5"
        epsilon = 1
        delta = 1e-6
        lag = 2
        model = "levels:0,1@0.5,0.5"
        [sources]
        lag = "{}"
        model = "public"
        """
    public = toml(tmp_path, text.format("public"))
    assert request(public, {}).sources == {"lag": "public"}
    changed = request(public, {"lag": 7, "model": "arma:1"})
    assert (changed.sources, changed.task.model.source) == ({}, "assumed")
    fitted = toml(tmp_path, text.format("fitted-from-private"))
    assert request(fitted, {}).sources == {"lag": "fitted-from-private"}
    with pytest.raises(ValueError, match="the source of lag must stay 'fitted-from-private'"):
        request(fitted, {"sources": [("lag", "public")]})
    with pytest.raises(ValueError, match="the source of max_change must be given once"):
        request(None, NEEDED | {"sources": [("max-change", "public"), ("max_change", "assumed")]})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"target": None}, "target must be given, as --target or in a file"),
        ({"epsilon": None}, "epsilon must be given"),
        ({"epsilon": "x"}, "epsilon must be"),
        ({"delta": 2}, "delta must be"),
        ({"max_events": 1.5}, "max_events must be an integer"),
        ({"target": "ba:0"}, "target must not be zero"),
        ({"lag": -1}, "lag must be an integer"),
        ({"lag": "5"}, "lag must be an integer"),
        ({"tolerance": 1.0}, "tolerance must be"),
        ({"model": None}, "either model or fit must be given"),
        ({"fit": "log.csv"}, "either model or fit must be given"),
        ({"period": "5min"}, "period must come with fit"),
        ({"choose": 1}, "choose must be text"),
        ({"out": 1}, "out must be text"),
        ({"sources": {"target": "secret"}}, "the source of target must be one of"),
    ],
)
def test_settings_that_cannot_be_used_are_named(change, message):
    with pytest.raises(ValueError, match=message):
        request(None, NEEDED | change)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("lag = 5\nlagg = 5", r"must not have the word 'lagg': it knows target, epsilon, .*, out$"),
        ("max-change = 1\nmax_change = 2", "every word once"),
        ("lag", "must be TOML"),
        ("sources = 1", "sources must be a table of names and words, got 1"),
        ("\x00", "must be TOML"),
    ],
)
def test_files_that_cannot_be_used_say_why(text, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        request(toml(tmp_path, text), NEEDED)


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    for path in (tmp_path, tmp_path / "missing.toml"):
        with pytest.raises(dp.DataError, match=f"cannot read {path}"):
            request(str(path), NEEDED)
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(dp.DataError, match="must be TOML"):
        request(str(tmp_path / "binary.toml"), NEEDED)


def test_a_fit_is_the_autoregression_of_the_counts_and_from_private_data(log):
    given = {name: NEEDED[name] for name in ("target", "epsilon", "delta")}
    model = request(None, given | log).task.model
    counts = np.zeros(48)
    for line in LOG.split()[1:]:
        counts[2 * int(line[11:13]) + (int(line[14:16]) >= 30)] += 1
    expected = dp.ARMA.fit(counts, 2)
    assert (model.shaping, model.mean) == (expected.shaping, expected.mean)
    assert model.levels.tolist() == list(range(int(counts.max()) + 1))
    assert (model.source, model.fitted_order) == ("fitted-from-private", 2)
    assert request(None, given | log | {"fit_source": "public"}).task.model.source == "public"


def test_a_fit_of_several_series_asks_which(log):
    given = {name: NEEDED[name] for name in ("target", "epsilon", "delta")} | log | {"by": "place"}
    with pytest.raises(ValueError, match=r"^series must be given, one of the 2 in column 'place'$"):
        request(None, given)
    with pytest.raises(ValueError, match=r"^series must be one of the 2 in column 'place', got another"):
        request(None, given | {"series": "c"})
    means = [request(None, given | {"series": name}).task.model.mean for name in "ab"]
    assert means[0] != means[1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"time": None}, "time must be given with a fit"),
        ({"period": None}, "period must be given with a fit"),
        ({"time": 3}, "time must be text"),
        ({"fit": 3}, "fit must be text"),
        ({"order": 2.5}, "order must be an integer"),
        ({"fit_source": "secret"}, "fit_source must be one of"),
        ({"sources": {"model": "public"}}, "say --fit-source"),
    ],
)
def test_a_fit_that_cannot_be_made_says_why(log, change, message):
    given = {name: NEEDED[name] for name in ("target", "epsilon", "delta")}
    with pytest.raises(ValueError, match=message):
        request(None, given | log | change)


def test_a_model_among_the_arguments_replaces_a_fit_of_the_file_and_the_other_way_round(log, tmp_path):
    fit = toml(tmp_path, "\n".join(f"{name} = {json.dumps(value)}" for name, value in log.items()))
    assert request(fit, NEEDED).task.model.source == "assumed"
    model = toml(tmp_path, 'model = "arma:1"')
    given = {name: NEEDED[name] for name in ("target", "epsilon", "delta")}
    assert request(model, given | log).task.model.fitted_order == 2
