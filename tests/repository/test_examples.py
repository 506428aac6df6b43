"""The studies of examples/: what the documentation calls exists, and makes what it shows."""

import importlib.util
import re
from pathlib import Path

import pytest
from helpers.designs import designed

import dpfast as dp
from dpfast.cli.main import build_parser
from dpfast.cli.study import read_definition

ROOT = Path(__file__).parents[2]
STUDIES = sorted((ROOT / "examples").glob("*.toml"))
COMMANDS = re.search(r"<!-- studies -->\n```sh\n(.*?)```", (ROOT / "docs/studies.md").read_text("utf-8"), re.DOTALL)[1]


def test_the_page_runs_all_studies():
    lines = [line.split("#")[0].split() for line in COMMANDS.splitlines()]
    assert {ROOT / line[2] for line in lines[:-1]} == set(STUDIES)
    for program, *words in lines[:-1]:
        assert program == "dpfast"
        build_parser().parse_args(words)
    assert lines[-1][:2] == ["python", "examples/adapting.py"]


@pytest.mark.parametrize("path", STUDIES, ids=lambda x: x.stem)
def test_a_study_can_be_read(path):
    found = read_definition(str(path), {})
    assert found.title
    assert 10 < len(found.grid.cases) < 1100
    assert {name for name in found.grid.parameters if name in ("mechanism", "target", "epsilon", "delta", "model")}


def test_pictures_of_the_documentation_are_there():
    text = (ROOT / "docs/studies.md").read_text("utf-8")
    shown = re.findall(r"\]\((studies/[^)]+)\)", text)
    assert len(shown) >= 4
    for name in shown:
        assert (ROOT / "docs" / name).is_file()


@pytest.mark.parametrize("n", [2500, pytest.param(10_000, marks=pytest.mark.long)])
def test_adapting_learns(monkeypatch, n):
    spec = importlib.util.spec_from_file_location("adapting", ROOT / "examples/adapting.py")
    adapting = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(adapting)
    for name, value in {"LENGTHS": (n,), "N_SAMPLES": n, "SEEDS": range(1), "N_UNFITTED": 1}.items():
        monkeypatch.setattr(adapting, name, value)
    lmmse = dp.lmmse
    monkeypatch.setattr(dp, "lmmse", lambda *given, **options: designed(lmmse, *given, tolerance=0.1, **options))
    fitted, others = adapting.learning(), adapting.unfitted()
    right = next(row for row in fitted.rows if row[0] == "white, right variance")
    assert right[4] < 0.5 < right[2]
    assert max(row[3] for row in others.rows) < 1
    assert adapting.picture(fitted).axes
