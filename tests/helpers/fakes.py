"""A small mechanism with integer taps, noise that is noted down, a receiver with state; and what must hold of them."""

import hashlib
import json
import os
import sqlite3
import struct
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from dpfast.releases.integer.inputs import Inputs
from dpfast.releases.noise import NoiseOfLaws
from dpfast.releases.store.release_store import ReleaseStore
from dpfast.releases.stream import Stream

STREAMS, LAG = 2, 2
TAPS = np.array([3, -2, 5, 1, -4, 2, 7], np.int64)
MEMORY = len(TAPS) - 1
DECLARED = {"time_column": "when", "period_us": 1}
INPUTS = Inputs(0, 9, centre=4, n_streams=STREAMS)


def signal(first, count):
    """Values of the steps, some outside of the range."""
    t = np.arange(first, first + count)
    return np.stack([(7 * t * t + 3 * t) % 13, (5 * t * t * t + t) % 11]) - 1


def integers(first, count):
    return np.clip(signal(first, count), 0, 9) - 4


def filtered(x, taps=TAPS):
    """Each row through the taps, from zero."""
    return np.stack([np.convolve(row, taps)[: x.shape[1]] for row in x]) if x.size else x


class Noise:
    """Draws that are all different, each noted when it is taken."""

    def __init__(self, notes=None):
        self.notes, self.drawn, self.taken = notes, [], []

    def ready(self, n):
        while len(self.drawn) < n:
            self.drawn += [int.from_bytes(os.urandom(5), "little") for _ in range(16)]

    def take(self, n):
        assert n <= len(self.drawn), "not ready"
        taken, self.drawn = self.drawn[:n], self.drawn[n:]
        self.taken += taken
        if self.notes is not None:
            append(self.notes, taken)
        return np.array(taken, np.int64)


class Receiver:
    """y <- 3/4 y + v."""

    def __init__(self, n_streams=STREAMS):
        self.y, self.position = np.zeros(n_streams), 0

    def push(self, v, end=None):
        self.position += v.shape[1]
        result = np.empty(v.shape)
        for t in range(v.shape[1]):
            self.y = 0.75 * self.y + v[:, t]
            result[:, t] = self.y
        return result

    def state(self):
        return np.append(self.y, self.position).astype("<f8").tobytes()

    def restore(self, state):
        if len(state) != 8 * (len(self.y) + 1):
            raise ValueError("no state of this receiver")
        *self.y, position = np.frombuffer(state, "<f8").tolist()
        self.y, self.position = np.array(self.y), int(position)


class Guarantee:
    def __str__(self):
        return "Nothing is promised."

    def to_json(self):
        return "{}\n"


class Plan:
    """What a stream uses of an ExactMechanism."""

    def __init__(self, taps=TAPS, inputs=INPUTS, lag=LAG):
        self.taps, self.inputs, self.lag, self.memory = taps, inputs, lag, len(taps) - 1
        self.configuration = {"taps": taps.tolist(), "lag": lag}
        self.guarantee = Guarantee()

    def check_steps(self, end, *, whole=False):
        """It has no horizon."""

    per_step = 1

    def shaped(self, v):
        return v

    def needed(self, position):
        return min(position, self.memory)

    def n_draws(self, position, n, end=None):
        return (n,)

    def published_rows(self, n_streams):
        return n_streams

    def noise_rows(self, n_streams):
        return n_streams

    def privatize(self, history, x, noise, position=0, end=None):
        assert history.shape == (self.inputs.n_streams, self.needed(position))
        history = np.concatenate([np.zeros((len(x), self.memory - history.shape[1]), int), history], axis=1)
        return filtered(np.concatenate([history, x], axis=1), self.taps)[:, self.memory :] + noise

    def live(self, n_streams=None):
        return Receiver(n_streams or self.inputs.n_streams)


def beside(folder):
    """Where a store publishes, if nobody says where."""
    return folder.with_name(f"{folder.name}-published")


def stream_in(folder, published=None, *, noise=None, plan=None, adopt=False, declared=None):
    """What open_stream makes, of a mechanism that is not designed."""
    store = ReleaseStore.open(folder, published, adopt=adopt)
    try:
        if declared is not None:
            # entered with the first steps, neither before nor behind them
            assert (store.declaration is None) == (not store.releases())
            store.declare(declared)
        return Stream(store, plan or Plan(), NoiseOfLaws((noise or Noise(),)))
    except BaseException:
        store.abandon()
        raise


# --- a person who publishes, and remembers what was published --------------------------------------


def append(path, content):
    """A line that outlives the process, behind the last whole one: a kill may have cut one at the end of a page."""
    with Path(path).open("a+b") as file:
        file.seek(0)
        file.truncate(file.read().rfind(b"\n") + 1)
        file.write(json.dumps(content).encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())


def lines(path):
    path = Path(path)
    # a last line that was cut was not published
    return (
        [json.loads(x) for x in path.read_text().splitlines(keepends=True) if x.endswith("\n")] if path.exists() else []
    )


class Publisher:
    """Pushes the signal, in order, into the stream of a folder; what was returned goes into a file, then is public."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.log, self.notes = self.folder / "published.jsonl", self.folder / "noise.jsonl"

    def open(self):
        return stream_in(self.folder / "store", noise=Noise(self.notes), declared=DECLARED)

    def next(self):
        """The step behind those that are public."""
        return max((first + len(v[0]) for first, v, _ in lines(self.log)), default=0)

    def publish(self, result):
        append(self.log, [result.first, result.privatized.tolist(), result.estimate.tolist()])

    def push(self, stream, n):
        """The next n steps for the public; of those that the stream knows some are read, the last pushed again."""
        first, forgotten = self.next(), stream.position - MEMORY
        if first < forgotten:
            self.publish(stream.read(first, forgotten - first))
            n, first = n - (forgotten - first), forgotten
        self.publish(stream.push(signal(first, n), first=first))

    def finish(self, total):
        """Up to a number of steps, and the end."""
        with self.open() as stream:
            if stream.position <= total:
                self.push(stream, total - self.next())
            self.publish(stream.close())

    def check(self, total=None):
        """That nothing was lost, published twice or contradicted; behind `total` steps the inputs are zeros."""
        with self.open() as stream:
            position = stream.position
            _, v, estimate, _ = stream.read(0, position)
        x = integers(0, position)
        x[:, position if total is None else total :] = 0
        for first, published, estimates in lines(self.log):
            n = len(published[0])
            assert v[:, first : first + n].tolist() == published
            assert estimate[:, first : first + n].tolist() == estimates
        noise = (v - filtered(x)).ravel().tolist()
        assert len(set(noise)) == len(noise)
        assert set(noise) <= {sample for taken in lines(self.notes) for sample in taken}
        assert Receiver().push(v).tolist() == estimate.tolist()
        kept = [] if position != total and total is not None else range(max(0, position - MEMORY), position)
        check_files(self.folder / "store", list(kept))


def unpacked(content):
    """The integers of a row: the first byte says how many each of them takes."""
    width, rest = content[0], content[1:]
    return [int.from_bytes(rest[i : i + width], "little", signed=True) for i in range(0, len(rest), width)]


def check_files(folder, kept):
    """The inputs that are on the disk are those of these steps, and the witness is that of all that is stored."""
    with closing(sqlite3.connect(folder / "store.sqlite")) as connection:
        inputs = connection.execute("SELECT step, x FROM inputs ORDER BY step").fetchall()
        pushes = connection.execute("SELECT release, first, count, privatized FROM pushes ORDER BY id").fetchall()
        ((id,),) = connection.execute("SELECT id FROM meta")
    assert [(step, unpacked(x)) for step, x in inputs] == [(step, integers(step, 1).ravel().tolist()) for step in kept]
    chain = hashlib.sha256(id.encode()).digest()
    for release, first, count, v in pushes:
        numbers = unpacked(v)
        content = struct.pack(f"<qqq{len(numbers)}q", release, first, count, *numbers)
        chain = hashlib.sha256(chain + content).digest()
    said = SimpleNamespace(**json.loads((beside(folder) / "witness.json").read_text()))
    assert (said.store, said.position, said.sha256) == (id, len(pushes), chain.hex())
    assert said.steps == sum(count for _, _, count, _ in pushes)
