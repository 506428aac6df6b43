"""An engine that owes nothing but delivery: pieces of steps, in order, and again from before what it acknowledged."""

import contextlib
import functools
import os
import random
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from helpers import delivered, faults, forks, readers

from dpfast._support.atomic_files import replace_file
from dpfast._support.errors import ReleaseError

DEPTHS = (0, 1, 2, 5, 10, 20, 35, 50)
NEW = 2  # pieces that a life delivers beyond those of the lives before
SHARD = 0
REFUSED = 3  # exit code of a life that a store refused
# words of refusals behind which an engine tries again: of a store that another one has, or of a server that is lost
WAITS = ("in use", "another writer", "another process writes", "the connection was lost", "which was idle in a")


@dataclass(frozen=True)
class Delivery:
    """What is delivered to whom.

    Attributes
    ----------
    folder : Path
        Of what the engine, the store and the reader keep.
    arbiter : Arbiter
        Of helpers.arbiters.
    depth : int
        So many steps before what was acknowledged the engine begins after each restart.
    engine : str
        The name of what the engine itself keeps, where several deliver the same.
    """

    folder: Path
    arbiter: Any
    depth: int
    engine: str = "engine"

    @property
    def calls(self):
        """What a life is interrupted at, before it and behind it."""
        return (*self.arbiter.calls, (Delivery, "emit"), (Delivery, "acknowledge"))

    @property
    def shown(self):
        return self.folder / "shown.jsonl"

    def open(self):
        """What publishes."""
        return self.arbiter.open(self.folder, self.depth)

    def acknowledged(self):
        """The step behind those that the engine knows to be done."""
        file = self.folder / self.engine
        return int(file.read_text()) if file.exists() else 0

    def acknowledge(self, end):
        with contextlib.suppress(FileNotFoundError):  # one that has taken over has replaced the file meanwhile
            replace_file(self.folder / self.engine, str(end))

    def emit(self, first, v):
        readers.emit(self.shown, SHARD, first, v)

    def live(self):
        """Deliver what may not have been done, and some pieces more."""
        done = self.acknowledged()
        first, pieces = max(0, done - self.depth), 0
        with self.open() as stream:
            while pieces < NEW:
                result = stream.push(delivered.inputs(first, n := delivered.length(first)), first=first)
                self.emit(first, result.privatized)
                first, pieces = first + n, pieces + (first >= done)
                if first > done:
                    self.acknowledge(first)

    def check(self):
        """Compare what the reader saw with what is published, and that with what the filter makes of the inputs."""
        v = self.arbiter.read(self.folder)
        return readers.check(self.shown, {SHARD: v}, {SHARD: self.acknowledged()})


# --- what is done to it ---------------------------------------------------------------------------


def do_at(delivery, k, act, since=None):
    """In a process of its own: a life in which something happens at its k-th point, or the first one of a name.

    Where `since` names a point, points count from that one on. It notes where that was.
    """

    def note(name):
        with (delivery.folder / "points").open("a") as file:
            file.write(f"{name}\n")
        act()

    os.setpgid(0, 0)  # so that what it starts, such as a Java machine, can be killed along
    faults.instrument(setattr, faults.reaching(k, note, since), delivery.calls)
    try:
        delivery.live()
    except Exception as error:
        if not may_try_again(error):
            raise
        sys.exit(REFUSED)


def may_try_again(error):
    """Whether an error is, or an engine made it of, a refusal behind which one tries again, and no word of damage."""
    while error and not isinstance(error, ReleaseError):
        error = error.__cause__
    return any(words in str(error or "") for words in WAITS)


def signalling(number):
    """An act at a point: a signal to all of a life."""
    return functools.partial(os.killpg, 0, number)


def live_until(delivery, end):
    """In a process of its own: lives until an engine has all steps; others may be in the way, or take over."""
    while delivery.acknowledged() < end:
        try:
            delivery.live()
        except ReleaseError as error:
            if not may_try_again(error):
                raise
        time.sleep(random.random() * 0.05)


def stop(delivery, k):
    """A life that stands still at its k-th point; None where it came to its end before.

    One that is refused before, as where a busy machine lets a transaction wait for longer than it may, begins again.
    """
    for _ in range(20):
        process = forks.start(do_at, delivery, k, signalling(signal.SIGSTOP))
        _, status = os.waitpid(process.pid, os.WUNTRACED)
        if os.WIFSTOPPED(status):
            return process
        code = os.waitstatus_to_exitcode(status)
        if code != REFUSED:
            break
    assert code == 0
    return None


def go_on(process):
    """Let a life that stands still come to its end, whatever that is; its exit code."""
    os.killpg(process.pid, signal.SIGCONT)
    process.join()
    return process.exitcode


def run(delivery):
    """A life in a process of its own; its exit code."""
    return forks.run(delivery.live)


def kill(delivery, k, since=None):
    """Kill a life at its k-th point, counted as in do_at; return whether it came so far."""
    code = forks.run(do_at, delivery, k, signalling(signal.SIGKILL), since)
    assert code in (0, -signal.SIGKILL)
    return code != 0


def kill_everywhere(delivery, step=1, first=1):
    """Kill a life at each of its points, and the one behind it at the same; the third lives. How many were killed.

    All go on in one store and with one engine, so that each begins with what the one before has left.
    """
    kills, k = 0, first
    while kill(delivery, k):
        kills, k = kills + 1 + kill(delivery, k), k + step
        delivery.live()
    return kills


def kill_between(delivery, since, until):
    """Kill a life at each point from one of a name, or its first, up to one of another; how many were killed."""
    kills = 0
    while not kills or points(delivery)[-1] != until:
        kills += 1
        assert kill(delivery, kills, since)
    return kills


def kill_beginnings(folder, arbiter, depth, step=1):
    """Kill the first life of a new store at each of its points; yield each as it is, behind two more lives."""
    k = 1
    while True:
        delivery = Delivery(folder / str(k), arbiter, depth)
        delivery.folder.mkdir()
        was_killed = kill(delivery, k)
        for _ in range(2):
            delivery.live()
        if not was_killed:
            return
        yield delivery
        k += step


def points(delivery):
    """The names of the points at which something happened to lives, in their order."""
    file = delivery.folder / "points"
    return file.read_text().splitlines() if file.exists() else []
