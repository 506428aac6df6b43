"""The page of studies quotes errors as the tables of their runs have them."""

import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "docs/measurements"
PAGE = (FOLDER / "studies.md").read_text(encoding="utf-8")
QUOTED = re.compile(r"(\d+\.?\d*) \((\d+\.?\d*) … (\d+\.?\d*)\)")
STUDIES = ("map", "decision-feedback", "two-events", "counters", "noise")


def read_rows(study):
    """Rows of the table of points, the first of the page of a study, by column."""
    lines = iter((FOLDER / "studies" / study / "study.md").read_text(encoding="utf-8").splitlines())
    names = next([x.strip() for x in line.split("|")] for line in lines if line.startswith("| mechanism"))
    next(lines)
    for line in lines:
        if not line.startswith("|"):
            return
        yield dict(zip(names, (x.strip() for x in line.split("|")), strict=True))


def is_rounded(shown, figure):
    """Whether a figure, itself rounded to five digits, may have been rounded to what is shown."""
    unit = 10.0 ** -len(shown.partition(".")[2])
    return figure != "–" and abs(float(shown) - float(figure)) <= (0.5 + 1e-9) * unit + 5e-5 * float(figure)


def test_simulated_errors_are_those_of_the_tables():
    sections = PAGE.split("\n## ")
    for study in STUDIES:
        (section,) = (x for x in sections if f"studies/{study}/study.md" in x)
        rows = list(read_rows(study))
        quoted = QUOTED.findall(section)
        assert len(quoted) >= 4
        for shown in quoted:
            assert any(all(map(is_rounded, shown, (x["rmse"], x["low"], x["high"]))) for x in rows), (study, shown)


@pytest.mark.parametrize(
    ("words", "epsilon", "lags"),
    [
        (r"an RMSE of (\S+) is predicted for it", "0.30000", ["0"]),
        (
            r"falls from (\S+) at lag 0 over (\S+) at lag 5 to (\S+)\s+for the smoother",
            "0.30000",
            ["0", "5", "smoother"],
        ),
        (r"where (\S+) is predicted for the best linear", "30.000", ["5"]),
    ],
)
def test_predicted_errors_are_those_of_the_map(words, epsilon, lags):
    """Which has the predicted errors of its winners in its cells."""
    optimal = {x["lag"]: x for x in read_rows("map") if (x["mechanism"], x["epsilon"]) == ("optimal", epsilon)}
    (quoted,) = re.finditer(words, PAGE)
    for shown, lag in zip(quoted.groups(), lags, strict=True):
        assert is_rounded(shown, optimal[lag]["predicted_rmse"])
