"""Sweeps of several streams, beside studies of the same mechanisms, and beside themselves."""

import functools
import json
import math
import re

import numpy as np
import pytest
from helpers.sweeps import FaultError, Faulty, blocks, rows

import dpfast as dp
from dpfast._support import table_layout
from dpfast.simulation.sweep.compiled_mechanism_json import compiled_content, read_compiled
from dpfast.simulation.sweep.grid import ParameterGrid
from dpfast.simulation.sweep.stream_blocks import Block, simulate_block
from dpfast.simulation.sweep.sweep import sweep
from dpfast.simulation.sweep.sweep_store import SweepStore

SLOW, QUICK = dp.Filter([0.1], [1, -0.9]), dp.Filter([0.5], [1, -0.5])
TARGET = dp.FilterMatrix([[SLOW, SLOW], [QUICK, -1 * QUICK]])
MODELS = [dp.ARMA([1], [1, -0.5], mean=2.0), dp.ARMA([2.0])]
ALIKE = dp.VectorARMA([[[0.5, 0], [0, 0.2]]], innovation_covariance=[[1, 0.6], [0.6, 1]])
GRID = {
    "mechanism": ["zero_forcing", "optimal"],
    "target": TARGET,
    "model": MODELS,
    "epsilon": 1,
    "delta": 1e-3,
    "adjacency": ["one_input", "each_input"],
    "lag": 1,
    "tolerance": 0.05,
}
OPTIONS = {"seed": 3, "n_samples": 60, "burn_in": 20, "width": 0.03, "budget": 1e5, "n_threads": 1}


def run(grid=GRID, **options):
    return sweep(grid, **(OPTIONS | options))


@functools.cache
def found():
    return run()


def every(result):
    """All that a sweep says of its rows and their outputs, with all bits."""
    return rows(result), [rows(x.outputs) for x in result]


def test_rows_are_those_of_a_study_of_the_same_streams():
    for row in found():
        mechanism = found().mechanism(row)
        n = row.n_streams
        study = dp.monte_carlo(mechanism, MODELS, n_streams=n, n_samples=60, seed=3, burn_in=20, n_threads=1)
        result = study.results[0]
        assert len(row.outputs) == len(result.outputs) == 2
        for part, same in zip(row.with_outputs, result.with_outputs, strict=True):
            np.testing.assert_allclose(part.batch_means, same.stream_mse.reshape(-1, 8).mean(axis=1), rtol=1e-12)
            assert part.predicted_rmse == pytest.approx(same.predicted_rmse, rel=1e-12)
            assert part.variance == pytest.approx(same.variance, rel=1e-12)


def test_the_row_itself_is_the_sum_of_its_outputs():
    for row in found():
        np.testing.assert_allclose(row.batch_means, sum(x.batch_means for x in row.outputs), rtol=1e-14)
        assert row.predicted_mse == pytest.approx(math.fsum(x.predicted_mse for x in row.outputs))
        low, high = row.interval
        assert low < row.predicted_rmse < high or abs(row.rmse / row.predicted_rmse - 1) < 0.05
        assert row.lower_bound_mse is not None
        assert all(x.lower_bound_mse is None and x.ideal_mse is None for x in row.outputs)


def test_outputs_do_not_depend_on_what_runs_beside_them_nor_where():
    whole = every(found())
    assert every(run(n_threads=2)) == whole
    assert every(run(n_threads=None, workers=2)) == whole
    alone = run({**GRID, "mechanism": "optimal", "adjacency": "each_input"}).rows[0]
    beside = found().row(mechanism="optimal", adjacency="each_input")
    n = min(len(alone.batch_means), len(beside.batch_means))
    for x, y in zip(alone.with_outputs, beside.with_outputs, strict=True):
        assert x.batch_means[:n].tobytes() == y.batch_means[:n].tobytes()


def test_a_store_has_each_output_and_goes_on_after_a_fault(tmp_path):
    path = tmp_path / "store"
    run(store=path)
    with pytest.raises(FaultError):
        sweep(GRID, **(OPTIONS | {"n_threads": None}), store=tmp_path / "broken", executor=Faulty(5))
    assert 0 < len(blocks(tmp_path / "broken")[0]) < len(blocks(path)[0])
    assert every(run(store=tmp_path / "broken")) == every(found())
    assert blocks(tmp_path / "broken")[0] == blocks(path)[0]
    with SweepStore(path) as store:
        _, _, means = next(store.all_means(1))
    first = found().rows[0]
    assert [x.tolist() for x in means.reshape(2, 16)] == [x.batch_means[:16].tolist() for x in first.outputs]


class Stopped(Faulty):
    """Somebody presses Ctrl-C at the n-th answer."""

    def run(self, function, items):
        try:
            yield from super().run(function, items)
        except FaultError:
            raise KeyboardInterrupt from None


def test_ctrl_c_says_how_to_go_on_and_nothing_is_lost(tmp_path):
    with pytest.raises(KeyboardInterrupt, match="of 4 cases were finished; the same call with seed=3 goes on"):
        sweep(GRID, **(OPTIONS | {"n_threads": None}), store=tmp_path / "store", executor=Stopped(5))
    kept, designs = blocks(tmp_path / "store")
    assert kept
    assert every(run(store=tmp_path / "store")) == every(found())
    assert set(kept) < set(blocks(tmp_path / "store")[0])
    assert blocks(tmp_path / "store")[1] == designs


def test_the_stream_may_be_another_than_that_of_the_design():
    result = run({**GRID, "mechanism": "optimal", "stream": ALIKE})
    for row in result:
        predicted = result.mechanism(row).predict_outputs(ALIKE)
        np.testing.assert_allclose([x.predicted_mse for x in row.outputs], predicted, rtol=1e-12)
        spread = TARGET.apply(ALIKE.sample(1, 200_000, seed=1)[0])[:, 100:].var(axis=1)
        np.testing.assert_allclose([x.variance for x in row.outputs], spread, rtol=0.1)
        assert row.lower_bound_mse is None
        assert math.sqrt(predicted.sum()) == pytest.approx(row.rmse, rel=0.05)


def test_from_the_first_step_on_errors_are_those_of_the_first_steps():
    result = run({**GRID, "mechanism": "optimal", "adjacency": "one_input"}, burn_in=0)
    mechanism = result.mechanism(result.rows[0])
    first = mechanism.predict_first_outputs(60, tuple(MODELS))
    np.testing.assert_allclose([x.predicted_mse for x in result.rows[0].outputs], first, rtol=1e-12)
    assert result.rows[0].lower_bound_mse is None


NOTHING = np.zeros((0, 0)), np.zeros((0, 2)), np.zeros((2, 0))
KINDS = {
    "filters": lambda p: dp.zero_forcing(TARGET, p, tolerance=0.05),
    "filters that mix": lambda p: dp.zero_forcing(dp.total(2) * SLOW, p, prefilter="general", tolerance=0.05),
    "a state space": lambda p: dp.lmmse(TARGET, p, ALIKE, lag=2, tolerance=0.05),
    "no states": lambda p: dp.input_perturbation(dp.FilterMatrix.from_state_space(*NOTHING, np.eye(2)), p),
    "blocks": lambda p: dp.block_sums(TARGET, p, MODELS, lag=1),
    "blocks of one input": lambda p: dp.block_sums(dp.FilterMatrix([[SLOW, 0]]), p, MODELS),
}


def shapes(x):
    """Classes and shapes of all that a compiled mechanism is made of."""
    if isinstance(x, tuple):
        return type(x).__name__, *map(shapes, x)
    return getattr(x, "shape", type(x).__name__)


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_simulation_runs_is_kept_to_the_bit(kind):
    made = KINDS[kind](dp.Privacy(1, 1e-3, adjacency="one_input"))
    there = read_compiled(json.loads(json.dumps(compiled_content(made.compiled()))))
    source = dp.VectorARMA.independent(MODELS).compiled()
    errors = [simulate_block(Block(source, (x,), 10, 20, 1, 0)) for x in (made.compiled(), there)]
    assert errors[0].tobytes() == errors[1].tobytes()
    assert errors[0].shape == (1, 16 * made.target.shape[0])
    assert shapes(there) == shapes(made.compiled())


@pytest.mark.parametrize("kind", ["filters", "a state space", "blocks", "blocks of one input"])
def test_mechanisms_that_are_there_are_simulated(kind):
    made = KINDS[kind](dp.Privacy(1, 1e-3, adjacency="one_input"))
    row = run({"mechanism": made, "stream": MODELS}).rows[0]
    assert (row.family, row.mechanism_name) == ("given", made.name)
    predicted = made.predict_outputs(MODELS)
    errors = np.array([x.mse for x in row.outputs])
    width = np.array([np.std(x.batch_means, ddof=1) / math.sqrt(len(x.batch_means)) for x in row.outputs])
    assert (np.abs(errors - predicted) < 5.5 * width + 1e-12).all()


def test_winners_and_comparisons_are_of_all_outputs_together():
    decided = run(width=None, decide="mechanism")
    cells = decided.winners()
    assert [(x.best.family, x.state) for x in cells] == [("optimal", "decided")] * 2
    best, other = decided.row(mechanism="optimal", adjacency="one_input"), decided.rows[0]
    compared = decided.compare(other, best)
    n = min(len(best.batch_means), len(other.batch_means))
    sums = [sum(x.batch_means[:n] for x in row.outputs).mean() for row in (other, best)]
    assert compared.mse_difference == pytest.approx(sums[0] - sums[1])


def test_tables_have_a_row_for_each_output_and_the_constant_of_each(monkeypatch):
    monkeypatch.setattr(table_layout, "WIDTH", 1000)  # room for all columns
    frame = found().to_pandas()
    assert frame["output"].tolist() == ["all", "0", "1"] * (len(found().points) + 1)
    white = frame[frame["mechanism"] == "constant"]["predicted_rmse"]
    # variances of first-order filters of an AR(1) of 4/3, and of white noise of 4
    slow = 0.1**2 / (1 - 0.81) * (4 / 3 * (1 + 0.9 * 0.5) / (1 - 0.9 * 0.5) + 4)
    quick = 0.5**2 / (1 - 0.25) * (4 / 3 * (1 + 0.25) / (1 - 0.25) + 4)
    np.testing.assert_allclose(white, np.sqrt([slow + quick, slow, quick]), rtol=1e-9)
    assert list(found().short().columns[:3]) == ["mechanism", "adjacency", "output"]
    lines = str(found()).splitlines()
    below = lines.index(next(x for x in lines if x.startswith(found().about()[:30])))
    assert below == 2 + 3 * (len(found().points) + 1)
    html = found()._repr_html_()
    heads = re.findall(r"<th[^>]*col[^>]*>([^<]*)<", html)
    assert heads[:3] == ["mechanism", "adjacency", "output"]
    assert {"lower bound rmse", "explained"} <= set(heads)
    assert not {"n streams", "stopped"} & set(heads)
    assert html.count("<tr>") == 1 + 3 * (len(found().points) + 1)


def test_one_output_of_several_inputs_has_no_column_of_outputs():
    alone = run({**GRID, "mechanism": "optimal", "adjacency": "one_input", "target": dp.total(2) * SLOW})
    assert "output" not in alone.table().columns
    assert len(alone.rows[0].outputs) == 1
    assert alone.rows[0].outputs[0].batch_means.tobytes() == alone.rows[0].batch_means.tobytes()


def test_values_of_several_streams_are_axes_of_lists_and_single_values():
    grid = ParameterGrid(
        [
            {
                "mechanism": ["lmmse", "block_sums"],
                "target": {"both": TARGET, "total": dp.total(2) * SLOW},
                "model": [MODELS, MODELS[::-1], ALIKE],
                "epsilon": [1, 2],
                "delta": 1e-3,
                "adjacency": "one_input",
                "max_change": [1, [1, 0.5]],
                "lag": [0, 1],
            },
            {"mechanism": "zero_forcing", "target": SLOW, "stream": MODELS[0], "epsilon": 1, "delta": 1e-3},
        ]
    )
    assert list(grid.axes["max_change"]) == [1.0, "1, 0.5"]
    models = [
        "model 1, of 2 independent streams",
        "model 2, of 2 independent streams",
        "model 3, of 2 streams together",
    ]
    assert list(grid.axes["model"])[:3] == models
    assert len([x for x in grid.cases if x.family == "block_sums"]) == 2 * 2 * 2 * 2 * 2  # not of the VectorARMA
    assert len([x for x in grid.cases if x.family == "lmmse"]) == 2 * 3 * 2 * 2 * 2
    assert grid.cases[-1].settings["target"] == "ba:0.1/1,-0.9"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"adjacency": None}, "adjacency must be given in the grid for a target of 2 inputs: 'one_input'"),
        ({"adjacency": "one"}, "adjacency must be 'each_input' or 'each_input_same_time' or 'one_input'"),
        ({"model": MODELS[:1]}, "model must be a sequence of 2 models, one for each input"),
        ({"stream": dp.VectorARMA([np.eye(3) / 2])}, "stream must be a sequence of 2 models.*3 channels"),
        ({"mechanism": "square_root"}, "mechanism must be one of optimal, zero_forcing.*for a FilterMatrix"),
        ({"mechanism": "block_sums", "lag": "smoother"}, "mechanism block_sums must have a point, got no lag"),
        ({"target": [TARGET, SLOW]}, "target must be of one stream or of several, all of a part of a grid"),
        ({"target": SLOW}, "adjacency must be left out"),
        ({"target": SLOW, "model": [MODELS]}, "model must be of one stream, as the target is"),
        ({"prefilter": "generl"}, "prefilter must be a filter or one of .*did you mean general"),
        ({"max_change": [[1, 2, 3], 1]}, "max_change must be one number, or one for each of 2 inputs, got 3"),
    ],
)
def test_what_does_not_fit_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        run({name: x for name, x in {**GRID, **change}.items() if x is not None})


def test_smoothers_are_points_of_a_lag_of_their_own(tmp_path):
    """Whatever the lag is that they wait, and not of block sums, which have none."""
    part = {**GRID, "adjacency": "one_input", "lag": [1, "smoother"]}
    grid = [
        {**part, "mechanism": ["lmmse", "block_sums"], "length": 2},
        {**part, "mechanism": "optimal", "model": ALIKE, "prefilter": "general"},
    ]
    result = run(grid, store=tmp_path / "store", width=0.1)
    smoothers = [x for x in result if x.settings["lag"] == "smoother"]
    assert [x.settings["mechanism"] for x in smoothers] == ["lmmse", "optimal"]
    for row in smoothers:
        assert row.lag in (8, 16)
        assert len(row.outputs) == 2
        low, high = row.interval
        assert low < row.predicted_rmse < high or abs(row.rmse / row.predicted_rmse - 1) < 0.05
        assert row.lower_bound_mse <= row.predicted_mse
        at_lag_1 = result.row(mechanism=row.settings["mechanism"], lag=1)
        assert row.predicted_mse < at_lag_1.predicted_mse
    assert every(run(grid, store=tmp_path / "store", width=0.1)) == every(result)
    table = result.to_pandas()
    assert set(table.loc[table["smoother"] == True, "mechanism"]) == {"lmmse", "optimal"}  # noqa: E712


def test_one_stream_takes_neither_an_adjacency_nor_what_is_for_several():
    one = {"mechanism": "lmmse", "target": SLOW, "model": MODELS[0], "epsilon": 1, "delta": 1e-3, "lag": 1}
    with pytest.raises(ValueError, match="adjacency must be left out"):
        run({**one, "adjacency": "one_input"})
    privacy = {name: x for name, x in one.items() if name not in ("epsilon", "delta")}
    with pytest.raises(ValueError, match="privacy must have no adjacency for one stream"):
        run({**privacy, "privacy": dp.Privacy(1, 1e-3, adjacency="one_input")})
    with pytest.raises(ValueError, match="prefilter must be of one stream"):
        run({**one, "prefilter": TARGET})


def test_a_privacy_may_be_given_whole():
    whole = {name: x for name, x in GRID.items() if name not in ("epsilon", "delta", "adjacency")}
    privacies = {x: dp.Privacy(1, 1e-3, adjacency=x) for x in GRID["adjacency"]}
    result = run({**whole, "privacy": privacies})
    assert [x.batch_means.tobytes() for x in result] == [x.batch_means.tobytes() for x in found()]
    with pytest.raises(ValueError, match="adjacency must be given"):
        run({**whole, "privacy": dp.Privacy(1, 1e-3)})


def test_a_design_that_fails_is_a_row_beside_others():
    both = run({**GRID, "delta": [0, 1e-3], "adjacency": "one_input", "mechanism": ["optimal", "block_sums"]})
    failed = [x for x in both if x.failed]
    assert [(x.family, x.settings["delta"]) for x in failed] == [("optimal", 0.0)]
    assert failed[0].outputs == ()
    assert "delta" in failed[0].error


def test_single_precision_is_as_near_as_its_name():
    coarse = run(dtype=np.float32)
    for x, y in zip(coarse, found(), strict=True):
        n = min(len(x.batch_means), len(y.batch_means))
        assert x.batch_means[:n].mean() == pytest.approx(y.batch_means[:n].mean(), rel=1e-3)
