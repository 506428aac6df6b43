"""The pages that explain run as they are shown; the program of the errata gives what the page says."""

import doctest
import importlib.util
import re
from pathlib import Path

import pytest

from benchmarks.site.page_code import Near

ROOT = Path(__file__).parents[2]
PAGES = [
    *(ROOT / "docs/explanation" / f"{x}.md" for x in ("errata", "method", "several-streams")),
    *(ROOT / "docs/choosing" / f"{x}.md" for x in ("what-epsilon-means", "which-model")),
]


@pytest.mark.slow_nojit
@pytest.mark.parametrize("page", PAGES, ids=lambda x: x.stem)
def test_the_examples_run_as_they_are_shown(page):
    blocks = re.findall(r"```pycon\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) >= 2
    runner = doctest.DocTestRunner(Near(), verbose=False)
    runner.run(doctest.DocTestParser().get_doctest("".join(blocks), {}, page.name, None, 0))
    assert runner.failures == 0
    assert runner.tries >= 7


def test_the_program_of_the_errata_gives_what_the_page_shows(capsys):
    spec = importlib.util.spec_from_file_location("errata", ROOT / "examples/errata.py")
    errata = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(errata)
    errata.main()
    page = (ROOT / "docs/explanation/errata.md").read_text(encoding="utf-8")
    assert capsys.readouterr().out == page.split("<!-- errata -->\n```text\n")[1].split("```")[0]
    assert "dpfast" not in (ROOT / "examples/errata.py").read_text(encoding="utf-8").split('"""', 2)[2]


def test_the_table_of_the_errata_has_all_of_them():
    text = (ROOT / "docs/explanation/errata.md").read_text(encoding="utf-8")
    sections = re.findall(r"^## (\d)\. (.+)$", text, re.MULTILINE)
    rows = re.findall(r"^\| \[(\d)\]\(#\1-\S+\) \| (.+?) \| .+ \| .+ \|$", text, re.MULTILINE)
    assert [number for number, _ in rows] == [number for number, _ in sections] == ["1", "2", "3", "4", "5"]
