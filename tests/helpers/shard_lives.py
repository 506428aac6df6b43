"""Lives of shards: pieces of files go through the sources and sinks of the package, and a reader keeps every table."""

import datetime
import functools
import os
import shutil
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from helpers import delivered, faults, readers

import dpfast as dp
from dpfast.releases.engines.open_shard import Shard
from dpfast.releases.engines.pieces import list_pieces, parse_path, write_piece
from dpfast.releases.estimates_layout import Layout
from dpfast.releases.feed.live_estimates_file import Journal

SPAN = dp.Span.parse("2030-01-01T00:00Z", "2031-01-01T00:00Z", "5min")
GROUPS = ("a", "b")
NEW = 2  # pieces of each shard that a life closes


@dataclass(frozen=True)
class ShardDelivery:
    """As deliveries.Delivery, of pieces through an engine and the package's source and sink.

    Attributes
    ----------
    folder : Path
    arbiter : Arbiter
    depth : int
        The declared replay depth: pieces behind it are deleted. Where it is not 0 the engine forgets, before each life,
        where it was, and delivers all that is left.
    witness : Postgres, optional
        The second one of all stores.
    """

    folder: Path
    arbiter: Any
    depth: int
    witness: Any = None

    @property
    def calls(self):
        return (*self.arbiter.calls, (Shard, "publish"), (Journal, "append"))

    @property
    def shown(self):
        return self.folder / "shown.jsonl"

    @property
    def pieces(self):
        return self.folder / "pieces"

    def shards(self):
        return dp.Shards(
            delivered.plan(),
            self.arbiter.place(self.folder),
            delivered.plan().inputs,
            span=SPAN,
            groups=GROUPS,
            columns=dp.ColumnNames("time", "group"),
            published=self.folder / "published",
            n_shards=len(GROUPS),
            witness=self.witness,
            replay_steps=self.depth,
            delete_pieces=True,
        )

    def close_pieces(self, shards):
        """Close some pieces more, of every shard; what a kill has left out comes first."""
        ends = [parse_path(found[-1])[2] if (found := list_pieces(self.pieces, i)) else 0 for i in range(len(GROUPS))]
        last = max(ends)
        for _ in range(NEW):
            last += delivered.length(last)
        for number, end in enumerate(ends):
            first = end
            while first < last:
                n = delivered.length(first)
                write_piece(self.pieces, shards.split(first, delivered.inputs(first, n))[number])
                first += n

    def forget(self):
        """Have the engine forget where it was."""
        if self.depth:
            shutil.rmtree(self.folder / "engine", ignore_errors=True)

    def live(self):
        self.forget()
        shards = self.shards()
        self.close_pieces(shards)
        self.run(shards)

    def look(self):
        """A reader looks at the tables: he sees what is new, and all of one whose rows have changed."""
        for number in range(len(GROUPS)):
            table, known = self.folder / "published" / f"shard-000{number}" / "estimates.csv", self.folder / f"{number}"
            before = known.read_text() if known.exists() else ""
            now = table.read_text() if table.exists() else ""
            now = now[: now.rfind("\n") + 1]
            first = before.count("\n") if now.startswith(before) else 0
            for step, line in enumerate(now.splitlines()[max(first, 1) :], max(first, 1) - 1):
                readers.emit(self.shown, number, step, np.array([[float(line.split(",")[2])]]))
            known.write_text(now)

    def check(self):
        """Compare what the reader saw with the stores, and these with what the filter makes of the inputs."""
        found = [self.read(number) for number in range(len(GROUPS))]
        delivered.check_noise(np.concatenate([result.privatized for result in found]))
        reader = readers.Reader.of(self.shown)
        counts = reader.counts({number: result.privatized.shape[1] for number, result in enumerate(found)})
        for number, result in enumerate(found):
            layout = Layout(SPAN, GROUPS[number : number + 1], result.predicted_rmse_if_model_holds)
            rows = [float(line.split(",")[2]) for line in layout.csv(0, result.estimate).splitlines()]
            assert counts.faults or [reader.value(number, t)[0] for t in range(len(rows))] == rows
        return counts

    def read(self, number):
        name = f"shard-000{number}"
        place = self.arbiter.place(self.folder)
        there = place.beside(f"-000{number}") if isinstance(place, dp.Postgres) else place / name
        return dp.read_release(there, published=self.folder / "published" / name)


class BytewaxShards(ShardDelivery):
    """Through dp.bytewax_source and dp.bytewax_sink."""

    def run(self, shards):
        import bytewax.operators as op
        from bytewax.dataflow import Dataflow
        from bytewax.recovery import RecoveryConfig, init_db_dir
        from bytewax.testing import run_main

        recovery = self.folder / "engine"
        if not (recovery / "whole").exists():
            shutil.rmtree(recovery, ignore_errors=True)
            recovery.mkdir()
            init_db_dir(recovery, 1)
            (recovery / "whole").touch()
        flow = Dataflow("departures")
        op.output(
            "table",
            op.input("pieces", flow, dp.bytewax_source(shards, self.pieces, wait=False)),
            dp.bytewax_sink(shards),
        )
        run_main(flow, epoch_interval=datetime.timedelta(0), recovery_config=RecoveryConfig(recovery))


class SparkShards(ShardDelivery):
    """Through dp.spark_source and dp.spark_publisher; shards are opened and published in processes of Spark's."""

    def run(self, shards):
        from helpers.spark_lives import start_spark

        spark = start_spark(self.folder)
        writer = dp.spark_source(spark, self.pieces).writeStream.foreachBatch(dp.spark_publisher(shards))
        writer = writer.option("checkpointLocation", str(self.folder / "engine")).trigger(availableNow=True)
        writer.start().awaitTermination()
        spark.stop()

    def live_until(self, k):
        """In a process of its own: a life that is killed, with all that it started, at the k-th point of publishing."""
        os.setpgid(0, 0)
        self.forget()
        shards = self.shards()
        self.close_pieces(shards)
        self.run(Killed(shards, k, self.calls, os.getpgrp()))


class Killed(dp.Shards):
    """Shards whose processes in Spark are killed at a point of theirs, and all of a life with them."""

    def __init__(self, shards, k, calls, group):
        self.__dict__.update(vars(shards))
        self._kill = k, calls, group

    def open(self, shard, **options):
        k, calls, group = self._kill
        faults.instrument(setattr, faults.reaching(k, functools.partial(kill_all, group)), calls)
        return super().open(shard, **options)


def kill_all(group, name):
    os.killpg(group, signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)
