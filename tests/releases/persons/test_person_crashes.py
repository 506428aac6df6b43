"""Kills of a stream and of batches of persons: nobody is over the bounds, none of the steps is lost, keys are found."""

import functools
import itertools
import multiprocessing
import os
import random
import signal
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pytest
from helpers import faults
from helpers import person_bounds_twin as twin

import dpfast as dp
from dpfast._support.errors import ReleaseError
from dpfast.releases.arbiters import private_files
from dpfast.releases.noise import Noise
from dpfast.releases.persons.person_key import KeyFile
from dpfast.releases.store.release_store import ReleaseStore

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forks of this one")
M, B, K, SPAN, N_STEPS, N_STREAMS = 2, 2, 2, 4, 10, 3
CALLS = [
    *(call for call in faults.CALLS if "fakes" not in getattr(call[0], "__module__", "")),
    (KeyFile, "begin"),
    (KeyFile, "read"),
    (KeyFile, "prepare"),
    (KeyFile, "put"),
    (private_files, "overwrite"),
    (Noise, "take"),
]


@functools.cache
def planned():
    privacy = dp.Privacy(2, 1e-6, max_events=M, min_separation=B)
    inputs = dp.Inputs(0, 50, n_streams=N_STREAMS, streams_per_person=K)
    return dp.exact(dp.input_perturbation(dp.Filter([1]), privacy), inputs)


def log():
    rng = random.Random(5)
    return sorted(
        ((rng.randrange(N_STEPS), rng.randrange(N_STREAMS), rng.choice([*"abcde", None])) for _ in range(150)),
        key=lambda event: event[0],
    )


LOG = log()


def events(first, n):
    mine = [event for event in LOG if first <= event[0] < first + n]
    steps, streams, persons = ([event[i] for event in mine] for i in range(3))
    return dp.Events(step=[t - first for t in steps], stream=streams, person=persons, n_steps=n, n_streams=N_STREAMS)


def push_all(folder):
    """All steps, one or two at a time; what may not have been returned is pushed again."""
    with dp.open_stream(planned(), folder / "store", persons=dp.Persons(span=SPAN)) as stream:
        while (first := stream.position) < N_STEPS:
            stream.push(events(first, min(1 + first % 2, N_STEPS - first)), first=first)


def release_all(folder):
    """Batches of three steps, each under its number; those that are there are left."""
    for first in range(0, N_STEPS, 3):
        n = min(3, N_STEPS - first)
        with ReleaseStore.open(folder / "store") as store:
            done = bool(store.find_overlapping(first, n))
        if not done:
            dp.release(planned(), events(first, n), folder / "store", first=first, persons=dp.Persons(span=SPAN))


def published(folder):
    with ReleaseStore.open(folder / "store") as store:
        found = [
            store.read(x.id, x.first, store.length(x.id))[0] for x in sorted(store.releases(), key=lambda x: x.first)
        ]
    return (np.concatenate(found, axis=1) // int(planned().taps[0])).tolist()


EXPECTED = twin.inputs(twin.bound(LOG, M, B, K, SPAN), N_STREAMS, N_STEPS)


def silent(set_attribute):
    set_attribute(Noise, "take", lambda self, n: np.zeros(n, np.int64))


def killed(scenario, folder, k):
    silent(setattr)
    faults.instrument(setattr, faults.reaching(k, faults.die), CALLS)
    scenario(folder)


def run(target, *args):
    process = multiprocessing.get_context("fork").Process(target=target, args=args)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        process.start()
    process.join()
    return process.exitcode


@pytest.fixture
def folder(tmp_path):
    """In memory where the system can: what a process wrote outlives its death anywhere."""
    memory = Path("/dev/shm")
    if not memory.is_dir():
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=memory) as name:
        yield Path(name)


def kills(scenario, folder, monkeypatch, at):
    """The scenario, killed at points, and run again to its end: as if nothing had been. How many points there are."""
    planned()
    silent(monkeypatch.setattr)
    for k in at:
        place = folder / str(k)
        place.mkdir()
        code = run(killed, scenario, place, k)
        scenario(place)
        assert published(place) == EXPECTED, f"killed at point {k}"
        assert [x.name for x in place.iterdir() if "key" in x.name] == ["store.key"]
        if code != -signal.SIGKILL:
            assert code == 0
            return k - 1
    return None


SCENARIOS = [push_all, release_all]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda x: x.__name__)
def test_killed_at_some_points_nobody_is_over_the_bounds(scenario, folder, monkeypatch):
    kills(scenario, folder, monkeypatch, range(40, 700, 83))


@pytest.mark.crash
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda x: x.__name__)
def test_killed_at_every_point_nobody_is_over_the_bounds(scenario, folder, monkeypatch):
    assert kills(scenario, folder, monkeypatch, itertools.count(1)) > 300


def test_a_key_that_is_replaced_before_the_transaction_is_found(folder, monkeypatch):
    """The wrong order: what the store knows is lost by a kill between the two."""
    prepare, put = KeyFile.prepare, KeyFile.put

    def mutant(self):
        key = prepare(self)
        put(self)
        return key

    monkeypatch.setattr(KeyFile, "prepare", mutant)
    monkeypatch.setattr(KeyFile, "put", lambda self: None)
    with pytest.raises(ReleaseError, match="person_key"):
        kills(push_all, folder, monkeypatch, itertools.count(1, 7))


def begin_at_once(folder, name):
    silent(setattr)
    try:
        dp.release(planned(), events(0, 4), folder / "store", persons=dp.Persons(span=SPAN))
    except ReleaseError as error:
        (folder / name).write_text(str(error))
    else:
        (folder / name).write_text("published")


def test_of_several_first_runs_at_once_one_publishes(folder):
    planned()
    context = multiprocessing.get_context("fork")
    names = [f"run {i}" for i in range(4)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        processes = [context.Process(target=begin_at_once, args=(folder, name)) for name in names]
        for process in processes:
            process.start()
    for process in processes:
        process.join()
    texts = [(folder / name).read_text() for name in names]
    assert texts.count("published") == 1
    assert all(x == "published" or "in use" in x or "released already" in x for x in texts)
    assert published(folder) == [row[:4] for row in EXPECTED]
    assert [x.name for x in folder.iterdir() if "key" in x.name] == ["store.key"]
