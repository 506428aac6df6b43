"""Lives of Spark: structured streaming from a folder of pieces, one file each, that publishes in `foreachBatch`."""

import logging
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from helpers import delivered, readers
from pyspark import SparkContext
from pyspark.sql import SparkSession

SHARD = "0"
SCHEMA = "path string, modificationTime timestamp, length long, content binary"
BATCHES = 2  # that a life delivers beyond what a reader has seen before


def start_spark(folder):
    """A session in this process and a Java machine of its own."""
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": "1",
        "spark.local.dir": str(folder / "local"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.driver.extraJavaOptions": f"-XX:TieredStopAtLevel=1 -Djava.io.tmpdir={folder / 'local'}",
    }
    builder = SparkSession.builder.master("local[1]").appName("kills")
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


def leave_classes(folder, arbiter):
    """In a process of its own: a life whose Java machine ends before it does, with its archive of classes whole."""
    SparkDelivery(folder, arbiter, 1).live()
    gateway = SparkContext._gateway
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait()


@dataclass(frozen=True)
class SparkDelivery:
    """As deliveries.Delivery, of what Spark delivers by itself: after a kill it delivers its last batch again.

    Attributes
    ----------
    depth : int
        Steps of a batch.
    """

    folder: Path
    arbiter: Any
    depth: int

    @property
    def calls(self):
        own = ("emit", "publish", "publish_step", "publish_last")
        return (*self.arbiter.calls, *((SparkDelivery, name) for name in own))

    @property
    def shown(self):
        return self.folder / "shown.jsonl"

    def emit(self, first, v):
        readers.emit(self.shown, SHARD, first, v)

    def published(self):
        """The step behind those that a reader saw."""
        return max(readers.Reader.of(self.shown).values.get(SHARD, {-1: ()})) + 1

    def close_pieces(self):
        """Write the files of the steps of further batches."""
        pieces = self.folder / "pieces"
        pieces.mkdir(exist_ok=True)
        (self.folder / "local").mkdir(exist_ok=True)
        end = -(-self.published() // self.depth + -BATCHES) * self.depth
        for step in range(len(list(pieces.glob("*.step"))), end):
            new = pieces / f".{step:09}.new"
            new.write_text(f"{step}")
            os.utime(new, (step, step))  # Spark takes files in this order
            new.rename(pieces / f"{step:09}.step")

    def publish(self, stream, rows):
        """Publish the pieces of a batch, in their order, and show them."""
        steps = sorted(int(row.content) for row in rows)
        for first in steps:
            is_last = first == steps[-1] and first >= stream.position
            (self.publish_last if is_last else self.publish_step)(stream, first)

    def publish_step(self, stream, first):
        self.emit(first, stream.push(delivered.inputs(first, 1), first=first).privatized)

    def publish_last(self, stream, first):
        """Publish the last step of a batch, unless it was published before: behind it the whole batch comes again."""
        self.publish_step(stream, first)

    def live(self):
        self.close_pieces()
        spark = start_spark(self.folder)
        logging.getLogger("py4j").setLevel(logging.CRITICAL)
        files = spark.readStream.format("binaryFile").schema(SCHEMA).option("pathGlobFilter", "*.step")
        batches = files.option("maxFilesPerTrigger", self.depth).load(str(self.folder / "pieces"))
        with self.arbiter.open(self.folder, self.depth) as stream:
            writer = batches.writeStream.option("checkpointLocation", str(self.folder / "checkpoint"))
            writer = writer.foreachBatch(lambda batch, number: self.publish(stream, batch.select("content").collect()))
            writer.trigger(availableNow=True).start().awaitTermination()
        spark.stop()

    def check(self):
        return readers.check(self.shown, {SHARD: self.arbiter.read(self.folder)}, {SHARD: self.published()})
