"""Departures from New York by airport, carried by Spark: a file a day comes in, and tables that are private go out.

    PYSPARK_PYTHON=.venv/bin/python .venv/bin/python examples/engines/spark_departures.py --out DIR [--days 7]

The end of each day's file closes the hours of that day. Kill it whenever you like and run it again: it goes on, and
what DIR/public shows stays as it was. The times are local ones without an offset, which are taken for UTC.
"""

import argparse
import csv
import gzip
import math
from pathlib import Path

from pyspark.sql import SparkSession

import dpfast as dp

LOG = Path(__file__).parents[1] / "nyc_departures_2013.csv.gz"
AIRPORTS = ("EWR", "JFK", "LGA")
HOURS = 24


def declare(out, days):
    """A departure more or less changes an input by one; what is published is a moving average over some hours."""
    mechanism = dp.zero_forcing(dp.Filter([0.3], [1, -0.7]), dp.Privacy(epsilon=math.log(3), delta=1e-6))
    return dp.Shards(
        mechanism,
        out / "private" / "stores",
        dp.Inputs(0, 60, n_streams=len(AIRPORTS)),
        span=dp.Span.parse("2013-01-01T00:00Z", f"2013-01-{days + 1:02}T00:00Z", "1h"),
        groups=AIRPORTS,
        columns=dp.ColumnNames("time", "airport"),
        published=out / "public",
        n_shards=len(AIRPORTS),
        replay_steps=2 * HOURS,
    )


def split_days(out, days):
    """Yield the day's file of each day, as another system would hand it over."""
    with gzip.open(LOG, "rt", encoding="utf-8", newline="") as file:
        rows = [row for row in csv.reader(file) if row[0] < f"2013-01-{days + 1:02}"]
    for day in range(days):
        name = f"2013-01-{day + 1:02}"
        lines = [f"{time}Z,{airport}\n" for time, airport in rows if time.startswith(name)]
        (out / "private" / f"{name}.csv").write_text("".join(["time,airport\n", *lines]), encoding="utf-8")
        yield out / "private" / f"{name}.csv"


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
