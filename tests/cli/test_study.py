import contextlib
import csv
import logging
import re
import subprocess
import sys

import pytest

import dpfast as dp
from dpfast._support.errors import EngineError
from dpfast.cli import study as command
from dpfast.cli.main import main
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
def study(tmp_path, monkeypatch):
    path = tmp_path / "study.toml"
    path.write_text(FILE)
    monkeypatch.chdir(tmp_path)
    return str(path)


def rows(path):
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_a_study_writes_its_files_and_prints_table_and_winners(study, tmp_path, capsys):
    assert main(["study", study]) == 0
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
    assert "Written: " in printed
    assert (out / "study.md").read_text(encoding="utf-8").startswith("# A small one\n\nTwo mechanisms.\n")
    page = (out / "report.html").read_text(encoding="utf-8")
    assert all(x in page for x in ("A small one</title>", "Two mechanisms.", f"dpfast study {study}"))
    assert all((out / x).read_bytes().startswith(b"\x89PNG") for x in pictures)


def test_arguments_go_before_the_file(study, tmp_path):
    given = ["--out", "there", "--store", "kept.sqlite", "--seed", "2", "--width", "none", "--budget", "1e5"]
    assert main(["study", *given, study]) == 0
    assert (tmp_path / "kept.sqlite").exists()
    assert not (tmp_path / "there" / "study.sqlite").exists()
    assert "seed 2; until best mechanism decided, or 100000 samples" in (tmp_path / "there" / "study.md").read_text()
    assert not (tmp_path / "dpfast-study").exists()


def test_the_engine_is_what_was_asked_for(study, monkeypatch):
    given = {}

    def stop(_, **options):
        given.update(options)
        raise ValueError("far enough")

    monkeypatch.setattr(command, "sweep", stop)
    assert main(["study", "--workers", "3", study]) == 2
    assert (given["workers"], given["executor"]) == (3, None)
    monkeypatch.setattr(command, "dask", lambda address: contextlib.nullcontext(f"the cluster at {address}"))
    assert main(["study", "--dask", "tcp://10.0.0.1:8786", study]) == 2
    assert given["executor"] == "the cluster at tcp://10.0.0.1:8786"


def test_a_long_table_is_cut_to_a_screenful(study, tmp_path, capsys):
    text = FILE.replace("[0.5, 2]", "{ start = 0.1, stop = 10, number = 25 }").replace("width = 0.2", "width = 5")
    text = text.replace("zero-forcing", "output-perturbation")  # which takes no time
    (tmp_path / "study.toml").write_text(text.replace('decide = "mechanism"', ""))
    assert main(["study", study]) == 0
    printed = capsys.readouterr().out
    assert "… and 10 more in study.csv" in printed
    assert printed.count("output_perturbation") + printed.count("input_perturbation") == 40
    assert "nearest" not in printed
    assert len(rows(tmp_path / "dpfast-study" / "study.csv")) == 51


def test_verbose_logs_to_standard_error_and_leaves_no_handler(study, capsys):
    log = logging.getLogger("dpfast.studies")
    before = (list(log.handlers), log.level)
    assert main(["study", "--verbose", study]) == 0
    assert re.search(r"\d INFO .*4 cases", capsys.readouterr().err)
    assert (log.handlers, log.level) == before
    assert main(["study", study]) == 0
    assert capsys.readouterr().err == ""


def test_an_interrupt_says_how_far_it_was_and_the_same_command_goes_on(study, tmp_path, monkeypatch, capsys):
    longer = tmp_path / "study.toml"
    longer.write_text(FILE.replace("width = 0.2", "width = 0.02"))  # several stages
    assert main(["study", "--out", "whole", study]) == 0
    add, calls = SweepStore.add, []

    def interrupted(store, *given):
        calls.append(given)
        if len(calls) > 1:
            raise KeyboardInterrupt
        add(store, *given)

    capsys.readouterr()
    with monkeypatch.context() as context:
        context.setattr(SweepStore, "add", interrupted)
        assert main(["study", "--out", "cut", study]) == 130
    line = f"0 of 4 cases were finished; the same call with seed=1 goes on: dpfast study --out cut {study}"
    assert capsys.readouterr().err == f"dpfast: interrupted: {line}\n"
    assert [x.name for x in (tmp_path / "cut").iterdir()] == ["study.sqlite"]
    with SweepStore(tmp_path / "cut" / "study.sqlite") as store:
        assert store.counts(1) == {0: 1, 1: 1, 2: 1, 3: 1}
    assert main(["study", "--out", "cut", study]) == 0
    assert rows(tmp_path / "cut" / "study.csv") == rows(tmp_path / "whole" / "study.csv")


def test_a_bad_study_gives_one_line_and_writes_nothing(study, tmp_path, capsys):
    for change, message in [
        (("seed = 1", ""), "seed must be given"),
        (("width = 0.2", "width = -1"), "width must be"),
        (('"mechanism"\n', '"lag"\n'), "decide must be one of"),
        (("[0.5, 2]", "[0.5, -2]"), "epsilon must be"),
    ]:
        (tmp_path / "study.toml").write_text(FILE.replace(*change))
        assert main(["study", study]) == 2
        error = capsys.readouterr().err
        assert error.startswith("dpfast: error: ")
        assert error.count("\n") == 1
        assert message in error
        assert [x.name for x in tmp_path.iterdir()] == ["study.toml"]


def test_no_scheduler_is_one_line(study, capsys, monkeypatch):
    def nobody(_):
        raise EngineError("no Dask scheduler answers")

    monkeypatch.setattr(command, "dask", nobody)
    assert main(["study", "--dask", "tcp://127.0.0.1:1", study]) == 2
    assert capsys.readouterr().err == "dpfast: error: no Dask scheduler answers\n"


def test_the_command_has_help():
    run = subprocess.run(
        [sys.executable, "-m", "dpfast.cli.main", "study", "--help"], capture_output=True, text=True, check=True
    )
    for word in ("--out", "--store", "--workers", "--dask", "--width", "--budget", "--seed", "--verbose"):
        assert word in run.stdout
