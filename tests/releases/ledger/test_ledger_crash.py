"""Kills between every two steps of ledger and store: spent before it is published, once, and found again."""

import functools
import multiprocessing
import os
import signal
import tempfile
import warnings
from pathlib import Path

import pytest
from helpers import faults, releasing

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forks of this one")


@functools.cache
def points():
    """The names of all points of the scenario."""
    names = []
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        releasing.begin(Path(name))
        faults.instrument(patch.setattr, names.append, releasing.CALLS)
        releasing.scenario(Path(name))
    return names


def kill_at(k, break_protocol=lambda set_attribute: None):
    """Kill the scenario at a point, in memory where the system can, and check what is left."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as name:
        releasing.begin(Path(name))
        process = multiprocessing.get_context("fork").Process(
            target=releasing.killed, args=(Path(name), k, break_protocol)
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            process.start()
        process.join()
        assert process.exitcode in (-signal.SIGKILL, 0)
        with pytest.MonkeyPatch.context() as patch:
            break_protocol(patch.setattr)
            releasing.check(Path(name))
        return process.exitcode


def test_there_are_many_points():
    assert len(points()) >= 50
    assert "behind enter" in points()


@pytest.mark.parametrize("where", ["behind enter", "before enter_batch", "behind begin_live"])
def test_a_kill_between_the_ledger_and_the_store(where):
    assert kill_at(points().index(where) + 1) == -signal.SIGKILL


def kill_everywhere(break_protocol):
    for k in range(1, len(points()) + 1):
        kill_at(k, break_protocol)


@pytest.mark.crash
def test_a_kill_at_every_point():
    for k in range(1, len(points()) + 1):
        assert kill_at(k) == -signal.SIGKILL, k


@pytest.mark.crash
@pytest.mark.parametrize("mutant", releasing.MUTANTS, ids=lambda mutant: mutant.__name__)
def test_wrong_protocols_are_caught(mutant):
    with pytest.raises((AssertionError, ValueError)):
        kill_everywhere(mutant)
