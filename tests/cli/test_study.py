import contextlib
import csv
import logging
import re
from pathlib import Path

import numpy as np
import pytest
from helpers import pages

import dpfast as dp
from dpfast._support.errors import EngineError
from dpfast.cli import study
from dpfast.cli.main import main
from dpfast.cli.study import OF_FILE, read_definition
from dpfast.simulation.sweep.grid import ParameterGrid
from dpfast.simulation.sweep.sweep_store import SweepStore

FILE = """
title = "A small one"
description = "Two mechanisms."
seed = 1
n-samples = 200
width = 0.2
decide = "mechanism"

[grid]
mechanism = ["zero-forcing", "input-perturbation"]
target = "ba:1,0.9/1,-0.9"
model = "levels:0,1@0.5,0.5"
epsilon = [0.5, 2]
delta = 1e-6
"""


@pytest.fixture
def undrawn(monkeypatch):
    """No pictures, which take longer than everything else."""
    monkeypatch.setattr(study.sweep_pictures, "draw_all", lambda found: {})
    monkeypatch.setattr(study.sweep_page, "sweep_page", lambda found, **given: "")


@pytest.fixture
def file(tmp_path, monkeypatch):
    path = tmp_path / "study.toml"
    path.write_text(FILE)
    monkeypatch.chdir(tmp_path)
    return str(path)


def rows(path):
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("render", pages.RENDERINGS)
def test_a_study_writes_its_files_and_prints_table_and_winners(file, tmp_path, capsys, monkeypatch, render):
    pages.render_once(monkeypatch, study, render=render)
    assert main(["study", file]) == 0
    out = tmp_path / "dpfast-study"
    names = {x.name for x in out.iterdir()}
    pictures = {x for x in names if x.endswith(".png")}
    assert "rmse-over-epsilon.png" in pictures
    assert names - pictures == {"report.html", "study.csv", "study.md", "study.parquet", "study.sqlite"}
    *table, constant = rows(out / "study.csv")
    assert (constant["mechanism"], constant["explained"], constant["n_streams"]) == ("constant", "0.0", "0")
    assert [(x["mechanism"], float(x["epsilon"])) for x in table] == [
        *(("zero_forcing", 0.5), ("zero_forcing", 2)),
        *(("input_perturbation", 0.5), ("input_perturbation", 2)),
    ]
    direct = dp.sweep(
        {
            "mechanism": ["zero_forcing", "input_perturbation"],
            "target": "ba:1,0.9/1,-0.9",
            "model": "levels:0,1@0.5,0.5",
            "epsilon": [0.5, 2],
            "delta": 1e-6,
        },
        seed=1,
        n_samples=200,
        width=0.2,
        decide="mechanism",
    )
    assert [float(x["rmse"]) for x in table] == [direct.rows[x.case].rmse for x in direct.points]
    printed = capsys.readouterr().out
    for text in (printed, (out / "study.md").read_text(encoding="utf-8")):
        assert "4 points, 4 cases; 200 samples a stream, seed 1" in text
        assert "nearest" in text
    assert "Written:" in printed
    assert (out / "study.md").read_text(encoding="utf-8").startswith("# A small one\n\nTwo mechanisms.\n")
    page = (out / "report.html").read_text(encoding="utf-8")
    assert all(x in page for x in ("A small one</title>", "Two mechanisms.", f"dpfast study {file}"))
    assert all((out / x).read_bytes().startswith(b"\x89PNG") for x in pictures)


def test_arguments_go_before_the_file(file, undrawn, tmp_path):
    given = ["--out", "there", "--store", "kept.sqlite", "--seed", "2", "--width", "none", "--budget", "1e5"]
    assert main(["study", *given, file]) == 0
    assert (tmp_path / "kept.sqlite").exists()
    assert not (tmp_path / "there" / "study.sqlite").exists()
    assert "seed 2; until best mechanism decided, or 100000 samples" in (tmp_path / "there" / "study.md").read_text()
    assert not (tmp_path / "dpfast-study").exists()


def test_the_engine_is_what_was_asked_for(file, monkeypatch):
    given = {}

    def stop(_, **options):
        given.update(options)
        raise ValueError("far enough")

    monkeypatch.setattr(study, "sweep", stop)
    assert main(["study", "--workers", "3", file]) == 2
    assert (given["workers"], given["executor"]) == (3, None)
    monkeypatch.setattr(study, "connect_dask", lambda address: contextlib.nullcontext(f"the cluster at {address}"))
    assert main(["study", "--dask", "tcp://10.0.0.1:8786", file]) == 2
    assert given["executor"] == "the cluster at tcp://10.0.0.1:8786"


def test_a_long_table_is_cut_to_a_screenful(file, undrawn, tmp_path, capsys):
    text = FILE.replace("[0.5, 2]", "{ start = 0.1, stop = 10, number = 25 }").replace("width = 0.2", "width = 5")
    text = text.replace("zero-forcing", "output-perturbation")  # which takes no time
    (tmp_path / "study.toml").write_text(text.replace('decide = "mechanism"', ""))
    assert main(["study", file]) == 0
    printed = capsys.readouterr().out
    assert "… and 10 more in study.csv" in printed
    assert printed.count("output_perturbation") + printed.count("input_perturbation") == 40
    assert "nearest" not in printed
    assert len(rows(tmp_path / "dpfast-study" / "study.csv")) == 51


def test_verbose_logs_to_standard_error_and_leaves_no_handler(file, undrawn, capsys):
    log = logging.getLogger("dpfast.studies")
    before = (list(log.handlers), log.level)
    assert main(["study", "--verbose", file]) == 0
    assert re.search(r"\d INFO .*4 cases", capsys.readouterr().err)
    assert (log.handlers, log.level) == before
    assert main(["study", file]) == 0
    assert capsys.readouterr().err == ""


def test_an_interrupt_says_how_far_it_was_and_the_same_command_goes_on(file, undrawn, tmp_path, monkeypatch, capsys):
    longer = tmp_path / "study.toml"
    longer.write_text(FILE.replace("width = 0.2", "width = 0.02"))  # several stages
    assert main(["study", "--out", "whole", file]) == 0
    add, calls = SweepStore.add, []

    def interrupted(store, *given):
        calls.append(given)
        if len(calls) > 1:
            raise KeyboardInterrupt
        add(store, *given)

    capsys.readouterr()
    with monkeypatch.context() as context:
        context.setattr(SweepStore, "add", interrupted)
        assert main(["study", "--out", "cut", file]) == 130
    line = f"0 of 4 cases were finished; the same call with seed=1 goes on: dpfast study --out cut {file}"
    assert capsys.readouterr().err == f"dpfast: interrupted: {line}\n"
    assert [x.name for x in (tmp_path / "cut").iterdir()] == ["study.sqlite"]
    with SweepStore(tmp_path / "cut" / "study.sqlite") as store:
        assert store.counts(1) == {0: 1, 1: 1, 2: 1, 3: 1}
    assert main(["study", "--out", "cut", file]) == 0
    assert rows(tmp_path / "cut" / "study.csv") == rows(tmp_path / "whole" / "study.csv")


def test_a_bad_study_gives_one_line_and_writes_nothing(file, tmp_path, capsys):
    for change, message in [
        (("seed = 1", ""), "seed must be given"),
        (("width = 0.2", "width = -1"), "width must be"),
        (('"mechanism"\n', '"lag"\n'), "decide must be one of"),
        (("[0.5, 2]", "[0.5, -2]"), "epsilon must be"),
    ]:
        (tmp_path / "study.toml").write_text(FILE.replace(*change))
        assert main(["study", file]) == 2
        error = capsys.readouterr().err
        assert error.startswith("dpfast: error: ")
        assert error.count("\n") == 1
        assert message in error
        assert [x.name for x in tmp_path.iterdir()] == ["study.toml"]


def test_no_scheduler_is_one_line(file, capsys, monkeypatch):
    def nobody(_):
        raise EngineError("no Dask scheduler answers")

    monkeypatch.setattr(study, "connect_dask", nobody)
    assert main(["study", "--dask", "tcp://127.0.0.1:1", file]) == 2
    assert capsys.readouterr().err == "dpfast: error: no Dask scheduler answers\n"


def test_the_command_has_help(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["study", "--help"])
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    for word in ("--out", "--store", "--workers", "--dask", "--width", "--budget", "--seed", "--verbose"):
        assert word in shown


# --- the file --------------------------------------------------------------------------------------

GRID = """
[grid]
mechanism = ["zero-forcing", "lmmse"]
target = "exponential:0.9"
model = "arma:1/1,-0.5"
epsilon = 1
delta = 1e-6
"""


@pytest.fixture
def toml(tmp_path):
    def write(text):
        path = tmp_path / "study.toml"
        path.write_text(text)
        return str(path)

    return write


def test_what_is_not_said_is_left_to_the_defaults_of_the_python_interface(toml):
    found = read_definition(toml("seed = 1" + GRID), {"width": None})
    assert found.options == {"seed": 1, "store": str(Path("dpfast-study/study.sqlite"))}
    assert (found.out, found.title, found.description) == (Path("dpfast-study"), None, None)
    assert found.grid.axes == {"mechanism": ("zero_forcing", "lmmse")}


def test_a_file_has_all_words_and_arguments_go_before_it(toml):
    path = toml(
        """
        title = "A study"
        description = "Of nothing."
        seed = 1
        store = "kept.sqlite"
        out = "there"
        n-samples = 500
        burn_in = 10
        width = 0.05
        decide = "max-change"
        budget = 1e6
        confidence = 0.9
        dtype = "float32"
        workers = 2
        """
        + GRID
    )
    expected = {
        "store": "kept.sqlite",
        "seed": 1,
        "n_samples": 500,
        "burn_in": 10,
        "width": 0.05,
        "decide": ["max_change"],
        "budget": 1e6,
        "confidence": 0.9,
        "dtype": "float32",
        "workers": 2,
    }
    found = read_definition(path, {})
    assert found.options == expected
    assert (found.out, found.title, found.description) == (Path("there"), "A study", "Of nothing.")
    found = read_definition(path, {"seed": 2, "width": "none", "out": "here"})
    assert found.options == expected | {"seed": 2, "width": None}
    assert found.out == Path("here")


def test_grids_of_a_file_are_those_of_python(toml):
    text = """
        [[grid]]
        mechanism = "decision-feedback"
        target = { b = [1], a = [1, -0.9] }
        model = { kind = "levels", levels = [0, 1], probabilities = [0.5, 0.5] }
        prefilter = ["zero-forcing", "decision-feedback"]
        delta = 1e-6
        max-change = 2
        lag = [0, 5]
        [grid.epsilon]
        weak = 5
        strong-one = 0.1
        [[grid]]
        mechanism = ["lmmse", "optimal"]
        target = { b = [1], a = [1, -0.9] }
        model = { kind = "levels", levels = [0, 1], probabilities = [0.5, 0.5] }
        epsilon = { start = 0.1, stop = 10, number = 5, spacing = "log" }
        delta = 1e-6
        max_change = 2
        lag = [0, 5, "smoother"]
        """
    shared = {"target": dp.Filter([1], [1, -0.9]), "model": dp.IndependentLevels([0, 1], [0.5, 0.5]), "delta": 1e-6}
    parts = [
        {
            "mechanism": dp.decision_feedback,
            **shared,
            "prefilter": ["zero-forcing", "decision-feedback"],
            "max_change": 2,
            "lag": [0, 5],
            "epsilon": {"weak": 5, "strong-one": 0.1},
        },
        {
            "mechanism": [dp.lmmse, dp.optimal],
            **shared,
            "epsilon": np.geomspace(0.1, 9, 5),
            "max_change": 2,
            "lag": [0, 5, None],
        },
    ]
    with pytest.raises(ValueError, match="epsilon must have one label for each value"):
        read_definition(toml("seed = 1\n" + text), {})  # 0.1 is a strong one
    found = read_definition(
        toml("seed = 1\n" + text.replace("stop = 10", "stop = 9").replace("start = 0.1", "start = 0.2")), {}
    )
    parts[1]["epsilon"] = np.geomspace(0.2, 9, 5)
    expected = ParameterGrid(parts)
    assert found.grid.content == expected.content
    assert found.grid.axes == expected.axes
    assert found.grid.points == expected.points


def test_the_file_in_the_documentation_is_one(toml):
    page = (Path(__file__).parents[2] / "docs/guides/study.md").read_text(encoding="utf-8")
    found = read_definition(toml(page.split("```toml\n")[1].split("```")[0]), {})
    assert len(found.grid.cases) > 10
    words = [word.replace("_", "-") for word in OF_FILE]
    assert [word for word in words if f"`{word}`" not in page] == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "seed = 1\nseeds = 2" + GRID,
            r"has the unknown key 'seeds': the valid keys are title, .*, grid; did you mean seed\?$",
        ),
        ("seed = 1\nn-samples = 1\nn_samples = 2" + GRID, "every key once"),
        ("seed = 1" + GRID + "max-change = 1\nmax_change = 2", "every parameter of a grid once"),
        ("seed = 1", "grid must be given in .*study.toml$"),
        (GRID, "seed must be given in .*study.toml, or as --seed$"),
        ("seed = 1\ngrid = 3", r"must have a table \[grid\], or several \[\[grid\]\]"),
        ("seed = 1\ngrid = []", r"must have a table \[grid\]"),
        (
            "seed = 1" + GRID + "lagg = 1",
            r"a parameter of the grid must be one of 'mechanism', .* got 'lagg'; did you mean lag\?",
        ),
        ("seed = 1\nout = 3" + GRID, "out must be text, got 3"),
        ("seed = 1\ndtype = 32" + GRID, "dtype must be text"),
        ("seed", "must be TOML"),
    ],
)
def test_files_that_cannot_be_used_say_why(toml, text, message):
    with pytest.raises(ValueError, match=message):
        read_definition(toml(text), {})


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(dp.DataError, match=r"cannot read .*missing.toml"):
        read_definition(str(tmp_path / "missing.toml"), {})


NESTED = """
seed = 1
n-samples = 100
width = "none"
budget = 12800

[grid]
mechanism = ["block-sums", "randomized-response"]
target = "exponential:0.9"
model = "markov:0.75,0.25;0.25,0.75@0,1"
epsilon = 1
lag = [0, 5]
length = [4, [4, 12], "2, 6", "best"]
phase = [0, 1]
noise = "geometric"
"""


def test_a_file_gives_nested_lengths_as_lists_in_a_list_or_as_text(tmp_path, monkeypatch, capsys, undrawn):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "nested.toml"
    path.write_text(NESTED)
    assert main(["study", str(path)]) == 0
    table = rows(tmp_path / "dpfast-study" / "study.csv")
    blocks = [x for x in table if x["mechanism"] == "block_sums"]
    lengths = dict.fromkeys(x["length"] for x in blocks)
    assert list(lengths) == ["4", "4, 12", "2, 6", "best"]
    assert {x["phase"] for x in blocks} == {"0", "1"}
    assert all(float(x["low"]) < float(x["predicted_rmse"]) * 1.1 for x in blocks)
    written = (tmp_path / "dpfast-study" / "study.csv").read_bytes()
    assert main(["study", str(path)]) == 0  # again, from the store
    assert (tmp_path / "dpfast-study" / "study.csv").read_bytes() == written


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("length = [[4, 6]]", "length must be of nested blocks, each a multiple of the one before, got 6 after 4"),
        ("length = [[4, 12]]\nshares = [0.5, 0.5]", "shares must be several numbers as one value"),
        ("length = [[4, 12]]\nshares = [[0.5, 0.25, 0.25]]", "got no shares for as many lengths"),
        ("length = 'long'", "length must be an integer; several nested ones as one value"),
    ],
)
def test_lengths_that_cannot_be_are_one_line_and_exit_status_two(change, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nested.toml").write_text(NESTED.replace('length = [4, [4, 12], "2, 6", "best"]', change))
    assert main(["study", "nested.toml"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("dpfast: error: ")
    assert message in line


# --- several streams ------------------------------------------------------------------------------

OF_SEVERAL = """
seed = 1
n-samples = 100
width = 0.3

[grid]
inputs = 2
mechanism = ["zero-forcing", "input-perturbation"]
target = {target}
model = {model}
epsilon = 2
delta = 1e-3
adjacency = ["one_input", "each_input"]
"""
SLOW = dp.Filter([1 - 0.8], [1, -0.8])
WHITE, CALM = dp.ARMA([1]), dp.ARMA([1], [1, -0.5])


@pytest.mark.parametrize(
    ("target", "model", "targets", "models"),
    [
        ('"total:exponential:0.8"', '"arma:1"', dp.total(2) * SLOW, [WHITE, WHITE]),
        (
            '["total", "differences"]',
            '["arma:1", "arma:1/1,-0.5"]',
            {"total": dp.total(2), "differences": dp.differences(2)},
            [WHITE, CALM],
        ),
        (
            '{ mixed = [["exponential:0.8", 2], [0, "ba:1"]], each = "each" }',
            '{ white = { kind = "arma", b = [1] }, two = ["arma:1", "arma:1/1,-0.5"] }',
            {"mixed": dp.FilterMatrix([[SLOW, 2], [0, 1]]), "each": dp.FilterMatrix.diagonal([1, 1])},
            {"white": [WHITE, WHITE], "two": [WHITE, CALM]},
        ),
    ],
)
def test_a_file_of_several_streams_is_the_sweep_of_their_matrices(tmp_path, target, model, targets, models):
    path = tmp_path / "several.toml"
    path.write_text(OF_SEVERAL.format(target=target, model=model))
    grid = {
        "mechanism": ["zero_forcing", "input_perturbation"],
        "target": targets,
        "model": models,
        "epsilon": 2,
        "delta": 1e-3,
        "adjacency": ["one_input", "each_input"],
    }
    read = read_definition(str(path), {}).grid
    assert read.content == ParameterGrid(grid).content
    assert read.axes == ParameterGrid(grid).axes


def test_a_study_of_several_streams_runs(tmp_path, monkeypatch, undrawn):
    monkeypatch.chdir(tmp_path)
    Path("several.toml").write_text(OF_SEVERAL.format(target='"total:exponential:0.8"', model='"arma:1"'))
    assert main(["study", "several.toml"]) == 0
    found = rows(tmp_path / "dpfast-study" / "study.csv")
    every = [x for x in found if x["mechanism"] != "constant"]
    assert [(x["mechanism"], x["adjacency"]) for x in every] == [
        (m, a) for m in ("zero_forcing", "input_perturbation") for a in ("one_input", "each_input")
    ]
    assert all(float(x["rmse"]) == pytest.approx(float(x["predicted_rmse"]), rel=0.2) for x in every)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("inputs = 2\n", ""), "inputs must be given in the grid for a target that mixes streams, got 'total': say"),
        (("inputs = 2", "inputs = 0"), "inputs must be an integer of at least 1|inputs must be .*got 0"),
        (('"total"', '["total", "total"]'), "target must have every value once"),
        (('"total"', "[[1, 2, 3]]"), "target must be rows of 2 entries, one for each stream"),
        (
            (
                'inputs = 2\nmechanism = ["zero-forcing", "input-perturbation"]\ntarget = "total"',
                'mechanism = "lmmse"\ntarget = [[1, 2]]',
            ),
            r"inputs must be given .* got \[1, 2\]",
        ),
        (('"total"', '"moving-average:3"'), "say each:moving-average:3 for each of them alone"),
        (('adjacency = ["one_input", "each_input"]\n', ""), "adjacency must be given in the grid for a target of 2"),
        (('"arma:1"', '["arma:1", "arma:1", "arma:1"]'), "2 models"),
    ],
)
def test_what_does_not_fit_several_streams_is_named(tmp_path, change, words):
    path = tmp_path / "several.toml"
    text = OF_SEVERAL.format(target='"total"', model='"arma:1"')
    assert change[0] in text
    path.write_text(text.replace(*change))
    with pytest.raises(ValueError, match=words):
        read_definition(str(path), {})
