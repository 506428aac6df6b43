import os

import numpy as np
import pytest

from dpfast._support import thread_count


def test_a_number_of_threads_is_at_least_one(monkeypatch):
    monkeypatch.setenv("DPFAST_NUM_THREADS", "nonsense")  # not looked at
    assert thread_count.n_threads(np.int64(3)) == 3
    for value in (0, -1, 1.5, "2", True):
        with pytest.raises(ValueError, match=r"^n_threads must be an integer, at least 1, got "):
            thread_count.n_threads(value)


def test_the_environment_says_how_many_threads_at_the_time_of_the_call(monkeypatch):
    for text, number in (("1", 1), ("12", 12), (" 3\n", 3)):
        monkeypatch.setenv("DPFAST_NUM_THREADS", text)
        assert thread_count.n_threads(None) == number


@pytest.mark.parametrize("text", ["", "0", "-2", "2.5", "1e3", "all", "9" * 5000])
def test_a_bad_number_of_threads_in_the_environment_is_named(monkeypatch, text):
    monkeypatch.setenv("DPFAST_NUM_THREADS", text)
    with pytest.raises(ValueError, match=r"DPFAST_NUM_THREADS must be an integer, at least 1, got "):
        thread_count.n_threads(None)


def test_by_default_threads_are_the_processors_that_this_process_may_use(monkeypatch):
    monkeypatch.delenv("DPFAST_NUM_THREADS", raising=False)
    monkeypatch.setattr(os, "process_cpu_count", lambda: 5, raising=False)
    assert thread_count.n_threads(None) == 5
    monkeypatch.delattr(os, "process_cpu_count")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {1, 2, 5}, raising=False)
    assert thread_count.n_threads(None) == 3
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: 6)
    assert thread_count.n_threads(None) == 6
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert thread_count.n_threads(None) == 1
