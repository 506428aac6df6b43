"""Lives of Bytewax: a dataflow over two shards that goes on from its own recovery store, and publishes in its sink."""

import datetime
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import bytewax.operators as op
from bytewax.dataflow import Dataflow
from bytewax.inputs import FixedPartitionedSource, StatefulSourcePartition
from bytewax.outputs import FixedPartitionedSink, StatefulSinkPartition
from bytewax.recovery import RecoveryConfig, init_db_dir
from bytewax.testing import run_main
from helpers import delivered, readers

SHARDS = ("0", "1")
NEW = 2  # pieces of a shard that a life delivers beyond what was snapshot before


class Pieces(StatefulSourcePartition):
    """Pieces of a shard, one behind the other, from before what was snapshot."""

    def __init__(self, shard, depth, resumed):
        self._shard, self._depth, self._done = shard, depth, resumed or 0
        self._next, self._new = max(0, self._done - depth), NEW

    def next_batch(self):
        if not self._new:
            raise StopIteration
        first = self._next
        self._next += delivered.length(first)
        self._new -= first >= self._done
        return [(self._shard, first)]

    def snapshot(self):
        return max(self._next, self._done)


@dataclass
class Source(FixedPartitionedSource):
    depth: int

    def list_parts(self):
        return list(SHARDS)

    def build_part(self, step_id, shard, resumed):
        return Pieces(shard, self.depth, resumed)


class Table(StatefulSinkPartition):
    """What publishes a shard, in front of what everybody sees."""

    def __init__(self, delivery, shard):
        self._delivery, self._shard, self._next = delivery, shard, 0
        self._stream = delivery.open(shard)

    def write_batch(self, firsts):
        for first in firsts:
            n = delivered.length(first)
            v = self._stream.push(delivered.inputs(first, n), first=first).privatized
            self._delivery.emit(self._shard, first, v)
            self._next = first + n

    def snapshot(self):
        return self._next

    def close(self):
        self._stream.__exit__(None, None, None)


@dataclass
class Sink(FixedPartitionedSink):
    delivery: "BytewaxDelivery"

    def list_parts(self):
        return list(SHARDS)

    def part_fn(self, key):
        return SHARDS.index(key)

    def build_part(self, step_id, shard, resumed):
        return Table(self.delivery, shard)


@dataclass(frozen=True)
class BytewaxDelivery:
    """As deliveries.Delivery, of what Bytewax delivers by itself."""

    folder: Path
    arbiter: Any
    depth: int

    @property
    def calls(self):
        own = ((Pieces, "next_batch"), (Pieces, "snapshot"), (Table, "snapshot"), (BytewaxDelivery, "emit"))
        return (*self.arbiter.calls, *own)

    @property
    def shown(self):
        return self.folder / "shown.jsonl"

    def open(self, shard):
        (self.folder / shard).mkdir(exist_ok=True)
        return self.arbiter.open(self.folder / shard, self.depth)

    def emit(self, shard, first, v):
        readers.emit(self.shown, shard, first, v)

    def live(self):
        recovery = self.folder / "recovery"
        if not (recovery / "whole").exists():
            recovery.mkdir(exist_ok=True)
            init_db_dir(recovery, 1)
            (recovery / "whole").touch()
        flow = Dataflow("departures")
        op.output("table", op.input("pieces", flow, Source(self.depth)), Sink(self))
        run_main(flow, epoch_interval=datetime.timedelta(0), recovery_config=RecoveryConfig(recovery))

    def check(self):
        published = {shard: self.arbiter.read(self.folder / shard) for shard in SHARDS}
        seen = readers.Reader.of(self.shown).values
        return readers.check(self.shown, published, {shard: max(seen[shard]) + 1 for shard in SHARDS})
