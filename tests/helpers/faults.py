"""Crashes: a process that is killed, or a call that is interrupted, at every point of what it does."""

import itertools
import os
import random
import signal
from pathlib import Path

from helpers import fakes

from dpfast.releases.arbiters import private_connection
from dpfast.releases.store import release_rows, release_store, witness

TOTAL = 15
# Each call of these is two points, before it and behind it. Statements of SQLite one by one, COMMIT among them.
CALLS = [
    (private_connection.PrivateConnection, "execute"),
    (private_connection.PrivateConnection, "executemany"),
    (private_connection.PrivateConnection, "close"),
    (os, "fsync"),
    (Path, "replace"),
    (Path, "hardlink_to"),
    (Path, "unlink"),
    (Path, "mkdir"),
    (release_rows.Records, "push"),
    (release_store.ReleaseStore, "append"),
    (witness.Witness, "write"),
    (fakes.Noise, "take"),
    (fakes.Plan, "privatize"),
    (fakes.Receiver, "push"),
]


def instrument(set_attribute, reach, calls=CALLS):
    """Call reach(name) before and behind each of some calls."""

    def wrapped(name, original):
        def call(*args, **options):
            reach(f"before {name}")
            result = original(*args, **options)
            reach(f"behind {name}")
            return result

        return call

    for owner, name in calls:
        set_attribute(owner, name, wrapped(name, getattr(owner, name)))


def scenario(publisher):
    """A short life: pushes, a pause, a chunk longer than the filter's memory, the end."""
    with publisher.open() as stream:
        publisher.push(stream, 1)
        publisher.push(stream, 4)
    with publisher.open() as stream:
        publisher.push(stream, 10)
        publisher.publish(stream.close())


def reaching(k, act, since=None):
    """A function that acts when it is called for the k-th time, or for the first time with a name.

    Where `since` names a point, calls count from that one on.
    """
    count, met, awaited = itertools.count(1), itertools.count(), {since} - {None}

    def reach(name):
        awaited.discard(name)
        if not awaited and k in (next(count), name) and next(met) == 0:
            act(name)

    return reach


def die(name):
    os.kill(os.getpid(), signal.SIGKILL)


def killed(folder, k):
    """In a process of its own: the scenario, killed at its k-th point."""
    instrument(setattr, reaching(k, die))
    scenario(fakes.Publisher(folder))


def publish_for_ever(folder, seed):
    """In a process of its own: pushes of any length until it is killed."""
    publisher, choice = fakes.Publisher(folder), random.Random(seed)
    while True:
        with publisher.open() as stream:
            for _ in range(choice.randrange(1, 20)):
                publisher.push(stream, choice.randrange(1, fakes.MEMORY))


# --- protocols that are wrong ---------------------------------------------------------------------


def publishing_before_the_commit(set_attribute):
    append = release_store.ReleaseStore.append

    def mutant(self, release, first, v, estimate, **options):
        fakes.append(self.path.parent / "published.jsonl", [first, v.tolist(), estimate.tolist()])
        append(self, release, first, v, estimate, **options)

    set_attribute(release_store.ReleaseStore, "append", mutant)


def no_witness(set_attribute):
    set_attribute(witness.Witness, "write", lambda self, attestation, *files: None)


def witness_before_the_commit(set_attribute):
    push = release_rows.Records.push

    def mutant(self, *args):
        attestation = push(self, *args)
        witness.Witness(fakes.beside(self._arbiter.place)).write(attestation)
        return attestation

    set_attribute(release_rows.Records, "push", mutant)


def inputs_kept(set_attribute):
    remember = release_rows.Records.remember
    set_attribute(
        release_rows.Records,
        "remember",
        lambda self, release, position, x, memory: remember(self, release, position, x, memory + 1),
    )


def inputs_deleted_too_early(set_attribute):
    remember = release_rows.Records.remember
    set_attribute(
        release_rows.Records,
        "remember",
        lambda self, release, position, x, memory: remember(self, release, position, x, max(memory - 1, 0)),
    )


def noise_drawn_again(set_attribute):
    from dpfast.releases.stream import Stream

    push = Stream.push

    def mutant(self, chunk, *, first=None):
        known = self.position - (self.position if first is None else first)
        result = push(self, chunk, first=first)
        result.privatized[:, :known] += 1
        return result

    set_attribute(Stream, "push", mutant)


def inputs_not_in_the_transaction(set_attribute):
    """What is in memory is stored behind the commit."""
    remember, late = release_rows.Records.remember, []
    set_attribute(release_rows.Records, "remember", lambda self, *args: late.append((self, args)))
    write = witness.Witness.write

    def mutant(self, attestation, *files):
        while late:
            rows, args = late.pop()
            remember(rows, *args)
        write(self, attestation, *files)

    set_attribute(witness.Witness, "write", mutant)


def declared_before_the_steps(set_attribute):
    """In a transaction of its own."""
    declare = release_store.ReleaseStore.declare

    def mutant(self, given, **options):
        declare(self, given, **options)
        if self._new is not None:
            with self._arbiter.transaction():
                self._records.declare(self._new)

    set_attribute(release_store.ReleaseStore, "declare", mutant)


def declared_behind_the_steps(set_attribute):
    """With the second of them."""
    begin = release_store.ReleaseStore.begin_live

    def mutant(self, *args, **options):
        later, self._new = self._new, None
        release = begin(self, *args, **options)
        self._new = later
        return release

    set_attribute(release_store.ReleaseStore, "begin_live", mutant)


MUTANTS = [
    declared_before_the_steps,
    declared_behind_the_steps,
    publishing_before_the_commit,
    no_witness,
    witness_before_the_commit,
    inputs_kept,
    inputs_deleted_too_early,
    noise_drawn_again,
    inputs_not_in_the_transaction,
]
