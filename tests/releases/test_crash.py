"""Kills and interruptions of a stream at every point: nothing is lost, published twice, or contradicted."""

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


def kills(folder, first=1, step=1):
    """The scenario, killed at one point after the other, until it lives to its end; how many there are."""
    for k in itertools.count(first, step):
        (folder / str(k)).mkdir(parents=True)
        process = run(faults.killed, folder / str(k), k)
        process.join()
        recovered(folder / str(k))
        if process.exitcode != -signal.SIGKILL:
            assert process.exitcode == 0
            return k - 1
    return None


def test_killed_at_some_points(folder):
    assert kills(folder, 5, 7) > 100


@pytest.mark.crash
def test_killed_at_every_point(folder):
    assert kills(folder) > 100


class Interrupt(KeyboardInterrupt):
    pass


def interrupt(name):
    raise Interrupt(name)


def interruptions(folder, monkeypatch, first=1, step=1):
    """The same with Ctrl-C, in this process."""
    for k in itertools.count(first, step):
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
    assert interruptions(folder, monkeypatch, 2, 3) > 100


@pytest.mark.crash
def test_interrupted_at_every_point(folder, monkeypatch):
    assert interruptions(folder, monkeypatch) > 100


@pytest.mark.parametrize("mutate", faults.MUTANTS, ids=lambda x: x.__name__)
def test_a_wrong_protocol_is_found(mutate, folder, monkeypatch):
    def interrupted_at_all():  # every seventh point first, as most faults show at many
        for first in range(1, 8):
            interruptions(folder, monkeypatch, first, 7)

    mutate(monkeypatch.setattr)
    with pytest.raises((AssertionError, ReleaseError)):
        interrupted_at_all()


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
    kill_at_random(folder, 20, seed=1)


@pytest.mark.crash
def test_killed_at_random_times_often(folder):
    kill_at_random(folder, 200, seed=2)
