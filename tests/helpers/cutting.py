"""Lives of stores for losses of power, right ones and wrong ones; recorded in a process of their own."""

import contextlib
import os
import stat
from pathlib import Path

import numpy as np
from helpers import fakes

from dpfast._support import sqlite
from dpfast.releases.arbiters import private_connection, private_files, sqlite_arbiter
from dpfast.simulation.sweep.sweep_store import SweepStore

TOTAL = 20
N_VALUES = 100
CONFIGURATION = {"dpfast": "0.1.0", "seed": "1", "n_samples": 1000}


class Anywhere(tuple):
    """A place that equals every other."""

    __slots__ = ()
    __hash__ = None

    def __eq__(self, other):
        return True

    def __ne__(self, other):
        return False


def in_one_place(set_attribute):
    """Stores may be looked at elsewhere, and are no copies."""
    set_attribute(sqlite_arbiter, "locate", lambda file: Anywhere(("1", "anywhere")))


# --- scenarios ------------------------------------------------------------------------------------


def release(folder):
    """Pushes, a pause, a chunk longer than the memory, a log that is emptied in between."""
    publisher = fakes.Publisher(folder)
    with publisher.open() as stream:
        publisher.push(stream, 1)
        publisher.push(stream, 4)
        stream._store.forget_deleted()
        publisher.push(stream, 2)
    with publisher.open() as stream:
        publisher.push(stream, 8)


def means_of(case, block):
    return np.random.default_rng([case, block]).random(16)


def sweep(folder):
    """Blocks of three cases at a time; after each closing those that must stay are noted."""
    for first in (0, 8, 16):
        with SweepStore(folder / "s.sqlite") as store:
            for block in range(first, first + 8):
                store.add(store.enter(CONFIGURATION), [(case, block, means_of(case, block)) for case in range(3)])
        fakes.append(folder / "closed.jsonl", first + 8)


def values(first, count):
    """Numbers that are found again wherever they lie."""
    return np.array([0x123456789A + 7 * t for t in range(first, first + count)])


def inputs(folder, *, close=True):
    plan = fakes.Plan(inputs=fakes.Inputs(0, 2**40, n_streams=1))
    for first in (0, N_VALUES // 2):
        with fakes.stream_in(folder / "store", plan=plan) as stream:
            for t in range(first, first + N_VALUES // 2, 2):
                stream.push(values(t, 2))
            if close and first:
                stream.close()


def suspended(folder):
    inputs(folder, close=False)


# --- protocols that are wrong ---------------------------------------------------------------------


def folders_not_synced(set_attribute):
    """`sync_folder` without its fsync."""
    fsync = os.fsync
    set_attribute(os, "fsync", lambda fd: None if stat.S_ISDIR(os.fstat(fd).st_mode) else fsync(fd))


def pragma(value):
    def mutate(set_attribute):
        execute = private_connection.PrivateConnection.execute

        def mutant(self, query, *args):
            return execute(self, query.replace("synchronous=FULL", f"synchronous={value}"), *args)

        set_attribute(private_connection.PrivateConnection, "execute", mutant)

    return mutate


def witness_not_synced(set_attribute):
    """A file that is replaced without fsync."""
    set_attribute(os, "fsync", lambda fd: None)


def sweeps_not_synced(set_attribute):
    keep = sqlite.Connection.keep_log

    def mutant(connection, *args, **options):
        keep(connection, *args, **options)
        connection.execute("PRAGMA synchronous=OFF")

    set_attribute(sqlite.Connection, "keep_log", mutant)


def log_cut_off(set_attribute):
    set_attribute(private_files, "overwrite", lambda path: None)


def zeros_not_synced(set_attribute):
    set_attribute(private_files, "overwrite", lambda path: path.open("r+b").write(bytes(path.stat().st_size)))


MUTANTS = {
    "release, folders not synced": (release, folders_not_synced),
    "release, log never synced": (release, pragma("OFF")),
    "release, log synced at checkpoints": (release, pragma("NORMAL")),
    "release, files not synced": (release, witness_not_synced),
    "sweep, never synced": (sweep, sweeps_not_synced),
}
FORGETFUL = {
    "inputs, log cut off": (inputs, log_cut_off),
    "inputs, zeros not synced": (inputs, zeros_not_synced),
}


@contextlib.contextmanager
def patched(mutate):
    before = []

    def set_attribute(owner, name, value):
        before.append((owner, name, getattr(owner, name)))
        setattr(owner, name, value)

    mutate(set_attribute)
    try:
        yield
    finally:
        for owner, name, value in reversed(before):
            setattr(owner, name, value)


def main(root):
    """Every scenario, in a folder that has its name."""
    right = {scenario.__name__: (scenario, lambda _: None) for scenario in (release, sweep, inputs, suspended)}
    in_one_place(setattr)
    for name, (scenario, mutate) in (right | MUTANTS | FORGETFUL).items():
        folder = Path(root, name)
        folder.mkdir()
        with patched(mutate):
            scenario(folder)
