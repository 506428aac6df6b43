"""An engine that owes nothing but delivery: pieces of steps, in order, and again from before what it acknowledged."""

import itertools
import os
import signal
from dataclasses import dataclass
from pathlib import Path

from helpers import delivered, faults, forks, readers

from dpfast._support.atomic_files import replace_file

DEPTHS = (0, 1, 2, 5, 10, 20, 35, 50)
NEW = 2  # pieces that a life delivers beyond those of the lives before
SHARD = 0


@dataclass(frozen=True)
class Delivery:
    """What is delivered to whom.

    Attributes
    ----------
    folder : Path
        Of what the engine, the store and the reader keep.
    arbiter : type
        Of helpers.arbiters.
    depth : int
        So many steps before what was acknowledged the engine begins after each restart.
    engine : str
        The name of what the engine itself keeps, where several deliver the same.
    """

    folder: Path
    arbiter: type
    depth: int
    engine: str = "engine"

    @property
    def shown(self):
        return self.folder / "shown.jsonl"

    def open(self):
        """What publishes."""
        return self.arbiter(self.folder).open(self.depth)

    def acknowledged(self):
        """The step behind those that the engine knows to be done."""
        file = self.folder / self.engine
        return int(file.read_text()) if file.exists() else 0

    def acknowledge(self, end):
        replace_file(self.folder / self.engine, str(end))

    def emit(self, first, v):
        readers.emit(self.shown, SHARD, first, v)

    def live(self):
        """Deliver what may not have been done, and some pieces more."""
        done = self.acknowledged()
        first, pieces = max(0, done - self.depth), 0
        with self.open() as stream:
            while pieces < NEW:
                result = stream.push(delivered.inputs(first, n := 1 + first * 7 % 4), first=first)
                self.emit(first, result.privatized)
                first, pieces = first + n, pieces + (first >= done)
                if first > done:
                    self.acknowledge(first)

    def check(self):
        """Compare what the reader saw with what is published, and that with what the filter makes of the inputs."""
        v, reader = self.arbiter(self.folder).read(), readers.Reader.of(self.shown)
        if v is None:
            return reader.counts({SHARD: self.acknowledged()})
        delivered.check_noise(v)
        counts = reader.counts({SHARD: v.shape[1]})
        if not counts.faults:
            assert [reader.value(SHARD, t) for t in range(v.shape[1])] == v.T.tolist()
        return counts


# --- what is done to it ---------------------------------------------------------------------------


def do_at(delivery, k, number):
    """In a process of its own: a life that gets a signal at its k-th point, and notes where that was."""

    def act(name):
        with (delivery.folder / "points").open("a") as file:
            file.write(f"{name}\n")
        os.kill(os.getpid(), number)

    calls = (*delivery.arbiter.calls, (Delivery, "emit"), (Delivery, "acknowledge"))
    faults.instrument(setattr, faults.reaching(k, act), calls)
    delivery.live()


def kill(delivery, k):
    """Kill a life at its k-th point; return whether it came so far."""
    code = forks.run(do_at, delivery, k, signal.SIGKILL)
    assert code in (0, -signal.SIGKILL)
    return code != 0


def kill_everywhere(delivery, step=1):
    """Kill a life at each of its points, and the one behind it at the same; the third lives. How many were killed.

    All go on in one store and with one engine, so that each begins with what the one before has left.
    """
    kills = 0
    for k in itertools.count(1, step):
        if not kill(delivery, k):
            return kills
        kills += 1 + kill(delivery, k)
        delivery.live()


def points(delivery):
    """The names of the points at which lives got a signal."""
    return {*(delivery.folder / "points").read_text().splitlines()}
