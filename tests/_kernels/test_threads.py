import contextlib
import gc
import math
import os
import random
import signal
import subprocess
import sys
import threading
import time
import tracemalloc
import weakref
from pathlib import Path

import numpy as np
import pytest
from helpers.interrupts import ctrl_c
from helpers.patience import PATIENCE
from hypothesis import example, given
from hypothesis import strategies as st

import dpfast
from dpfast import Filter, MarkovChain, Privacy, decision_feedback, lmmse, monte_carlo
from dpfast._kernels import chain_execute, threads

MODEL = MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[0, 1])
TARGET, PREFILTER, PRIVACY = Filter([1], [1, -0.8]), Filter([1], [1, -0.5]), Privacy(1.0, 0.05)


def mechanisms():
    return [
        lmmse(TARGET, PRIVACY, MODEL, prefilter=PREFILTER),
        lmmse(TARGET, PRIVACY, MODEL, lag=3, prefilter=PREFILTER),
        decision_feedback(TARGET, PRIVACY, MODEL, prefilter=PREFILTER),
    ]


def simulate(mechanism):
    return mechanism.simulate(np.zeros((8, 5)), seed=1)


UNSTOPPED = []  # ranges that somebody should have stopped


@pytest.fixture(autouse=True)
def no_thread_is_left():
    before = len(sys._current_frames())
    UNSTOPPED.clear()
    yield
    assert UNSTOPPED == []
    deadline = time.monotonic() + PATIENCE
    while len(sys._current_frames()) > before:
        assert time.monotonic() < deadline
        time.sleep(0.001)


class Watched:
    """A task that knows its threads, and the ranges that others than the caller are at."""

    def __init__(self, task):
        self.task, self.threads, self.inside = task, set(), []

    def __call__(self, first, count, check):
        self.threads.add(threading.get_ident())
        if in_the_callers_thread():  # Ctrl-C may come anywhere here
            self.task(first, count, check)
            return
        self.inside.append(first)
        try:
            self.task(first, count, check)
        finally:
            self.inside.remove(first)


def until_stopped(first, count, check):
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        check()
        time.sleep(0.001)
    UNSTOPPED.append(first)
    pytest.fail("nobody has stopped this thread")


def in_the_callers_thread():
    return threading.current_thread() is threading.main_thread()


# --- ranges ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_threads", [1, 2, 7])
@pytest.mark.parametrize(("n_items", "size"), [(0, 4), (1, 4), (4, 4), (10, 4), (10, 1)])
def test_ranges_cover_all_items_once(n_threads, n_items, size):
    seen = []
    threads.for_ranges(lambda first, count, _: seen.append((first, count)), n_items, size, n_threads)
    assert sorted(i for first, count in seen for i in range(first, first + count)) == list(range(n_items))
    assert all(count <= size for _, count in seen)


@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_ranges_run_on_as_many_threads_as_asked_the_callers_among_them(n_threads):
    together = threading.Barrier(n_threads, timeout=PATIENCE)
    task = Watched(lambda first, count, check: together.wait())
    threads.for_ranges(task, n_threads, 1, n_threads)
    assert len(task.threads) == n_threads
    assert threading.get_ident() in task.threads


@pytest.mark.parametrize(("n_items", "n_threads"), [(5, 1), (1, 4), (0, 4)])
def test_nothing_to_share_starts_no_thread(monkeypatch, n_items, n_threads):
    monkeypatch.delattr(threads._thread, "start_new_thread")
    ran = []
    threads.for_ranges(lambda first, count, check: ran.append(count), n_items, 1, n_threads)
    assert sum(ran) == n_items


def test_who_is_free_takes_the_next_range():
    done = []

    def task(first, count, check):
        deadline = time.monotonic() + PATIENCE
        while first == 0 and len(done) < 99:
            assert time.monotonic() < deadline
            time.sleep(0.001)
        done.append(first)

    threads.for_ranges(task, 100, 1, 2)
    assert done[-1] == 0
    assert sorted(done) == list(range(100))


@example(n_items=96, n_threads=2, largest=32)
@given(n_items=st.integers(0, 10_000), n_threads=st.integers(1, 100), largest=st.integers(1, 64))
def test_threads_get_equal_shares(n_items, n_threads, largest):
    size = threads.range_size(n_items, n_threads, largest)
    assert 1 <= size <= largest
    rounds = math.ceil(math.ceil(n_items / size) / n_threads)
    assert rounds * size < n_items / n_threads + rounds + 1


@pytest.mark.parametrize("n_threads", [1, 2])
def test_memory_does_not_grow_with_the_number_of_ranges(n_threads):
    tracemalloc.start()
    threads.for_ranges(lambda first, count, check: None, 640_000, 32, n_threads)  # 20,000 ranges
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1e5


def test_tasks_run_in_the_context_of_the_caller():
    together, seen = threading.Barrier(3, timeout=PATIENCE), []

    def task(first, count, check):
        together.wait()
        seen.append(np.geterr()["divide"])

    with np.errstate(divide="raise"):
        threads.for_ranges(task, 3, 1, 3)
    assert seen == ["raise"] * 3


@pytest.mark.parametrize("available", [0, 1])
def test_without_more_threads_those_there_do_all(monkeypatch, available):
    given_out, start = [], threads._thread.start_new_thread

    def limited(function, args):
        if len(given_out) == available:
            raise RuntimeError("can't start new thread")
        given_out.append(start(function, args))

    monkeypatch.setattr(threads._thread, "start_new_thread", limited)
    together = threading.Barrier(available + 1, timeout=PATIENCE)
    task, seen = Watched(lambda first, count, check: (seen.append(first), together.wait())), []
    threads.for_ranges(task, 6 * (available + 1), 1, 4)
    assert sorted(seen) == list(range(6 * (available + 1)))
    assert len(task.threads) == available + 1


# --- results --------------------------------------------------------------------------------------


@pytest.mark.slow_nojit
@pytest.mark.parametrize("n_threads", [2, 4])
def test_simulations_have_the_same_bits_on_any_number_of_threads(n_threads):
    u = MODEL.sample(100, 500, seed=1)
    for mechanism in mechanisms():
        one, several = (mechanism.simulate(u, seed=5, n_threads=n) for n in (1, n_threads))
        for x, y in zip(one[:2], several[:2], strict=True):
            assert np.array_equal(x, y)


@pytest.mark.slow_nojit
@pytest.mark.parametrize("n_threads", [2, 4, None])
def test_studies_have_the_same_bits_on_any_number_of_threads(n_threads):
    options = {"n_streams": 100, "n_samples": 3000, "seed": 5}
    one, several = (monte_carlo(mechanisms(), MODEL, **options, n_threads=n) for n in (1, n_threads))
    for x, y in zip(one, several, strict=True):
        assert np.array_equal(x.stream_mse, y.stream_mse)


@pytest.mark.parametrize("run", [lambda x: monte_carlo(x, MODEL, n_streams=8, n_samples=5, seed=1), simulate])
def test_the_environment_says_how_many_threads(monkeypatch, run):
    seen = []
    monkeypatch.setattr(chain_execute, "_WORTH_A_THREAD", 1)
    monkeypatch.setattr(threads, "for_ranges", lambda task, n_items, size, n_threads: seen.append(n_threads))
    for text in ("3", "1"):
        monkeypatch.setenv("DPFAST_NUM_THREADS", text)
        run(mechanisms()[1])
        assert max(seen) == int(text)  # small things on the way take one
        seen.clear()
    monkeypatch.setenv("DPFAST_NUM_THREADS", "many")
    with pytest.raises(ValueError, match="DPFAST_NUM_THREADS must be an integer, at least 1, got 'many'"):
        run(mechanisms()[0])


# --- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_threads", [1, 2, 4])
def test_an_error_propagates_and_stops_the_others(n_threads):
    started = []

    def task(first, count, check):
        started.append(first)
        if first == 0:
            raise ZeroDivisionError("first")
        until_stopped(first, count, check)

    task = Watched(task)
    with pytest.raises(ZeroDivisionError, match="first"):
        threads.for_ranges(task, 1000, 1, n_threads)
    assert task.inside == []
    assert len(started) < 1000


@pytest.mark.parametrize("error", [ZeroDivisionError, SystemExit, threads.CancelledError])
@pytest.mark.parametrize("of_the_caller", [True, False])
def test_the_first_error_is_raised_wherever_it_was(error, of_the_caller):
    together, mine = threading.Barrier(2, timeout=PATIENCE), error("mine")

    def task(first, count, check):
        together.wait()
        if in_the_callers_thread() == of_the_caller:
            raise mine
        until_stopped(first, count, check)

    with pytest.raises(error) as caught:
        threads.for_ranges(task, 2, 1, 2)
    assert caught.value is mine


def test_an_interrupt_goes_before_an_earlier_error():
    together = threading.Barrier(2, timeout=PATIENCE)

    def task(first, count, check):
        together.wait()
        if not in_the_callers_thread():
            raise ZeroDivisionError
        with contextlib.suppress(threads.CancelledError):
            until_stopped(first, count, check)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        threads.for_ranges(task, 2, 1, 2)


@pytest.mark.parametrize("n_threads", [1, 2])
def test_what_a_failed_task_holds_is_free_at_once(n_threads):
    def fail():
        x = np.zeros(3)

        def task(first, count, check):
            raise ZeroDivisionError(x[0])

        with contextlib.suppress(ZeroDivisionError):
            threads.for_ranges(task, 4, 1, n_threads)
        return weakref.ref(x)

    gc.disable()
    try:
        array = fail()
        deadline = time.monotonic() + PATIENCE  # for the frames of threads that are about to end
        while array() is not None and time.monotonic() < deadline:
            time.sleep(0.001)
        assert array() is None
    finally:
        gc.enable()


def test_a_thread_that_comes_late_does_nothing():
    seen = []
    ranges = threads._Ranges(lambda first, *_: seen.append(first), 3, 1)
    ranges.errors.append(ZeroDivisionError())
    ranges.join_in()
    ranges.wait()
    assert seen == []
    ranges.errors.clear()
    ranges.join_in()
    ranges.join_in()
    assert seen == [0, 1, 2]


# --- Ctrl-C ---------------------------------------------------------------------------------------


@pytest.fixture
def interrupt():
    """Ctrl-C after a moment."""
    with ctrl_c(0.3):
        yield


@pytest.mark.parametrize("n_threads", [1, 4])
def test_ctrl_c_stops_all_threads(n_threads):
    task = Watched(until_stopped)
    with ctrl_c(0.1, lambda: len(task.threads) == n_threads), pytest.raises(KeyboardInterrupt):
        threads.for_ranges(task, 100, 1, n_threads)
    assert task.inside == []
    assert len(task.threads) == n_threads


def test_ctrl_c_stops_the_last_range_while_the_caller_waits(interrupt):
    together = threading.Barrier(2, timeout=PATIENCE)

    def task(first, count, check):
        together.wait()
        if not in_the_callers_thread():
            until_stopped(first, count, check)

    task = Watched(task)
    with pytest.raises(KeyboardInterrupt):
        threads.for_ranges(task, 2, 1, 2)
    assert task.inside == []


def test_ctrl_c_while_threads_start_leaves_nobody_at_work(monkeypatch):
    start = threads._thread.start_new_thread

    def interrupted(function, args):
        start(function, args)
        while not task.inside:
            time.sleep(0.001)
        raise KeyboardInterrupt

    def lingering(first, count, check):
        with contextlib.suppress(threads.CancelledError):
            until_stopped(first, count, check)
        time.sleep(0.05)

    monkeypatch.setattr(threads._thread, "start_new_thread", interrupted)
    task = Watched(lingering)
    with pytest.raises(KeyboardInterrupt):
        threads.for_ranges(task, 10, 1, 3)
    assert task.inside == []


@pytest.fixture
def alarm():
    """SIGALRM interrupts like Ctrl-C; the list holds when it did."""
    seen = []

    def handler(number, frame):
        seen.append(time.monotonic())
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, handler)
    yield seen
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


needs_alarm = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="POSIX timers")


@needs_alarm
@pytest.mark.slow_nojit  # it does not take long, but Ctrl-C may leave the tracer of coverage waiting for its own lock
def test_ctrl_c_again_and_again_does_not_leave_the_others_behind(alarm):
    together = threading.Barrier(4, timeout=PATIENCE)

    def task(first, count, check):
        together.wait()
        if in_the_callers_thread():
            signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
            until_stopped(first, count, check)
        while len(alarm) < 20:  # longer than the caller would like
            time.sleep(0.001)
        signal.setitimer(signal.ITIMER_REAL, 0)
        until_stopped(first, count, check)

    task = Watched(task)
    with pytest.raises(KeyboardInterrupt):
        threads.for_ranges(task, 100, 1, 4)
    assert task.inside == []
    assert len(alarm) >= 20


@needs_alarm
@pytest.mark.slow_nojit
def test_ctrl_c_at_any_moment_leaves_nobody_at_work(alarm):
    """From the first instruction of a call to its last."""
    draw, task = random.Random(1), Watched(lambda first, count, check: time.sleep(20e-6))
    threads.for_ranges(task, 8, 1, 3)
    outcomes = set()
    for _ in range(400):
        try:
            signal.setitimer(signal.ITIMER_REAL, draw.uniform(1e-6, 800e-6))
            threads.for_ranges(task, 8, 1, 3)
            signal.setitimer(signal.ITIMER_REAL, 0)
            outcomes.add("finished")
        except KeyboardInterrupt:
            outcomes.add("interrupted")
        assert task.inside == []
    assert outcomes == {"finished", "interrupted"}


@pytest.mark.slow_nojit
@pytest.mark.parametrize(
    "n_threads", [pytest.param(1, marks=pytest.mark.long), 2, pytest.param(4, marks=pytest.mark.long)]
)
def test_ctrl_c_ends_a_study_that_would_take_minutes(interrupt, n_threads):
    begin = time.process_time()  # of all threads; not of whatever else the machine does
    with pytest.raises(KeyboardInterrupt):
        monte_carlo(mechanisms(), MODEL, n_streams=10_000, n_samples=10**7, seed=1, n_threads=n_threads)
    assert time.process_time() < begin + 5  # 0.3 s of each thread, on a quiet machine


# --- other threads and processes ------------------------------------------------------------------


def test_several_threads_at_once_with_calls_inside_tasks():
    sums = {}

    def caller(name):
        seen = []

        def task(first, count, check):
            threads.for_ranges(lambda i, n, _: seen.append(10 * first + i), 10, 3, 2)

        threads.for_ranges(task, 10, 1, 3)
        sums[name] = sorted(seen)

    callers = [threading.Thread(target=caller, args=(name,), daemon=True) for name in range(4)]
    for x in callers:
        x.start()
    for x in callers:
        x.join(10)
    expected = [10 * i + j for i in range(10) for j in (0, 3, 6, 9)]
    assert sums == dict.fromkeys(range(4), expected)


STUDY = """
import atexit, multiprocessing, os, signal, sys, threading
from concurrent.futures import ProcessPoolExecutor
import dpfast as dp

model = dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[0, 1])
mechanism = dp.zero_forcing(dp.Filter([1], [1, -0.8]), dp.Privacy(1.0, 0.05))

def study(_=None):
    signal.alarm(20)  # a process that waits for ever dies
    return dp.monte_carlo(mechanism, model, n_streams=16, n_samples=500, seed=1, n_threads=2)["LZF"].mse

def again_and_again():
    while True:
        study()

def forked():
    child = os.fork()
    if child == 0:
        os._exit(study() != expected)
    return os.waitpid(child, 0)[1]

if __name__ == "__main__":
    expected = study()
"""

PROCESSES = """
    busy = threading.Thread(target=again_and_again, daemon=True)
    busy.start()
    good = [not any(forked() for _ in range(4))]
    for kind in sys.argv[1:]:
        with multiprocessing.get_context(kind).Pool(1) as pool:
            good.append(set(pool.map(study, range(2))) == {expected})
    with ProcessPoolExecutor(1) as pool:
        good.append(set(pool.map(study, range(2))) == {expected})
    print(*good)

    def late():
        threading.main_thread().join()
        print(study() == expected)

    threading.Thread(target=late).start()
    atexit.register(lambda: print(study() == expected))
"""


@pytest.mark.slow_nojit  # what others run counts for no line
@pytest.mark.skipif(not hasattr(os, "fork"), reason="POSIX processes")
@pytest.mark.parametrize(
    "kinds", [pytest.param(["fork"], id="fork"), pytest.param(["fork", "spawn"], id="all", marks=pytest.mark.long)]
)
def test_processes_made_while_a_thread_is_inside_can_call_too_and_so_can_one_that_ends(tmp_path, kinds):
    """By os.fork, by multiprocessing with fork and spawn, and by a ProcessPoolExecutor.

    At its end in a thread that outlives the main one, and at exit, while a daemon thread is inside still.
    """
    path = tmp_path / "study.py"
    path.write_text(STUDY + PROCESSES)
    environment = os.environ | {"PYTHONPATH": str(Path(dpfast.__file__).parents[1])}
    command = [sys.executable, str(path), *kinds]
    run = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=True, env=environment)
    assert run.stdout.split() == ["True"] * (len(kinds) + 4)


@pytest.mark.parametrize("n_threads", [1, 2, 5])
@pytest.mark.parametrize("n_items", [1, 4, 17])
def test_work_is_shared_in_as_many_ranges_as_there_are_threads(n_items, n_threads):
    ranges = []
    threads.share_work(lambda first, count: ranges.append((first, count)), n_items, n_threads)
    assert sorted(i for first, count in ranges for i in range(first, first + count)) == list(range(n_items))
    assert len(ranges) <= n_threads
    assert max(count for _, count in ranges) == -(-n_items // n_threads)
