import json
from pathlib import Path

import numpy as np
import pytest

import dpfast as dp
from dpfast.cli.design import OF_DESIGN, request

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
    page = (Path(__file__).parents[2] / "docs" / "design.md").read_text(encoding="utf-8")
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
        ("lag = 5\nlagg = 5", r"must not have the word 'lagg': it knows target, epsilon, .*, out; did you mean lag\?$"),
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


def test_a_fit_reads_dates_of_mail_and_periods_of_pandas(log, tmp_path):
    given = {name: NEEDED[name] for name in ("target", "epsilon", "delta")}
    expected = request(None, given | log).task.model
    lines = LOG.split()[1:]
    texts = [f'"Wed, 1 Jan 2020 {line[11:16]}:00 -0000",{line[-1]}' for line in lines]
    (tmp_path / "mail.csv").write_text("\n".join(["when,place", *texts]))
    model = request(None, given | log | {"fit": str(tmp_path / "mail.csv"), "period": "30T"}).task.model
    assert (model.shaping, model.mean) == (expected.shaping, expected.mean)


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


def test_the_smoother_is_a_lag_in_files_and_arguments(tmp_path):
    assert request(None, NEEDED | {"lag": "smoother"}).task.lag is None
    assert request(toml(tmp_path, 'lag = "smoother"'), NEEDED).task.lag is None
    with pytest.raises(ValueError, match=r"lag must be an integer, .*; or 'smoother'"):
        request(None, NEEDED | {"lag": "smoothed"})
