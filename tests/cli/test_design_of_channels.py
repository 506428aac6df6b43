"""``dpfast design`` for several streams together, and the release of what it saves."""

import csv
from pathlib import Path

import numpy as np
import pytest
from helpers.commands import blank_pictures, refusal

import dpfast as dp
from dpfast.cli.design import read_settings
from dpfast.cli.design_channels import is_for_several, read_asked
from dpfast.cli.main import main
from dpfast.signals.events.historical_counts import read_events

NEEDED = {"target": "total:exponential:0.8", "epsilon": 4.0, "delta": 1e-5, "groups": ["north", "south"]}
NEEDED |= {"adjacency": "one_input", "model": ["arma:1/1,-0.5@3", "arma:1/1,-0.8@2"]}
LOG = "when,place\n" + "".join(
    f"2020-01-01T{h:02}:{m:02},{place}\n"
    for h in range(24)
    for place, k in (("a", 7), ("b", 9))
    for m in range(0, 60, k + h % 5)
)


def asked_of(path=None, **change):
    given = {name: value for name, value in (NEEDED | change).items() if value is not None}
    settings = read_settings(path, given)
    assert is_for_several(settings)
    return read_asked(settings)


def words(out, **change):
    given = {"target": "total:exponential:0.8", "epsilon": 4, "delta": 1e-5, "groups": "north,south", "lag": 1}
    given |= {"adjacency": "one-input", "tolerance": 0.1, "out": out, **change}
    line = [str(x) for name, value in given.items() if value is not None for x in (f"--{name}", value)]
    return ["design", *line]


MODELS = ["--model", "arma:1/1,-0.5@3", "--model", "arma:1/1,-0.8@2"]


def test_arguments_are_those_of_the_python_interface():
    asked = asked_of(max_events=2, min_separation=3, lag=4, unit=0.5)
    wanted = dp.Privacy(4, 1e-5, adjacency="one_input", max_events=2, min_separation=3)
    assert (asked.privacy, asked.names, asked.lag, asked.unit) == (wanted, ("north", "south"), 4, 0.5)
    np.testing.assert_array_equal(asked.target.impulse(9), (dp.total(2) * dp.Filter([1 - 0.8], [1, -0.8])).impulse(9))
    assert [x.mean for x in asked.models] == [3, 2]
    assert asked_of(model=None).models is None


def test_a_file_may_have_rows_of_filters_and_a_model_of_each(tmp_path):
    path = tmp_path / "airports.toml"
    path.write_text(
        """
        target = [["moving-average:3", "moving-average:3"], ["exponential:0.8", -1]]
        adjacency = "each-input-same-time"
        epsilon = 1
        max-change = [1, 2]
        [[model]]
        kind = "arma"
        b = [1]
        a = [1, -0.5]
        [[model]]
        kind = "levels"
        levels = [0, 1]
        probabilities = [0.5, 0.5]
        [sources]
        model = "public"
        """
    )
    asked = read_asked(read_settings(str(path), {}))
    assert asked.names == ("input 1", "input 2")
    assert asked.privacy == dp.Privacy(1, max_change=(1, 2), adjacency="each_input_same_time")
    assert asked.target[1, 1] == dp.Filter([-1])
    assert {x.source for x in asked.models} == {"public"}


def test_a_fit_is_that_of_each_series(tmp_path):
    log = tmp_path / "log.csv"
    log.write_text(LOG)
    fit = {"fit": str(log), "time": "when", "by": "place", "period": "30min", "order": 2, "model": None}
    asked = asked_of(groups=["b", "a"], **fit)
    counts = read_events(log, time="when", by="place", period="30min")
    for model, name in zip(asked.models, "ba", strict=True):
        u = counts.counts[counts.series.index(name)]
        alone = dp.ARMA.fit(u, 2, levels=np.arange(u.max() + 1))
        assert (model.mean, model.variance, model.shaping) == (alone.mean, alone.variance, alone.shaping)
        assert model.source == "fitted-from-private"
    with pytest.raises(ValueError, match="groups must be of the 2 in column 'place', got another"):
        asked_of(groups=["a", "c"], **fit)
    with pytest.raises(ValueError, match="series must be left out for several streams"):
        asked_of(groups=["a", "b"], **fit | {"series": "a"})


def test_what_is_designed_is_the_best_and_can_be_released(tmp_path, capsys):
    out, log = tmp_path / "designs", tmp_path / "log.csv"
    with blank_pictures():
        assert main([*words(out), *MODELS]) == 0
    printed = capsys.readouterr().out
    models = [dp.ARMA([1], [1, -0.5], mean=3), dp.ARMA([1], [1, -0.8], mean=2)]
    privacy = dp.Privacy(4, 1e-5, adjacency="one_input")
    target = dp.total(2) * dp.Filter([1 - 0.8], [1, -0.8])
    best = dp.best(target, privacy, models, lag=1, tolerance=0.1)
    assert f"\n\n{best.choice.sentence[:60]}" in printed
    assert "What one person changes: one event" in printed.replace("\n  ", " ")
    with (out / "design.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [x["mechanism"] for x in rows] == [x.name for x in best.choice.rows]
    for row, m in zip(rows, (best, *best.alternatives), strict=False):
        assert float(row["RMSE of north + south"]) == pytest.approx(np.sqrt(m.output_mse[0]), rel=1e-4)
    saved = dp.load(out / "mechanism.json")
    chosen = next(x for x in best.choice.rows if x.releasable)
    assert saved.predicted_rmse == pytest.approx(chosen.rmse, rel=1e-9)
    assert {x.name for x in out.iterdir()} == {
        "design.csv",
        "design.md",
        "mechanism.json",
        "mechanism.html",
        "report.html",
    }
    assert "north + south" in (out / "report.html").read_text(encoding="utf-8")
    assert main(["show", str(out / "mechanism.json")]) == 0
    log.write_text("t,g\n" + "".join(f"2020-01-01T{h:02}:00Z,{g}\n" for h in range(12) for g in ("north", "south")))
    span = [
        "--start",
        "2020-01-01T00:00Z",
        "--end",
        "2020-01-01T12:00Z",
        "--period",
        "1h",
        "--high",
        "20",
        "--time",
        "t",
    ]
    span += [
        "--by",
        "g",
        "--groups",
        "north,south",
        "--adjacency",
        "one-input",
        "--out",
        str(tmp_path / "out"),
        "--quiet",
    ]
    assert main(["release", str(log), "--mechanism", str(out / "mechanism.json"), *span]) == 0
    assert (
        (tmp_path / "out" / "estimates.csv")
        .read_text()
        .splitlines()[1]
        .startswith("2020-01-01T00:00:00Z,north + south,")
    )


def test_for_real_numbers_no_command_that_takes_counts_is_printed(tmp_path, capsys):
    assert main([*words(tmp_path / "a", delta=None), *MODELS, "--unit", "0.5"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "dpfast release EVENTS" not in printed
    assert "dp.Inputs(LOW, HIGH, unit=0.5, multiples=False, missing=LOW, n_streams=2)" in printed


def test_another_one_may_be_saved_and_what_is_no_design_is_named(tmp_path, capsys):
    assert main([*words(tmp_path / "a", delta=None), *MODELS, "--choose", "block sums"]) == 0
    assert "Saved is block sums, which can be released exactly." in capsys.readouterr().out
    assert isinstance(dp.load(tmp_path / "a" / "mechanism.json"), dp.BlockChannelsMechanism)
    line = refusal([*words(tmp_path / "b", delta=None), *MODELS, "--choose", "LZF"], capsys)
    assert "choose must be one of block sums, got 'LZF'. Gaussian noise needs a delta above 0" in line
    assert not Path(tmp_path / "b").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"adjacency": None},
            "adjacency must be given for several streams, .*one_input: an event of a person is in one",
        ),
        ({"adjacency": "some"}, "adjacency must be one of 'one_input'"),
        ({"groups": None}, "groups must be given with the target 'total:exponential:0.8'"),
        ({"groups": ["a", "a"]}, "groups must be a list of distinct printable names"),
        ({"groups": ["a", "b", "c"]}, "model must be one for all streams, or one for each of the 3, got 2"),
        ({"target": "exponential:0.8"}, "target must say what becomes of several streams"),
        ({"minimize": "worst-step"}, "minimize must be left out for several streams, got 'worst-step'"),
        ({"batch": True}, "batch must be left out for several streams, got True"),
        ({"sources": [("target", "public")]}, "sources must be of the model alone for several streams, got 'target'"),
        ({"epsilon": -1}, "epsilon must be"),
    ],
)
def test_settings_that_cannot_be_used_are_named(change, message):
    with pytest.raises(ValueError, match=message):
        asked_of(**change)


def test_one_stream_takes_no_adjacency_and_one_model(tmp_path, capsys):
    alone = ["design", "--target", "exponential:0.8", "--epsilon", "1", "--out", str(tmp_path / "a")]
    assert "adjacency must come with several streams, got one" in refusal([*alone, "--adjacency", "one-input"], capsys)
    assert "model must be one for one stream, got 2" in refusal([*alone, *MODELS], capsys)


def test_noise_that_is_saved_can_be_drawn(tmp_path):
    """Without a δ, of events that change a count by three: the staircase would have the least variance."""
    out = tmp_path / "designs"
    task = ["--target", "total", "--groups", "a,b", "--adjacency", "one-input", "--epsilon", "9", "--max-change", "3"]
    with blank_pictures():
        assert main(["design", *task, *MODELS, "--out", str(out)]) == 0
    assert dp.exact(dp.load(out / "mechanism.json"), dp.Inputs(0, 9, n_streams=2)).guarantee.epsilon <= 9
