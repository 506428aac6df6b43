"""What a short call of `monte_carlo` takes beside its samples."""

import time

import numpy as np
import pytest

import dpfast as dp
from benchmarks.harness import case
from benchmarks.harness.race import one_core, race, repeated

STREAMS, SAMPLES, MANY = 64, 10, 20_000
CALLS = 20
TARGET, PRIVACY = dp.Filter(case.TARGET_B, case.TARGET_A), dp.Privacy(np.log(3), 0.05)


@pytest.mark.benchmark(group="calls")
def bench_short_study(benchmark):
    """Zero forcing, errors counted from the first step on; the samples are those of a long study."""
    mechanism = dp.zero_forcing(TARGET, PRIVACY)

    def study(n_samples, seed=1):
        sizes = {"n_streams": STREAMS, "n_samples": n_samples, "burn_in": 0}
        return dp.monte_carlo(mechanism, case.MODEL, **sizes, seed=seed, n_threads=1)

    long = repeated(lambda: study(MANY), 1, STREAMS * MANY)
    with one_core():
        own, others = race(benchmark, repeated(lambda: study(SAMPLES), CALLS), {"long": long}, clock=time.process_time)
    samples = STREAMS * SAMPLES * others["long"]
    benchmark.extra_info["figures"] = {
        "study of 64 × 10, µs beside the samples": 1e6 * float(np.median(own - samples)),
        "study of 64 × 20000, ns a sample": 1e9 * float(np.median(others["long"])),
    }
