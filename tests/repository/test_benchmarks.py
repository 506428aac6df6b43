"""The table of the benchmarks, with figures that are made up."""

import itertools
import json
import math
import tomllib

import numpy as np
import pytest

from benchmarks.harness import markdown_tables, race, results_table
from benchmarks.kernels import bench_channels

BARS = """
[[rows]]
what = "chain, times as fast as numpy"
sign = "≥"
figures = ["chain, float64: numpy", "chain, float32: numpy"]
goal = [30, 50]
bar = 20

[[rows]]
what = "chain, time in that of C++"
sign = "≤"
inverse = true
figures = ["chain, float64: C++"]
goal = 1.05
bar = 1.25

[[rows]]
what = "memory"
sign = "≤"
unit = "MB"
figures = ["memory"]
goal = 100
bar = 150
"""
GOOD = {
    "chain, float64: numpy": 31.26,
    "chain, float32: numpy": 45.0,
    "chain, float64: C++": 0.96,
    "memory": 120.4,
}


def results(figures, missing=()):
    race = {"what": "chain", "dtype": "float64", "ns": 2.5, "limits": {"peak": 0.71, "copy": 0.2}}
    race["ratios"] = {"numpy": 31.26, "C++": 0.96}
    race["reference_ns"] = {"numpy": 78.15, "C++": 2.4}
    chain = {name: value for name, value in figures.items() if "chain" in name}
    others = {name: value for name, value in figures.items() if "chain" not in name}
    return {
        "machine_info": {
            "python_version": "3.11.7",
            "node": "somewhere",
            "cpu": {"brand_raw": "Some CPU", "count": 2},
            "vector_bits": 512,
            "versions": {"numpy": "2.4", "jax": None},
        },
        "datetime": "2025-01-31T12:00:00",
        "benchmarks": [
            {"extra_info": {"race": race, "figures": chain, "missing": dict(missing)}},
            {"extra_info": {"figures": others}},
            {"extra_info": {}},
        ],
    }


@pytest.fixture
def run(tmp_path):
    (tmp_path / "docs/measurements").mkdir(parents=True)
    (tmp_path / "bars.toml").write_text(BARS, encoding="utf-8")

    def run(figures, *options, missing=()):
        path = tmp_path / "results.json"
        path.write_text(json.dumps(results(figures, missing)), encoding="utf-8")
        return results_table.main([str(path), *options], bars=tmp_path / "bars.toml", root=tmp_path)

    return run


def test_the_table_shows_goal_measured_value_and_bar(run, capsys):
    assert run(GOOD) == 0
    printed = capsys.readouterr().out
    assert "| chain, times as fast as numpy | ≥ 30 / 50 | 31.3 / *45* | ≥ 20 |" in printed
    assert "| chain, time in that of C++ | ≤ 1.05 | 1.04 | ≤ 1.25 |" in printed
    assert "| memory | ≤ 100 MB | *120* MB | ≤ 150 MB |" in printed
    assert "| chain | float64 | 2.5 | 0.71 (peak) | 0.96 × C++ (2.4 ns); 31.3 × numpy (78.2 ns) |" in printed
    assert "Some CPU, 2 processors, vectors of 512 bits; Python 3.11.7, numpy 2.4; 2025-01-31" in printed
    assert "somewhere" not in printed


@pytest.mark.parametrize(
    "figure", [("chain, float32: numpy", 19.9), ("chain, float64: C++", 0.79), ("memory", 151.0), ("memory", math.nan)]
)
@pytest.mark.parametrize("option", [[], ["--partial"]])
def test_a_figure_worse_than_its_bar_fails(run, capsys, figure, option):
    assert run(GOOD | dict([figure]), *option) == 1
    assert "the bar is" in capsys.readouterr().err


def test_a_figure_at_its_bar_passes(run):
    assert run(GOOD | {"chain, float32: numpy": 20.0, "chain, float64: C++": 0.8, "memory": 150.0}) == 0


def test_what_a_whole_run_leaves_out_without_a_reason_fails(run, capsys):
    rest = {name: value for name, value in GOOD.items() if name != "chain, float64: C++"}
    assert run(rest) == 1
    assert "chain, float64: C++: not measured" in capsys.readouterr().err
    assert run(rest, "--partial") == 0
    assert run(rest, missing={"chain, float64: C++": "no compiler"}) == 0
    assert "| chain, time in that of C++ | ≤ 1.05 | – (no compiler) | ≤ 1.25 |" in capsys.readouterr().out


def test_a_whole_run_is_written(run, tmp_path):
    run(GOOD)
    page = (tmp_path / "docs/measurements/performance.md").read_text(encoding="utf-8")
    assert "`nox -s bench`" in page
    assert "| memory | ≤ 100 MB | *120* MB | ≤ 150 MB |" in page
    assert "0.96 × C++ (2.4 ns)" in page
    data = json.loads((tmp_path / "docs/measurements/performance.json").read_text(encoding="utf-8"))
    assert data["command"] == "nox -s bench"
    assert data["rows"][1]["figures"] == [
        {"name": "chain, float64: C++", "goal": 1.05, "bar": 1.25, "value": 1 / 0.96, "missing": None}
    ]
    run(GOOD | {"memory": 20.0})
    page = (tmp_path / "docs/measurements/performance.md").read_text(encoding="utf-8")
    assert "| memory | ≤ 100 MB | 20 MB |" in page


def test_a_part_of_a_run_is_shown_and_not_written(run, tmp_path, capsys):
    run({"memory": 20.0}, "--partial")
    printed = capsys.readouterr().out
    assert "| memory | ≤ 100 MB | 20 MB | ≤ 150 MB |" in printed
    assert "times as fast as numpy" not in printed
    assert not list((tmp_path / "docs/measurements").iterdir())


def test_a_readme_without_markers_is_an_error():
    with pytest.raises(ValueError, match="one block"):
        markdown_tables.replace_block("nothing", "bench", "table")


def test_the_bars_are_no_stricter_than_the_goals():
    for row in results_table.rows(tomllib.loads(results_table.BARS.read_text(encoding="utf-8")), results({})):
        assert not any(row.misses(x.goal, x.bar) for x in row.figures), row.what


def test_the_bars_of_several_streams_are_of_figures_that_a_run_gives(monkeypatch):
    given = []
    monkeypatch.setattr(bench_channels, "SIZE", bench_channels.SIZE | {"n_streams": 8, "n_samples": 50})
    monkeypatch.setattr(bench_channels, "race_on_one_core", lambda _, what, dtype, *x: given.append((what, dtype, *x)))
    for m, dtype in itertools.product((3, 6), (np.float64, np.float32)):
        bench_channels.bench_diagonal(None, m, dtype)
    bench_channels.bench_correlated(None)
    for *_, subject, references in given:
        samples = {name: x.samples for name, x in references.items()}
        assert list(samples) == ["one stream"]
        assert subject.samples / samples["one stream"] in (3, 6)  # so that a ratio is the speed of a channel
    names = {f"{what}, {np.dtype(dtype)}: one stream" for what, dtype, *_ in given}
    bars = tomllib.loads(results_table.BARS.read_text(encoding="utf-8"))["rows"]
    [row] = [x for x in bars if "study of several streams" in x["what"]]
    assert set(row["figures"]) == names
    assert row["goal"] == 0.6


def test_figures_must_have_different_names():
    twice = results(GOOD)
    twice["benchmarks"] *= 2
    with pytest.raises(ValueError, match="two benchmarks give"):
        results_table.read(twice)


class Benchmark:
    """What a race needs of the fixture."""

    def pedantic(self, target, args, *, setup, rounds, warmup_rounds):
        for _ in range(warmup_rounds + rounds):
            setup()
            target(*args)


def test_contestants_take_turns_and_the_first_round_does_not_count():
    now, turns = [0.0], []

    def contestant(name, seconds, samples):
        durations = iter([100.0, *seconds])

        def run():
            turns.append(name)
            now[0] += next(durations)

        return race.Contestant(run, samples)

    subject, other = contestant("a", [1.0, 3.0, 2.0], 4), contestant("b", [6.0, 18.0, 15.0], 3)
    own, others = race.race(Benchmark(), subject, {"b": other}, clock=lambda: now[0], rounds=3)
    assert turns == ["b", "a"] * 4
    assert own.tolist() == [0.25, 0.75, 0.5]
    assert others["b"].tolist() == [2.0, 6.0, 5.0]


def test_repeated_calls_are_one_run():
    calls = []
    contestant = race.repeated(lambda: calls.append(1), 3, samples=5)
    contestant.run()
    assert (len(calls), contestant.samples) == (3, 15)


def test_the_page_shows_the_table_of_the_last_run_with_the_present_goals_and_bars():
    data = json.loads((results_table.ROOT / "docs/measurements/performance.json").read_text(encoding="utf-8"))
    bars = results_table.rows(tomllib.loads(results_table.BARS.read_text(encoding="utf-8")), results({}))
    assert [(row["what"], row["sign"]) for row in data["rows"]] == [(row.what, row.sign) for row in bars]
    lines = []
    for row, wanted in zip(data["rows"], bars, strict=True):
        figures = tuple(results_table.Figure(**x) for x in row["figures"])
        assert [(x.name, x.goal, x.bar) for x in figures] == [(x.name, x.goal, x.bar) for x in wanted.figures]
        lines.append(wanted._replace(figures=figures))
    text = results_table.goals_table(lines)
    assert text in (results_table.ROOT / "docs/measurements/performance.md").read_text(encoding="utf-8")
