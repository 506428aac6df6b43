"""Two pages have the paper's example, from two programs with one seed: their figures are the same."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
NAMES = {  # of the page of mechanisms, and of the table of the example
    "optimal lag 5": ("optimal", "optimal", "5"),
    "LZF": ("LZF", "LZF", "0"),
    "LMMSE lag 5": ("LMMSE", "LMMSE", "5"),
    "LMMSE smoother": ("LMMSE", "LMMSE", "smoother"),
    "DFE soft lag 5 (lmmse prefilter)": ("DFE, soft", "LMMSE, chain", "5"),
}


def rows_of_mechanisms():
    """Simulated RMSE and its interval, by name."""
    text = (DOCS / "choosing/mechanisms.md").read_text(encoding="utf-8")
    found = re.findall(r"^(\S.*?) {2,}[\d.-]+ +([\d.]+) +([\d.]+) … ([\d.]+) ", text, re.MULTILINE)
    return {name: [float(x) for x in figures] for name, *figures in found}


def rows_of_the_example():
    """The same with the exact noise, by mechanism, prefilter and lag."""
    text = (DOCS / "measurements/example.md").read_text(encoding="utf-8")
    cells = [[x.strip() for x in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("| ")]
    return {tuple(x[:3]): [float(y) for y in re.findall(r"[\d.]+", x[6])] for x in cells if "…" in x[6]}


def test_both_pages_have_the_same_errors():
    ours, table = rows_of_mechanisms(), rows_of_the_example()
    assert set(ours) == set(NAMES)
    for name, place in NAMES.items():
        assert ours[name] == pytest.approx(table[place], rel=6e-5), name  # of five digits
