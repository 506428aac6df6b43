"""A reader who keeps every value that he ever sees, and what must hold of them."""

import errno
import json
import os
from pathlib import Path
from typing import NamedTuple

from helpers import delivered


def emit(path, shard, first, v):
    """Show a reader values (streams, n) of a shard's steps; what was shown cannot be taken back.

    Each step is a line that begins with its end, so that one which a kill cuts off spoils no other.
    """
    lines = [json.dumps([shard, first + i, column]) for i, column in enumerate(v.T.tolist())]
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        content = "".join(f"\n{line}" for line in lines).encode()
        if os.write(descriptor, content) != len(content):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
    finally:
        os.close(descriptor)


class Counts(NamedTuple):
    """Of all that a reader saw.

    Attributes
    ----------
    steps : int
        Steps of all shards that were published, by their stores.
    seen : int
        Sightings of steps: more than there are steps where some were shown again.
    twice : int
        Steps that were seen with two values or more.
    lost : int
        Steps that were published and never seen.
    disordered : int
        Steps that were seen for the first time before all steps before them were.
    """

    steps: int
    seen: int
    twice: int
    lost: int
    disordered: int

    @property
    def faults(self):
        return self.twice + self.lost + self.disordered

    @classmethod
    def sum(cls, counts):
        """Of several readers."""
        return cls(*map(sum, zip(*counts, strict=True)))


class Reader:
    """What was seen: the values of each (shard, step), and when it was seen first."""

    def __init__(self):
        self.values, self.seen, self.disordered = {}, 0, 0

    def see(self, shard, step, v):
        steps = self.values.setdefault(shard, {})
        if step not in steps:
            self.disordered += step != len(steps)
        steps.setdefault(step, set()).add(tuple(v))
        self.seen += 1

    @classmethod
    def of(cls, path):
        reader = cls()
        for line in Path(path).read_text().splitlines() if Path(path).exists() else ():
            try:
                shard, step, v = json.loads(line)
            except ValueError:  # cut off by a kill, or the end of the line before
                continue
            reader.see(shard, step, v)
        return reader

    def value(self, shard, step):
        """The only value that was seen of a step."""
        (value,) = self.values[shard][step]
        return list(value)

    def counts(self, published):
        """Compare with how many steps of each shard were published."""
        for shard, steps in self.values.items():
            assert max(steps) < published.get(shard, 0), (
                f"shard {shard} shows step {max(steps)}, which is not published"
            )
        return Counts(
            steps=sum(published.values()),
            seen=self.seen,
            twice=sum(len(v) > 1 for steps in self.values.values() for v in steps.values()),
            lost=sum(n - len(self.values.get(shard, ())) for shard, n in published.items()),
            disordered=self.disordered,
        )


def check(shown, published, done):
    """Compare what a reader saw with v of what is published, and that with what the filter makes of the inputs.

    `published` is None for shards of which no store says it; of these so many steps, by shard, were `done`.
    """
    reader = Reader.of(shown)
    steps = {shard: done[shard] if v is None else v.shape[1] for shard, v in published.items()}
    counts = reader.counts(steps)
    for shard, v in published.items():
        if v is not None:
            delivered.check_noise(v)
            assert counts.faults or [reader.value(shard, t) for t in range(v.shape[1])] == v.T.tolist()
    return counts
