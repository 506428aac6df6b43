"""How much faster two threads are than one, for jobs of three sizes: the fastest rounds of both.

In the others somebody else may have used one of the processors.
"""

import functools

import numpy as np
import pytest

from benchmarks.bench_chain import dpfast
from benchmarks.race import Contestant, race
from dpfast._kernels import threads

JOBS = {"5 ms": (256, 8_000), "50 ms": (512, 40_000), "1 s": (4096, 100_000)}  # what one thread takes, about


@pytest.mark.skipif(threads.default_threads() < 2, reason="there is one processor")
@pytest.mark.parametrize("job", JOBS)
@pytest.mark.benchmark(group="threads")
def bench_two_threads(benchmark, job):
    n_streams, n_samples = JOBS[job]
    run = functools.partial(dpfast, np.float64, n_streams, n_samples, 1)
    rounds = 7 if job == "1 s" else 40
    subject, one = (Contestant(functools.partial(run, n_threads=n), n_streams * n_samples) for n in (2, 1))
    two, times = race(benchmark, subject, {"one thread": one}, rounds=rounds)
    benchmark.extra_info["figures"] = {f"two threads, {job}": float(times["one thread"].min() / two.min())}
