"""Engines: the same results from all of them, whatever is killed; nothing is taken too early, and nothing is left."""

import concurrent.futures
import contextlib
import logging
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import threading
import time

import blocks
import pytest

from dpfast.errors import EngineError, MissingExtraError
from dpfast.studies import engines, workers
from dpfast.studies.block import run
from dpfast.studies.engines import Here, Pool, Remote

KILL = getattr(signal, "SIGKILL", signal.SIGTERM)
TASKS = blocks.tasks(12)


@pytest.fixture(scope="module")
def expected():
    return sorted(digest(x, run(x)) for x in TASKS)


@pytest.fixture(scope="module")
def pool():
    with Pool(2) as pool:
        yield pool


@pytest.fixture
def threads():
    with concurrent.futures.ThreadPoolExecutor(2) as executor:
        yield Remote(executor)


def digest(task, answer):
    return [x.number for x in task.blocks], [x.tobytes() for x in answer.means]


def results(engine, function=run, items=TASKS):
    return sorted(digest(*x) if function is run else x for x in engine.run(function, items))


def counted(items, taken):
    """Items, and how many have been taken."""
    for x in items:
        taken.append(x)
        yield x


def gone(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def eventually(condition, seconds=5.0):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    return condition()


# --- all ------------------------------------------------------------------------------------------


@pytest.fixture(params=["here", "threads", "pool"])
def engine(request):
    return Here(2) if request.param == "here" else request.getfixturevalue(request.param)


def test_all_give_the_same_bits(engine, expected):
    assert results(engine) == expected


def test_nothing_of_nothing(engine):
    assert results(engine, items=[]) == []


def test_items_are_taken_when_there_is_room(engine):
    taken, n_done = [], 0
    for _ in engine.run(blocks.double, counted(range(30), taken)):
        n_done += 1
        assert len(taken) <= n_done - 1 + engine.in_flight
    assert n_done == len(taken) == 30


def test_an_error_of_a_task_comes_through_and_the_next_run_is_unharmed(engine):
    with pytest.raises(ValueError, match="no 3"):
        list(engine.run(blocks.fail, [3]))
    assert results(engine, blocks.double, range(5)) == [(x, 2 * x) for x in range(5)]


def test_an_error_of_the_items_comes_through(engine):
    def items():
        yield 1
        raise KeyError("no more")

    with pytest.raises(KeyError, match="no more"):
        list(engine.run(blocks.double, items()))
    assert results(engine, blocks.double, range(5)) == [(x, 2 * x) for x in range(5)]


def test_a_run_may_be_left(engine):
    assert next(engine.run(blocks.double, iter(range(10**9)))) in [(x, 2 * x) for x in range(engine.in_flight)]
    assert results(engine, blocks.double, range(5)) == [(x, 2 * x) for x in range(5)]


def test_ctrl_c_ends_a_run_at_once(engine):
    list(engine.run(time.sleep, [0.0]))
    seconds = 0.5 if isinstance(engine, Remote) else 30  # threads of others can only be waited for
    timer, began = threading.Timer(0.2, blocks.press_ctrl_c), time.monotonic()
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        list(engine.run(time.sleep, [seconds] * 4))
    assert time.monotonic() - began < 0.5
    timer.join()


# --- the pool -------------------------------------------------------------------------------------


def test_a_pool_has_so_many_processes_of_its_own_with_a_thread_each(pool):
    found = {pid for _, pid in pool.run(blocks.where, [0.1] * 8)}
    assert len(found) == 2
    assert os.getpid() not in found
    for name in ("DPFAST_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        before = os.environ.get(name)
        assert results(pool, blocks.environment, [name]) == [(name, "1")]
        assert os.environ.get(name) == before


def test_an_error_of_a_worker_says_where(pool):
    with pytest.raises(ValueError, match="no 3") as caught:
        list(pool.run(blocks.fail, [3]))
    (note,) = caught.value.__notes__
    assert "in a worker" in note
    assert "in fail" in note


def test_an_error_that_cannot_travel_comes_in_other_words(pool):
    with pytest.raises(RuntimeError, match="UnknownError: no 3"):
        list(pool.run(blocks.fail_strangely, [3]))


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_workers_do_not_hear_ctrl_c(pool):
    assert results(pool, blocks.interrupted, [1, 2]) == [(1, 1), (2, 2)]


def test_a_killed_worker_costs_its_task_only(pool, expected, caplog):
    found, before = [], {x.process.pid for x in pool._workers}
    with caplog.at_level(logging.WARNING, "dpfast.studies"):
        for task, answer in pool.run(run, TASKS):
            if not found:
                os.kill(next(x.process.pid for x in pool._workers if x.job), KILL)
            found.append(digest(task, answer))
    assert sorted(found) == expected
    assert len(before & {x.process.pid for x in pool._workers}) == 1
    assert [x.getMessage().partition(" with")[0] for x in caplog.records] == ["a worker died"]


def test_a_task_that_kills_its_worker_is_repeated(pool, tmp_path):
    path = str(tmp_path / "once")
    assert results(pool, blocks.die_once, [path]) == [(path, path)]


def test_a_task_that_kills_every_worker_ends_the_run():
    with Pool(1) as pool, pytest.raises(EngineError, match=r"ended 4 workers, the last with exit code .* is kept"):
        list(pool.run(blocks.die, [1]))


def test_a_worker_that_cannot_start_is_said(monkeypatch):
    monkeypatch.setattr(workers, "_serve", blocks.die)
    with Pool(1) as pool, pytest.raises(EngineError, match="could not start"):
        list(pool.run(blocks.double, [1]))


def test_a_pool_leaves_no_process():
    pool = Pool(2)
    pids = [x.process.pid for x in pool._workers]
    next(pool.run(blocks.double, [1]))
    pool.close()
    assert all(map(gone, pids))


PARENT = """
import sys, time
import blocks
from dpfast.studies.engines import Pool
if __name__ == "__main__":
    with Pool(2) as pool:
        list(pool.run(blocks.double, range(4)))
        print(*[x.process.pid for x in pool._workers], flush=True)
        list(pool.run(time.sleep, [60] * 4))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("signal_number", [signal.SIGINT, signal.SIGTERM, KILL])
def test_workers_end_with_their_parent_however_it_ends(tmp_path, signal_number):
    script = tmp_path / "script.py"
    script.write_text(PARENT)
    command = {"args": [sys.executable, script], "env": os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}}
    with subprocess.Popen(**command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as parent:
        pids = list(map(int, parent.stdout.readline().split()))
        assert len(pids) == 2
        time.sleep(0.1)
        parent.send_signal(signal_number)
        error = parent.communicate(timeout=5)[1]
    assert all(eventually(lambda pid=pid: gone(pid)) for pid in pids)
    assert error.count("Traceback") == (signal_number == signal.SIGINT)  # the parent's own


# --- executors ------------------------------------------------------------------------------------


def test_other_peoples_processes(expected):
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, context) as executor:
        assert results(Remote(executor)) == expected
        with pytest.raises(EngineError, match=r"lost its workers \(BrokenProcessPool\).* is kept.* a new executor"):
            list(Remote(executor).run(blocks.die, [1, 2]))
        with pytest.raises(EngineError, match="lost its workers"):
            list(Remote(executor).run(blocks.double, [1]))


class Executor(concurrent.futures.Executor):
    """Never does anything."""

    def __init__(self):
        self.futures = []

    def submit(self, function, *items):
        self.futures.append(concurrent.futures.Future())
        return self.futures[-1]


@pytest.mark.parametrize("attribute", ["_max_workers", "num_workers"])
def test_two_tasks_for_each_worker_are_in_flight(attribute):
    executor = Executor()
    setattr(executor, attribute, 7)
    assert Remote(executor).in_flight == 14
    assert Remote(executor, 3).in_flight == 3
    assert Remote(executor, lambda: 5).in_flight == 5


def test_of_an_executor_that_says_nothing_it_is_two_for_each_processor(monkeypatch):
    for n, expected in (("1", 4), ("9", 18)):
        monkeypatch.setenv("DPFAST_NUM_THREADS", n)
        assert Remote(Executor()).in_flight == expected


def test_what_is_under_way_is_cancelled_when_a_run_ends():
    executor = Executor()
    timer = threading.Timer(0.1, blocks.press_ctrl_c)
    timer.start()
    with pytest.raises(KeyboardInterrupt), Remote(executor, 3) as engine:
        list(engine.run(blocks.double, range(9)))
    timer.join()
    assert [x.cancelled() for x in executor.futures] == [True] * 3


def test_a_cancelled_future_is_a_lost_worker():
    executor = Executor()
    timer = threading.Timer(0.1, lambda: executor.futures[1].cancel())
    timer.start()
    with pytest.raises(EngineError, match="CancelledError"):
        list(Remote(executor, 3).run(blocks.double, range(9)))
    timer.join()


# --- Dask -----------------------------------------------------------------------------------------


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@contextlib.contextmanager
def processes():
    """Starts processes that end here."""
    with contextlib.ExitStack() as stack:

        def start(*words):
            path = os.pathsep.join(sys.path)
            process = subprocess.Popen(
                [sys.executable, "-m", *words],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=os.environ | {"PYTHONPATH": path},
            )
            stack.callback(process.wait)
            stack.callback(process.kill)
            return process

        yield start


@pytest.fixture(scope="module")
def cluster():
    """A scheduler and three workers, each a process, as on three machines."""
    address = f"tcp://127.0.0.1:{free_port()}"
    with processes() as start:
        quiet = ["--no-dashboard", "--host", "127.0.0.1"]
        start("distributed.cli.dask_scheduler", *quiet, "--port", address.rpartition(":")[2])
        worker = ["distributed.cli.dask_worker", address, *quiet, "--no-nanny", "--nthreads", "1"]
        yield address, [start(*worker) for _ in range(3)]


def test_a_cluster_gives_the_same_bits_when_a_worker_is_killed(cluster, expected):
    address, machines = cluster
    with engines.dask(address) as engine:
        assert eventually(lambda: len({pid for _, pid in engine.run(blocks.where, [0.05] * 9)}) == 3)
        assert engine.in_flight in (4, 6)
        found, pids = [], set()
        for x in engine.run(run, TASKS):
            if not found:
                machines[0].kill()
            found.append(digest(*x))
        assert sorted(found) == expected
        pids = {pid for _, pid in engine.run(blocks.where, [0.05] * 9)}
        assert pids == {x.pid for x in machines[1:]}
        with pytest.raises(ValueError, match="no 3"):
            list(engine.run(blocks.fail, [3]))


def test_no_scheduler_is_said_in_a_line():
    said = r"no Dask scheduler answers at '127\.0\.0\.1:1' .*: start one with `dask"
    with pytest.raises(EngineError, match=said), engines.dask("127.0.0.1:1"):
        pass


def test_no_distributed_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'dpfast\[dask\]'"), engines.dask("127.0.0.1:1"):
        pass
