"""Kills and interruptions of a stream at every point: nothing is lost, published twice, or contradicted."""

import functools
import gc
import itertools
import multiprocessing
import os
import random
import signal
import tempfile
import time
import warnings
from pathlib import Path

import pytest
from helpers import fakes, faults

from dpfast._support.errors import ReleaseError

DANGEROUS = {"push", "append", "write", "replace"}
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forks of this one")


@pytest.fixture
def folder(tmp_path):
    """In memory where the system can: what a process wrote outlives its death anywhere."""
    memory = Path("/dev/shm")
    if not memory.is_dir():
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=memory) as name:
        yield Path(name)


def run(target, *args):
    """In a fork, which has imported all; it shares no lock with the threads that others may have started here."""
    process = multiprocessing.get_context("fork").Process(target=target, args=args)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        process.start()
    return process


def recovered(folder):
    """Goes on to the end behind a crash; checks."""
    publisher = fakes.Publisher(folder)
    publisher.finish(faults.TOTAL)
    publisher.check(faults.TOTAL)


@functools.cache
def points():
    """The names of all points of the scenario."""
    names = []
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        faults.instrument(patch.setattr, names.append)
        faults.scenario(fakes.Publisher(name))
    return names


def few(step):
    """The most dangerous points, and behind them some of all.

    In a push they are from the end of its transaction to when it returns, where a wrong order of what is stored and
    said shows; the first one declares too.
    """
    names = points()
    pushes = [k for k, name in enumerate(names, 1) if name == "before append"]
    first, *_, last = [
        [k for k in range(a, names.index("behind append", a) + 2) if names[k - 1].partition(" ")[2] in DANGEROUS]
        for a in pushes
    ]
    dangerous = [*last, *first]
    return [*dangerous, *sorted({*range(5, len(names) + step + 1, step)} - {*dangerous})]


def kills(folder, at):
    """The scenario, killed at one point after the other, until it lives to its end; how many there are."""
    for k in at:
        (folder / str(k)).mkdir(parents=True)
        process = run(faults.killed, folder / str(k), k)
        process.join()
        recovered(folder / str(k))
        if process.exitcode != -signal.SIGKILL:
            assert process.exitcode == 0
            return k - 1
    return None


def test_killed_at_some_points(folder):
    assert kills(folder, few(97)) > 400


@pytest.mark.crash
def test_killed_at_every_point(folder):
    assert kills(folder, itertools.count(1)) > 400


class Interrupt(KeyboardInterrupt):
    pass


def interrupt(name):
    raise Interrupt(name)


def interruptions(folder, monkeypatch, at):
    """The same with Ctrl-C, in this process."""
    for k in at:
        (folder / str(k)).mkdir(parents=True)
        with monkeypatch.context() as patch:
            faults.instrument(patch.setattr, faults.reaching(k, interrupt))
            point = interrupted(faults.scenario, fakes.Publisher(folder / str(k)))
        if point == "before close":
            gc.collect()  # what nobody closed
        recovered(folder / str(k))
        if point is None:
            return k - 1
    return None


def interrupted(function, *args):
    """Where it was; None where it came to its end."""
    try:
        function(*args)
    except Interrupt as error:
        return str(error)
    return None


def test_interrupted_at_some_points(folder, monkeypatch):
    assert interruptions(folder, monkeypatch, few(19)) > 400


@pytest.mark.crash
def test_interrupted_at_every_point(folder, monkeypatch):
    assert interruptions(folder, monkeypatch, itertools.count(1)) > 400


@pytest.mark.parametrize("mutate", faults.MUTANTS, ids=lambda x: x.__name__)
def test_a_wrong_protocol_is_found(mutate, folder, monkeypatch):
    mutate(monkeypatch.setattr)
    with pytest.raises((AssertionError, ReleaseError)):
        interruptions(folder, monkeypatch, few(9))


def kill_at_random(folder, times, seed):
    publisher, choice = fakes.Publisher(folder), random.Random(seed)
    for i in range(times):
        before = publisher.next()
        process = run(faults.publish_for_ever, folder, seed + i)
        while publisher.next() < before + 3:
            time.sleep(0.001)
            assert process.is_alive()
        time.sleep(choice.random() * 0.03)
        process.kill()
        process.join()
        assert process.exitcode == -signal.SIGKILL
        publisher.check()


def test_killed_at_random_times(folder):
    kill_at_random(folder, 3, seed=1)


@pytest.mark.crash
def test_killed_at_random_times_often(folder):
    kill_at_random(folder, 200, seed=2)
