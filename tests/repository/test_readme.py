"""What the README and the pages that it begins with show is what this version gives."""

import functools
import re
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
from helpers import pages
from helpers.designs import designed

import dpfast as dp
from dpfast.simulation import paper_example
from dpfast.simulation.sweep.grid import ParameterGrid

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


MECHANISMS = (ROOT / "docs/choosing/mechanisms.md").read_text(encoding="utf-8")
STUDY = (ROOT / "docs/guides/study.md").read_text(encoding="utf-8")


FIGURE = re.compile(r"(?<![\w.])\d+\.?\d*")


def between(start, end, page=MECHANISMS):
    return page.split(start, 1)[1].split(end, 1)[0]


def block(marker):
    """The code of the README behind a marker."""
    return between(f"<!-- {marker} -->\n```python\n", "```", README)


def figures(text):
    return [float(x) for x in FIGURE.findall(text)]


def heads(text):
    """The names of rows, and the sentences on top without their figures."""
    return [FIGURE.sub("#", line.split("  ")[0]) for line in text.splitlines()]


@pytest.mark.slow_nojit
@pytest.mark.parametrize("extent", ["quick", pytest.param("whole", marks=pytest.mark.long)])
def test_the_first_example_prints_what_is_shown(capsys, monkeypatch, extent):
    """Quick: designs of two steps, which are tested elsewhere, are made to a wide tolerance."""
    wide = ["lmmse", "decision_feedback"] if extent == "quick" else []
    for name in wide:
        monkeypatch.setattr(dp, name, functools.partial(designed, getattr(dp, name), tolerance=0.3))
    exec(between("```python\n", "```"), names := {})
    printed = capsys.readouterr().out
    shown = between("```text\n", "```")
    assert heads(printed) == heads(shown)
    is_behind_a_wide_one = bool(wide)  # as the sentences on top are
    for line, expected in zip(printed.splitlines(), shown.splitlines(), strict=True):
        is_behind_a_wide_one &= not line.startswith("mechanism ")
        if not is_behind_a_wide_one and not (wide and line.startswith(("LMMSE", "DFE"))):
            assert figures(line) == pytest.approx(figures(expected), rel=2e-4)
    summary = between(">>> print(mechanisms[0].summary())\n", "```")
    gap = "(the ideal MSE is "
    assert names["mechanisms"][0].summary().split(gap)[0] == summary.split(gap)[0]


def test_the_example_of_constraints_runs():
    page = (Path(__file__).parents[2] / "docs/explanation/optimal.md").read_text(encoding="utf-8")
    exec(page.split("```python\n")[1].split("```")[0], names := {})
    program, mechanism = names["program"], names["mechanism"]
    assert program.x.max() <= 3 * (1 + 1e-6)
    assert (
        mechanism.predicted_mse
        >= names["dp"].optimal(names["target"], names["privacy"], names["model"], lag=3).lower_bound_mse
    )


def test_the_readme_is_a_front_door():
    assert README.count("\n") <= 150
    assert len(README.encode()) <= 9_000


def test_links_of_the_readme_lead_somewhere():
    links = [x.split("#")[0] for x in re.findall(r"\]\(([^)]+)\)", README) if not x.startswith("https://")]
    assert len(links) > 20
    assert [x for x in links if not (ROOT / x).is_file()] == []
    pages = {f"docs/{x.relative_to(ROOT / 'docs')}" for x in (ROOT / "docs").rglob("*.md")}
    lists = {f"docs/{x}index.md" for x in ("", "choosing/", "guides/", "reference/", "explanation/", "measurements/")}
    runs = ("docs/measurements/studies/", "docs/pages/", "docs/reference/commands", "docs/reference/objects/")
    made = {x for x in pages if x.startswith(runs)}
    assert pages - {*links} - lists - made == set()


def test_the_calls_that_the_readme_names_exist():
    table = between("| what I have | call | what I get |", "\n\n", README)
    names = re.findall(r"dp\.(\w+)", table)
    assert len(names) >= 12
    assert {*names} <= {*dp.__all__}
    assert len(table.strip().splitlines()) == 1 + 10


def test_the_first_lines_and_the_release_of_the_readme_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    exec(block("first"), names := {})  # what is executed is in this repository
    plt.close("all")
    assert names["mechanism"].guarantee_terms().delta == 0
    printed = capsys.readouterr().out
    assert printed == names["mechanism"].summary() + "\n"
    exec(block("release"), names)
    assert names["result"].estimate.shape == (3, 1000)
    assert capsys.readouterr().out.startswith("This guarantee is per person: it is about whether ")
    assert (tmp_path / "report.html").is_file()


@pytest.mark.filterwarnings("ignore:What was published contradicts")  # counts are not quite normal, as the model is
def test_releases_run_as_they_are_shown(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs/guides/release.md").read_text(encoding="utf-8")
    of_events, of_outputs, of_persons, *of_blocks = (
        x for x in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "dp.release(" in x
    )
    for block, beginning in (
        (of_events, "This guarantee is per event: "),
        (of_persons, "This guarantee is per person: "),
    ):
        names = {"np": np, "dp": dp}
        exec(block, names)  # what is executed is in this repository
        assert names["result"].estimate.shape == (3, 1000)
        if "again" in names:
            assert (names["again"].privatized == names["result"].privatized).all()
        assert capsys.readouterr().out.startswith(beginning)
    for block in (of_outputs, *of_blocks):
        exec(block, names := {"np": np, "dp": dp})
        assert names["result"].guarantee.delta == 0


@pytest.mark.parametrize("render", pages.RENDERINGS)
def test_the_sweep_runs_and_is_reported(tmp_path, monkeypatch, capsys, render):
    monkeypatch.chdir(tmp_path)
    pages.render_once(monkeypatch, render=render)
    target, model = dp.Filter([1, 0.995], [1, -0.995]), paper_example.CHAIN
    section = STUDY.split("## In Python", 1)[1]
    sweep, grids = dp.sweep, []

    def short(grid, **options):
        """Of the grid one ε, designed to a wide tolerance, which is tested elsewhere; and a few streams."""
        grids.append(grid)
        return sweep(grid | {"epsilon": [1], "tolerance": 0.9}, **options | {"width": 0.3})

    monkeypatch.setattr(dp, "sweep", short)
    names = {"dp": dp, "target": target, "model": model}
    exec(section.split("```python\n", 1)[1].split("```")[0], names)
    assert len(ParameterGrid(*grids).points) == 27
    assert len(names["found"].points) == 9
    assert str(names["found"]) in capsys.readouterr().out
    assert {x.name for x in tmp_path.iterdir()} == {"study.sqlite", "study.html"}


def test_the_page_on_other_packages_runs(capsys):
    names = {}
    page = (ROOT / "docs/guides/interoperability.md").read_text("utf-8")
    for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(block, names)  # what is executed is in this repository
    printed = capsys.readouterr().out
    assert printed.splitlines()[0] == "Filter([0.0, 1.0, 0.5], [1.0, -1.2, 0.5])"
    assert printed.count("2026-01-05 23:55:00") == 2
