"""The studies of examples/: what the documentation calls exists, and makes what it shows."""

import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest
from helpers.designs import designed

import dpfast as dp
from dpfast.cli.main import build_parser
from dpfast.cli.study import read_definition

ROOT = Path(__file__).parents[2]
STUDIES = sorted((ROOT / "examples").glob("*.toml"))
PAGE = (ROOT / "docs/measurements/studies.md").read_text("utf-8")
COMMANDS = re.search(r"<!-- studies -->\n```sh\n(.*?)```", PAGE, re.DOTALL)[1]


def test_the_page_runs_all_studies():
    lines = [line.split("#")[0].split() for line in COMMANDS.splitlines()]
    assert {ROOT / line[2] for line in lines[:-2]} == set(STUDIES)
    for program, *words in lines[:-2]:
        assert program == "dpfast"
        build_parser().parse_args(words)
    assert [line[:2] for line in lines[-2:]] == [["python", f"examples/{x}.py"] for x in ("adapting", "airports")]


@pytest.mark.parametrize("path", STUDIES, ids=lambda x: x.stem)
def test_a_study_can_be_read(path):
    found = read_definition(str(path), {})
    assert found.title
    assert 10 < len(found.grid.cases) < 1100
    assert {name for name in found.grid.parameters if name in ("mechanism", "target", "epsilon", "delta", "model")}


def test_pictures_of_the_documentation_are_there():
    shown = re.findall(r"\]\((studies/[^)]+)\)", PAGE)
    assert len(shown) >= 4
    for name in shown:
        assert (ROOT / "docs/measurements" / name).is_file()


def read_program(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / f"examples/{name}.py")
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    return program


@pytest.mark.parametrize("n", [2500, pytest.param(10_000, marks=pytest.mark.long)])
def test_adapting_learns(monkeypatch, n):
    adapting = read_program("adapting")
    for name, value in {"LENGTHS": (n,), "N_SAMPLES": n, "SEEDS": range(1), "N_UNFITTED": 1}.items():
        monkeypatch.setattr(adapting, name, value)
    lmmse = dp.lmmse
    monkeypatch.setattr(dp, "lmmse", lambda *given, **options: designed(lmmse, *given, tolerance=0.1, **options))
    fitted, others = adapting.learning(), adapting.unfitted()
    right = next(row for row in fitted.rows if row[0] == "white, right variance")
    assert right[4] < 0.5 < right[2]
    assert max(row[3] for row in others.rows) < 1
    assert adapting.picture(fitted).axes


def test_designing_streams_together_gains_more_the_more_they_depend_on_one_another(monkeypatch):
    airports = read_program("airports")
    monkeypatch.setattr(airports, "CORRELATIONS", (0.0, 0.6))
    table = airports.gains(lags=(0,))
    for row in table.rows:
        separate, joint, knowing, mixing, constant = row[3:8]
        assert knowing <= joint * (1 + 1e-3) < separate < constant  # each within its tolerance of the best
        assert mixing < (0.95 if row[0] == "at one of them" else 0.995) * knowing
    for free, bound in zip(table.rows[::2], table.rows[1::2], strict=True):
        assert free[5] == pytest.approx(free[4], rel=1e-3)  # there is nothing to know
        assert bound[8] > free[8] + 5
    optima = [x**2 for row in table.rows[:2] for x in row[5:7]]  # other programs found these
    assert optima == pytest.approx([0.082333, 0.067096, 0.056686, 0.046774], rel=1e-3)
    assert airports.picture(table).axes


def test_errors_of_airports_are_those_on_the_log(monkeypatch):
    """Of a log that is as the models say."""
    airports = read_program("airports")
    model = dp.VectorARMA([0.6 * np.eye(3)], innovation_covariance=np.eye(3) + 0.5, mean=4.0)
    halves = model.sample(2, 4000, seed=1)
    monkeypatch.setattr(airports, "counts", lambda: list(halves))
    monkeypatch.setattr(airports, "EPSILON", 20.0)
    rows = airports.departures(order=1, tolerance=0.2).rows
    assert {row[1] for row in rows} >= {"block sums", "optimal", "LZF", "optimal, correlation known", "constant"}
    for _, name, predicted, *measured, explained in rows:
        if name == "constant":
            assert measured == pytest.approx(list(airports.TARGET.apply(halves[1])[:, 1000:-3].std(axis=1)))
        elif name not in ("optimal", "optimal, separate", "block sums"):  # which take the streams for independent
            assert np.linalg.norm(measured) == pytest.approx(predicted, rel=0.1)
        assert explained <= 1
