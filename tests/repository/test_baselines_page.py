"""What docs/explanation/baselines.md shows is what this version gives."""

import doctest
import functools
import math
import re
from pathlib import Path

import numpy as np
import pytest

import dpfast as dp
from dpfast.simulation import paper_example

PAGE = (Path(__file__).parents[2] / "docs/explanation/baselines.md").read_text(encoding="utf-8")
UNIT = dp.Privacy.from_gdp(1, 1e-6)
SUMS = {
    "input perturbation": dp.input_perturbation,
    "output perturbation": dp.output_perturbation,
    "binary tree (plain)": lambda target, privacy: dp.binary_tree(target, privacy, estimator="plain"),
    "binary tree (honaker)": dp.binary_tree,
    "decayed sum": dp.decayed_sum,
    "square root": dp.square_root,
    "BLT": dp.buffered_toeplitz,
    "optimal factorization": dp.optimal_factorization,
}


def table(name):
    """Rows of the table behind a mark: first cell, and the others."""
    lines = PAGE.split(f"<!-- {name} -->\n")[1].split("\n\n")[0].splitlines()[2:]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {first.replace("`", ""): others for first, *others in rows}


def test_the_examples_run_as_they_are_shown():
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len(blocks) == 13
    runner = doctest.DocTestRunner(verbose=False)
    runner.run(doctest.DocTestParser().get_doctest("".join(blocks), {}, "baselines.md", None, 0))
    assert runner.failures == 0
    assert runner.tries > 30


def check_running_sums(names, lengths):
    rows = table("running sums")
    assert rows.keys() == SUMS.keys()
    for name in names:
        for n, mean, largest in ((256, *rows[name][:2]), (1024, *rows[name][2:])):
            if mean and n in lengths:
                mechanism = SUMS[name](dp.running_sum(n), UNIT)
                found = mechanism.predicted_rmse, math.sqrt(mechanism.max_mse)
                assert found == pytest.approx((float(mean), float(largest)), rel=2e-4)


def test_running_sums_have_the_errors_shown():
    check_running_sums(SUMS.keys() - {"BLT"}, [256, 1024])


@pytest.mark.long
def test_running_sums_with_buffers_have_the_errors_shown():
    """An example of the page has buffers, too."""
    check_running_sums(["BLT"], [256, 1024])


PURE = {
    "input_perturbation, geometric": functools.partial(dp.input_perturbation, noise="geometric"),
    "binary_tree, Laplace": functools.partial(dp.binary_tree, noise="laplace"),
    "tree": dp.tree,
    "shared_noise": dp.shared_noise,
    "tree, subtraction": functools.partial(dp.tree, subtraction=True),
    "optimal_factorization, lower": functools.partial(dp.optimal_factorization, noise="laplace"),
    "optimal_factorization, dense": functools.partial(dp.optimal_factorization, noise="laplace", strategy="dense"),
}
DESCENTS = {"optimal_factorization, lower", "optimal_factorization, dense"}


SEARCHES = DESCENTS | {"shared_noise"}


@pytest.mark.parametrize("names", [PURE.keys() - SEARCHES, pytest.param(SEARCHES, marks=pytest.mark.long)])
def test_pure_running_sums_have_the_errors_shown(names):
    rows = table("pure")
    assert rows.keys() == {*PURE, "its lower bound"}
    for name in names:
        for n, shown, bound in zip((256, 1024), rows[name], rows["its lower bound"], strict=True):
            found = PURE[name](dp.running_sum(n), dp.Privacy(1))
            assert found.predicted_rmse == pytest.approx(float(shown), rel=4e-3 if name in DESCENTS else 2e-4)
            if name in DESCENTS:
                assert math.sqrt(found.lower_bound_mse) == pytest.approx(float(bound), rel=2e-4)


N, TARGET, MODEL, PRIVACY = 1024, dp.Filter([1, 0.995], [1, -0.995]), paper_example.CHAIN, dp.Privacy(math.log(3), 0.05)
OVER_HORIZON = {
    "input_perturbation": dp.input_perturbation,
    "output_perturbation": dp.output_perturbation,
    "decayed_sum": dp.decayed_sum,
    "square_root": dp.square_root,
    "buffered_toeplitz": dp.buffered_toeplitz,
    "fourier_perturbation, 5 coefficients, Laplace": functools.partial(dp.fourier_perturbation, n_coefficients=5),
    "fourier_perturbation, 25 coefficients, Gaussian": functools.partial(
        dp.fourier_perturbation, n_coefficients=25, noise="gaussian"
    ),
}
STATIONARY = {
    "zero_forcing": lambda: dp.zero_forcing(TARGET, PRIVACY),
    "optimal, lag 0": lambda: dp.optimal(TARGET, PRIVACY, MODEL, lag=0),
    "optimal, lag 20": lambda: dp.optimal(TARGET, PRIVACY, MODEL, lag=20),
    "lmmse, smoother": lambda: dp.lmmse(TARGET, PRIVACY, MODEL),
}
SIMULATED = "compressive, 32 measurements, Laplace"
LONG = {"buffered_toeplitz", "optimal, lag 0", "optimal, lag 20"}  # take two seconds each


def check_filter(names):
    rows = {name: cells[0] for name, cells in table("filter").items()}
    assert rows.keys() == {*OVER_HORIZON, *STATIONARY, SIMULATED}
    for name in names:
        if name in STATIONARY:
            mse = STATIONARY[name]().step_mse(N, MODEL).mean()
        else:
            mse = OVER_HORIZON[name](dp.Toeplitz.of(TARGET, N), PRIVACY).predict(MODEL)
        assert math.sqrt(mse) == pytest.approx(float(rows[name]), rel=2e-4)


@pytest.mark.long
def test_the_filter_has_the_errors_shown_where_designs_take_long():
    check_filter(LONG)


def test_the_filter_has_the_errors_shown():
    check_filter({*OVER_HORIZON, *STATIONARY} - LONG)
    f, simulated = dp.Toeplitz.of(TARGET, N), table("filter")[SIMULATED][0]
    u = MODEL.sample(64, N, seed=1)
    mechanism = dp.compressive(f, PRIVACY, n_measurements=32)
    error = mechanism.simulate(u, seed=1).estimate - f.apply(u)
    assert np.sqrt((error**2).mean()) == pytest.approx(float(simulated.removesuffix(" simulated")), rel=0.1)
