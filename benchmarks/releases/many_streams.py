"""Many streams in one store: seconds of a step and of opening it again, bytes of a value, memory. Run by itself."""

import json
import sys
import time
from pathlib import Path

import numpy as np

import dpfast as dp
from benchmarks.harness.memory import most_memory

WARM, STEPS = 16, 16  # steps until every part of the receiver was stored, and those that are measured at the least


def hourly_average():
    """An hour's moving average of counts in 5-minute bins, with 13 taps."""
    target, model = dp.Filter(np.full(12, 1 / 12)), dp.ARMA([1], [1, -0.5], mean=2.0)
    return dp.lmmse(target, dp.Privacy(1, 1e-6), model, lag=5)


def main(n_streams, folder, measured=STEPS):
    plan = dp.exact(hourly_average(), dp.Inputs(0, 30, n_streams=n_streams))
    store, rng, sizes, written, seconds = Path(folder, "store"), np.random.default_rng(1), [], [], []
    for steps in (WARM, measured):
        with dp.open_stream(plan, store) as stream:
            written.append(bytes_written())
            for _ in range(steps):
                u = rng.poisson(2, (n_streams, 1))
                stream.prepare()
                start = time.perf_counter(), time.process_time()
                stream.push(u)
                stream.prepare()
                seconds.append((time.perf_counter() - start[0], time.process_time() - start[1]))
        del stream
        written.append(bytes_written())
        sizes.append(sum(x.stat().st_size for x in store.iterdir()))
    start = time.perf_counter()
    dp.open_stream(plan, store).suspend()
    opening = time.perf_counter() - start
    clock, processor = np.median(seconds[WARM:], axis=0)
    found = {
        "seconds": clock,
        "processor": processor,
        "opening": opening,
        "bytes": (sizes[1] - sizes[0]) / (measured * n_streams),
        "written": (written[3] - written[2]) / (measured * n_streams),
        "MB": most_memory() / 2**20,
    }
    print(json.dumps(found))


def bytes_written():
    """What this process has handed to the file system so far, also what it has written over."""
    lines = dict(line.split(":") for line in Path("/proc/self/io").read_text().splitlines())
    return int(lines["wchar"])


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], *map(int, sys.argv[3:]))
