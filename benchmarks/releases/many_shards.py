"""A shard of many streams, as an engine drives it: what each stage of a step takes. Run by itself.

Every stream has one event at every step. A piece is closed, read by whoever delivers it, and published; the shard
writes the public table.
"""

import json
import sys
import time
from pathlib import Path

import numpy as np

import dpfast as dp
from benchmarks.releases.many_streams import hourly_average
from dpfast.releases.engines.pieces import Piece, read_piece, write_piece

WARM, STEPS = 8, 8


def main(n_streams, folder):
    shards = dp.Shards(
        hourly_average(),
        Path(folder, "stores"),
        dp.Inputs(0, 30, n_streams=n_streams),
        span=dp.Span.parse("2030-01-01T00:00Z", "2031-01-01T00:00Z", "1min"),
        groups=[f"place-{i:06}" for i in range(n_streams)],
        columns=dp.ColumnNames("time", "place"),
        published=Path(folder, "published"),
        keep_steps=WARM,
    )
    ones, stages = np.ones((n_streams, 1), np.int64), []
    table = Path(folder, "published/shard-0000/estimates.csv")
    with shards.open(0) as shard:
        for step in range(WARM + STEPS):
            if step == WARM:
                before = table.stat().st_size
            times = [time.process_time()]
            path = write_piece(Path(folder, "pieces"), Piece(0, step, ones))
            times.append(time.process_time())
            piece = read_piece(path)
            times.append(time.process_time())
            shard.publish(piece)
            times.append(time.process_time())
            stages.append(np.diff(times))
    cut, read, publish = np.median(stages[WARM:], axis=0) / n_streams * 1e6
    found = {"cut": cut, "read": read, "publish": publish, "piece": path.stat().st_size / n_streams}
    print(json.dumps(found | {"table": (table.stat().st_size - before) / (STEPS * n_streams)}))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
