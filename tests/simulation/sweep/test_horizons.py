"""Sweeps of matrix mechanisms, beside filters that start with them."""

import concurrent.futures
import dataclasses
import re
import shutil

import numpy as np
import pytest
from helpers import pages, sweeps

import dpfast as dp
from dpfast.cli import study
from dpfast.cli.main import main
from dpfast.mechanisms.operators.dense import Dense
from dpfast.reports import html_page
from dpfast.reports.sweep import lines_and_panels as panels
from dpfast.reports.sweep import sweep_pictures, sweep_sample_paths
from dpfast.reports.sweep.sweep_page import sweep_page
from dpfast.simulation.sweep.executors import Pool
from dpfast.simulation.sweep.grid import ParameterGrid
from dpfast.simulation.sweep.stream_blocks import estimate_cost

N = 24
STREAM = "levels:0,1@0.75,0.25"
PRIVACY = {"epsilon": [0.5, 2], "delta": 1e-6}
OF_FILTERS = ["zero_forcing", "lmmse"]
FILTER = {"target": "exponential:0.8", "stream": STREAM, "horizon": N} | PRIVACY
MODEL = {"model": STREAM, "lag": 2, "tolerance": 0.1, "prefilter": {"b": [1, -0.5]}}
GRID = [
    FILTER | {"mechanism": [*OF_FILTERS, "square_root", "decayed_sum"], "noise": ["gaussian", "laplace"]} | MODEL,
    FILTER | {"mechanism": ["buffered_toeplitz", "input_perturbation"], "n_buffers": 1, "epsilon": 2},
    FILTER | {"mechanism": "fourier_perturbation", "n_coefficients": [5, 9]},
    FILTER | {"mechanism": "optimal_factorization", "epsilon": 2},
    FILTER | {"mechanism": "optimal_factorization", "epsilon": 2, "model": STREAM, "lag": None},
    FILTER | {"mechanism": "compressive", "n_measurements": 12, "noise": "gaussian", "epsilon": 2},
]
OPTIONS = {"seed": 3, "n_samples": N, "width": None, "budget": 2 * 128 * N, "n_threads": 1}
SUMS = {"mechanism": ["binary_tree", "input_perturbation"], "target": f"running-sum:{N}", "stream": STREAM} | PRIVACY


def run(grid=GRID, **options):
    return dp.sweep(grid, **(OPTIONS | options))


@pytest.fixture(scope="module")
def designs(tmp_path_factory):
    """A store with all designs, and no block of the sweep."""
    path = tmp_path_factory.mktemp("designs") / "sweeps.sqlite"
    run(store=path, seed=4, budget=1)
    return path


@pytest.fixture(scope="module")
def found(designs, tmp_path_factory):
    return run(store=shutil.copy(designs, tmp_path_factory.mktemp("found")))


@pytest.fixture
def store(designs, tmp_path):
    """A copy of the store with all designs, in which the sweep is begun."""
    return shutil.copy(designs, tmp_path)


# --- numbers --------------------------------------------------------------------------------------


def test_numbers_are_those_of_monte_carlo(found):
    assert len({x.group for x in found}) == 1
    rows = [x for x in found if x.settings["epsilon"] == 2]
    mechanisms = {f"{i}": found.mechanism(x) for i, x in enumerate(rows)}
    model = dp.IndependentLevels([0, 1], [0.75, 0.25])
    named = [dataclasses.replace(x, name=name) for name, x in mechanisms.items()]
    study = dp.monte_carlo(named, model, n_streams=256, n_samples=N, seed=3)
    for x, row in zip(study, rows, strict=True):
        batches = sum(x.stream_mse.reshape(-1, 8).T) / 8
        np.testing.assert_array_equal(row.batch_means, batches)
        assert row.predicted_rmse == (None if x.predicted_rmse is None else pytest.approx(x.predicted_rmse, rel=1e-12))
    kinds = {type(x) for x in mechanisms.values()}
    assert kinds == {dp.Mechanism, dp.MatrixMechanism}


def test_filters_are_predicted_from_their_first_step_on(found):
    row = found.row(mechanism="lmmse", epsilon=2, noise="laplace", n_coefficients=None)
    mechanism = found.mechanism(row)
    assert row.predicted_mse == mechanism.step_mse(N, mechanism.model).mean() != mechanism.predicted_mse
    without = {name: x for name, x in (FILTER | MODEL).items() if name != "horizon"}
    settled = run(without | {"mechanism": ["lmmse", "zero_forcing"]})
    bounds = [{x.lower_bound_mse is None for x in some if x.family == "zero_forcing"} for some in (found, settled)]
    assert bounds == [{True}, {False}]  # from the first step on filters err less
    assert [x.predicted_mse for x in settled] == [settled.mechanism(x).predicted_mse for x in settled]


def test_a_lower_bound_is_drawn_where_it_is_for_all_linear_mechanisms(found):
    unbiased, biased = [x for x in found if x.family == "optimal_factorization"]
    assert unbiased.lower_bound_mse == found.mechanism(unbiased).lower_bound_mse is not None
    assert panels.lower_bound(found, unbiased) is None  # of those that do not distort
    assert panels.lower_bound(found, biased) == biased.lower_bound_rmse <= biased.predicted_rmse


@pytest.mark.parametrize("engine", ["threads", "workers", "executor", "restarted"])
def test_the_bits_do_not_depend_on_where_blocks_run(found, engine, store):
    if engine == "threads":
        again = run(n_threads=2, store=store)
    elif engine == "workers":
        again = run(n_threads=None, executor=Pool(1))  # makes the designs, too
    elif engine == "executor":
        with concurrent.futures.ThreadPoolExecutor(2) as executor:
            again = run(n_threads=None, executor=executor, store=store)
    else:
        run(store=store, budget=128 * N)
        again = run(store=store)
    assert sweeps.rows(again) == sweeps.rows(found)


def test_single_precision_is_for_filters(found, store):
    single = run(dtype="float32", store=store)
    same = [np.array_equal(a.batch_means, b.batch_means) for a, b in zip(single, found, strict=True)]
    assert same == [isinstance(found.mechanism(x), dp.MatrixMechanism) for x in found]


# --- grids ----------------------------------------------------------------------------------------


def test_targets_over_a_horizon_are_for_designs_that_take_them():
    both = {"target": [f"running-sum:{N}", "ba:1,0.5"], "horizon": N}
    grid = ParameterGrid(SUMS | both | {"mechanism": ["zero_forcing", *SUMS["mechanism"]], "epsilon": 1})
    assert [(x.settings["mechanism"], x.settings["target"], x.horizon) for x in grid.cases] == [
        ("zero_forcing", "ba:1,0.5", None),
        ("binary_tree", f"running-sum:{N}", N),
        ("binary_tree", "ba:1,0.5", N),
        ("input_perturbation", f"running-sum:{N}", N),
        ("input_perturbation", "ba:1,0.5", None),
    ]
    assert [x.group for x in grid.cases] == [0, 1, 0, 1, 0]


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        (f"polynomial-decay:1:{N}", dp.polynomial_decay(1, N)),
        ({"coefficients": [1, 0.5], "horizon": N}, dp.Toeplitz([1, 0.5], N)),
        (dp.Toeplitz([1, 0.5], N), dp.Toeplitz([1, 0.5], N)),
    ],
)
def test_targets_in_words_and_tables_are_designed_for(target, expected):
    found = run(SUMS | {"target": target, "mechanism": "square_root"})
    assert all(found.mechanism(x).target == expected for x in found)
    [case, _] = ParameterGrid(SUMS | {"target": target, "mechanism": "square_root"}).cases
    assert case.horizon == N


def test_mechanisms_that_are_there_already_are_simulated_as_they_are():
    given = [
        dp.square_root(dp.running_sum(N), dp.Privacy(1, 1e-6)),
        dp.binary_tree(dp.running_sum(N), dp.Privacy(1, 1e-6)),
    ]
    found = run({"mechanism": given, "stream": STREAM})
    study = dp.monte_carlo(given, dp.IndependentLevels([0, 1], [0.75, 0.25]), n_streams=256, n_samples=N, seed=3)
    assert [x.mse for x in found] == pytest.approx([x.mse for x in study], rel=1e-12)
    assert {x.group for x in found} == {0}


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        ({}, {"n_samples": 25}, "n_samples must be the horizon of binary_tree, 24, got 25"),
        ({}, {"burn_in": 5}, "burn_in must be 0 with binary_tree, got 5"),
        ({"target": [f"running-sum:{N}", "running-sum:9"]}, {}, "n_samples must be the horizon of binary_tree, 9"),
        ({"target": "ba:1,0.5"}, {}, "horizon must be given in the grid: binary_tree needs it for a target that is a"),
        ({"target": "running-sum:0"}, {}, "target 'running-sum:0' does not describe one over a horizon"),
        ({"estimator": 3}, {}, "estimator must be"),
        ({"horizon": 2.5}, {}, "horizon must be"),
        ({"mechanism": "zero_forcing"}, {}, "mechanism zero_forcing must have a point, got no target that"),
        ({"noise": "uniform"}, {}, "noise must be .*'gaussian' or .*'laplace'.*, got 'uniform'"),
    ],
)
def test_what_cannot_be_is_named(change, options, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        run(SUMS | change, **options)


def test_a_horizon_beyond_that_of_the_target_is_a_row_with_the_error():
    grid = SUMS | {"mechanism": ["square_root"], "target": "running-sum:9", "horizon": N, "epsilon": 1}
    both = [grid, SUMS | {"epsilon": 1}]
    failed = [x for x in run(both) if x.failed]
    assert [x.error for x in failed] == ["horizon must be at most that of the target, 9, got 24: leave it out"]


# --- blocks ---------------------------------------------------------------------------------------


def test_the_cost_of_a_link_grows_with_its_matrices():
    target, privacy = dp.running_sum(512), dp.Privacy(1, 1e-6)
    root = dp.square_root(target, privacy)
    dense = dp.MatrixMechanism(
        *("dense", target, privacy, Dense(root.strategy.matrix()), Dense(root.strategy.matrix()))
    )
    decoder = dp.compressive(target, privacy, n_measurements=20)
    assert 0 < estimate_cost(root.compiled()) < estimate_cost(dense.compiled()) < estimate_cost(decoder.compiled())


# --- what is shown of it --------------------------------------------------------------------------


def test_pictures_and_the_page_have_them(found, monkeypatch):
    pytest.importorskip("matplotlib")
    drawn = sweep_pictures.draw_all(found)
    assert set(drawn) >= {"rmse-over-epsilon.png", "paths.png"}
    assert len(drawn["paths.png"].axes) > 4
    monkeypatch.setattr(sweep_pictures, "draw_all", lambda sweep: drawn)  # once is enough
    monkeypatch.setattr(html_page, "render_png", lambda figure: b"")
    text = sweep_page(found)
    for word in ("square root", "BLT", "decayed sum", "FPA", "compressive"):
        assert word in text


def test_sample_paths_are_of_the_whole_horizon(found):
    rows = [found.row(mechanism=x, epsilon=2, n_coefficients=None, noise="gaussian") for x in ("square_root", "lmmse")]
    drawn = sweep_sample_paths.draw_sample_paths(found, rows)
    for ax in drawn.axes:
        assert all(len(x.get_xdata()) == N for x in ax.lines)


def test_the_command_runs_a_file(tmp_path, capsys, monkeypatch):
    pytest.importorskip("matplotlib")
    pages.render_once(monkeypatch, study)
    file = tmp_path / "counters.toml"
    file.write_text(
        f"""seed = 1
n_samples = {N}
width = 0.2
decide = "mechanism"
[grid]
mechanism = ["square-root", "binary-tree", "input-perturbation"]
target = "running-sum:{N}"
stream = "{STREAM}"
epsilon = [0.5, 2]
delta = 1e-6
"""
    )
    assert main(["study", str(file), "--out", str(tmp_path / "out")]) == 0
    assert re.search(r"binary_tree\s+0\.5", capsys.readouterr().out)
    assert (tmp_path / "out" / "paths.png").exists()


def test_the_samples_are_those_of_the_horizon_and_labels_that_change_nothing_stand_in_parentheses():
    grid = {
        "mechanism": ["square_root", "input_perturbation"],
        "target": "running-sum:16",
        "stream": "arma:1",
        "noise": ["gaussian", "laplace"],
        "epsilon": 1.0,
        "delta": 1e-6,
    }
    found = dp.sweep(grid, seed=1, width=0.5)
    assert found.n_samples == 16
    shown = [line.split()[:2] for line in str(found).splitlines() if line.startswith(("square_root", "input_pert"))]
    noises = {("square_root", "(gaussian)"), ("square_root", "(laplace)")}
    assert {tuple(x) for x in shown} == noises | {("input_perturbation", "gaussian"), ("input_perturbation", "laplace")}
