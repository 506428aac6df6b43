"""Many streams in one store: seconds of a step and of opening it again, bytes of a value, memory. Run by itself."""

import json
import resource
import sys
import time
from pathlib import Path

import numpy as np

import dpfast as dp

WARM, STEPS = 16, 16  # steps until every part of the receiver was stored, and those that are measured


def main(n_streams, folder):
    target, model = dp.Filter(np.full(12, 1 / 12)), dp.ARMA([1], [1, -0.5], mean=2.0)
    mechanism = dp.lmmse(target, dp.Privacy(1, 1e-6), model, lag=5)
    plan = dp.exact(mechanism, dp.Inputs(0, 30, n_streams=n_streams))
    store, rng, sizes, seconds = Path(folder, "store"), np.random.default_rng(1), [], []
    for steps in (WARM, STEPS):
        with dp.open_stream(plan, store) as stream:
            for _ in range(steps):
                u = rng.poisson(2, (n_streams, 1))
                stream.prepare()
                start = time.perf_counter()
                stream.push(u)
                stream.prepare()
                seconds.append(time.perf_counter() - start)
        del stream
        sizes.append(sum(x.stat().st_size for x in store.iterdir()))
    start = time.perf_counter()
    dp.open_stream(plan, store).suspend()
    opening = time.perf_counter() - start
    found = {
        "seconds": float(np.median(seconds[WARM:])),
        "opening": opening,
        "bytes": (sizes[1] - sizes[0]) / (STEPS * n_streams),
        "MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
