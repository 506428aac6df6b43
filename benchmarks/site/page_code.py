"""Run the Python code of every Markdown page, block after block, and compare what is shown in sessions.

python -m benchmarks.site.page_code DOCS

A page runs in a folder and a namespace of its own. Two kinds of blocks are left out: one below the comment
`<!-- run by FILE -->`, which that test runs, with what the page does not have; and one below `<!-- needs WHAT -->`.
"""

import contextlib
import doctest
import io
import re
import sys
import tempfile
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"((?:^<!-- [^\n]+ -->\n)*)^```(?:python|pycon)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
LEFT_OUT = re.compile(r"^<!-- (run by|needs) (.+) -->$", re.MULTILINE)
FIGURE = re.compile(r"[+-]?\d+(?:\.\d+)?(?:e[+-]?\d+)?")
RELATIVE, ABSOLUTE = 1e-3, 2e-3


class Near(doctest.OutputChecker):
    """Figures may differ in the last digits: those of simulations do between processors."""

    def check_output(self, want, got, optionflags):
        if super().check_output(want, got, optionflags):
            return True
        wanted, found = ([float(x) for x in FIGURE.findall(text)] for text in (want, got))
        same = FIGURE.sub("", want).split() == FIGURE.sub("", got).split() and len(wanted) == len(found)
        return same and all(abs(x - y) <= max(ABSOLUTE, RELATIVE * abs(x)) for x, y in zip(wanted, found, strict=True))


def blocks(text):
    """The blocks of a page: their code, and what is said of those that are left out, as (words, what), or None."""
    for comments, code in BLOCK.findall(text):
        said = LEFT_OUT.search(comments)
        yield code, said and said.groups()


def check_test(page, words, what):
    """Refuse a test that is not there, or knows nothing of the page."""
    known = words == "needs" or ((ROOT / what).is_file() and page.name in (ROOT / what).read_text(encoding="utf-8"))
    return [] if known else [f"{page}: {what} is said to run a block, and does not name the page"]


def execute(code, names, page):
    """Run a block; return the names that there are then, and in a session what it prints instead."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        if not code.startswith(">>> "):
            exec(compile(code, str(page), "exec"), names)
            return names, ""
        session = doctest.DocTestParser().get_doctest(code, names, page.name, None, 0)
        failed = doctest.DocTestRunner(Near(), verbose=False).run(session, clear_globs=False).failed
    return session.globs, printed.getvalue() if failed else ""


def run(page):
    """Problems of a page, in words."""
    names, problems = {"__name__": page.stem}, []
    for number, (code, left_out) in enumerate(blocks(page.read_text(encoding="utf-8")), 1):
        if left_out:
            problems += check_test(page, *left_out)
            continue
        try:
            names, differs = execute(code, names, page)
        except Exception as error:  # noqa: BLE001  whatever the code of a page raises
            return [*problems, f"{page}: block {number}: {type(error).__name__}: {error}"]  # later ones may need it
        if differs:
            problems.append(f"{page}: block {number}:\n{differs}")
    return problems


def run_alone(page):
    """Problems of a page in a folder of its own, and the seconds that it took."""
    import matplotlib as mpl

    mpl.use("Agg")
    warnings.simplefilter("ignore")  # pages show designs that warn
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        Path("private").mkdir()
        return run(page), time.perf_counter() - begun


def main():
    """Run all pages below a folder, two at once, and exit with their problems."""
    pages, problems = sorted(Path(sys.argv[1]).resolve().rglob("*.md")), []
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        for page, (found, seconds) in zip(pages, pool.map(run_alone, pages), strict=True):
            problems += found
            print(f"{page.name}: {seconds:.1f} s{', ' * bool(found)}{len(found) or ''}", flush=True)
    sys.exit("\n".join(problems) or None)


if __name__ == "__main__":
    main()
