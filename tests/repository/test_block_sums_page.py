"""What docs/block-sums.md shows is what this version gives."""

import doctest
import math
import re
from pathlib import Path

import numpy as np
import pytest

import dpfast as dp
from dpfast.simulation.paper_example import CHAIN

PAGE = (Path(__file__).parents[2] / "docs" / "block-sums.md").read_text(encoding="utf-8")
TARGETS = {
    "(1 + .995z⁻¹)/(1 − .995z⁻¹)": dp.Filter([1, 0.995], [1, -0.995]),
    "average of 12": dp.Filter(np.ones(12) / 12),
    "exponential smoothing .9": dp.Filter([0.1], [1, -0.9]),
    "resonator, poles .95 at ±30°": dp.Filter([1], [1, -1.9 * math.cos(math.pi / 6), 0.9025]),
    "1 − 2z⁻¹": dp.Filter([1, -2]),
}
GAINS = {"1, 1e-6": dp.Privacy(1, 1e-6), "3, 1e-6": dp.Privacy(3, 1e-6), "ln 3, .05": dp.Privacy(math.log(3), 0.05)}
EPSILONS = {"ln 3": math.log(3)}
DELTAS = {"10⁻⁶": 1e-6}


def table(mark):
    """Rows of the table behind a mark, without the stars around the least error."""
    lines = PAGE.split(f"<!-- {mark} -->\n")[1].split("\n\n")[0].splitlines()[2:]
    return [[cell.strip(" *") for cell in line.strip("|").split("|")] for line in lines]


def four_digits(x):
    return f"{x:.4g}"


def test_the_examples_run_as_they_are_shown():
    blocks = re.findall(r"```pycon\n(.*?)```", PAGE, re.DOTALL)
    assert len(blocks) == 3
    runner = doctest.DocTestRunner(verbose=False)
    runner.run(doctest.DocTestParser().get_doctest("".join(blocks), {}, "block-sums.md", None, 0))
    assert runner.failures == 0
    assert runner.tries >= 8


def test_the_noise_has_the_size_shown():
    rows = table("noise")
    assert len(rows) == 6
    for first, *cells in rows:
        epsilon, delta = first.split(", ")
        privacy = dp.Privacy(EPSILONS.get(epsilon) or float(epsilon), DELTAS.get(delta) or float(delta))
        for kind, cell in zip(("gaussian", "laplace", "geometric", "canonical"), cells, strict=True):
            if cell == "–":
                with pytest.raises(ValueError, match="delta"):
                    _noise_std(privacy, kind)
            else:
                assert cell == f"{_noise_std(privacy, kind):.5f}"


def _noise_std(privacy, kind):
    return dp.input_perturbation(dp.Filter([1]), privacy, noise=kind).noise_std


@pytest.mark.parametrize("mark", GAINS)
def test_errors_are_those_shown(mark):
    rows = table(f"gain {mark}")
    assert [x[0] for x in rows] == [*TARGETS]
    for name, constant, *cells in rows:
        target, privacy = TARGETS[name], GAINS[mark]
        assert constant == four_digits(dp.constant(target, CHAIN).predicted_rmse)
        for lag, (_, block, response) in zip((0, 5), (cells[:3], cells[3:]), strict=True):
            blocks = dp.block_sums(target, privacy, CHAIN, lag=lag)
            assert block == f"{blocks.predicted_rmse:.4g} ({blocks.lengths[0]})"
            told = dp.randomized_response(target, privacy, CHAIN, lag=lag)
            assert response == four_digits(told.predicted_rmse)


@pytest.mark.long
@pytest.mark.parametrize("mark", GAINS)
def test_errors_with_gaussian_noise_are_those_shown(mark):
    for name, _, *cells in table(f"gain {mark}"):
        for lag, cell in ((0, cells[0]), (5, cells[3])):
            optimal = dp.optimal(TARGETS[name], GAINS[mark], CHAIN, lag=lag)
            assert float(cell) == pytest.approx(optimal.predicted_rmse, rel=1e-3)


def test_errors_over_the_memory_are_those_shown():
    rows = table("memory")
    assert len(rows) == 10
    for pole, epsilon, constant, _, block, several in rows:
        target, privacy = dp.Filter([1, float(pole)], [1, -float(pole)]), dp.Privacy(float(epsilon))
        assert constant == four_digits(dp.constant(target, CHAIN).predicted_rmse)
        blocks = dp.block_sums(target, privacy, CHAIN)
        assert block == f"{blocks.predicted_rmse:.4g} ({blocks.lengths[0]})"
        error, short, long, share = re.fullmatch(r"([\d.]+) \((\d+), (\d+); ([\d.]+)\)", several).groups()
        shares = (float(share), 1 - float(share))
        levels = dp.block_sums(target, privacy, CHAIN, length=(int(short), int(long)), shares=shares)
        assert error == four_digits(levels.predicted_rmse)


@pytest.mark.long
def test_errors_with_gaussian_noise_over_the_memory_are_those_shown():
    for pole, epsilon, _, cell, *_ in table("memory"):
        optimal = dp.optimal(dp.Filter([1, float(pole)], [1, -float(pole)]), dp.Privacy(float(epsilon), 1e-6), CHAIN)
        assert float(cell) == pytest.approx(optimal.predicted_rmse, rel=1e-3)
