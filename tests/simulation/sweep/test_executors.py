"""Engines: the same results from all of them, whatever is killed; nothing is taken too early, and nothing is left."""

import concurrent.futures
import logging
import multiprocessing
import os
import signal
import subprocess
import sys
import time

import pytest
from helpers import blocks, clusters, jobs
from helpers.clusters import eventually, gone, processes
from helpers.interrupts import ctrl_c
from helpers.patience import PATIENCE

from dpfast._support.errors import EngineError, MissingExtraError
from dpfast.simulation.sweep import executors, worker_processes
from dpfast.simulation.sweep.executors import ExecutorEngine, Pool, ThisProcess
from dpfast.simulation.sweep.stream_blocks import run_task

KILL = getattr(signal, "SIGKILL", signal.SIGTERM)
TASKS = blocks.tasks(12, 4000)


@pytest.fixture(scope="module")
def expected():
    return sorted(digest(x, run_task(x)) for x in TASKS)


@pytest.fixture(scope="module")
def pool():
    with Pool(2) as pool:
        yield pool


@pytest.fixture
def threads():
    with concurrent.futures.ThreadPoolExecutor(2) as executor:
        yield ExecutorEngine(executor)


def digest(task, answer):
    return [x.number for x in task.blocks], [x.tobytes() for x in answer.means]


def results(engine, function=run_task, items=TASKS):
    return sorted(digest(*x) if function is run_task else x for x in engine.run(function, items))


def counted(items, taken):
    """Items, and how many have been taken."""
    for x in items:
        taken.append(x)
        yield x


# --- all ------------------------------------------------------------------------------------------


@pytest.fixture(params=["here", "threads", "pool"])
def engine(request):
    return ThisProcess(2) if request.param == "here" else request.getfixturevalue(request.param)


# Workers that are under way when a run ends are started anew: what also happens in tests of the pool alone waits.
LIGHT = ["here", "threads", pytest.param("pool", marks=pytest.mark.long)]


def test_all_give_the_same_bits(engine, expected):
    assert results(engine) == expected


def test_nothing_of_nothing(engine):
    assert results(engine, items=[]) == []


def test_items_are_taken_when_there_is_room(engine):
    taken, n_done = [], 0
    for _ in engine.run(jobs.double, counted(range(30), taken)):
        n_done += 1
        assert len(taken) <= n_done - 1 + engine.in_flight
    assert n_done == len(taken) == 30


def test_an_error_of_a_task_comes_through_and_the_next_run_is_unharmed(engine):
    with pytest.raises(ValueError, match="no 3"):
        list(engine.run(jobs.fail, [3]))
    assert results(engine, jobs.double, range(5)) == [(x, 2 * x) for x in range(5)]


@pytest.mark.parametrize("engine", LIGHT, indirect=True)
def test_an_error_of_the_items_comes_through(engine):
    def items():
        yield 1
        raise KeyError("no more")

    with pytest.raises(KeyError, match="no more"):
        list(engine.run(jobs.double, items()))
    assert results(engine, jobs.double, range(5)) == [(x, 2 * x) for x in range(5)]


@pytest.mark.parametrize("engine", LIGHT, indirect=True)
def test_a_run_may_be_left(engine):
    assert next(engine.run(jobs.double, iter(range(10**9)))) in [(x, 2 * x) for x in range(engine.in_flight)]
    assert results(engine, jobs.double, range(5)) == [(x, 2 * x) for x in range(5)]


@pytest.mark.parametrize("engine", ["here", "threads"], indirect=True)
def test_ctrl_c_ends_a_run_at_once(engine):
    check_ctrl_c(engine)


def check_ctrl_c(engine):
    list(engine.run(time.sleep, [0.0]))
    seconds = 0.7 if isinstance(engine, ExecutorEngine) else PATIENCE  # threads of others can only be waited for
    began = time.monotonic()
    with ctrl_c(0.2), pytest.raises(KeyboardInterrupt):
        list(engine.run(time.sleep, [seconds] * 4))
    assert time.monotonic() - began < PATIENCE


# --- the pool -------------------------------------------------------------------------------------


def at_work(pool):
    """Processes of a pool, when both have worked."""
    found = set()
    assert eventually(lambda: found.update(pid for _, pid in pool.run(jobs.where, [0.05] * 4)) or len(found) > 1)
    return found


def test_a_pool_has_so_many_processes_of_its_own_with_a_thread_each(pool):
    found = at_work(pool)
    assert found == {x.process.pid for x in pool._workers}
    assert len(found | {os.getpid()}) == 3
    for name in ("DPFAST_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        assert results(pool, jobs.environment, [name]) == [(name, "1")]


def test_the_environment_is_that_of_workers_only_while_they_start(monkeypatch):
    monkeypatch.delenv("DPFAST_NUM_THREADS", raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    before = dict(os.environ)
    with worker_processes._limiting_threads():
        assert (os.environ["DPFAST_NUM_THREADS"], os.environ["OMP_NUM_THREADS"]) == ("1", "1")
    assert os.environ == before


def test_what_a_run_leaves_does_not_come_out_of_the_next_one(pool):
    at_work(pool)
    next(pool.run(jobs.where, [0.0, 0.3]))
    assert results(pool, jobs.double, range(5)) == [(x, 2 * x) for x in range(5)]


def test_an_error_of_a_worker_says_where(pool):
    with pytest.raises(ValueError, match="no 3") as caught:
        list(pool.run(jobs.fail, [3]))
    (note,) = caught.value.__notes__
    assert "in a worker" in note
    assert "in fail" in note


def test_an_error_that_cannot_travel_comes_in_other_words(pool):
    with pytest.raises(RuntimeError, match="UnknownError: no 3"):
        list(pool.run(jobs.fail_strangely, [3]))


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_workers_do_not_hear_ctrl_c(pool):
    assert results(pool, jobs.interrupted, [1, 2]) == [(1, 1), (2, 2)]


def test_a_killed_worker_costs_its_task_only(pool, expected, caplog):
    found, before = [], at_work(pool)
    with caplog.at_level(logging.WARNING, "dpfast.studies"):
        for task, answer in pool.run(run_task, TASKS):
            if not found:
                os.kill(next(x.process.pid for x in pool._workers if x.job), KILL)
            found.append(digest(task, answer))
    assert sorted(found) == expected
    assert len(before & {x.process.pid for x in pool._workers}) == 1
    assert [x.getMessage().partition(" with")[0] for x in caplog.records] == ["a worker died"]


@pytest.mark.long
def test_a_task_that_kills_its_worker_is_repeated(pool, tmp_path):
    path = str(tmp_path / "once")
    assert results(pool, jobs.die_once, [path]) == [(path, path)]


def test_ctrl_c_ends_a_run_of_a_pool_at_once(pool):
    check_ctrl_c(pool)  # the last test of this pool, which starts its workers anew for the next run only


@pytest.mark.parametrize("repeats", [0, pytest.param(1, marks=pytest.mark.long)])
def test_a_task_that_kills_every_worker_ends_the_run_and_leaves_no_process(monkeypatch, repeats):
    assert executors._REPEATS == 3
    monkeypatch.setattr(executors, "_REPEATS", repeats)
    with Pool(1) as pool:
        pids = [pool._workers[0].process.pid]
        with pytest.raises(EngineError, match=rf"ended {repeats + 1} workers, the last with exit code .* is kept"):
            list(pool.run(jobs.die, [1]))
        pids += [x.process.pid for x in pool._workers]
        assert [gone(x) for x in pids] == [True, False]
    assert all(map(gone, pids))


def test_a_worker_that_cannot_start_is_said(monkeypatch):
    monkeypatch.setattr(worker_processes, "_serve", jobs.die)
    with Pool(1) as pool, pytest.raises(EngineError, match="could not start"):
        list(pool.run(jobs.double, [1]))


UNGUARDED = """
import sys
import dpfast as dp
grid = {"mechanism": "zero_forcing", "target": "exponential:0.9", "stream": "levels:0,1@0.5,0.5", "epsilon": 1}
sys.stdout.write("imported ")
dp.sweep(grid | {"delta": 1e-6}, seed=1, n_samples=50, width=None, budget=1, workers=2)
"""


def test_a_script_without_a_guard_is_told_in_one_sentence(tmp_path):
    """Each worker imports it, and would start workers: these end without a word."""
    script = tmp_path / "script.py"
    script.write_text(UNGUARDED)
    with processes() as start:
        parent = start(script, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        said, error = parent.communicate(timeout=PATIENCE)
    assert said.count("imported") >= 2  # here and there
    assert error.count("Traceback") == 1
    last = error.strip().splitlines()[-1]
    assert last.startswith(
        "dpfast._support.errors.EngineError: workers must be started under `if __name__ == '__main__':`"
    )
    assert "bootstrapping" not in error


@pytest.mark.long
def test_a_pool_at_work_leaves_no_process():
    pool = Pool(1)
    pids = [x.process.pid for x in pool._workers]
    next(pool.run(jobs.double, [1]))
    pool.close()
    assert all(map(gone, pids))


PARENT = """
import time
from dpfast.simulation.sweep.executors import Pool
if __name__ == "__main__":
    with Pool(1) as pool:
        list(pool.run(abs, [1]))
        print(pool._workers[0].process.pid, flush=True)
        list(pool.run(time.sleep, [600]))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("name", ["SIGKILL", pytest.param("SIGINT", marks=pytest.mark.long)])
def test_workers_end_with_their_parent_however_it_ends(name, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(PARENT)
    with processes() as start:
        parent = start(script, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        pid = int(parent.stdout.readline())
        assert not gone(pid)
        parent.send_signal(getattr(signal, name))
        _, error = parent.communicate(timeout=PATIENCE)
        assert eventually(lambda: gone(pid))
        assert error.count("Traceback") == (name == "SIGINT")  # the parent's own


# --- executors ------------------------------------------------------------------------------------


def test_other_peoples_processes(expected):
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, context) as executor:
        assert results(ExecutorEngine(executor)) == expected
        with pytest.raises(EngineError, match=r"lost its workers.* \(BrokenProcessPool\).* is kept.* a new executor"):
            list(ExecutorEngine(executor).run(jobs.die, [1, 2]))
        with pytest.raises(EngineError, match="lost its workers"):
            list(ExecutorEngine(executor).run(jobs.double, [1]))


class Executor(concurrent.futures.Executor):
    """Never does anything, but when it has so many futures."""

    def __init__(self, n=None, then=None):
        self.futures, self.n, self.then = [], n, then

    def submit(self, function, *items):
        self.futures.append(concurrent.futures.Future())
        if len(self.futures) == self.n:
            self.then(self)
        return self.futures[-1]


@pytest.mark.parametrize("attribute", ["_max_workers", "num_workers"])
def test_two_tasks_for_each_worker_are_in_flight(attribute):
    executor = Executor()
    setattr(executor, attribute, 7)
    assert ExecutorEngine(executor).in_flight == 14
    assert ExecutorEngine(executor, 3).in_flight == 3
    assert ExecutorEngine(executor, lambda: 5).in_flight == 5


def test_of_an_executor_that_says_nothing_it_is_two_for_each_processor(monkeypatch):
    for n, expected in (("1", 4), ("9", 18)):
        monkeypatch.setenv("DPFAST_NUM_THREADS", n)
        assert ExecutorEngine(Executor()).in_flight == expected


def test_what_is_under_way_is_cancelled_when_a_run_ends():
    executor = Executor()
    with ctrl_c(0.1), pytest.raises(KeyboardInterrupt), ExecutorEngine(executor, 3) as engine:
        list(engine.run(jobs.double, range(9)))
    assert [x.cancelled() for x in executor.futures] == [True] * 3


def test_a_cancelled_future_is_a_lost_worker():
    executor = Executor(3, lambda self: self.futures[1].cancel())
    with pytest.raises(EngineError, match="CancelledError"):
        list(ExecutorEngine(executor, 3).run(jobs.double, range(9)))


# --- Dask -----------------------------------------------------------------------------------------


@pytest.fixture(params=["here", pytest.param("processes", marks=pytest.mark.long)])
def address(request):
    """That of a scheduler with a worker, which hear from each other and from clients by TCP alone."""
    if request.param == "processes":
        with clusters.cluster(1) as (address, _):
            yield address
    else:
        distributed = pytest.importorskip("distributed")
        one = {"n_workers": 1, "threads_per_worker": 1, "processes": False, "protocol": "tcp://"}
        with distributed.LocalCluster(**one, host="127.0.0.1", dashboard_address=None) as cluster:
            yield cluster.scheduler_address


def test_a_cluster_gives_the_same_bits(address, expected):
    with executors.connect_dask(address) as engine:
        assert eventually(lambda: len(engine.executor._client.scheduler_info()["workers"]) == 1)
        assert engine.in_flight == 4
        assert results(engine) == expected
        with pytest.raises(ValueError, match="no 3"):
            list(engine.run(jobs.fail, [3]))


@pytest.mark.long
def test_a_cluster_gives_the_same_bits_when_a_worker_is_killed(expected):
    with clusters.cluster() as (address, machines), executors.connect_dask(address) as engine:
        assert eventually(lambda: len({pid for _, pid in engine.run(jobs.where, [0.05] * 9)}) == 3)
        assert engine.in_flight in (4, 6)
        found = []
        for x in engine.run(run_task, TASKS):
            if not found:
                machines[0].kill()
            found.append(digest(*x))
        assert sorted(found) == expected
        pids = {pid for _, pid in engine.run(jobs.where, [0.05] * 9)}
        assert pids <= {x.pid for x in machines[1:]}
        with pytest.raises(ValueError, match="no 3"):
            list(engine.run(jobs.fail, [3]))


def test_no_scheduler_is_said_in_a_line(monkeypatch):
    monkeypatch.setattr(executors, "_CONNECT", 0.5)
    said = r"no Dask scheduler answers at '127\.0\.0\.1:1' .*: start one with `dask"
    with pytest.raises(EngineError, match=said), executors.connect_dask("127.0.0.1:1"):
        pass


def test_no_distributed_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'dpfast\[dask\]'"), executors.connect_dask("127.0.0.1:1"):
        pass
