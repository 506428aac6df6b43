"""Sweeps: the numbers of monte_carlo, from any engine; what stops a case, what is another sweep, what is refused."""

import concurrent.futures
import itertools
import json
import multiprocessing
import os
import signal
import sqlite3
import tracemalloc

import numpy as np
import pytest
from helpers import jobs, sweeps
from helpers.clusters import cluster, eventually
from helpers.sweeps import COIN, GRID, OPTIONS, blocks, rows, run

import dpfast as dp
from dpfast._support.canonical_json import canonical, digest
from dpfast._support.errors import DataError, DesignError, EngineError
from dpfast.simulation.sweep import executors
from dpfast.simulation.sweep import stream_blocks as block
from dpfast.simulation.sweep import sweep as module
from dpfast.simulation.sweep.executors import Pool, ThisProcess
from dpfast.simulation.sweep.grid import ParameterGrid
from dpfast.simulation.sweep.stream_blocks import STREAMS
from dpfast.simulation.sweep.sweep import sweep
from dpfast.simulation.sweep.sweep_store import SweepStore

STREAM = {
    "levels": COIN,
    "chain": dp.MarkovChain([[0.8, 0.2], [0.4, 0.6]], [1.0, 3.0]),
    "Gaussian": dp.ARMA([1.0, 0.4], [1.0, -0.9, 0.5], mean=-2.0),
}
EPSILON = {"epsilon": 1, "delta": 1e-6}
WHOLE = {"width": None, "budget": 3 * STREAMS * 50}  # three blocks of each case


@pytest.fixture
def path(tmp_path):
    return tmp_path / "sweeps.sqlite"


def batch_means(stream_mse):
    """Of 8 streams each, added one after the other."""
    return sum(stream_mse.reshape(-1, 8).T) / 8


# --- numbers --------------------------------------------------------------------------------------


def test_other_noise_goes_through_stores_and_tasks_with_the_numbers_of_monte_carlo(path):
    """Designed in the sweep, kept in its store, simulated in blocks; without a delta, and over a horizon."""
    bit = dp.IndependentLevels([0, 1], [0.75, 0.25])
    designs = {"mechanism": ["block_sums", "randomized_response"], "length": [None, 3], "lag": 2}
    filters = {"target": "ba:0.5,0.5", "model": bit, "epsilon": 1} | designs
    target = "running-sum:50"
    horizon = {"target": target, "model": bit, "epsilon": 1, "mechanism": "block_sums", "noise": "geometric"}
    options = OPTIONS | WHOLE | {"burn_in": None, "store": path}
    found = sweep([filters, horizon], **options)
    F, privacy = dp.Filter([0.5, 0.5]), dp.Privacy(1)
    made = [
        (dp.block_sums(F, privacy, bit, lag=2), {"mechanism": "block_sums", "length": "best", "lag": 2}),
        (dp.block_sums(F, privacy, bit, lag=2, length=3, name="of 3"), {"mechanism": "block_sums", "length": 3}),
        (dp.randomized_response(F, privacy, bit, lag=2), {"mechanism": "randomized_response"}),
        (dp.block_sums(dp.running_sum(50), privacy, bit, noise="geometric", name="sum"), {"noise": "geometric"}),
    ]
    seeds = {"n_streams": 3 * STREAMS, "n_samples": 50, "seed": options["seed"]}
    studies = [dp.monte_carlo([x for x, _ in some], bit, **seeds) for some in (made[:3], made[3:])]
    for i, (mechanism, settings) in enumerate(made):
        expected = studies[i // 3][mechanism.name]
        row = next(x for x in found if all(x.settings.get(name) == value for name, value in settings.items()))
        assert row.rmse == pytest.approx(expected.rmse, rel=1e-12)
        assert row.predicted_rmse == pytest.approx(expected.predicted_rmse, rel=1e-9)
        assert row.lower_bound_rmse is None
    assert rows(sweep([filters, horizon], **(options | {"n_threads": None}), executor=ThisProcess(1))) == rows(found)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_numbers_are_those_of_monte_carlo(dtype):
    found = run({"mechanism": list(sweeps.mechanisms()), "stream": STREAM}, **WHOLE, burn_in=None, dtype=dtype)
    assert len(found) == len(STREAM) * len(sweeps.mechanisms())
    for name, model in STREAM.items():
        options = {"n_streams": 3 * STREAMS, "n_samples": 50, "seed": 3, "dtype": dtype}
        study = dp.monte_carlo(sweeps.mechanisms(), model, **options)
        for mechanism in sweeps.mechanisms():
            row = found.row(stream=name, mechanism=mechanism.name)
            assert row.batch_means.tolist() == batch_means(study[mechanism.name].stream_mse).tolist()
            assert row.n_streams == 3 * STREAMS
            assert row.mse == pytest.approx(study[mechanism.name].mse, rel=1e-12)
            assert row.predicted_mse == mechanism.predict(model)
            assert row.ideal_mse == mechanism.ideal_mse
            bounds = mechanism.model is None or mechanism.model.psd(0.3) == model.psd(0.3)
            assert row.lower_bound_mse == (mechanism.lower_bound_mse if bounds else None)
            assert (row.noise_std, row.lag, row.mechanism_name) == (
                mechanism.noise_std,
                mechanism.lag,
                mechanism.name,
            )


def test_designs_are_those_of_the_design_functions():
    lags = {"mechanism": ["lmmse", "zero_forcing"], "lag": [1, "smoother"]}
    found = run({**lags, "target": "ba:1/1,-0.5", "model": COIN, "stream": STREAM["Gaussian"], **EPSILON}, **WHOLE)
    target, privacy = dp.Filter([1], [1, -0.5]), dp.Privacy(1, 1e-6)
    by_hand = [dp.lmmse(target, privacy, COIN, lag=1), dp.lmmse(target, privacy, COIN, lag=None)]
    by_hand.append(dp.zero_forcing(target, privacy))
    study = dp.monte_carlo(by_hand, STREAM["Gaussian"], n_streams=3 * STREAMS, n_samples=50, seed=3, burn_in=8)
    assert [x.batch_means.tolist() for x in found] == [batch_means(x.stream_mse).tolist() for x in study]
    assert [x.predicted_mse for x in found] == [x.predict(STREAM["Gaussian"]) for x in by_hand]


def test_a_case_does_not_depend_on_the_others():
    together = run()
    for mechanism, epsilon in itertools.product(GRID["mechanism"], GRID["epsilon"]):
        (alone,) = run(GRID | {"mechanism": mechanism, "epsilon": epsilon})
        row = together.row(mechanism=mechanism, epsilon=epsilon)
        assert alone.batch_means.tobytes() == row.batch_means.tobytes()
    turned = run(GRID | {"mechanism": GRID["mechanism"][::-1], "epsilon": GRID["epsilon"][::-1]})
    for row in together:
        labels = {name: row.settings[name] for name in ("mechanism", "epsilon")}
        assert turned.row(**labels).batch_means.tobytes() == row.batch_means.tobytes()


def test_the_burn_in_is_that_of_the_slowest_case():
    slow, fast = dp.zero_forcing(dp.Filter([1], [1, -0.9]), sweeps.PRIVACY, name="slow"), sweeps.mechanisms()[0]
    given = {"mechanism": [slow], "stream": COIN}
    (row,) = run(given, burn_in=None, **WHOLE)
    burn_in = dp.monte_carlo(slow, COIN, n_streams=2, n_samples=50, seed=3).burn_in
    assert burn_in > 8
    (same,) = run(given, burn_in=burn_in, **WHOLE)
    assert row.batch_means.tobytes() == same.batch_means.tobytes()
    beside = run({"mechanism": [slow, fast], "stream": COIN}, burn_in=None, **WHOLE)  # another target, another group
    assert beside.row(mechanism="slow").batch_means.tobytes() == row.batch_means.tobytes()


# --- engines --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def expected():
    return rows(run())


@pytest.mark.parametrize(
    "where",
    [
        {"n_threads": 2},
        {"n_threads": None},
        {"executor": ThisProcess(1), "n_threads": None},
    ],
    ids=["two threads", "threads", "executor"],
)
def test_engines_give_the_same_bits(where, expected):
    assert rows(run(**where)) == expected


def test_executors_give_the_same_bits(expected):
    with concurrent.futures.ThreadPoolExecutor(2) as threads:
        for in_flight in (None, 1, 50):
            assert rows(run(executor=threads, in_flight=in_flight, n_threads=None)) == expected
    with pytest.raises(RuntimeError, match="after shutdown"):
        run(executor=threads, n_threads=None)


@pytest.mark.long
def test_processes_of_an_executor_give_the_same_bits(expected):
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, context) as processes:
        assert rows(run(executor=processes, n_threads=None)) == expected


class Killed:
    """A store that first does something else when results come for the n-th time."""

    def __init__(self, monkeypatch, n, harm):
        add, self.calls = SweepStore.add, 0

        def counted(store, *given):
            self.calls += 1
            if self.calls == n:
                harm()
            add(store, *given)

        monkeypatch.setattr(SweepStore, "add", counted)


@pytest.mark.crash
def test_a_cluster_that_loses_a_machine_gives_the_same_bits(monkeypatch, path):
    long = {"n_samples": 20_000, "width": None, "budget": 6 * 20_000 * STREAMS}
    with cluster(3) as (address, machines), executors.connect_dask(address) as executor:
        expected = rows(run(**long, store=path.with_name("whole")))
        assert eventually(lambda: len({pid for _, pid in executor.run(jobs.where, [0.05] * 9)}) == 3, 20)
        monkeypatch.setattr(block, "_SECONDS", 0.0)  # a block to a task
        killed = Killed(monkeypatch, 3, machines[0].kill)
        assert rows(run(executor=executor, n_threads=None, store=path, **long)) == expected
        assert machines[0].wait() < 0
        assert killed.calls > 6
        assert {pid for _, pid in executor.run(jobs.where, [0.05] * 9)} <= {x.pid for x in machines[1:]}
    assert blocks(path) == blocks(path.with_name("whole"))


def killed_pool(patch, pool):
    """Kills the worker of a pool of one, at the second results."""
    patch.setattr(block, "_SECONDS", 0.0)  # a block to a task: there is always another one under way
    return Killed(patch, 2, lambda: os.kill(pool._workers[0].process.pid, signal.SIGKILL))


@pytest.mark.long  # a pool gives the same bits over a horizon, and one that is killed costs a task: both are quick
def test_a_worker_that_dies_costs_nothing(monkeypatch, expected):
    with Pool(1) as pool:
        before, killed = pool._workers[0].process.pid, killed_pool(monkeypatch, pool)
        assert rows(run(executor=pool, n_threads=None)) == expected
        assert killed.calls > 3
        assert pool._workers[0].process.pid != before


@pytest.mark.long
def test_a_worker_that_is_lost_for_good_is_said(monkeypatch, path, expected):
    with Pool(1) as pool, monkeypatch.context() as patch:
        patch.setattr(executors, "_REPEATS", 0)
        killed_pool(patch, pool)
        with pytest.raises(EngineError, match="what is finished is kept"):
            run(executor=pool, n_threads=None, store=path)
    assert 0 < len(blocks(path)[0])
    assert rows(run(store=path)) == expected


# --- what is another sweep ------------------------------------------------------------------------

CHANGES = {
    "seed": {"seed": 4},
    "n_samples": {"n_samples": 51},
    "burn_in": {"burn_in": 9},
    "no burn_in": {"burn_in": None},
    "dtype": {"dtype": "float32"},
    "stream": {"grid": GRID | {"stream": "levels:0,1.0000000000000002@0.75,0.25"}},
    "target": {"grid": GRID | {"target": dp.Filter([0.25, 0.25, 0.25, np.nextafter(0.25, 1)])}},
    "epsilon": {"grid": GRID | {"epsilon": [0.5, np.nextafter(2, 3)]}},
    "delta": {"grid": GRID | {"delta": 1.0000000000000002e-6}},
    "fewer cases": {"grid": GRID | {"epsilon": 2}},
    "another order": {"grid": GRID | {"epsilon": [2, 0.5]}},
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_decides_the_numbers_makes_another_sweep(change, path):
    fresh = run(**CHANGES[change])
    before = run(store=path)
    assert fresh.digest != before.digest
    assert rows(run(**CHANGES[change], store=path)) == rows(fresh)  # nothing is mixed
    with SweepStore(path) as store:
        assert {x.configuration for x in store.sweeps()} == {before.digest, fresh.digest}
        assert all(store.configuration(x.id)["n_samples"] in (50, 51) for x in store.sweeps())
    assert rows(run(store=path)) == rows(before)


def test_another_version_is_another_sweep_with_designs_of_its_own(path, monkeypatch):
    before = run(store=path)
    monkeypatch.setattr("dpfast._support.version.__version__", "99.0")
    after = run(store=path)
    assert after.digest != before.digest
    with SweepStore(path) as store:
        assert [(x.dpfast, x.configuration) for x in store.sweeps()] == [
            (before.configuration["dpfast"], before.digest),
            ("99.0", after.digest),
        ]
    assert len(blocks(path)[1]) == 8  # designs


@pytest.mark.parametrize(
    "change",
    [
        {"width": 0.05},
        {"width": 0.02},
        {"width": None, "budget": 1e5},
        {"width": None, "decide": "mechanism", "budget": 2e5},
        {"decide": "mechanism"},
        {"budget": 1e4},
        {"confidence": 0.8},
        {"store": None},
    ],
    ids=str,
)
def test_what_decides_the_length_only_uses_the_same_blocks(change, path, monkeypatch):
    fresh = run(**change)
    before = run(store=path)
    (there, _), added = blocks(path), []
    add = SweepStore.add
    monkeypatch.setattr(
        SweepStore, "add", lambda store, sweep, some: (added.extend(x := list(some)), add(store, sweep, x))
    )
    again = run(**({"store": path} | change))
    assert again.digest == fresh.digest == before.digest == digest(canonical(before.configuration))
    assert rows(again) == rows(fresh)
    if "store" not in change:
        assert not {x[:2] for x in added} & {x[1:3] for x in there}  # none is simulated twice


def test_labels_and_threads_do_not_make_another_sweep():
    names = {"mechanism": {"in": "input_perturbation", "out": "output_perturbation"}, "epsilon": (0.5, np.float64(2.0))}
    assert run(GRID | names).digest == run(ParameterGrid(GRID), n_threads=2).digest


def test_a_generator_is_a_seed_that_is_told(path):
    first = run(seed=np.random.default_rng(1), store=path)
    assert isinstance(first.seed, int)
    assert rows(run(seed=first.seed, store=path)) == rows(first)
    assert first.seed != run(seed=np.random.default_rng(2)).seed


def test_a_numpy_integer_is_the_seed():
    assert run(seed=np.uint8(3)).digest == run().digest


# --- how long -------------------------------------------------------------------------------------


def test_each_case_ends_with_the_width_or_the_budget():
    found = run(budget=6 * STREAMS * 50, width=0.02)
    assert {x.stopped for x in found} == {"width", "budget"}
    for row in found:
        low, high = row.interval
        assert row.relative_width == (high - low) / row.rmse
        assert (row.stopped == "width") == (row.relative_width <= 0.02)
        assert row.n_streams <= 6 * STREAMS
        assert row.stopped == "width" or row.n_streams == 6 * STREAMS


def test_less_than_a_block_is_one_block():
    found = run(budget=1)
    assert {(x.n_streams, x.stopped) for x in found} == {(STREAMS, "budget")}


def test_without_width_and_decision_it_is_the_budget():
    found = run(**WHOLE)
    assert {(x.n_streams, x.stopped) for x in found} == {(3 * STREAMS, "budget")}


def test_the_best_is_decided_long_before_the_budget():
    grid = GRID | {"mechanism": ["zero_forcing", "input_perturbation"]}
    found = run(grid, width=None, decide="mechanism", budget=1e7)
    assert {x.stopped for x in found} == {"decided"}
    assert {x.n_streams for x in found} < {STREAMS * 2**k for k in range(5)}
    assert [(x.best.family, x.state) for x in found.winners()] == [("zero_forcing", "decided")] * 2


def test_the_best_of_several_axes_together():
    found = run(width=None, decide=["mechanism", "epsilon"], budget=2e5)
    (cell,) = found.winners()
    assert (dict(cell.labels), len(cell.rows), cell.best.settings["epsilon"]) == ({}, 4, 2)
    assert {x.n_streams for x in found if x.settings["epsilon"] == 0.5} < {STREAMS * 2**k for k in range(3)}


def test_equal_mechanisms_are_tied_at_once():
    twin = dp.zero_forcing(sweeps.TARGET, sweeps.PRIVACY, name="twin")
    grid = {"mechanism": [sweeps.mechanisms()[0], twin], "stream": COIN}
    found = run(grid, width=None, decide="mechanism")
    assert [(x.n_streams, x.stopped) for x in found] == [(STREAMS, "decided")] * 2
    assert [x.state for x in found.winners()] == ["tie"]


# --- designs that fail ----------------------------------------------------------------------------

WITHOUT_LEVELS = {
    "mechanism": ["input_perturbation", "decision_feedback"],
    "target": "moving-average:4",
    "model": {"coin": COIN, "Gaussian": dp.ARMA([1], [1, -0.5])},
    "stream": COIN,
    "lag": 1,
    **EPSILON,
}


SIMPLE = {"mechanism": "input_perturbation"}


def test_failed_designs_are_rows_beside_the_others(path, caplog):
    found = run(WITHOUT_LEVELS, store=path)
    failed = [x for x in found if x.failed]
    assert [(x.family, x.settings["model"]) for x in failed] == [("decision_feedback", "Gaussian")]
    (row,) = failed
    assert "levels" in row.error
    assert (row.stopped, row.n_streams, row.lag, row.predicted_mse, row.rmse != row.rmse) == (
        "failed",
        0,
        None,
        None,
        True,
    )
    assert all(x.stopped == "width" for x in found if not x.failed)
    assert "no design for mechanism decision_feedback, " in caplog.text
    assert rows(run(WITHOUT_LEVELS, store=path)) == rows(found)  # kept with its error
    alone = run({name: x for name, x in WITHOUT_LEVELS.items() if name not in ("model", "lag")} | SIMPLE)
    assert (
        alone.rows[0].batch_means.tobytes()
        == found.row(mechanism="input_perturbation", model="coin").batch_means.tobytes()
    )


def test_a_decision_is_among_the_designs_there_are():
    found = run(WITHOUT_LEVELS, decide="mechanism")
    assert {x.labels["model"]: len(x.rows) for x in found.winners()} == {"coin": 2, "Gaussian": 1}
    assert {x.state for x in found.winners()} == {"decided"}


def test_no_design_at_all_is_an_error():
    with pytest.raises(DesignError, match=r"no case of the grid has a design; the first: .*levels"):
        run(WITHOUT_LEVELS | {"mechanism": "decision_feedback", "model": dp.ARMA([1], [1, -0.5])})


def test_single_precision_that_changes_an_error_is_refused():
    slow = {"mechanism": "zero_forcing", "target": "exponential:0.9999", "stream": dp.ARMA([1], mean=1e6)}
    with pytest.raises(ValueError, match="dtype must be float64 here"):
        run(slow | EPSILON, dtype=np.float32)


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"seed": -1}, "seed must be an integer, at least 0, or a generator of .*, got -1"),
        ({"seed": None}, "seed must be an integer"),
        ({"seed": 1.5}, "seed must be an integer"),
        ({"n_samples": 0}, "n_samples must be an integer, at least 1"),
        ({"burn_in": -1}, "burn_in must be an integer, at least 0"),
        ({"width": 0}, "width must be a finite number above 0, got 0"),
        ({"width": "narrow"}, "width must be"),
        ({"confidence": 1}, "confidence must be a number strictly between 0 and 1, got 1"),
        ({"budget": 0}, r"budget must be a number strictly between 0 and 1e\+15, got 0"),
        ({"budget": 1e30}, r"budget must be a number strictly between 0 and 1e\+15"),
        ({"budget": float("inf")}, r"budget must be a number strictly between 0 and 1e\+15"),
        ({"dtype": "int"}, "dtype must be"),
        ({"decide": "delta"}, "decide must be one of 'mechanism', 'stream', 'epsilon', got 'delta'"),
        ({"decide": ["mechanism", "stream"]}, "decide must be of axes along which stream and target stay the same"),
        ({"decide": []}, "decide must be an axis of the grid, or several, got"),
        ({"decide": "stream"}, "decide must be of axes along which stream and target stay the same, got stream:"),
        ({"workers": 0, "n_threads": None}, "workers must be an integer, at least 1, got 0"),
        ({"workers": 1}, "n_threads must be left out with workers or an executor"),
        ({"workers": 1, "executor": ThisProcess(1), "n_threads": None}, "workers and executor must not both be given"),
        ({"in_flight": 3}, "in_flight must be left out without an executor"),
        ({"in_flight": 3, "executor": ThisProcess(1), "n_threads": None}, "in_flight must be left out"),
        ({"executor": 3, "n_threads": None}, "executor must be a concurrent.futures.Executor, got 3"),
        ({"n_threads": 0}, "n_threads must be an integer, at least 1"),
        ({"store": 3}, "store must be a path"),
    ],
    ids=lambda x: ", ".join(x) if isinstance(x, dict) else None,  # no addresses: processes must agree on names
)
def test_arguments_are_checked(options, said):
    streams = GRID | {"stream": {"fair": "levels:0,1@0.5,0.5", "unfair": "levels:0,1@0.75,0.25"}}
    with pytest.raises(ValueError, match=said):
        run(streams, **options)


def test_stores_that_cannot_be_used_are_refused(tmp_path):
    with pytest.raises(DataError, match="Give the path of a file in a folder that is there"):
        run(store=tmp_path / "none" / "sweeps.sqlite")
    with pytest.raises(DataError, match="Give the path of a file"):
        run(store=tmp_path)
    other = tmp_path / "other"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE t (x)")
    connection.close()
    with pytest.raises(DataError, match="got another database"):
        run(store=other)


def test_a_block_that_was_changed_is_never_used(path):
    run(store=path)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE blocks SET means = zeroblob(128) WHERE block = 1 AND case_number = 0")
    connection.close()
    with pytest.raises(DataError, match=r"is damaged.*block 1 of case 0"):
        run(store=path)


# --- size -----------------------------------------------------------------------------------------


def test_memory_does_not_grow_with_the_samples(path):
    grid = GRID | {"mechanism": "input_perturbation", "epsilon": 2}

    def most(n_samples):
        tracemalloc.start()
        run(grid, n_samples=n_samples, width=None, budget=20 * n_samples * STREAMS)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak

    most(10)
    assert most(4000) < most(100) + 2e5


def test_progress_is_told_from_what_is_there_already(path, monkeypatch):
    told = []
    monkeypatch.setattr(module.Progress, "report_samples", lambda _, *state: told.append(state))
    monkeypatch.setattr(module.Progress, "report_stage", lambda _, *stage: told.append(stage))
    found = run(store=path)
    samples = sum(x.n_streams for x in found) * 50
    assert told[0] == (1, 4, 4 * STREAMS * 50)
    assert told[1] == (0, 4 * STREAMS * 50, 0, None)
    assert told[-1] == (samples, samples, 4, max(x.relative_width for x in found))
    states = [x for x in told if len(x) == 4]
    assert all(0 <= done <= expected for done, expected, _, _ in states)
    assert [x[0] for x in states] == sorted(x[0] for x in states)
    told.clear()
    run(store=path)
    assert told[0] == (4 * STREAMS * 50, 4 * STREAMS * 50, 0, None)  # no stage: nothing to do
    assert all(len(x) == 4 for x in told)
    assert told[-1] == (samples, samples, 4, max(x.relative_width for x in found))


def test_the_configuration_is_json(path):
    found = run(store=path)
    assert json.loads(json.dumps(found.configuration)) == found.configuration
    assert sweep(GRID, **OPTIONS).configuration == found.configuration
