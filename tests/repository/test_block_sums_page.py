"""What docs/explanation/block-sums.md shows is what this version gives."""

import doctest
import math
import re
from pathlib import Path

import numpy as np
import pytest

import dpfast as dp
from dpfast.simulation.paper_example import CHAIN

PAGE = (Path(__file__).parents[2] / "docs/explanation/block-sums.md").read_text(encoding="utf-8")
TARGETS = {
    "(1 + .995z⁻¹)/(1 − .995z⁻¹)": dp.Filter([1, 0.995], [1, -0.995]),
    "average of 12": dp.Filter(np.ones(12) / 12),
    "exponential smoothing .9": dp.Filter([0.1], [1, -0.9]),
    "resonator, poles .95 at ±30°": dp.Filter([1], [1, -1.9 * math.cos(math.pi / 6), 0.9025]),
    "1 − 2z⁻¹": dp.Filter([1, -2]),
}
SHARED_TARGETS = {
    f"(1 + {p[1:]}z⁻¹)/(1 − {p[1:]}z⁻¹)": dp.Filter([1, float(p)], [1, -float(p)]) for p in ("0.9995", "0.9999")
}
SHARED_TARGETS["running sum of 1,024 steps"] = dp.running_sum(1024)
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
    assert len(blocks) == 7
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


SIGNED = {
    **{
        f"resonator, poles {radius} at ±{degrees}°": dp.Filter(
            [1], [1, -2 * float(radius) * math.cos(math.radians(degrees)), float(radius) ** 2]
        )
        for radius, degrees in ((".95", 30), (".98", 60), (".99", 30), (".99", 90))
    },
    "(1 − .995z⁻¹)/(1 + .995z⁻¹)": dp.Filter([1, -0.995], [1, 0.995]),
}


def signed_cells(name, privacy, lag):
    """The cells of plain and of signed sums, and of randomised response."""
    found = []
    for weights in (None, "best"):
        sums = dp.block_sums(SIGNED[name], privacy, CHAIN, lag=lag, weights=weights)
        in_turn = " in turn" if sums.receiver.offsets else ""
        found.append(f"{sums.predicted_rmse:.4g} ({sums.lengths[0]}{in_turn})")
    response = dp.randomized_response(SIGNED[name], privacy, CHAIN, lag=lag)
    return [*found, four_digits(response.predicted_rmse)]


def test_errors_of_signed_sums_are_those_shown():
    rows = table("signed")
    assert [x[:2] for x in rows] == [[name, epsilon] for epsilon in "13" for name in SIGNED]
    for name, epsilon, constant, *cells in rows:
        cells = [x.strip(" *") for x in cells]
        assert constant == four_digits(dp.constant(SIGNED[name], CHAIN).predicted_rmse)
        if epsilon == "1":
            assert cells[1:4] == signed_cells(name, dp.Privacy(1, 1e-6), 0)


@pytest.mark.long
def test_errors_of_signed_sums_are_those_shown_for_all_lags():
    for name, epsilon, _, *cells in table("signed"):
        cells, privacy = [x.strip(" *") for x in cells], dp.Privacy(float(epsilon), 1e-6)
        for lag, part in ((0, cells[:4]), (5, cells[4:])):
            assert part[1:] == signed_cells(name, privacy, lag)
            optimum = dp.optimal(SIGNED[name], privacy, CHAIN, lag=lag)
            assert float(part[0]) == pytest.approx(optimum.predicted_rmse, rel=6e-4)


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


def posterior_cells(epsilon):
    """The posterior means that the page shows: target, lag, RMSE behind sums, their length, RMSE behind responses."""
    for name, *cells in table(f"bayes {epsilon}, 1e-6"):
        for lag, (linear, blocks, told, response) in zip((0, 5), (cells[:4], cells[4:]), strict=True):
            values = [x.strip(" *") for x in (linear, blocks, told, response)]
            error, length = re.fullmatch(r"([\d.]+) \((\d+)\)", values[1]).groups()
            yield name, lag, (values[0], values[2]), (float(error), int(length)), float(values[3])


@pytest.mark.parametrize("epsilon", [1, 3])
def test_linear_errors_beside_posterior_means_are_those_shown(epsilon):
    shown = {
        (x[0], lag): (x[3 + 3 * (lag == 5)], x[4 + 3 * (lag == 5)])
        for x in table(f"gain {epsilon}, 1e-6")
        for lag in (0, 5)
    }
    assert {(name, lag): linear for name, lag, linear, *_ in posterior_cells(epsilon)} == shown


POSTERIORS = [(300, 1, 3), (300, 3, 7)] + [
    pytest.param(2_000, e, k, marks=pytest.mark.long) for e in (1, 3) for k in range(10)
]


@pytest.mark.parametrize(("n_streams", "epsilon", "number"), POSTERIORS)
def test_posterior_means_err_as_shown(n_streams, epsilon, number):
    """Within what is shown, and six standard errors; the seed is fixed."""
    name, lag, _, (blocks, length), response = list(posterior_cells(epsilon))[number]
    asked = TARGETS[name], dp.Privacy(epsilon, 1e-6), CHAIN
    kinds = [
        dp.block_sums(*asked, lag=lag, length=length, receiver="bayes"),
        dp.randomized_response(*asked, lag=lag, receiver="bayes"),
    ]
    study = dp.monte_carlo(kinds, CHAIN, n_streams=n_streams, n_samples=2_520, seed=2)
    for result, told in zip(study, (blocks, response), strict=True):
        error = result.controlled_mse.std(ddof=1) / math.sqrt(n_streams) / (2 * result.rmse)
        assert result.rmse == pytest.approx(told, abs=6 * error + 2e-3 * told)


@pytest.mark.long
@pytest.mark.parametrize("epsilon", [1, 3])
def test_lengths_behind_posterior_means_are_those_shown(epsilon):
    for name, lag, _, (_, length), _ in posterior_cells(epsilon):
        found = dp.block_sums(TARGETS[name], dp.Privacy(epsilon, 1e-6), CHAIN, lag=lag, receiver="bayes")
        assert found.lengths == (length,)


def test_shared_noise_errs_as_much_less_as_is_shown():
    """Of the designs shown, without a search; the first row with it."""
    rows = table("shared")
    assert len(rows) == 7
    for target, epsilon, plain, shared, less in rows:
        found = SHARED_TARGETS.get(target) or TARGETS[target]
        errors = []
        for cell in (plain, shared):
            length, *group = map(int, re.search(r"\((.*)\)", cell)[1].split(", "))
            options = dict(zip(("group", "slack"), group, strict=False))
            mechanism = dp.block_sums(found, dp.Privacy(float(epsilon)), CHAIN, length=length, **options)
            shown = four_digits(mechanism.predicted_rmse), four_digits(math.sqrt(mechanism.worst_step_mse))
            assert re.match(r"(\S+), worst (\S+) ", cell).groups() == tuple(map(padded, shown))
            errors.append(mechanism.predicted_rmse)
        assert less == f"{100 * (1 - errors[1] / errors[0]):.0f} %"


def padded(x):
    """Four digits, zeros too."""
    return f"{float(x):#.4g}"
