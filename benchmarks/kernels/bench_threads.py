"""How much faster two threads are than one, for jobs of three sizes: the fastest rounds of both.

In the others somebody else may have used one of the processors. Multiply-adds in registers show what the machine gave
in the same rounds: where it did not give two processors, nothing is said about our threads.
"""

import functools
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from benchmarks.harness import peak
from benchmarks.harness.race import Contestant, race
from benchmarks.kernels.bench_chain import dpfast

JOBS = {"5 ms": (256, 8_000), "50 ms": (512, 40_000), "1 s": (4096, 100_000)}  # what one thread takes, about
ENOUGH = 1.8  # of the machine, to judge


@pytest.mark.parametrize("job", JOBS)
@pytest.mark.benchmark(group="threads")
def bench_two_threads(benchmark, job):
    n_streams, n_samples = JOBS[job]
    run = functools.partial(dpfast, np.float64, n_streams, n_samples, 1)
    two, one = (Contestant(functools.partial(run, n_threads=n), n_streams * n_samples) for n in (2, 1))
    loop, n = peak.loop(np.float64)
    with ThreadPoolExecutor(2) as pool:
        loops = Contestant(lambda: list(pool.map(lambda _: loop(), range(2))), 2 * n)
        references = {"one": one, "loop": Contestant(loop, n), "two loops": loops}
        own, others = race(benchmark, two, references, rounds=10 if job == "1 s" else 40)
    machine = float(others["loop"].min() / others["two loops"].min())
    figures = {f"two threads, {job}: multiply-adds in registers": machine}
    if machine < ENOUGH:
        benchmark.extra_info["missing"] = {f"two threads, {job}": f"the machine gave {machine:.2f}"}
    else:
        figures[f"two threads, {job}"] = float(others["one"].min() / own.min())
    benchmark.extra_info["figures"] = figures
