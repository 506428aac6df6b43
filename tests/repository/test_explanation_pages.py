"""The pages that explain run as they are shown; the program of the errata gives what the page says."""

import doctest
import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "docs" / f"{x}.md"
    for x in ("explanation/errata", "explanation/method", "explanation/several-streams", "choosing/what-epsilon-means")
]
FIGURE = re.compile(r"[+-]?\d+(?:\.\d+)?(?:e[+-]?\d+)?")


class Near(doctest.OutputChecker):
    """Figures may differ in the last digits: those of simulations do between processors."""

    def check_output(self, want, got, optionflags):
        if super().check_output(want, got, optionflags):
            return True
        wanted, found = ([float(x) for x in FIGURE.findall(text)] for text in (want, got))
        same = FIGURE.sub("", want).split() == FIGURE.sub("", got).split() and len(wanted) == len(found)
        return same and found == pytest.approx(wanted, rel=1e-3, abs=2e-3)


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
