"""What a sweep found, in sentences, from rows whose errors are put there."""

from dataclasses import replace

import numpy as np
import pytest
from helpers import sweeps

import dpfast as dp
from dpfast.reports.sweep.short_sentences import say_in_short


@pytest.fixture(scope="module")
def sweep():
    """Errors of input perturbation 2 and 1 (ε = .5, 2), of output perturbation 4 and .5, none predicted."""
    found = sweeps.run(width=0.01, budget=3e4)
    rmse = {("input_perturbation", 0.5): 2, ("input_perturbation", 2): 1}
    rmse |= {("output_perturbation", 0.5): 4, ("output_perturbation", 2): 0.5}
    spread = np.linspace(0.99, 1.01, 64)
    rows = tuple(
        replace(
            x,
            predicted_mse=None,
            batch_means=spread * rmse[x.settings["mechanism"], x.settings["epsilon"]] ** 2,
        )
        for x in found.rows
    )
    return replace(found, rows=rows)


def test_who_wins_what_buys_and_what_is_open(sweep):
    assert say_in_short(sweep, ("mechanism",)) == [
        (
            "Least error: input perturbation in 1 of 2 cases, where the nearest errs 100 % more; "
            "output perturbation in 1 of 2 cases, where the nearest errs 100 % more. "
            "In 2 of 2 cases the constant, which publishes the mean alone, errs less."
        ),
        "From ε 0.5 to ε 2 the least error falls by 75 %.",
        "All 2 cases are decided.",
    ]


def test_what_is_not_decided_is_said(sweep):
    wide = np.tile([0.5, 1.5], 32)
    rows = tuple(
        replace(x, batch_means=wide * (1 + 0.3 * (np.arange(64) % 3 - 1) * (x.settings["mechanism"] < "o")))
        if x.settings["epsilon"] == 2
        else x
        for x in sweep.rows
    )
    said = say_in_short(replace(sweep, rows=rows), ("mechanism",))
    assert said[-1].startswith("1 of 2 cases is not decided: there the first two may be the other way round")


def test_predicted_errors_are_taken_where_there_are(sweep):
    rows = tuple(replace(x, predicted_mse=float(100 / x.settings["epsilon"])) for x in sweep.rows)
    assert "From ε 0.5 to ε 2 the least error falls by 50 %." in say_in_short(replace(sweep, rows=rows), ("mechanism",))


def test_of_one_mechanism_only_what_buys_is_said(sweep):
    alone = sweep.where(mechanism="input_perturbation")
    assert say_in_short(alone, ("mechanism",))[0] == "From ε 0.5 to ε 2 the least error falls by 50 %."
    assert say_in_short(alone.where(epsilon=2), ("mechanism",)) == []


def test_later_estimates_buy_something():
    grid = {"mechanism": ["lmmse", "input_perturbation"], "target": dp.Filter([1], [1, -0.9]), "epsilon": 1}
    grid |= {"model": dp.ARMA([1], [1, -0.5]), "delta": 1e-3, "lag": [0, 4, "smoother"]}
    found = dp.sweep(grid, seed=1, n_samples=500, width=0.5)
    of = {x.settings["lag"]: x.predicted_rmse for x in found.rows if x.settings["mechanism"] == "lmmse"}
    said = say_in_short(found, ("mechanism",))
    assert said[1] == f"From lag 0 to lag 4 the least error falls by {100 * (1 - of[4] / of[0]):.2g} %."
