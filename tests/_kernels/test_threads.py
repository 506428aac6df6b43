import os
import signal
import threading
import time
import tracemalloc

import numpy as np
import pytest

from dpfast import Filter, MarkovChain, Privacy, decision_feedback, lmmse, monte_carlo
from dpfast._kernels import threads

MODEL = MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[0, 1])
TARGET, PREFILTER, PRIVACY = Filter([1], [1, -0.8]), Filter([1], [1, -0.5]), Privacy(1.0, 0.05)


def mechanisms():
    return [
        lmmse(TARGET, PRIVACY, MODEL, prefilter=PREFILTER),
        lmmse(TARGET, PRIVACY, MODEL, lag=3, prefilter=PREFILTER),
        decision_feedback(TARGET, PRIVACY, MODEL, prefilter=PREFILTER),
    ]


def running():
    return [t for t in threading.enumerate() if t.name.startswith("dpfast")]


@pytest.fixture
def interrupt():
    """Ctrl-C after a moment."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.3, signal.pthread_kill, (threading.main_thread().ident, signal.SIGINT))
    timer.start()
    yield
    timer.join()
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("n_threads", [None, 1, 2, 7])
@pytest.mark.parametrize(("n_items", "size"), [(0, 4), (1, 4), (4, 4), (10, 4), (10, 1)])
def test_ranges_cover_all_items_once(n_threads, n_items, size):
    seen = []
    threads.for_ranges(lambda first, count, _: seen.append((first, count)), n_items, size, n_threads)
    assert sorted(i for first, count in seen for i in range(first, first + count)) == list(range(n_items))
    assert all(count <= size for _, count in seen)
    assert not running()


@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_ranges_run_on_as_many_threads_as_asked(n_threads):
    together, names = threading.Barrier(n_threads, timeout=10), set()

    def task(first, count, check):
        together.wait()
        names.add(threading.current_thread().name)

    threads.for_ranges(task, n_threads, 1, n_threads)
    assert len(names) == n_threads


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


@pytest.mark.parametrize("n_threads", [1, 2])
def test_memory_does_not_grow_with_the_number_of_ranges(n_threads):
    tracemalloc.start()
    threads.for_ranges(lambda first, count, check: None, 640_000, 32, n_threads)  # 20,000 ranges
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 5e6


@pytest.mark.parametrize("n_threads", [1, 2, 4])
def test_an_error_propagates_and_stops_the_others(n_threads):
    started, begin = [], time.monotonic()

    def task(first, count, check):
        started.append(first)
        if first == 0:
            raise ZeroDivisionError("first")
        while time.monotonic() < begin + 20:
            check()
            time.sleep(0.001)

    with pytest.raises(ZeroDivisionError, match="first"):
        threads.for_ranges(task, 1000, 1, n_threads)
    assert time.monotonic() < begin + 10
    assert len(started) < 1000
    assert not running()


def test_ctrl_c_stops_all_threads_within_a_second(interrupt):
    stopped, begin = [], time.monotonic()

    def task(first, count, check):
        while time.monotonic() < begin + 20:
            try:
                check()
            except threads.CancelledError:
                stopped.append(first)
                raise
            time.sleep(0.001)

    with pytest.raises(KeyboardInterrupt):
        threads.for_ranges(task, 100, 1, 4)
    assert time.monotonic() < begin + 0.3 + 1
    assert sorted(stopped) == [0, 1, 2, 3]
    assert not running()


@pytest.mark.slow_nojit
@pytest.mark.parametrize("n_threads", [1, 2, 4])
def test_ctrl_c_ends_a_study_within_a_second(interrupt, n_threads):
    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        monte_carlo(mechanisms(), MODEL, n_streams=10_000, n_samples=10**7, seed=1, n_threads=n_threads)
    assert time.monotonic() < begin + 0.3 + 1
    assert not running()


def test_the_default_is_the_processors_that_this_process_may_use(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {1, 2, 5}, raising=False)
    assert threads.default_threads() == 3
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: 6)
    assert threads.default_threads() == 6
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert threads.default_threads() == 1
