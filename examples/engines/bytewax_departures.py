"""Departures from New York by airport, carried by Bytewax: a file a day comes in, and tables that are private go out.

    .venv/bin/python examples/engines/bytewax_departures.py --out DIR [--days 7] [--workers 2]

The end of each day's file closes the hours of that day. Kill it whenever you like and run it again: it goes on, and
what DIR/public shows stays as it was. The times are local ones without an offset, which are taken for UTC.
"""

import argparse
import datetime
from pathlib import Path

import bytewax.operators as op
from bytewax.dataflow import Dataflow
from bytewax.recovery import RecoveryConfig, init_db_dir
from bytewax.testing import cluster_main
from departures import HOURS, declare, split_days

import dpfast as dp


def open_recovery(folder):
    """What Bytewax knows of how far it came; where it is lost all pieces are delivered again, and none published."""
    folder.mkdir(mode=0o700, exist_ok=True)
    if not any(folder.iterdir()):
        init_db_dir(folder, 1)
    return RecoveryConfig(folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--days", type=int, choices=range(1, 31), default=7)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    out = options.out.absolute()
    (out / "private").mkdir(mode=0o700, parents=True, exist_ok=True)
    shards, pieces = declare(out, options.days), out / "private" / "pieces"
    flow = Dataflow("departures")
    closed = op.input("pieces", flow, dp.bytewax_source(shards, pieces, wait=False))
    op.output("tables", closed, dp.bytewax_sink(shards))
    for day, file in enumerate(split_days(out, options.days)):
        dp.cut_pieces(shards, file, pieces, first=day * HOURS, n_steps=HOURS)
        cluster_main(
            flow,
            [],
            0,
            worker_count_per_proc=options.workers,
            epoch_interval=datetime.timedelta(0),
            recovery_config=open_recovery(out / "private" / "recovery"),
        )
        print(f"{file.stem} is published", flush=True)


if __name__ == "__main__":
    main()
