"""Spark carries pieces to the stores of shards: a function for the batches of structured streaming."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from dpfast._support import validation
from dpfast._support.errors import ReleaseError
from dpfast.releases.arbiters.place import Postgres
from dpfast.releases.engines.pieces import list_pieces, parse_path
from dpfast.releases.engines.shards import Shards

_ROW = "path string, modificationTime timestamp, length long, content binary"
_NUMBER = r"shard-(\d{4})/steps-\d{12}-\d{12}\.piece$"


def spark_source(session: Any, folder: str | os.PathLike[str], *, at_once: int = 1000) -> Any:
    """Return a stream of Spark that has the pieces of a folder as rows, as they are closed.

    A piece is one row, so that a bin without an event is a row like any other.

    Parameters
    ----------
    session : SparkSession
        The session of Spark in which the stream runs.
    folder : path-like
        Where :func:`cut_pieces` and :func:`close_bins` write, which every worker sees.
    at_once : int
        Files of a batch, at most.

    Returns
    -------
    DataFrame
    """
    there = validation.path("folder", folder).absolute()
    reader = session.readStream.format("binaryFile").schema(_ROW).option("pathGlobFilter", "*.piece")
    # a batch that is delivered again may have pieces that were deleted: any other one that is missing, a store refuses
    reader = reader.option("ignoreMissingFiles", "true")
    return reader.option("maxFilesPerTrigger", validation.integer("at_once", at_once, 1)).load(f"{there}/shard-*")


def spark_publisher(shards: Shards) -> Callable[[Any, int], None]:
    """Return a function for ``foreachBatch`` of Spark's structured streaming that publishes pieces.

    The stream is that of :func:`spark_source`. A batch says how far each shard has come; shards are published side by
    side by Spark's workers, whose Python must have dpfast (PYSPARK_PYTHON). Whatever Spark delivers again after a crash
    is published once: the store of the shard decides, not the number of the batch.

    Parameters
    ----------
    shards : Shards
        In PostgreSQL where workers are on several machines; in a folder Spark must run on one.

    Returns
    -------
    callable
        Of a data frame and the number of its batch.

    Raises
    ------
    ReleaseError
        By the function: where shards in a folder are to be published by several machines, and as
        :meth:`Shard.publish` raises.
    """
    validation.instance("shards", shards, Shards, "a Shards")
    functions = validation.optional("pyspark.sql.functions", "spark")

    def publish(frame: Any, batch_id: int) -> None:
        _check_master(shards, frame.sparkSession.sparkContext.master)
        # names alone: what is sent between workers lies in files of Spark's that anybody on the machine can read
        numbered = frame.select("path").withColumn("shard", functions.regexp_extract("path", _NUMBER, 1))
        parted = numbered.repartition(shards.n_shards, "shard")
        parted.foreachPartition(functools.partial(_publish_rows, shards))

    return publish


def _check_master(shards: Shards, master: str) -> None:
    if not isinstance(shards.place, Postgres) and not master.startswith("local"):
        raise ReleaseError(
            f"place must be in PostgreSQL where Spark has workers on several machines (master {master}), got the "
            f"folder {shards.place}: give dp.Postgres(...), or run Spark with master local[*]"
        )


def _publish_rows(shards: Shards, rows: Iterable[Any]) -> None:
    """Publish the pieces of a partition, shard by shard."""
    for shard, delivered in _by_shard(rows):
        with shards.open(shard) as opened:
            for path in sorted(delivered | _pieces_before(delivered, shard, opened.position)):
                opened.publish(path)


def _by_shard(rows: Iterable[Any]) -> Iterator[tuple[int, set[Path]]]:
    """Yield each shard with its pieces."""
    found: dict[int, set[Path]] = {}
    for row in rows:
        path = Path(row.path.removeprefix("file:"))
        found.setdefault(parse_path(path)[0], set()).add(path)
    yield from sorted(found.items())


def _pieces_before(delivered: set[Path], shard: int, position: int) -> set[Path]:
    """Return the pieces that are due before the last one that was delivered.

    Spark takes files by the times of their last change, which copies change or make equal, and leaves out those that
    are much older than others. A batch that lacks a piece would be delivered again for ever, and lack it for ever.
    """
    last = max(delivered)
    there = list_pieces(last.parent.parent, shard)
    return {path for path in there if path < last and parse_path(path)[1] >= position}
