"""What docs/choosing/bounds.md shows is what this version gives."""

import doctest
import math
import re
from pathlib import Path

import pytest

import dpfast as dp
from tests.helpers.noise_tables import CHAIN, TARGETS

PAGE = (Path(__file__).parents[2] / "docs/choosing/bounds.md").read_text(encoding="utf-8")
TARGET = TARGETS["paper"]
GIVEN = [(1, 1e-6), (3, 1e-6), (math.log(3), 0.05)]
DESIGNS = {
    "`optimal`": lambda p: dp.optimal(TARGET, p, CHAIN, tolerance=0.2),
    "`block_sums`": lambda p: dp.block_sums(TARGET, p, CHAIN),
    '`block_sums(group="best")`': lambda p: dp.block_sums(TARGET, p, CHAIN, group="best"),
    "`randomized_response`": lambda p: dp.randomized_response(TARGET, p, CHAIN),
    "`zero_forcing`": lambda p: dp.zero_forcing(TARGET, p, tolerance=0.2),
    '`input_perturbation(noise="canonical")`': lambda p: dp.input_perturbation(TARGET, p, noise="canonical"),
}
WIDEST = {"additive bound", "linear-mean bound"}


def row(name):
    """A row of the table as it should be."""
    cells = []
    for given in GIVEN:
        mechanism = DESIGNS[name](dp.Privacy(*given))
        bound = next(x for x in dp.bounds_of(mechanism) if x.name in WIDEST)
        rmse = mechanism.ideal_rmse or mechanism.predicted_rmse  # of filters of any order, for which the bound is too
        cells += [f"{rmse:#.4g}", f"{bound.rmse:#.4g}", f"{rmse / bound.rmse:.2f}"]
    return f"| {' | '.join([name, *cells])} |"


def test_the_table_has_every_design():
    lines = PAGE.split("<!-- families -->\n")[1].split("\n\n")[0].splitlines()[2:]
    assert [x.split(" | ")[0].removeprefix("| ") for x in lines] == list(DESIGNS)


@pytest.mark.parametrize("name", DESIGNS)
def test_the_table_shows_how_far_the_families_are(name):
    assert row(name) in PAGE


def test_the_examples_run_as_they_are_shown():
    blocks = re.findall(r"```pycon\n(.*?)```", PAGE, re.DOTALL)
    assert len(blocks) == 2
    runner = doctest.DocTestRunner(verbose=False)
    runner.run(doctest.DocTestParser().get_doctest("".join(blocks), {}, "bounds.md", None, 0))
    assert runner.failures == 0
    assert runner.tries >= 8
