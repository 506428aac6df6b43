import contextlib
import json
from pathlib import Path

import numpy as np
import pytest
from helpers.commands import blank_pictures, refusal

import dpfast as dp
from dpfast.cli.design import SETTINGS, make_task, read_settings
from dpfast.cli.main import main
from dpfast.design.best_candidates import filter_candidates

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


def task_of(path, arguments):
    return make_task(read_settings(path, arguments))


def test_what_is_not_said_has_the_defaults_of_the_python_interface():
    settings = read_settings(None, NEEDED | {"lag": None, "max_change": None})
    task = make_task(settings)
    assert task.privacy == dp.Privacy(1.0, 1e-5)
    assert (task.lag, task.tolerance, settings["out"]) == (0, 1e-3, "dpfast-design")
    assert "choose" not in settings
    assert settings["sources"] == {}
    assert task.model.source == "assumed"
    assert (task.online, task.minimize) == (True, "mean")
    assert not task_of(None, NEEDED | {"lag": "smoother"}).online
    assert task_of(None, {name: NEEDED[name] for name in ("target", "epsilon")}).model is None


def test_a_file_has_the_words_of_the_command_line_and_arguments_go_before_it(tmp_path):
    path = toml(
        tmp_path,
        """
        epsilon = 2
        delta = 1e-6
        max-change = 3.5
        unit = 0.5
        max_events = 2
        min-separation = 4
        calibration = "paper"
        lag = 7
        tolerance = 0.01
        minimize = "worst-step"
        batch = true
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
    settings = read_settings(path, {"lag": 9, "sources": [("lag", "assumed")]})
    task = make_task(settings)
    assert task.privacy == dp.Privacy(2, 1e-6, max_change=3.5, max_events=2, min_separation=4, calibration="paper")
    assert (task.lag, task.tolerance, task.unit) == (9, 0.01, 0.5)
    assert (task.online, task.minimize, settings["simulate"]) == (False, "worst_step", False)
    assert (settings["choose"], settings["out"]) == ("LZF", "there")
    assert task.target == dp.Filter([1], [1, -0.5])
    assert isinstance(task.model, dp.IndependentLevels)
    assert task.model.source == "public"
    assert settings["sources"] == {"max_change": "public", "lag": "assumed"}


def test_the_file_in_the_documentation_is_one(tmp_path):
    page = (Path(__file__).parents[2] / "docs/guides/design.md").read_text(encoding="utf-8")
    settings = read_settings(toml(tmp_path, page.split("```toml\n")[1].split("```")[0]), {})
    assert make_task(settings).lag == 5
    assert settings["sources"] == {"target": "public"}
    words = [word.replace("_", "-") for word in SETTINGS]
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
    assert read_settings(public, {})["sources"] == {"lag": "public"}
    changed = read_settings(public, {"lag": 7, "model": "arma:1"})
    assert (changed["sources"], make_task(changed).model.source) == ({}, "assumed")
    fitted = toml(tmp_path, text.format("fitted-from-private"))
    assert read_settings(fitted, {})["sources"] == {"lag": "fitted-from-private"}
    with pytest.raises(ValueError, match="the source of lag must stay 'fitted-from-private'"):
        task_of(fitted, {"sources": [("lag", "public")]})
    with pytest.raises(ValueError, match="the source of max_change must be given once"):
        task_of(None, NEEDED | {"sources": [("max-change", "public"), ("max_change", "assumed")]})


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
        ({"unit": 0}, "unit must be"),
        ({"model": None, "sources": {"model": "public"}}, "the source of model must come with a model"),
        ({"minimize": "best"}, "minimize must be one of 'mean', 'worst-step', got 'best'"),
        ({"batch": 1}, "batch must be true or false, got 1"),
        ({"simulate": "yes"}, "simulate must be true or false, got 'yes'"),
        ({"simulate": True, "minimize": "worst-step"}, "simulate must be False with minimize='worst_step'"),
        ({"fit": "log.csv"}, "either model or fit must be given"),
        ({"period": "5min"}, "period must come with fit"),
        ({"choose": 1}, "choose must be text"),
        ({"out": 1}, "out must be text"),
        ({"sources": {"target": "secret"}}, "the source of target must be one of"),
    ],
)
def test_settings_that_cannot_be_used_are_named(change, message):
    with pytest.raises(ValueError, match=message):
        task_of(None, NEEDED | change)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "lag = 5\nlagg = 5",
            r"has the unknown key 'lagg': the valid keys are target, epsilon, .*, out; did you mean lag\?$",
        ),
        ("max-change = 1\nmax_change = 2", "every key once"),
        ("lag", "must be TOML"),
        ("sources = 1", "sources must be a table of names and words, got 1"),
        ("\x00", "must be TOML"),
    ],
)
def test_files_that_cannot_be_used_say_why(text, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        task_of(toml(tmp_path, text), NEEDED)


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    for path in (tmp_path, tmp_path / "missing.toml"):
        with pytest.raises(dp.DataError, match=f"cannot read {path}"):
            task_of(str(path), NEEDED)
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(dp.DataError, match="must be TOML"):
        task_of(str(tmp_path / "binary.toml"), NEEDED)


def test_a_fit_is_the_autoregression_of_the_counts_and_from_private_data(log):
    given = {name: NEEDED[name] for name in ("target", "epsilon", "delta")}
    model = task_of(None, given | log).model
    counts = np.zeros(48)
    for line in LOG.split()[1:]:
        counts[2 * int(line[11:13]) + (int(line[14:16]) >= 30)] += 1
    expected = dp.ARMA.fit(counts, 2)
    assert (model.shaping, model.mean) == (expected.shaping, expected.mean)
    assert model.levels.tolist() == list(range(int(counts.max()) + 1))
    assert (model.source, model.fitted_order) == ("fitted-from-private", 2)
    assert task_of(None, given | log | {"fit_source": "public"}).model.source == "public"


def test_a_fit_reads_dates_of_mail_and_periods_of_pandas(log, tmp_path):
    given = {name: NEEDED[name] for name in ("target", "epsilon", "delta")}
    expected = task_of(None, given | log).model
    lines = LOG.split()[1:]
    texts = [f'"Wed, 1 Jan 2020 {line[11:16]}:00 -0000",{line[-1]}' for line in lines]
    (tmp_path / "mail.csv").write_text("\n".join(["when,place", *texts]))
    model = task_of(None, given | log | {"fit": str(tmp_path / "mail.csv"), "period": "30T"}).model
    assert (model.shaping, model.mean) == (expected.shaping, expected.mean)


def test_a_fit_of_several_series_asks_which(log):
    given = {name: NEEDED[name] for name in ("target", "epsilon", "delta")} | log | {"by": "place"}
    with pytest.raises(ValueError, match=r"^series must be given, one of the 2 in column 'place'$"):
        task_of(None, given)
    with pytest.raises(ValueError, match=r"^series must be one of the 2 in column 'place', got another"):
        task_of(None, given | {"series": "c"})
    means = [task_of(None, given | {"series": name}).model.mean for name in "ab"]
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
        task_of(None, given | log | change)


def test_a_model_among_the_arguments_replaces_a_fit_of_the_file_and_the_other_way_round(log, tmp_path):
    fit = toml(tmp_path, "\n".join(f"{name} = {json.dumps(value)}" for name, value in log.items()))
    assert task_of(fit, NEEDED).model.source == "assumed"
    model = toml(tmp_path, 'model = "arma:1"')
    given = {name: NEEDED[name] for name in ("target", "epsilon", "delta")}
    assert task_of(model, given | log).model.fitted_order == 2


def test_the_smoother_is_a_lag_in_files_and_arguments(tmp_path):
    assert task_of(None, NEEDED | {"lag": "smoother"}).lag is None
    assert task_of(toml(tmp_path, 'lag = "smoother"'), NEEDED).lag is None
    with pytest.raises(ValueError, match=r"lag must be an integer, .*; or 'smoother'"):
        task_of(None, NEEDED | {"lag": "smoothed"})


# --- the command ------------------------------------------------------------------------------------

HALVES = "markov:0.75,0.25;0.25,0.75@-0.5,0.5"
DESIGN = ["--target", "ba:1/1,-0.5", "--epsilon", "1", "--delta", "1e-5", "--tolerance", "0.05"]


@pytest.mark.parametrize(("more", "told"), [(("--max-events", "4"), True), ((), False)])
def test_what_takes_long_is_said_before_it_begins(monkeypatch, tmp_path, capsys, more, told):
    def stop(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("dpfast.cli.design.report_comparison", stop)
    words = ["design", *DESIGN, "--model", "arma:1/1,-0.9@8", *more, "--out", str(tmp_path / "out")]
    assert main(words) == 130
    said = capsys.readouterr().err
    assert said.startswith("dpfast: designing for 4 events of a person, ") is told
    assert said.endswith("dpfast: interrupted\n")


@pytest.mark.parametrize("drawn", [False, pytest.param(True, marks=pytest.mark.long)])
def test_design_writes_its_files_and_show_reads_the_mechanism(monkeypatch, tmp_path, capsys, drawn):
    monkeypatch.setattr("dpfast.design.comparison.lags_around", lambda lag: [lag])
    monkeypatch.setattr("dpfast.design.comparison.epsilons_around", lambda epsilon: [epsilon])
    settings, out = tmp_path / "settings.toml", tmp_path / "out"
    settings.write_text('model = "levels:0,1@0.5,0.5"\nepsilon = 9\nmax-change = 2\nchoose = "DFE"\n')
    told = ["--source", "max-change=public", "--source", "epsilon=public", "--choose", "LZF"]
    with contextlib.nullcontext() if drawn else blank_pictures():
        assert main(["design", str(settings), *DESIGN, *told, "--out", str(out)]) == 0
    assert "Written:" in capsys.readouterr().out
    assert main(["show", str(out / "mechanism.json")]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("LZF\n")
    assert "epsilon 1, " in shown
    assert "public              epsilon, max_change\n" in shown


@pytest.mark.parametrize(
    ("more", "declared"),
    [
        (["--unit", "0.5"], "dp.exact(mechanism, dp.Inputs(LOW, HIGH, unit=0.5, multiples=False, missing=LOW))"),
        (["--model", HALVES], "dp.exact(mechanism, dp.Inputs(-0.5, 0.5, unit=1, centre=-0.5, missing=-0.5))"),
    ],
)
def test_where_values_are_no_counts_python_is_printed_in_the_place_of_a_command(tmp_path, capsys, more, declared):
    out = tmp_path / "out"
    asked = ["design", "--target", "moving-average:3", "--epsilon", "1", "--tolerance", "0.1", "--out", str(out)]
    with blank_pictures():
        assert main([*asked, *more]) == 0
    printed = capsys.readouterr().out
    assert "dpfast release EVENTS" not in printed
    assert f"print({declared}.guarantee)" in printed
    assert f"mechanism = dp.load({str(out / 'mechanism.json')!r})" in printed


def test_a_design_that_rounds_counts_has_a_command_with_its_unit(tmp_path, capsys):
    out = tmp_path / "out"
    with blank_pictures():
        assert main(["design", "--target", "moving-average:3", "--epsilon", "1", "--unit", "2", "--out", str(out)]) == 0
    printed = " ".join(capsys.readouterr().out.replace("\\\n", " ").split())
    assert "It rounds counts to multiples of 2, so that LARGEST has to be one. To see what" in printed
    assert "--end DAY --high LARGEST --unit 2 --out FOLDER --dry-run" in printed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--time", "when"], "time must come with fit, the log that a model is fitted to"),
        (["--model", "arma:1", "--minimize", "worst-step", "--simulate"], "simulate must be False"),
        (["--model", "nonsense"], "model must be markov:"),
        (["--model", "arma:1", "--lag", "-1"], "lag must be"),
        (["--model", "arma:1", "--unit", "0"], "unit must be"),
        (["--model", "arma:1", "--choose", "best"], "choose must be one of 'optimal'"),
        (["--model", "arma:1", "--source", "target=secret"], "the source of target must be one of"),
        (["--model", "arma:1", "--time", "when"], "time must come with fit"),
        (["missing.toml", "--model", "arma:1"], "cannot read missing.toml"),
        (["--fit", "missing.csv", "--time", "when", "--period", "1h"], "missing.csv"),
    ],
)
def test_a_bad_design_gives_one_line_and_writes_nothing(tmp_path, capsys, arguments, message):
    out = tmp_path / "out"
    assert message in refusal(["design", *arguments, *DESIGN, "--out", str(out)], capsys)
    assert not out.exists()


def test_an_interrupted_design_writes_nothing(monkeypatch, tmp_path, capsys):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("dpfast.design.best_ranking.design_candidate", interrupted)
    assert main(["design", *DESIGN, "--model", "arma:1", "--out", str(tmp_path / "out")]) == 130
    assert capsys.readouterr().err == "dpfast: interrupted\n"
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("label", ["block sums", "input perturbation (integer noise)"])
def test_noise_for_events_of_several_at_once_can_be_drawn(label):
    """Geometric, where the staircase has the least variance, and cannot be drawn."""
    given = {"target": "ba:1/1,-0.5", "epsilon": 1.0, "max_change": 3.0, "model": "arma:1/1,-0.5@8"}
    task = task_of(None, given)
    made = next(x for x in filter_candidates() if x.label == label).design(task)
    assert 0.999 < dp.exact(made, dp.Inputs(0, 30)).guarantee.epsilon <= 1
