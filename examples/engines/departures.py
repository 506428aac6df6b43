"""What the examples of this folder publish: departures from New York, a file a day, a shard for each airport."""

import csv
import gzip
import math
from pathlib import Path

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
