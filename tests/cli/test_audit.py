import csv
import importlib

import numpy as np
import pytest

import dpfast as dp
from dpfast.cli.main import main

SURE = ["--confidence", "0.999999999"]  # as the noise is another one each time


def test_without_a_mechanism_it_audits_counts(capsys):
    assert main(["audit", "--runs", "1000", *SURE]) == 0
    text = capsys.readouterr().out
    assert text.startswith("audit of 'counts with G = 1': δ = 1e-06")
    assert "broken, as expected" in text
    assert "VIOLATED" not in text


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "mechanism.json"
    dp.save(dp.zero_forcing(dp.Filter([1 / 3] * 3), dp.Privacy(2, 1e-2), name="mean of three", tolerance=0.1), path)
    return str(path)


def test_of_a_saved_mechanism_with_files(tmp_path, capsys):
    saved, out = str(tmp_path / "pairs.json"), tmp_path / "out"
    declared = ["--high", "10", "--low", "-2", "--unit", "2", "--centre", "4", "--streams-per-person", "2"]
    change = dp.zero_forcing(dp.Filter([1]), dp.Privacy(2, 1e-2, max_change=2), name="pairs")
    dp.save(change, saved)
    assert main(["audit", "--mechanism", saved, *declared, *SURE, "--runs", "1000", "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("audit of 'pairs': δ = 0.01")
    assert f"Written: {out / 'audit.txt'}, {out / 'audit.csv'}" in " ".join(printed.split())
    assert (out / "audit.txt").read_text() in printed.replace("\n\nWritten", "\nWritten")
    rows = list(csv.DictReader((out / "audit.csv").read_text().splitlines()))
    assert [x["tested"] for x in rows[:5]] == ["δ at least", "share", "ε at least", "ε at least", "μ at least"]
    assert len(rows) == 16
    assert {x["verdict"] for x in rows[1:]} == {"no contradiction"}
    assert all(float(x["found"]) >= float(x["claimed"]) for x in rows if x["tested"] in ("p-value", "σ at most"))


def test_a_violation_is_exit_status_one(saved, monkeypatch, capsys):
    class Little(importlib.import_module("dpfast.releases.noise").Noise):
        def take(self, n):
            return super().take(n) // np.int64(4)

    monkeypatch.setattr(importlib.import_module("dpfast.releases.audit.canary"), "Noise", Little)
    assert main(["audit", "--mechanism", saved, "--high", "10", "--runs", "20000"]) == 1
    text = capsys.readouterr().out
    assert "is VIOLATED: canary, all steps: ε ≥" in text.replace("\n", " ")
    assert "Nothing that was tried" not in text


def test_noise_that_is_not_as_stated_is_exit_status_one_and_is_written(tmp_path, monkeypatch, capsys):
    """Wherever a release draws it, and with runs that show nothing by ε."""
    noise = importlib.import_module("dpfast.releases.noise").Noise
    honest = noise.take
    monkeypatch.setattr(noise, "take", lambda self, n: 2 * (honest(self, n) // 2))
    assert main(["audit", "--runs", "1000", "--out", str(tmp_path)]) == 1
    text = capsys.readouterr().out.replace("\n", " ")
    assert "The claim of independent discrete Gaussian noise is VIOLATED: known zeros, residues:" in text
    assert ",VIOLATED" in (tmp_path / "audit.csv").read_text()
    assert "known zeros, residues" in (tmp_path / "audit.txt").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--mechanism", "SAVED"], "high must be given with --mechanism"),
        (["--runs", "3"], "n_runs must be an integer, at least 1000"),
        (["--mechanism", "nowhere.json", "--high", "3"], "nowhere.json"),
        (["--high", "-1"], "low must be below high"),
    ],
)
def test_errors_are_one_line_and_two(arguments, message, saved, capsys):
    assert main(["audit", *[saved if x == "SAVED" else x for x in arguments]]) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.count("\n") == 1
    assert captured.out == ""


def test_an_interrupt_ends_it(monkeypatch, capsys):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(importlib.import_module("dpfast.releases.audit.all_attacks"), "statistics", interrupted)
    assert main(["audit", "--runs", "1000"]) == 130
    assert "interrupted" in capsys.readouterr().err
