"""A batch of many streams and steps: seconds of its release, and the memory of a value. Run by itself."""

import json
import sys
import time
from pathlib import Path

import numpy as np

import dpfast as dp
from benchmarks.harness.memory import most_memory
from benchmarks.releases.many_streams import hourly_average


def main(n_streams, n_steps, folder):
    plan = dp.exact(hourly_average(), dp.Inputs(0, 30, n_streams=n_streams))
    u, rng = np.empty((n_streams, n_steps), np.int64), np.random.default_rng(1)
    for row in u:
        row[:] = rng.poisson(2, n_steps)
    before, start = most_memory(), time.perf_counter()
    released = dp.release(plan, u, Path(folder, "store"))
    seconds = time.perf_counter() - start
    assert released.estimate.shape == u.shape
    print(json.dumps({"seconds": seconds, "bytes": (most_memory() - before) / u.size}))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
