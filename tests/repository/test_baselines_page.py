"""What docs/baselines.md shows is what this version gives."""

import doctest
import math
import re
from pathlib import Path

import numpy as np
import pytest

import dpfast as dp
from dpfast.simulation import paper_example

PAGE = (Path(__file__).parents[2] / "docs" / "baselines.md").read_text(encoding="utf-8")
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
    assert len(blocks) == 9
    runner = doctest.DocTestRunner(verbose=False)
    runner.run(doctest.DocTestParser().get_doctest("".join(blocks), {}, "baselines.md", None, 0))
    assert runner.failures == 0
    assert runner.tries > 30


def test_running_sums_have_the_errors_shown():
    rows = table("running sums")
    assert rows.keys() == SUMS.keys()
    for name, cells in rows.items():
        for n, mean, largest in ((256, *cells[:2]), (1024, *cells[2:])):
            if mean:
                mechanism = SUMS[name](dp.running_sum(n), UNIT)
                found = mechanism.predicted_rmse, math.sqrt(mechanism.max_mse)
                assert found == pytest.approx((float(mean), float(largest)), rel=2e-4)


def test_the_filter_has_the_errors_shown():
    n, target, model = 1024, dp.Filter([1, 0.995], [1, -0.995]), paper_example.CHAIN
    f, privacy = dp.Toeplitz.of(target, n), dp.Privacy(math.log(3), 0.05)
    over_horizon = {
        "input_perturbation": dp.input_perturbation(f, privacy),
        "output_perturbation": dp.output_perturbation(f, privacy),
        "decayed_sum": dp.decayed_sum(f, privacy),
        "square_root": dp.square_root(f, privacy),
        "buffered_toeplitz": dp.buffered_toeplitz(f, privacy),
        "fourier_perturbation, 5 coefficients, Laplace": dp.fourier_perturbation(f, privacy, n_coefficients=5),
        "fourier_perturbation, 25 coefficients, Gaussian": dp.fourier_perturbation(
            f, privacy, n_coefficients=25, noise="gaussian"
        ),
    }
    stationary = {
        "zero_forcing": dp.zero_forcing(target, privacy),
        "optimal, lag 0": dp.optimal(target, privacy, model, lag=0),
        "optimal, lag 20": dp.optimal(target, privacy, model, lag=20),
        "lmmse, smoother": dp.lmmse(target, privacy, model),
    }
    rmse = {name: math.sqrt(m.predict(model)) for name, m in over_horizon.items()}
    rmse |= {name: math.sqrt(m.step_mse(n, model).mean()) for name, m in stationary.items()}
    rows = {name: cells[0] for name, cells in table("filter").items()}
    simulated = rows.pop("compressive, 32 measurements, Laplace")
    assert rows.keys() == rmse.keys()
    for name, shown in rows.items():
        assert rmse[name] == pytest.approx(float(shown), rel=2e-4)
    u = model.sample(64, n, seed=1)
    mechanism = dp.compressive(f, privacy, n_measurements=32)
    error = mechanism.simulate(u, seed=1).estimate - f.apply(u)
    assert np.sqrt((error**2).mean()) == pytest.approx(float(simulated.removesuffix(" simulated")), rel=0.1)
