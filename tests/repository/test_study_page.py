"""The guide of sweeps: its recipes run, and what it says of parts of a grid is so."""

import io
import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from distributed.cli import dask_scheduler, dask_worker
from helpers.sweeps import run

import dpfast as dp

PAGE = (Path(__file__).parents[2] / "docs/guides/study.md").read_text(encoding="utf-8")
GRID = {
    "mechanism": ["lmmse", "zero_forcing", "block_sums"],
    "target": "moving-average:4",
    "model": "markov:0.75,0.25;0.25,0.75@-0.5,0.5",
    "delta": 1e-3,
    "tolerance": 0.3,
    "lag": [0, 2],
}
EPSILONS = [0.3, 1, 3, 10]


def block(name):
    return re.search(rf"<!-- {name} -->\n```\w+\n(.*?)```", PAGE, re.DOTALL)[1]


@pytest.fixture(scope="module")
def short():
    """A call of a sweep of few and short streams, with designs that are made once."""
    return lambda grid, **options: run(grid, **{"n_samples": 50, "budget": 4e4} | options)


LABELS = ["mechanism", "epsilon", "lag"]
FIGURES = [
    "rmse",
    "low",
    "high",
    "predicted_rmse",
    "ideal_rmse",
    "lower_bound_rmse",
    "explained",
    "n_streams",
    "stopped",
]


def figures(table):
    """The table in one order of rows, without names of rows."""
    return table.sort_values(LABELS).reset_index(drop=True)[LABELS + FIGURES]


def test_parts_are_put_together_to_the_whole_to_the_bit(short, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(dp, "sweep", lambda grid, **options: short(grid, **options))
        exec(block("parts"), names := {"dp": dp, "pd": pd, "grid": GRID})  # what is executed is in this repository
    whole = short(GRID | {"epsilon": EPSILONS}, seed=1, burn_in=1000, width=0.02, decide="mechanism").to_pandas()
    assert len(whole) == len(EPSILONS) * 2 * 3 + 1
    pd.testing.assert_frame_equal(figures(names["whole"]), figures(whole), check_exact=True)


def test_parts_differ_where_the_burn_in_is_that_of_their_own_slowest_filter(short):
    options = {"width": None, "budget": 1, "burn_in": None}
    whole, part = (short(GRID | {"epsilon": x}, **options) for x in (EPSILONS, EPSILONS[2:]))
    slowest = [max(x.mechanism(row).settling_time(1e-3) for row in x) for x in (whole, part)]
    assert slowest[0] > slowest[1]
    for row in part:
        (same,) = (x for x in whole if all(x.settings[name] == label for name, label in row.settings.items()))
        assert row.packed == same.packed
        assert row.rmse != same.rmse


def test_the_table_for_an_article_has_lags_as_integers(short, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = short(GRID | {"epsilon": EPSILONS}, width=None, budget=1)
    exec(block("latex"), {"found": found})  # what is executed is in this repository
    lines = [re.split(r" & | \\\\", x) for x in (tmp_path / "table.tex").read_text("utf-8").splitlines() if " & " in x]
    assert lines[0][:5] == ["lag", "epsilon", "block_sums", "lmmse", "zero_forcing"]
    assert [x[:2] for x in lines[1:]] == [[str(lag), f"{x:g}"] for lag in (0, 2) for x in EPSILONS]
    row = found.row(mechanism="lmmse", epsilon=3, lag=2)
    assert lines[7][3] == f"{row.rmse:.3g}"
    exec(re.search(r"^bounds = {.*?^}$", PAGE, re.MULTILINE | re.DOTALL)[0], names := {"found": found})
    known = {label: x for label, x in names["bounds"].items() if x is not None}
    assert len(known) == len(EPSILONS) * 2
    rmse = {tuple(x.settings.values()): x.predicted_rmse for x in found}
    assert all(0.5 * rmse[label] < x < rmse[label] for label, x in known.items())
    read = pd.read_csv(io.StringIO(found.table().csv()), dtype={"lag": "Int64"})
    assert read["lag"].dropna().tolist() == found.to_pandas()["lag"].dropna().tolist()


def test_the_lines_for_dask_are_commands_of_it():
    _, scheduler, worker = (shlex.split(x, comments=True) for x in block("dask").splitlines())
    for words, command in ((scheduler, dask_scheduler.main), (worker, dask_worker.main)):
        assert words[:2] == ["dask", command.name or words[1]]
        context = command.make_context(words[1], words[2:])
        assert context.params
    assert np.isclose(context.params["nthreads"], 1)
