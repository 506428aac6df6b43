"""Filters that keep their state, pushed a step or a few at a time, against scipy's with its `zi` on the same core."""

import numpy as np
import pytest
from scipy import signal

import dpfast as dp
from benchmarks.harness.race import race_on_one_core, repeated

SIZES = [(1, 1), (100, 1), (1, 1000), (1, 100_000)]  # steps and streams
B, A = signal.butter(3, 0.2)
AT_LEAST = 2000  # samples that a contestant filters in a turn


@pytest.mark.parametrize("size", SIZES, ids="{0[0]}x{0[1]}".format)
@pytest.mark.benchmark(group="filters that keep their state")
def bench_push(benchmark, size):
    """Both get arrays as they take them best: lfilter's are (streams, time)."""
    n_steps, n_streams = size
    x = np.random.default_rng(1).standard_normal(size)
    rows, step = np.ascontiguousarray(x.T), x[0].copy() if n_steps == 1 else x
    stream = dp.Filter(B, A).stream(n_streams)
    rest = np.zeros((n_streams, len(A) - 1))
    np.testing.assert_allclose(stream.copy().push(x), signal.lfilter(B, A, rows, zi=rest)[0].T, atol=1e-12)
    state = [rest]

    def lfilter():
        state[0] = signal.lfilter(B, A, rows, zi=state[0])[1]

    calls = max(6, AT_LEAST // x.size)
    subject, other = (repeated(function, calls, x.size) for function in (lambda: stream.push(step), lfilter))
    what = f"push of {n_steps} × {n_streams}"
    race_on_one_core(benchmark, what, np.float64, subject, {"lfilter": other})
    benchmark.extra_info["figures"][f"{what}: ns"] = benchmark.extra_info["race"]["ns"]
