"""Stores of releases over streams and over steps: time of a step, bytes of a value, memory, opening.

Times are those of the processor but where they are said to be of the clock, in which others write to the disk too.

python -m benchmarks.growth.stores docs/measurements/performance/stores.json
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import dpfast as dp
from benchmarks.releases.many_streams import hourly_average

DECADES = [10**k for k in range(7)]
CHUNK = 100  # steps of the pushes by which a stream comes to so many steps
SINGLE, OPENINGS = 100, 3  # pushes of one step each that are timed, and openings
KEPT = {"all": None, "the last 1,000": 1000}  # steps, by what a row calls them
MANY = "benchmarks.releases.many_streams"


def measure_streams(n):
    """A step of so many streams, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        measured = 16 if n >= 10**5 else min(1024, 10**6 // n)  # files grow by pages: a few values are no whole one
        return {"group": "streams", "n": n, **printed(["-m", MANY, str(n), folder, str(measured)])}


def measure_steps(kept, decades=DECADES):
    """Pushes of one stream that has published so many steps, and its opening, in microseconds and seconds."""
    plan, rng, rows, position = dp.exact(hourly_average(), dp.Inputs(0, 30)), np.random.default_rng(1), [], 0
    with tempfile.TemporaryDirectory() as folder:
        for n in decades:
            with dp.open_stream(plan, Path(folder, "store"), keep_steps=KEPT[kept]) as stream:
                while position < n:
                    u = rng.poisson(2, (1, min(CHUNK, n - position)))
                    stream.push(u)
                    position += u.shape[1]
            opening = min(timed(lambda: dp.open_stream(plan, Path(folder, "store")).suspend()) for _ in range(OPENINGS))
            with dp.open_stream(plan, Path(folder, "store"), keep_steps=KEPT[kept]) as stream:
                u = rng.poisson(2, (min(SINGLE, 9 * n), 1, 1))
                seconds = [timed(lambda x=x: stream.push(x)) for x in u]
                position += len(u)
            size = sum(x.stat().st_size for x in Path(folder, "store").iterdir())
            row = {"push": 1e6 * float(np.median(seconds)), "opening": opening, "bytes": size}
            rows.append({"group": "steps", "kept": kept, "n": n, **row})
    return rows


def timed(call):
    start = time.process_time()
    call()
    return time.process_time() - start


def printed(arguments):
    """What Python prints in a new process."""
    command = [sys.executable, *arguments]
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)


def main(arguments):
    rows = []
    for n in DECADES:
        rows.append(measure_streams(n))
        print(rows[-1], flush=True)
    for kept in KEPT:
        rows += measure_steps(kept)
        print(*rows[-len(DECADES) :], sep="\n", flush=True)
    Path(arguments[0]).parent.mkdir(parents=True, exist_ok=True)
    Path(arguments[0]).write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
