"""Departures from New York by airport, carried by Spark: a file a day comes in, and tables that are private go out.

    PYSPARK_PYTHON=.venv/bin/python .venv/bin/python examples/engines/spark_departures.py --out DIR [--days 7]

The end of each day's file closes the hours of that day. Kill it whenever you like and run it again: it goes on, and
what DIR/public shows stays as it was. The times are local ones without an offset, which are taken for UTC.
"""

import argparse
from pathlib import Path

from departures import HOURS, declare, split_days
from pyspark.sql import SparkSession

import dpfast as dp


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--days", type=int, choices=range(1, 31), default=7)
    options = parser.parse_args()
    out = options.out.absolute()
    (out / "private").mkdir(mode=0o700, parents=True, exist_ok=True)
    shards, pieces = declare(out, options.days), out / "private" / "pieces"
    here = {"spark.ui.enabled": "false", "spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
    session = SparkSession.builder.master("local[2]").config(map=here).getOrCreate()
    for day, file in enumerate(split_days(out, options.days)):
        dp.cut_pieces(shards, file, pieces, first=day * HOURS, n_steps=HOURS)
        writer = dp.spark_source(session, pieces).writeStream.foreachBatch(dp.spark_publisher(shards))
        writer = writer.option("checkpointLocation", str(out / "private" / "checkpoint"))
        writer.trigger(availableNow=True).start().awaitTermination()
        print(f"{file.stem} is published")
    session.stop()


if __name__ == "__main__":
    main()
